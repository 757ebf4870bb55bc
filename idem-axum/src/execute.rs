//! Running the work: claim, work and completion on one task of their own, which no client can cancel.

use std::error::Error;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::response::Response;
use futures_util::FutureExt;
use idem_core::{Answer, Begin, Claim, Engine, Failure, IdempotentCommand, Outcome, Replay, Reply, StoreError};
use tokio::sync::oneshot;
use tracing::Instrument;

use crate::extract::{Asked, Idempotent};
use crate::outcome;
use crate::problem::Wording;
use crate::replay::{Made, Renderer};
use crate::reply::{self, IntoReply, Unwritable};
use crate::state::Idem;

impl<C, R> Idempotent<C, R> {
    /// Runs the work where this request is the first with its key, or one that may try again, and gives its answer;
    /// otherwise gives what the record says. The handler returns this response as it is.
    ///
    /// Claim, work and completion are one task of their own: a client that hangs up, or a time-out around the
    /// handler, cancels nothing. The tracing span crosses into it, task-locals do not. A panic of the work counts as
    /// a failure. The answer is stored before the client gets it.
    ///
    /// The work may run more than once in the life of a key (after a failure, or when its process died), and each
    /// time on the command of the request that runs it: members that idem holds equal (a default, another case, an
    /// excluded one) may then be spelled differently. Its error type is [`Failure`], which `?` makes of any error.
    ///
    /// ```
    /// use axum::http::StatusCode;
    /// use axum::response::Response;
    /// use axum::routing::post;
    /// use axum::{Json, Router};
    /// use idem_axum::{Idem, Idempotent};
    /// use idem_core::{IdempotentCommand, MemoryStore};
    ///
    /// #[derive(serde::Deserialize, IdempotentCommand)]
    /// #[serde(deny_unknown_fields)]
    /// #[idem(operation = "open_account", version = 1)]
    /// struct OpenAccount { holder: String }
    ///
    /// async fn open_account(account: Idempotent<OpenAccount>) -> Response {
    ///     account.execute(|account, claim| async move {
    ///         let id = claim.derived_id("acc"); // the same id in every attempt
    ///         Ok((StatusCode::CREATED, Json([id, account.holder])))
    ///     }).await
    /// }
    ///
    /// let idem = Idem::builder(MemoryStore::new()).single_tenant("acme")?.build()?;
    /// let app: Router = Router::new().route("/accounts", post(open_account)).with_state(idem);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn execute<W, F, T>(self, work: W) -> Response
    where
        C: IdempotentCommand + Send + Sync + 'static,
        W: FnOnce(C, Claim) -> F + Send + 'static,
        F: Future<Output = Result<T, Failure>> + Send + 'static,
        T: IntoReply + 'static,
    {
        self.detach(|_| Ok(()), move |asked, told| run(asked, work, move |early| told.tell(Ok(early)))).await
    }

    /// The one way to run anything: on a task of its own, where the handler fits the set-up and `max_running` leaves
    /// room, in the request's span.
    pub(crate) async fn detach<F>(
        self,
        fits: impl FnOnce(&Engine) -> Result<(), StoreError>,
        run: impl FnOnce(Asked<C>, Arc<Told>) -> F,
    ) -> Response
    where
        C: IdempotentCommand,
        F: Future<Output = Ended> + Send + 'static,
    {
        let (asked, renderer) = self.take();
        let idem = asked.idem.clone();
        let wording = &idem.inner().wording;
        if let Err(error) = fits(idem.engine()) {
            return outcome::setup_wrong(&error, wording);
        }
        if renderer.is_some() && idem.engine().rules_of(C::OPERATION).replay == Replay::Stored {
            return outcome::setup_wrong(&StoresAnswers(C::OPERATION), wording);
        }
        let Some(running) = idem.inner().gate.enter() else {
            return outcome::overloaded(wording);
        };
        let keyed = asked.key.is_some();
        let (told, told_to) = Told::pair();
        let told = Arc::new(told);
        // Boxed here: a task moves its future several times, and this one is some kilobytes.
        let run = Box::pin(run(asked, Arc::clone(&told)));
        tokio::spawn(
            async move {
                told.tell(run.await);
                drop(running);
            }
            .in_current_span(),
        );
        answered(told_to, keyed, renderer, wording).await
    }
}

/// Waits for the task, and gives what it came to.
async fn answered(
    told: oneshot::Receiver<Ended>,
    keyed: bool,
    renderer: Option<Renderer>,
    wording: &Wording,
) -> Response {
    // The task is gone without a word: the runtime shuts down, or something outside of the work panicked.
    let ended = told.await.unwrap_or_else(|_| {
        tracing::error!("the task of a request ended without an outcome");
        Ok(Outcome::NotStored { retry_after: MOMENT })
    });
    match (ended, renderer) {
        (Ok(outcome), _) if !keyed => outcome::without_a_key(outcome, wording),
        (Ok(Outcome::Second(answer)), Some(renderer)) => anew(answer, renderer, wording).await,
        (Ok(outcome), _) => outcome::response(outcome, wording),
        (Err(error), _) => outcome::store_failed(&error, wording),
    }
}

