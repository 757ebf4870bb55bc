//! Whose request it is.

use std::any::{Any, type_name};
use std::fmt;

use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use http::request::Parts;
use idem_core::{InvalidTenant, Tenant};

use crate::builder::IdemBuilder;
use crate::code::Code;
use crate::problem::{Problem, Wording};

/// It was not said yet whose request each one is.
#[derive(Debug)]
pub struct NoTenants(pub(crate) ());

/// How a request's tenant is found.
pub struct Tenants(How);

/// Says whose request each one is: [`Tenants`] does, [`NoTenants`] does not yet.
#[diagnostic::on_unimplemented(
    message = "it was not said whose request each one is",
    label = "no tenant is known here",
    note = "call `single_tenant`, `scope_from` or `scope_fn` before: a key belongs to one tenant"
)]
pub trait KnowsTenants: sealed::Sealed {
    #[doc(hidden)]
    fn tenants(self) -> Tenants;
}

impl KnowsTenants for Tenants {
    fn tenants(self) -> Tenants {
        self
    }
}

mod sealed {
    pub trait Sealed {}

    impl Sealed for super::Tenants {}
}

impl Tenants {
    pub(crate) async fn of<S>(&self, parts: &mut Parts, state: &S) -> Result<Tenant, Unscoped>
    where
        S: Send + Sync + 'static,
    {
        match &self.0 {
            How::One(tenant) => Ok(tenant.clone()),
            How::Fn(find) => match find(parts) {
                Ok(Some(tenant)) => Ok(tenant),
                Ok(None) => Err(Unscoped::Missing("the closure of `scope_fn` found none".to_owned())),
                Err(refusal) => Err(Unscoped::Refused(*refusal)),
            },
            How::Extractor(extract) => extract(parts, state).await,
        }
    }
}

enum How {
    One(Tenant),
    Fn(Box<Closure>),
    Extractor(Box<Extractor>),
}

type Closure = dyn Fn(&Parts) -> Result<Option<Tenant>, Box<Response>> + Send + Sync;

type Extractor =
    dyn for<'a> Fn(&'a mut Parts, &'a (dyn Any + Send + Sync)) -> BoxFuture<'a, Result<Tenant, Unscoped>> + Send + Sync;

impl fmt::Debug for Tenants {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            How::One(_) => "Tenants::One",
            How::Fn(_) => "Tenants::Fn",
            How::Extractor(_) => "Tenants::Extractor",
        })
    }
}

/// Why a request has no tenant.
#[derive(Debug)]
pub(crate) enum Unscoped {
    /// The application's own refusal, of an unknown caller for instance.
    Refused(Response),
    /// The application named none, which it must; what is missing, for the log.
    Missing(String),
}

impl Unscoped {
    pub(crate) fn into_response(self, wording: &Wording) -> Response {
        match self {
            Self::Refused(refusal) => refusal,
            Self::Missing(why) => {
                let code = Code::ScopeMissing;
                tracing::error!(code = code.as_str(), why, "configuration error: a request was given no tenant");
                // The reason is about the service, so it stays in its log.
                Problem::new(code, "The service could not tell whose request this is, so nothing was done.")
                    .into_response(wording)
            }
        }
    }
}

impl IdemBuilder<NoTenants> {
    /// All requests are of one tenant: for a service that has one caller, or whose callers share their keys.
    ///
    /// # Errors
    /// [`InvalidTenant`] for a text that names none.
    pub fn single_tenant(self, tenant: impl AsRef<str>) -> Result<IdemBuilder<Tenants>, InvalidTenant> {
        Ok(self.with(How::One(Tenant::new(tenant)?)))
    }

