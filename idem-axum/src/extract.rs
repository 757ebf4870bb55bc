//! The extractor: who asks, under which key, for what. It claims nothing.

use std::any::Any;
use std::convert::Infallible;
use std::fmt;
use std::marker::PhantomData;

use axum::extract::rejection::{BytesRejection, FormRejection, JsonRejection, RawFormRejection, StringRejection};
use axum::extract::{FromRequest, Request};
use axum::response::{IntoResponse, Response};
use axum::{Form, Json};
use futures_util::FutureExt;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use idem_core::{Failure, IdempotencyKey, IdempotentCommand, Tenant};

use crate::code::Code;
use crate::key::{self, NoKey};
use crate::problem::{Problem, Wording};
use crate::replay::{Made, Renderer};
use crate::reply::IntoReply;
use crate::state::{HasIdem, Idem};

/// A command that came under an idempotency key: the last argument of a handler, as `Json` is.
///
/// Extracting asks, in this order: whose request it is ([`Idem::builder`]), its `Idempotency-Key`, then `R` reads the
/// body as it always does, and the command is made of that ([`CommandFrom`]). Each may refuse, and a refusal leaves
/// no record: a malformed body never uses up a key, and an anonymous caller learns nothing.
///
/// A body that axum's own extractors refuse gets their status and their words, as the problem
/// `IDEMPOTENCY_REQUEST_INVALID`. An extractor of the application keeps its own refusal as it is; only where the
/// rejection's type is a bare `Response` (axum's tuples and derived extractors have that) a short plain text with a
/// 4xx status is taken for axum's.
///
/// It reads the body, so it must be the last argument; axum's `#[debug_handler]` says of any other place that it does
/// not implement `FromRequestParts`:
///
/// ```compile_fail,E0277
/// # use axum::{extract::State, response::Response, routing::post, Router};
/// # use idem_axum::{Idem, Idempotent};
/// # #[derive(serde::Deserialize, idem_core::IdempotentCommand)]
/// # #[serde(deny_unknown_fields)]
/// # #[idem(operation = "pay", version = 1)]
/// # struct Pay { cents: u64 }
/// async fn first(payment: Idempotent<Pay>, _: State<Idem>) -> Response {
///     payment.execute(async |_, _| Ok(())).await
/// }
/// let router: Router<Idem> = Router::new().route("/", post(first));
/// ```
///
/// ```compile_fail,E0277
/// # use axum::{response::Response, routing::post, Json, Router};
/// # use idem_axum::{Idem, Idempotent};
/// # #[derive(serde::Deserialize, idem_core::IdempotentCommand)]
/// # #[serde(deny_unknown_fields)]
/// # #[idem(operation = "pay", version = 1)]
/// # struct Pay { cents: u64 }
/// async fn after_json(_: Json<u64>, payment: Idempotent<Pay>) -> Response {
///     payment.execute(async |_, _| Ok(())).await
/// }
/// let router: Router<Idem> = Router::new().route("/", post(after_json));
/// ```
///
/// What was asked for can be reached only by [`execute`](Self::execute), which the handler calls once. Not calling it
/// is harmless (nothing is claimed) and logged as an error.
///
/// ```
/// # use axum::{extract::State, response::Response, routing::post, Router};
/// # use idem_axum::{Idem, Idempotent};
/// # #[derive(serde::Deserialize, idem_core::IdempotentCommand)]
/// # #[serde(deny_unknown_fields)]
/// # #[idem(operation = "pay", version = 1)]
/// # struct Pay { cents: u64 }
/// async fn last(_: State<Idem>, payment: Idempotent<Pay>) -> Response {
///     payment.execute(async |_, _| Ok(())).await
/// }
/// let router: Router<Idem> = Router::new().route("/", post(last));
/// ```
///
/// `R` is any extractor that reads a whole request. A tuple brings path and query in, and `Bytes` at its end serves
/// an operation without a body:
///
/// ```
/// use axum::body::Bytes;
/// use axum::extract::Path;
/// use axum::response::Response;
/// use idem_axum::{CommandFrom, Idempotent};
/// use idem_core::IdempotentCommand;
///
/// #[derive(IdempotentCommand)]
/// #[idem(operation = "cancel_order", version = 1)]
/// struct CancelOrder { order: u64 }
///
/// impl CommandFrom<(Path<u64>, Bytes)> for CancelOrder {
///     type Refusal = std::convert::Infallible;
///
///     fn command_from((Path(order), _): (Path<u64>, Bytes)) -> Result<Self, Self::Refusal> {
///         Ok(Self { order })
///     }
/// }
///
/// async fn cancel(order: Idempotent<CancelOrder, (Path<u64>, Bytes)>) -> Response {
///     order.execute(|order, _claim| async move { Ok(format!("cancelled {}", order.order)) }).await
/// }
/// ```
#[must_use = "nothing runs until `execute`"]
pub struct Idempotent<C, R = Json<C>> {
    /// `None` only while it is dropped after `execute` took it.
    request: Option<Asked<C>>,
    renderer: Option<Renderer>,
    read: PhantomData<fn() -> R>,
}