async fn run<C, W, F, T>(asked: Asked<C>, work: W, early: impl FnOnce(Outcome)) -> Result<Outcome, StoreError>
where
    C: IdempotentCommand,
    W: FnOnce(C, Claim) -> F,
    F: Future<Output = Result<T, Failure>>,
    T: IntoReply,
{
    let (idem, command, begun) = asked.begin().await?;
    match begun {
        Begin::Decided(answer) => Ok(Outcome::Second(answer)),
        Begin::Run(claim) => {
            let replies = &idem.inner().replies;
            let work = |claim| async move {
                let answer = work(command, claim).await.map_err(|failure| replies.answer(failure))?;
                Ok(answer.into_reply()?)
            };
            Ok(idem.engine().conduct(claim, work, early).await)
        }
    }
}

impl<C: IdempotentCommand> Asked<C> {
    /// The claim, or the record's answer; a request without a key, where that is allowed, claims nothing.
    pub(crate) async fn begin(self) -> Result<(Idem, C, Begin), StoreError> {
        let Self { idem, tenant, key, command, .. } = self;
        let begun = match &key {
            Some(key) => idem.engine().begin(&tenant, key, &command).await?,
            None => Begin::Run(idem.engine().begin_unkeyed(&tenant, &command)),
        };
        Ok((idem, command, begun))
    }
}

/// The answer to a later request where the application writes it anew.
async fn anew(answer: Answer, renderer: Renderer, wording: &Wording) -> Response {
    let (status, schema_version, resource, expires_at) = match answer {
        Answer::NotKept { response, resource, expires_at } => match response.schema_version() {
            Some(version) => (response.status, version, resource, expires_at),
            // Kept before the operation chose so, and too large.
            None => {
                return outcome::response(Outcome::Second(Answer::NotKept { response, resource, expires_at }), wording);
            }
        },
        answer => return outcome::response(Outcome::Second(answer), wording),
    };
    let made = Made { status, resource: resource.clone(), schema_version };
    let rendered = AssertUnwindSafe(renderer.render(made)).catch_unwind().await;
    match rendered.unwrap_or_else(|_| Err(Failure::retryable("the renderer panicked"))) {
        Ok(Some(rendered)) => reply::replay(Reply { status, ..rendered }, expires_at, wording),
        Ok(None) => outcome::not_kept(resource, None, wording),
        Err(failure) => {
            let r#type = failure.source_type().unwrap_or_default();
            tracing::error!(r#type, error = %failure, "an answer could not be written anew");
            outcome::not_rendered(wording)
        }
    }
}

/// See [`Idempotent::rebuilt_by`].
#[derive(Debug, thiserror::Error)]
#[error("the handler writes answers of `{0}` anew, and its Operation stores them: it wants Operation::replay")]
struct StoresAnswers(&'static str);

/// The application's errors that are answers, told from others by their type.
#[derive(Default)]
pub(crate) struct Replies(Vec<OwnReply>);

/// The reply of an error of the type that it knows; any other error comes back.
type OwnReply = fn(Boxed) -> Result<Result<Reply, Unwritable>, Boxed>;

type Boxed = Box<dyn Error + Send + Sync>;

impl Replies {
    pub(crate) fn add<E: Error + IntoReply + Send + Sync + 'static>(&mut self) {
        self.0.push(|error| error.downcast::<E>().map(|own| own.into_reply()));
    }

    pub(crate) fn answer(&self, failure: Failure) -> Failure {
        failure.answered_by(|mut error| {
            for reply in &self.0 {
                match reply(error) {
                    Ok(Ok(reply)) => return Ok(reply),
                    Ok(Err(unwritable)) => return Err(unwritable.into()),
                    Err(other) => error = other,
                }
            }
            Err(error)
        })
    }
}

impl fmt::Debug for Replies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Replies({})", self.0.len())
    }
}

/// The way back to the client. The first word is its answer; later ones find nobody.
pub(crate) struct Told(Mutex<Option<oneshot::Sender<Ended>>>);

pub(crate) type Ended = Result<Outcome, StoreError>;

impl Told {
    fn pair() -> (Self, oneshot::Receiver<Ended>) {
        let (send, receive) = oneshot::channel();
        (Self(Mutex::new(Some(send))), receive)
    }

    pub(crate) fn tell(&self, ended: Ended) {
        // Taking the sender is all that happens under the lock, so a poisoned one is as good.
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            // A client that is gone is the usual reason for running on a task of its own.
            let _ = sender.send(ended);
        }
    }
}

const MOMENT: Duration = Duration::from_secs(1);