    /// The tenant comes from an extractor of the application, which authenticates: its refusal goes out as it is,
    /// before the key is looked at, on a replay too.
    ///
    /// `S` is the router's state, found by itself where `E` extracts from one state only. An extractor that needs no
    /// state is given `()`, and serves every router: `.scope_from::<Merchant, ()>()`.
    ///
    /// ```
    /// use axum::extract::FromRequestParts;
    /// use axum::http::{StatusCode, request::Parts};
    /// use idem_axum::Idem;
    /// use idem_core::{InvalidTenant, MemoryStore, Tenant};
    ///
    /// struct Merchant(String);
    ///
    /// impl<S: Send + Sync> FromRequestParts<S> for Merchant {
    ///     type Rejection = StatusCode;
    ///
    ///     async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, StatusCode> {
    ///         let token = parts.headers.get("authorization").ok_or(StatusCode::UNAUTHORIZED)?;
    ///         // Here: who holds this token? Its holder is stable, the token is not.
    ///         # let _ = token;
    ///         Ok(Self("acme".into()))
    ///     }
    /// }
    ///
    /// impl TryFrom<Merchant> for Tenant {
    ///     type Error = InvalidTenant;
    ///
    ///     fn try_from(merchant: Merchant) -> Result<Self, InvalidTenant> {
    ///         Tenant::new(merchant.0)
    ///     }
    /// }
    ///
    /// let idem = Idem::builder(MemoryStore::new()).scope_from::<Merchant, ()>().build()?;
    /// # Ok::<(), idem_core::ConfigError>(())
    /// ```
    pub fn scope_from<E, S>(self) -> IdemBuilder<Tenants>
    where
        E: FromRequestParts<S> + TryInto<Tenant>,
        E::Error: fmt::Display,
        S: Send + Sync + 'static,
    {
        self.with(How::Extractor(Box::new(|parts, state| {
            Box::pin(async move {
                // No state at all is part of every state.
                let Some(state) = state.downcast_ref::<S>().or_else(|| (&() as &dyn Any).downcast_ref()) else {
                    let (extractor, state) = (type_name::<E>(), type_name::<S>());
                    return Err(Unscoped::Missing(format!(
                        "`scope_from` was given `{extractor}` for the state `{state}`, and the router has another"
                    )));
                };
                match E::from_request_parts(parts, state).await {
                    Ok(principal) => principal.try_into().map_err(|error| Unscoped::Missing(error.to_string())),
                    Err(refusal) => Err(Unscoped::Refused(refusal.into_response())),
                }
            })
        })))
    }

    /// The tenant comes from the request's parts, where something in front of the handler has left it:
    /// `Option<Tenant>` (none is the refusal `IDEMPOTENCY_SCOPE_MISSING`), or `Result<Tenant, R>` with a refusal of
    /// the application's own.
    ///
    /// ```
    /// use idem_axum::Idem;
    /// use idem_core::{MemoryStore, Tenant};
    ///
    /// # #[derive(Clone)]
    /// # struct Account { id: String }
    /// let idem = Idem::builder(MemoryStore::new())
    ///     .scope_fn(|parts| Tenant::new(&parts.extensions.get::<Account>()?.id).ok())
    ///     .build()?;
    /// # Ok::<(), idem_core::ConfigError>(())
    /// ```
    pub fn scope_fn<F, T>(self, find: F) -> IdemBuilder<Tenants>
    where
        F: Fn(&Parts) -> T + Send + Sync + 'static,
        T: FoundTenant,
    {
        self.with(How::Fn(Box::new(move |parts| find(parts).found())))
    }

    fn with(self, how: How) -> IdemBuilder<Tenants> {
        self.of(Tenants(how))
    }
}

/// What a closure of [`IdemBuilder::scope_fn`] may return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not tell a tenant",
    note = "return `Tenant`, `Option<Tenant>`, or `Result<Tenant, R>` where R is a response"
)]
pub trait FoundTenant {
    /// The tenant, none, or a refusal of the application's own.
    ///
    /// # Errors
    /// The refusal, which goes out as it is.
    fn found(self) -> Result<Option<Tenant>, Box<Response>>;
}

impl FoundTenant for Tenant {
    fn found(self) -> Result<Option<Tenant>, Box<Response>> {
        Ok(Some(self))
    }
}

impl FoundTenant for Option<Tenant> {
    fn found(self) -> Result<Option<Tenant>, Box<Response>> {
        Ok(self)
    }
}

impl<R: IntoResponse> FoundTenant for Result<Tenant, R> {
    fn found(self) -> Result<Option<Tenant>, Box<Response>> {
        self.map(Some).map_err(|refusal| Box::new(refusal.into_response()))
    }
}
