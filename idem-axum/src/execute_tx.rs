//! Running work whose whole effect is local: business rows and completion in one transaction.

use axum::response::Response;
use idem_core::store::TxStore;
use idem_core::{Begin, Engine, Failure, IdempotentCommand, LocalClaim, Outcome, StoreError};

use crate::extract::{Asked, Idempotent};
use crate::reply::IntoReply;

impl<C, R> Idempotent<C, R> {
    /// Runs the work in a transaction of `store`, where its records are, as [`execute`](Self::execute) runs it without
    /// one: `Ok((tx, answer))` commits the application's rows and the answer together; `Err` rolls the rows back, and
    /// the refusal, or the failure, is remembered all the same.
    ///
    /// The right choice where all that the command does is in one database. The transaction is held while the work
    /// runs, so its claim has no calls: what leaves the database needs [`execute`](Self::execute).
    ///
    /// An answer that is not final, a 503 for instance, rolls the rows back too. The answer is given once the commit is
    /// known to have happened; where that cannot be known yet, the client is told to ask again.
    ///
    /// ```
    /// use axum::http::StatusCode;
    /// use axum::response::Response;
    /// use axum::routing::post;
    /// use axum::Router;
    /// use axum::extract::State;
    /// use idem_axum::{HasIdem, Idem, Idempotent};
    /// use idem_core::{IdempotentCommand, MemoryStore};
    ///
    /// #[derive(Clone)]
    /// struct App { idem: Idem, store: MemoryStore } // a database's store, in an application
    ///
    /// impl HasIdem for App {
    ///     fn idem(&self) -> Idem { self.idem.clone() }
    /// }
    ///
    /// #[derive(serde::Deserialize, IdempotentCommand)]
    /// #[serde(deny_unknown_fields)]
    /// #[idem(operation = "open_account", version = 1)]
    /// struct OpenAccount { holder: String }
    ///
    /// async fn open_account(State(app): State<App>, account: Idempotent<OpenAccount>) -> Response {
    ///     account.execute_tx(&app.store, |account, tx, claim| async move {
    ///         let id = claim.derived_id("acc");
    ///         // sqlx::query("INSERT INTO accounts …").execute(&mut *tx).await?;
    ///         Ok((tx, (StatusCode::CREATED, format!("{id} {}", account.holder))))
    ///     }).await
    /// }
    ///
    /// let store = MemoryStore::new();
    /// let idem = Idem::builder(store.clone()).single_tenant("acme")?.build()?;
    /// let app: Router = Router::new().route("/accounts", post(open_account)).with_state(App { idem, store });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn execute_tx<S, W, F, T>(self, store: &S, work: W) -> Response
    where
        C: IdempotentCommand + Send + Sync + 'static,
        S: TxStore + Clone + 'static,
        S::Tx: 'static,
        W: FnOnce(C, S::Tx, LocalClaim) -> F + Send + 'static,
        F: Future<Output = Result<(S::Tx, T), Failure>> + Send + 'static,
        T: IntoReply + 'static,
    {
        let store = store.clone();
        self.detach(Engine::keeps_records_in::<S>, move |asked, told| {
            run(asked, store, work, move |early| told.tell(Ok(early)))
        })
        .await
    }
}

async fn run<C, S, W, F, T>(
    asked: Asked<C>,
    store: S,
    work: W,
    early: impl FnOnce(Outcome) + Send,
) -> Result<Outcome, StoreError>
where
    C: IdempotentCommand + Send + Sync,
    S: TxStore + 'static,
    W: FnOnce(C, S::Tx, LocalClaim) -> F + Send,
    F: Future<Output = Result<(S::Tx, T), Failure>> + Send,
    T: IntoReply,
{
    let (idem, command, begun) = asked.begin().await?;
    match begun {
        Begin::Decided(answer) => Ok(Outcome::Second(answer)),
        Begin::Run(claim) => {
            let replies = &idem.inner().replies;
            let work = |tx, claim| async move {
                let (tx, reply) = work(command, tx, claim).await.map_err(|failure| replies.answer(failure))?;
                Ok((tx, reply.into_reply()?))
            };
            Ok(idem.engine().conduct_tx(&store, claim, work, early).await)
        }
    }
}
