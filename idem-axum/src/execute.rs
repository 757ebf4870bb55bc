//! Running the work: claim, work and completion on one task of their own, which no client can cancel.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::response::Response;
use idem_core::{Begin, Claim, Failure, IdempotentCommand, Outcome, StoreError};
use tokio::sync::oneshot;
use tracing::Instrument;

use crate::extract::{Asked, Idempotent};
use crate::problem;
use crate::reply::IntoReply;

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
        T: IntoReply,
    {
        let asked = self.take();
        let (told, answer) = Told::pair();
        tokio::spawn(
            async move {
                let ended = run(asked, work, |early| told.tell(Ok(early))).await;
                told.tell(ended);
            }
            .in_current_span(),
        );
        self::answer(answer).await
    }
}

/// Waits for the task, and gives what it came to.
pub(crate) async fn answer(told: oneshot::Receiver<Ended>) -> Response {
    match told.await {
        Ok(Ok(outcome)) => problem::outcome(outcome),
        Ok(Err(error)) => problem::store_failed(&error),
        // The task is gone without a word: the runtime shuts down, or something outside of the work panicked.
        Err(_) => {
            tracing::error!("the task of a request ended without an outcome");
            problem::not_stored(MOMENT)
        }
    }
}

async fn run<C, W, F, T>(asked: Asked<C>, work: W, early: impl FnOnce(Outcome)) -> Result<Outcome, StoreError>
where
    C: IdempotentCommand,
    W: FnOnce(C, Claim) -> F,
    F: Future<Output = Result<T, Failure>>,
    T: IntoReply,
{
    let Asked { idem, tenant, key, command } = asked;
    match idem.engine().begin(&tenant, &key, &command).await? {
        Begin::Decided(answer) => Ok(Outcome::Second(answer)),
        Begin::Run(claim) => {
            let work = |claim| async move { Ok(work(command, claim).await?.into_reply()?) };
            Ok(idem.engine().conduct(claim, work, early).await)
        }
    }
}

/// The way back to the client. The first word is its answer; later ones find nobody.
pub(crate) struct Told(Mutex<Option<oneshot::Sender<Ended>>>);

pub(crate) type Ended = Result<Outcome, StoreError>;

impl Told {
    pub(crate) fn pair() -> (Self, oneshot::Receiver<Ended>) {
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
