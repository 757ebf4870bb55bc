//! How idem is set up.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use idem_core::events::Observer;
use idem_core::store::TxStore;
use idem_core::{CallSpec, Clock, ConfigError, EngineBuilder, IdempotentCommand, Reconciler, Reply, Rules};

use crate::execute::Replies;
use crate::gate::Gate;
use crate::operation::Operation;
use crate::outcome;
use crate::problem::Wording;
use crate::reply::IntoReply;
use crate::scope::{KnowsTenants, NoTenants, Tenants};
use crate::state::{Idem, Inner};

/// Collects what an [`Idem`] needs; see [`Idem::builder`]. `T` is [`NoTenants`] until one of `single_tenant`,
/// `scope_from` and `scope_fn` was called, and [`Tenants`] from then on.
#[must_use = "a builder does nothing until `build`"]
#[derive(Debug)]
pub struct IdemBuilder<T> {
    tenants: T,
    options: Options,
}

#[derive(Debug)]
struct Options {
    engine: EngineBuilder,
    rules: Rules,
    operations: HashMap<&'static str, (Operation, Declare)>,
    wording: Wording,
    max_running: usize,
    replies: Replies,
    answers_refused_calls: bool,
}

/// `EngineBuilder::operation` of one command.
type Declare = fn(EngineBuilder, Rules) -> EngineBuilder;

/// Which text the answers follow where texts differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Profile {
    /// A key that belongs to another command is a conflict, 409.
    #[default]
    Idem,
    /// It is 422, as draft-ietf-httpapi-idempotency-key-header-07 has it. Codes and members are the same.
    Ietf,
}

impl IdemBuilder<NoTenants> {
    pub(crate) fn new(engine: EngineBuilder) -> Self {
        let options = Options {
            // An answer that must not be cached must not be cached the second time either.
            engine: engine.keep_header("cache-control"),
            rules: Rules::default(),
            operations: HashMap::new(),
            wording: Wording::default(),
            max_running: 1024,
            replies: Replies::default(),
            answers_refused_calls: false,
        };
        Self { tenants: NoTenants(()), options }
    }

    pub(crate) fn of(self, tenants: Tenants) -> IdemBuilder<Tenants> {
        IdemBuilder { tenants, options: self.options }
    }
}

impl<T> IdemBuilder<T> {
    /// Ready for the router's state.
    ///
    /// # Errors
    /// [`ConfigError`] for a set-up that would break a promise.
    pub fn build(self) -> Result<Idem, ConfigError>
    where
        T: KnowsTenants,
    {
        let Options { engine, rules, operations, wording, max_running, replies, answers_refused_calls } = self.options;
        let mut engine = engine;
        let mut unkeyed = HashSet::new();
        for (name, (operation, declare)) in operations {
            if operation.takes_no_key() {
                unkeyed.insert(name);
            }
            engine = declare(engine, operation.over(&rules));
        }
        if !answers_refused_calls {
            let wording = wording.clone();
            engine = engine.call_refused(move |call| {
                // The call's name is the operator's business, not the client's.
                tracing::info!(call, "a call was refused for good by an error without an answer");
                outcome::call_refused(&wording)
            });
        }
        let engine = engine.rules(rules).build()?;
        let gate = Gate::new(max_running);
        Ok(Idem::new(Inner { engine, tenants: self.tenants.tenants(), wording, gate, replies, unkeyed }))
    }