/// One request, read and not claimed.
pub(crate) struct Asked<C> {
    pub(crate) idem: Idem,
    pub(crate) tenant: Tenant,
    /// `None` where the operation takes requests without one.
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) command: C,
    pub(crate) parts: Parts,
}

impl<C, R> Idempotent<C, R> {
    /// Asks on **every** request, replays included, and before anything is claimed, whether this caller may have this
    /// command done: authorisation, and validation that needs the command. A refusal goes out as it is and leaves no
    /// record, so the key is as good as before.
    ///
    /// The parts are those of the request, with whatever the extractor of `scope_from` has left in their extensions.
    /// Several checks run one after the other.
    ///
    /// ```
    /// use axum::http::StatusCode;
    /// use axum::response::Response;
    /// use idem_axum::Idempotent;
    /// use idem_core::IdempotentCommand;
    ///
    /// #[derive(serde::Deserialize, IdempotentCommand)]
    /// #[serde(deny_unknown_fields)]
    /// #[idem(operation = "pay_out", version = 1)]
    /// struct PayOut { account: String }
    ///
    /// async fn pay_out(payment: Idempotent<PayOut>) -> Result<Response, Response> {
    ///     let payment = payment
    ///         .check(async |payment, parts| match parts.headers.get("x-account") {
    ///             Some(own) if own.as_bytes() == payment.account.as_bytes() => Ok(()),
    ///             _ => Err(StatusCode::FORBIDDEN),
    ///         })
    ///         .await?;
    ///     Ok(payment.execute(|_, claim| async move { Ok(claim.derived_id("out")) }).await)
    /// }
    /// # let _: axum::Router<idem_axum::Idem> = axum::Router::new().route("/", axum::routing::post(pay_out));
    /// ```
    ///
    /// # Errors
    /// The refusal of `check`, as a response.
    pub async fn check<F, E>(mut self, check: F) -> Result<Self, Response>
    where
        F: AsyncFnOnce(&C, &Parts) -> Result<(), E>,
        E: IntoResponse,
    {
        if let Some(asked) = &self.request
            && let Err(refusal) = check(&asked.command, &asked.parts).await
        {
            // Refused is not forgotten: nothing to log when it is dropped.
            self.request = None;
            return Err(refusal.into_response());
        }
        Ok(self)
    }

    /// Writes the answer of a later request anew, where the operation keeps none ([`Replay::Rebuilt`], said once by
    /// [`Operation::replay`](crate::Operation::replay)). Without it such a request gets
    /// `IDEMPOTENCY_RESPONSE_NOT_KEPT` with the resource; with it, over an operation that stores its answers, every
    /// request is refused with `IDEMPOTENCY_SETUP_WRONG`, before anything is stored that was not to be.
    ///
    /// `render` gives `None` where it no longer speaks the kept version, or the resource is gone: the client gets
    /// `IDEMPOTENCY_RESPONSE_NOT_KEPT` with the resource. An error, or a panic, is
    /// `IDEMPOTENCY_RESPONSE_NOT_RENDERED`, and the client asks again. The status is always that of the first answer.
    ///
    /// [`Replay::Rebuilt`]: idem_core::Replay::Rebuilt
    ///
    /// ```
    /// use axum::http::StatusCode;
    /// use axum::response::Response;
    /// use axum::Json;
    /// use idem_axum::{Idem, Idempotent, Made, Replay};
    /// use idem_core::{IdempotentCommand, MemoryStore};
    ///
    /// #[derive(serde::Deserialize, IdempotentCommand)]
    /// #[serde(deny_unknown_fields)]
    /// #[idem(operation = "open_account", version = 1)]
    /// struct OpenAccount { holder: String }
    ///
    /// async fn open_account(account: Idempotent<OpenAccount>) -> Response {
    ///     let as_it_is_today = |made: Made| async move {
    ///         let (1, Some(account)) = (made.schema_version, made.resource) else { return Ok(None) };
    ///         // Here: read it from the database.
    ///         Ok(Some(Json([account.id])))
    ///     };
    ///     account
    ///         .rebuilt_by(as_it_is_today)
    ///         .execute(|account, claim| async move {
    ///             let id = claim.derived_id("acc");
    ///             claim.makes("account", &id).await;
    ///             Ok((StatusCode::CREATED, Json([id, account.holder])))
    ///         })
    ///         .await
    /// }
    ///
    /// let idem = Idem::builder(MemoryStore::new())
    ///     .single_tenant("acme")?
    ///     .operation::<OpenAccount>(|open| open.replay(Replay::Rebuilt { schema_version: 1 }))
    ///     .build()?;
    /// # let _: axum::Router = axum::Router::new().route("/", axum::routing::post(open_account)).with_state(idem);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rebuilt_by<F, Fut, T>(mut self, render: F) -> Self
    where
        F: FnOnce(Made) -> Fut + Send + 'static,
        Fut: Future<Output = Result<Option<T>, Failure>> + Send + 'static,
        T: IntoReply,
    {
        self.renderer = Some(Renderer::new(render));
        self
    }

