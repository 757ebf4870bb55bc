//! idem in the router's state: [`Idem`], how it is set up, and whose request it is.

use std::any::{Any, type_name};
use std::fmt;
use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use http::request::Parts;
use idem_core::{
    CallClass, Clock, ConfigError, Engine, EngineBuilder, IdempotentCommand, InvalidTenant, Reply, Rules, Store, Tenant,
};

use crate::problem::{Code, Problem};

/// idem for one service: an [`Engine`] and whose request each one is. Clones share it; it belongs into the router's
/// state.
///
/// ```
/// use axum::extract::FromRef;
/// use idem_axum::{Idem, assert_state};
/// use idem_core::MemoryStore;
///
/// #[derive(Clone)]
/// struct App { idem: Idem }
///
/// impl FromRef<App> for Idem {
///     fn from_ref(app: &App) -> Self { app.idem.clone() }
/// }
///
/// assert_state::<App>();
/// let idem = Idem::builder(MemoryStore::new()).single_tenant("acme")?.build()?;
/// let app = App { idem };
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Idem {
    inner: Arc<Inner>,
}

struct Inner {
    engine: Engine,
    tenants: Tenants,
}

impl Idem {
    /// Sets idem up over a store. It cannot be built before it was said how a request's tenant is found:
    ///
    /// ```compile_fail,E0599
    /// use idem_axum::Idem;
    ///
    /// let idem = Idem::builder(idem_core::MemoryStore::new()).build();
    /// ```
    pub fn builder(store: impl Store + 'static) -> IdemBuilder<NoTenants> {
        let engine = Engine::builder(store)
            // An answer that must not be cached must not be cached the second time either.
            .keep_header("cache-control")
            .call_refused(|call| {
                // The call's name is the operator's business, not the client's.
                tracing::info!(call, "a call was refused for good by an error without an answer");
                let detail = "Another service refused the request for good. Sending it again changes nothing.";
                Problem::new(Code::CallRefused, detail).into_reply()
            });
        IdemBuilder { engine, tenants: NoTenants(()) }
    }

    /// The engine, for what enters without HTTP: a queue's consumer shares records with the handlers.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    /// Whose request it is.
    pub(crate) async fn tenant<S>(&self, parts: &mut Parts, state: &S) -> Result<Tenant, Unscoped>
    where
        S: Send + Sync + 'static,
    {
        match &self.inner.tenants.0 {
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

impl fmt::Debug for Idem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idem").field("engine", &self.inner.engine).finish_non_exhaustive()
    }
}

/// Collects what an [`Idem`] needs; see [`Idem::builder`]. `T` is [`NoTenants`] until one of `single_tenant`,
/// `scope_from` and `scope_fn` was called, and [`Tenants`] from then on.
#[must_use = "a builder does nothing until `build`"]
#[derive(Debug)]
pub struct IdemBuilder<T> {
    engine: EngineBuilder,
    tenants: T,
}

/// It was not said yet whose request each one is.
#[derive(Debug)]
pub struct NoTenants(());

/// How a request's tenant is found.
pub struct Tenants(How);

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
    pub(crate) fn into_response(self) -> Response {
        match self {
            Self::Refused(refusal) => refusal,
            Self::Missing(why) => {
                let code = Code::ScopeMissing;
                tracing::error!(code = code.as_str(), why, "configuration error: a request was given no tenant");
                // The reason is about the service, so it stays in its log.
                Problem::new(code, "The service could not tell whose request this is, so nothing was done.")
                    .into_response()
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
        IdemBuilder { engine: self.engine, tenants: Tenants(how) }
    }
}

impl IdemBuilder<Tenants> {
    /// Ready for the router's state.
    ///
    /// # Errors
    /// [`ConfigError`] for a set-up that would break a promise.
    pub fn build(self) -> Result<Idem, ConfigError> {
        Ok(Idem { inner: Arc::new(Inner { engine: self.engine.build()?, tenants: self.tenants }) })
    }
}

impl<T> IdemBuilder<T> {
    /// See [`EngineBuilder::namespace`].
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        self.engine(|engine| engine.namespace(namespace))
    }

    /// See [`EngineBuilder::rules`].
    pub fn rules(self, rules: Rules) -> Self {
        self.engine(|engine| engine.rules(rules))
    }

    /// See [`EngineBuilder::operation`].
    pub fn operation<C: IdempotentCommand>(self, rules: Rules) -> Self {
        self.engine(|engine| engine.operation::<C>(rules))
    }

    /// See [`EngineBuilder::call`].
    pub fn call<C: IdempotentCommand>(self, name: impl Into<String>, class: CallClass) -> Self {
        self.engine(|engine| engine.call::<C>(name, class))
    }

    /// Keeps and replays one header more than `content-type`, `content-encoding`, `location`, `etag`, `link` and
    /// `cache-control`. What belongs to one connection, one caller or one moment is never kept: see
    /// [`EngineBuilder::keep_header`].
    pub fn keep_header(self, name: impl Into<String>) -> Self {
        self.engine(|engine| engine.keep_header(name))
    }

    /// What answers a client whose call was refused for good by an error without a reply of its own; the problem
    /// `IDEMPOTENCY_CALL_REFUSED` unless said.
    pub fn call_refused(self, reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        self.engine(|engine| engine.call_refused(reply))
    }

    /// See [`EngineBuilder::clock`].
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        self.engine(|engine| engine.clock(clock))
    }

    fn engine(self, change: impl FnOnce(EngineBuilder) -> EngineBuilder) -> Self {
        Self { engine: change(self.engine), ..self }
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

/// A router's state that has an [`Idem`].
///
/// Given for every state that `Idem` can be had from by axum's `FromRef` (derived on the state, or `Idem` as the
/// state itself), and for an `Arc` of such a state. For any other, one method:
///
/// ```
/// use std::sync::Arc;
/// use idem_axum::{HasIdem, Idem, assert_state};
///
/// struct App { idem: Idem }
///
/// impl HasIdem for App {
///     fn idem(&self) -> Idem { self.idem.clone() }
/// }
///
/// assert_state::<Arc<App>>();
/// ```
///
/// ```compile_fail,E0277
/// struct App;
///
/// idem_axum::assert_state::<App>();
/// ```
#[diagnostic::on_unimplemented(
    message = "the router's state `{Self}` has no idem",
    label = "no `Idem` in this state",
    note = "give the state a field `idem: Idem` and `#[derive(FromRef)]`, or implement `idem_axum::HasIdem` for it"
)]
pub trait HasIdem {
    /// The state's idem.
    fn idem(&self) -> Idem;
}

// Without this a state that lacks idem is told to implement `FromRef` for a reason that nobody sees.
#[diagnostic::do_not_recommend]
impl<S> HasIdem for S
where
    Idem: FromRef<S>,
{
    fn idem(&self) -> Idem {
        Idem::from_ref(self)
    }
}

impl<T: HasIdem> HasIdem for Arc<T> {
    fn idem(&self) -> Idem {
        T::idem(self)
    }
}

/// Compiles where [`Idempotent`](crate::Idempotent) can be extracted from a router with the state `S`. In a test or a
/// `const`, it says in one line what a handler that does not fit says in twenty.
pub const fn assert_state<S: HasIdem + Send + Sync + 'static>() {}