    /// See [`EngineBuilder::namespace`].
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        self.engine(|engine| engine.namespace(namespace))
    }

    /// All spans and limits at once, of every operation; [`Rules::default`] unless said.
    pub fn rules(mut self, rules: Rules) -> Self {
        self.options.rules = rules;
        self
    }

    /// How long nobody may take over from work that gives no sign of life. Default 30 s.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.options.rules.lease = lease;
        self
    }

    /// After that long hanging work loses its lease. Default 5 min.
    pub fn max_run(mut self, max_run: Duration) -> Self {
        self.options.rules.max_run = max_run;
        self
    }

    /// How long an answer is given again, counted from the moment it was stored. Default 24 h.
    pub fn window(mut self, window: Duration) -> Self {
        self.options.rules.window = window;
        self
    }

    /// How long the body of an answer is kept, where that is shorter than the window: a later request then gets
    /// `IDEMPOTENCY_RESPONSE_NOT_KEPT` until the window ends. The window unless said.
    pub fn body_retention(mut self, span: Duration) -> Self {
        self.options.rules.body_retention = span;
        self
    }

    /// How long it is known after the window what a key meant: a later request gets `IDEMPOTENCY_KEY_EXPIRED`, and
    /// does not run. After that a sweep forgets the key, and it is as good as new; one whose calls were ever
    /// announced only where [`purge_tombstones`](idem_core::retention::Sweep::purge_tombstones) was chosen. Default
    /// 30 days.
    pub fn metadata_retention(mut self, span: Duration) -> Self {
        self.options.rules.metadata_retention = span;
        self
    }

    /// The largest body that is kept, in bytes. Default 256 KiB. The first client gets a larger one whole, a later
    /// one `IDEMPOTENCY_RESPONSE_NOT_KEPT`.
    pub fn body_cap(mut self, bytes: usize) -> Self {
        self.options.rules.body_cap = bytes;
        self
    }

    /// How long a client waits for an answer whose storing fails, before it is told `IDEMPOTENCY_OUTCOME_NOT_STORED`.
    /// Default 5 s.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.options.rules.patience = patience;
        self
    }

    /// What one operation has otherwise than the others. Asked twice for one operation, the last one counts.
    ///
    /// ```
    /// use std::time::Duration;
    /// use idem_axum::Idem;
    /// use idem_core::{IdempotentCommand, MemoryStore};
    ///
    /// #[derive(IdempotentCommand)]
    /// #[idem(operation = "search", version = 1)]
    /// struct Search { words: String }
    ///
    /// let idem = Idem::builder(MemoryStore::new())
    ///     .single_tenant("acme")?
    ///     .lease(Duration::from_secs(20))
    ///     .operation::<Search>(|search| search.window(Duration::from_secs(60)).optional_key())
    ///     .build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn operation<C: IdempotentCommand>(mut self, change: impl FnOnce(Operation) -> Operation) -> Self {
        let declare: Declare = |engine, rules| engine.operation::<C>(rules);
        self.options.operations.insert(C::OPERATION, (change(Operation::default()), declare));
        self
    }

    /// See [`EngineBuilder::call`].
    pub fn call<C: IdempotentCommand>(self, name: impl Into<String>, call: impl Into<CallSpec>) -> Self {
        self.engine(|engine| engine.call::<C>(name, call))
    }

    /// Whom to ask what became of a call whose answer nobody saw; see [`EngineBuilder::reconciler`]. Without one such a
    /// request ends with `IDEMPOTENCY_OUTCOME_UNRESOLVED` and a person. [`Idem::engine`] is what a worker runs on.
    pub fn reconciler<C, S, R>(self, call: impl Into<String>, store: S, reconciler: R) -> Self
    where
        C: IdempotentCommand,
        S: TxStore + 'static,
        R: Reconciler<S::Tx> + 'static,
    {
        self.engine(|engine| engine.reconciler::<C, S, R>(call, store, reconciler))
    }

    /// Who is told what happens; see [`EngineBuilder::observer`].
    pub fn observer(self, observer: impl Observer + 'static) -> Self {
        self.engine(|engine| engine.observer(observer))
    }

    /// Keeps and replays one header more than `content-type`, `content-encoding`, `location`, `etag`, `link` and
    /// `cache-control`. What belongs to one connection, one caller or one moment is never kept: see
    /// [`EngineBuilder::keep_header`].
    pub fn keep_header(self, name: impl Into<String>) -> Self {
        self.engine(|engine| engine.keep_header(name))
    }

    /// An error type of the application that is an answer: where it comes through `?`, it is classified by its status
    /// like any reply, so that a business refusal (409, out of stock) is kept and given again. An error of a type
    /// that is not named here fails the attempt, and is logged with its type's name.
    ///
    /// ```
    /// use axum::http::StatusCode;
    /// use idem_axum::{Idem, IntoReply, Reply, Unwritable};
    /// use idem_core::MemoryStore;
    ///
    /// #[derive(Debug, thiserror::Error)]
    /// #[error("out of stock")]
    /// struct OutOfStock;
    ///
    /// impl IntoReply for OutOfStock {
    ///     fn into_reply(self) -> Result<Reply, Unwritable> {
    ///         (StatusCode::CONFLICT, "out of stock").into_reply()
    ///     }
    /// }
    ///
    /// let idem = Idem::builder(MemoryStore::new()).single_tenant("acme")?.replies::<OutOfStock>().build()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn replies<E>(mut self) -> Self
    where
        E: Error + IntoReply + Send + Sync + 'static,
    {
        self.options.replies.add::<E>();
        self
    }

    /// Keeps a 403 of the work and gives it again, as other refusals; see [`EngineBuilder::forbidden_is_final`].
    pub fn forbidden_is_final(self) -> Self {
        self.engine(EngineBuilder::forbidden_is_final)
    }

    /// Which text the answers follow where texts differ.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.options.wording.mismatch = match profile {
            Profile::Idem => StatusCode::CONFLICT,
            Profile::Ietf => StatusCode::UNPROCESSABLE_ENTITY,
        };
        self
    }

    /// Answers a request whose first one still runs with 202 and the same problem document, for clients that take
    /// every 4xx for the end. 409 unless said.
    pub fn in_progress_is_accepted(mut self) -> Self {
        self.options.wording.in_progress = StatusCode::ACCEPTED;
        self
    }

    /// What the `type` of a problem begins with; the code follows. `urn:idem:problem:` unless said. With the address
    /// of a page that has an anchor for each code it can be opened: `https://api.example.com/problems#`.
    pub fn problem_types(mut self, base: impl Into<Cow<'static, str>>) -> Self {
        self.options.wording.types = base.into();
        self
    }

    /// How much work may run in this process at once, work included whose client has gone. A request over it gets
    /// `IDEMPOTENCY_OVERLOADED` before anything is claimed. Default 1,024.
    pub fn max_running(mut self, most: usize) -> Self {
        self.options.max_running = most;
        self
    }

    /// What answers a client whose call was refused for good by an error without a reply of its own; the problem
    /// `IDEMPOTENCY_CALL_REFUSED` unless said.
    pub fn call_refused(mut self, reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        self.options.answers_refused_calls = true;
        self.engine(|engine| engine.call_refused(reply))
    }

    /// See [`EngineBuilder::clock`].
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        self.engine(|engine| engine.clock(clock))
    }

    fn engine(self, change: impl FnOnce(EngineBuilder) -> EngineBuilder) -> Self {
        let Self { tenants, options } = self;
        Self { tenants, options: Options { engine: change(options.engine), ..options } }
    }
}

#[cfg(test)]
mod tests {
    use idem_core::MemoryStore;

    use super::*;

    #[test]
    fn each_option_changes_the_rule_of_its_name_and_no_other() {
        let span = Duration::from_secs;
        let before = Rules { grace: span(90), ..Rules::default() };
        let builder = Idem::builder(MemoryStore::new())
            .rules(before.clone())
            .lease(span(1))
            .max_run(span(2))
            .window(span(3))
            .body_retention(span(4))
            .metadata_retention(span(5))
            .body_cap(6)
            .patience(span(7));
        let expected = Rules {
            lease: span(1),
            max_run: span(2),
            window: span(3),
            body_retention: span(4),
            metadata_retention: span(5),
            body_cap: 6,
            patience: span(7),
            ..before
        };
        assert_eq!(builder.options.rules, expected);
    }
}