    /// The request, to be executed.
    pub(crate) fn take(mut self) -> (Asked<C>, Option<Renderer>) {
        let asked = self.request.take().expect("filled when it was made, and emptied only where it is given up");
        (asked, self.renderer.take())
    }
}

impl<C, R> Drop for Idempotent<C, R> {
    fn drop(&mut self) {
        if self.request.is_some() {
            tracing::error!(
                command = std::any::type_name::<C>(),
                "an Idempotent was dropped without `execute`: nothing was claimed, and the work did not run"
            );
        }
    }
}

impl<C, R> fmt::Debug for Idempotent<C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Idempotent").field("command", &std::any::type_name::<C>()).finish_non_exhaustive()
    }
}

/// A command that can be made of what an extractor `R` read. Given for [`Json`] and [`Form`] of the command itself.
#[diagnostic::on_unimplemented(
    message = "the command `{Self}` cannot be made of `{R}`",
    label = "not a command that this extractor gives",
    note = "derive `IdempotentCommand` for the command, and implement `idem_axum::CommandFrom<{R}>` for it if `{R}` is not `Json` or `Form` of the command"
)]
pub trait CommandFrom<R>: IdempotentCommand + Sized {
    /// The answer where what was read makes no command; `Infallible` where it always does.
    type Refusal: IntoResponse;

    /// Makes the command.
    ///
    /// # Errors
    /// The refusal, which goes out as it is and leaves no record.
    fn command_from(read: R) -> Result<Self, Self::Refusal>;
}

impl<C: IdempotentCommand> CommandFrom<Json<C>> for C {
    type Refusal = Infallible;

    fn command_from(Json(command): Json<C>) -> Result<Self, Infallible> {
        Ok(command)
    }
}

impl<C: IdempotentCommand> CommandFrom<Form<C>> for C {
    type Refusal = Infallible;

    fn command_from(Form(command): Form<C>) -> Result<Self, Infallible> {
        Ok(command)
    }
}

impl<C, R, S> FromRequest<S> for Idempotent<C, R>
where
    C: CommandFrom<R>,
    R: FromRequest<S>,
    R::Rejection: 'static,
    S: HasIdem + Send + Sync + 'static,
{
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let idem = state.idem();
        let wording = &idem.inner().wording;
        let (mut parts, body) = request.into_parts();
        let tenant = idem.inner().tenants.of(&mut parts, state).await;
        let tenant = tenant.map_err(|unscoped| unscoped.into_response(wording))?;
        let key = match key::read(&parts.headers) {
            Ok(key) => Some(key),
            Err(NoKey::Missing) if idem.inner().unkeyed.contains(C::OPERATION) => None,
            Err(none) => return Err(none.problem().into_response(wording)),
        };
        let read = R::from_request(Request::from_parts(parts.clone(), body), state).await;
        let read = read.map_err(|rejection| refusal(rejection, wording))?;
        let command = C::command_from(read).map_err(IntoResponse::into_response)?;
        Ok(Self { request: Some(Asked { idem, tenant, key, command, parts }), renderer: None, read: PhantomData })
    }
}

/// axum's own refusals keep their status and their text, as a problem. An application's own keep everything.
fn refusal<J: IntoResponse + 'static>(rejection: J, wording: &Wording) -> Response {
    macro_rules! of_axum {
        ($($type:ty),+) => {{
            let any = &rejection as &dyn Any;
            None$(.or_else(|| any.downcast_ref::<$type>().map(|own| (own.status(), own.body_text()))))+
        }};
    }
    if let Some((status, text)) =
        of_axum!(JsonRejection, FormRejection, RawFormRejection, BytesRejection, StringRejection)
    {
        return Problem::new(Code::RequestInvalid, text).with_status(status).into_response(wording);
    }
    let bare = (&rejection as &dyn Any).is::<Response>();
    let response = rejection.into_response();
    if bare { of_tuple(response, wording) } else { response }
}

/// What axum's tuples and derived extractors refuse with has lost its type: it is told by being a short plain text.
fn of_tuple(response: Response, wording: &Wording) -> Response {
    let plain = response.headers().get(CONTENT_TYPE).is_some_and(|is| is == "text/plain; charset=utf-8");
    let short = http_body::Body::size_hint(response.body()).exact().is_some_and(|bytes| bytes <= LONGEST_TEXT);
    if !(plain && short && response.status().is_client_error()) {
        return response;
    }
    let (parts, body) = response.into_parts();
    // A text that was at hand when its length was told.
    let text = axum::body::to_bytes(body, usize::MAX).now_or_never().and_then(Result::ok).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut problem = Problem::new(Code::RequestInvalid, text).with_status(parts.status).into_response(wording);
    let own: Vec<_> = problem.headers().keys().cloned().collect();
    problem.headers_mut().extend(parts.headers.into_iter().filter_map(|(name, value)| {
        let name = name?;
        (!own.contains(&name)).then_some((name, value))
    }));
    problem
}

const LONGEST_TEXT: u64 = 8 * 1024;
