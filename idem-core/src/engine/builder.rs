//! How an engine is set up, and what is refused before it takes traffic.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::calls::{CallClass, CallSpec};
use crate::clock::{Clock, SystemClock};
use crate::command::IdempotentCommand;
use crate::engine::silence::Lookout;
use crate::engine::{Engine, Inner};
use crate::events::{NoObserver, Observer, Unbroken};
use crate::heartbeat::Heartbeat;
use crate::reconciler::{Bound, Reconciler, Settles};
use crate::reply::Reply;
use crate::rules::Rules;
use crate::store::{Store, TxStore};

/// Collects what an [`Engine`] needs to know; see [`Engine::builder`].
#[must_use = "a builder does nothing until `build`"]
pub struct EngineBuilder {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    namespace: String,
    rules: Rules,
    operations: HashMap<String, Rules>,
    calls: Vec<(String, String, CallSpec)>,
    kept_headers: Vec<String>,
    call_refused: Box<dyn Fn(&str) -> Reply + Send + Sync>,
    forbidden_is_final: bool,
    reconcilers: HashMap<(String, String), Arc<dyn Settles>>,
    observer: Arc<dyn Observer>,
}

/// A set-up that would break a promise.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A call was declared twice for one operation.
    #[error("the call `{call}` of operation `{operation}` is declared twice")]
    CallDeclaredTwice {
        /// The operation.
        operation: String,
        /// The call.
        call: String,
    },
    /// A reconciler was given for a call that was not declared.
    #[error("there is a reconciler for the call `{call}` of operation `{operation}`, which is not declared")]
    ReconcilerWithoutCall {
        /// The operation.
        operation: String,
        /// The call.
        call: String,
    },
    /// A call's name would make no downstream key.
    #[error(
        "the call name `{call}` of operation `{operation}` must have 1 to 64 characters of `a-z`, `0-9`, `_` and `-`"
    )]
    CallName {
        /// The operation.
        operation: String,
        /// The call.
        call: String,
    },
    /// The downstream keys of a call could meet, or cannot be written so.
    #[error("the call `{call}` of operation `{operation}` has a key form that cannot be: {fault}")]
    KeyForm {
        /// The operation.
        operation: String,
        /// The call.
        call: String,
        /// What is wrong with it.
        fault: &'static str,
    },
    /// A provider forgets keys so soon that no repeated call were safe.
    #[error(
        "the provider of the call `{call}` of operation `{operation}` remembers keys for {retention:?}; with this lease that must be more than {least:?}"
    )]
    RetentionTooShort {
        /// The operation.
        operation: String,
        /// The call.
        call: String,
        /// The provider's retention.
        retention: Duration,
        /// Lease and margin.
        least: Duration,
    },
    /// A header that is never kept, since a second request must not get it: it belongs to one connection, one caller
    /// or one moment.
    #[error("the header `{0}` belongs to one connection, one caller or one moment, and cannot be kept")]
    HeaderNotKept(String),
    /// A span of the rules must not be zero.
    #[error("`{0}` must not be zero")]
    Zero(&'static str),
}

impl ConfigError {
    /// A stable name for logs and alerts.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::CallDeclaredTwice { .. } => "CONFIG_CALL_DECLARED_TWICE",
            Self::ReconcilerWithoutCall { .. } => "CONFIG_RECONCILER_WITHOUT_CALL",
            Self::CallName { .. } => "CONFIG_CALL_NAME",
            Self::KeyForm { .. } => "CONFIG_KEY_FORM",
            Self::RetentionTooShort { .. } => "CONFIG_RETENTION_TOO_SHORT",
            Self::HeaderNotKept(_) => "CONFIG_HEADER_NOT_KEPT",
            Self::Zero(_) => "CONFIG_ZERO",
        }
    }
}

impl EngineBuilder {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            clock: Arc::new(SystemClock),
            namespace: "default".to_owned(),
            rules: Rules::default(),
            operations: HashMap::new(),
            calls: Vec::new(),
            kept_headers: KEPT_HEADERS.iter().map(|&name| name.to_owned()).collect(),
            call_refused: Box::new(|call| Reply::status(422).body(format!("the call `{call}` was refused"))),
            forbidden_is_final: false,
            reconcilers: HashMap::new(),
            observer: Arc::new(NoObserver),
        }
    }

    /// What derived ids and downstream keys begin with, besides tenant, operation and key. Two services that share
    /// a provider's account must differ in it. It must not change while records live, so the first engine that uses a
    /// store settles it there, and one with another namespace is refused. `default` unless said.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// The spans of every operation that has none of its own.
    pub fn rules(mut self, rules: Rules) -> Self {
        self.rules = rules;
        self
    }

    /// The spans of one operation.
    pub fn operation<C: IdempotentCommand>(mut self, rules: Rules) -> Self {
        self.operations.insert(C::OPERATION.to_owned(), rules);
        self
    }

    /// The same for an operation by its name, where its command's type is not at hand.
    pub fn operation_named(mut self, operation: impl Into<String>, rules: Rules) -> Self {
        self.operations.insert(operation.into(), rules);
        self
    }

    /// Declares a call of an operation, with what its provider promises, and with what its keys look like where that is not
    /// as usual ([`CallSpec::key_form`]). An undeclared call is not made.
    pub fn call<C: IdempotentCommand>(mut self, name: impl Into<String>, call: impl Into<CallSpec>) -> Self {
        self.calls.push((C::OPERATION.to_owned(), name.into(), call.into()));
        self
    }

    /// Keeps and replays one header more than `content-type`, `content-encoding`, `location`, `etag` and `link`.
    /// `build` refuses what belongs to one connection, one caller or one moment, `set-cookie` for instance.
    pub fn keep_header(mut self, name: impl Into<String>) -> Self {
        self.kept_headers.push(name.into().to_ascii_lowercase());
        self
    }

    /// What answers a client whose call was refused for good by an error without a reply of its own.
    pub fn call_refused(mut self, reply: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        self.call_refused = Box::new(reply);
        self
    }

    /// Keeps a 403 of the work and gives it again, as every other refusal with a 4xx. Unless said, a 403 may be tried
    /// again: rights are granted every day.
    pub fn forbidden_is_final(mut self) -> Self {
        self.forbidden_is_final = true;
        self
    }

    /// Whom to ask what became of a call whose answer nobody saw. `store` is the engine's own: in its transactions the
    /// reconciler writes the application's rows.
    pub fn reconciler<C, S, R>(mut self, call: impl Into<String>, store: S, reconciler: R) -> Self
    where
        C: IdempotentCommand,
        S: TxStore + 'static,
        R: Reconciler<S::Tx> + 'static,
    {
        let bound = Arc::new(Bound { store, reconciler });
        self.reconcilers.insert((C::OPERATION.to_owned(), call.into()), bound);
        self
    }

    /// Who is told what happens.
    pub fn observer(mut self, observer: impl Observer + 'static) -> Self {
        self.observer = Arc::new(observer);
        self
    }

    /// Waits and jitter of the engine; for tests.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The engine.
    ///
    /// # Errors
    /// [`ConfigError`] for a set-up that would break a promise.
    pub fn build(self) -> Result<Engine, ConfigError> {
        for rules in std::iter::once(&self.rules).chain(self.operations.values()) {
            let spans = [
                ("lease", rules.lease),
                ("max_run", rules.max_run),
                ("window", rules.window),
                ("grace", rules.grace),
                ("ask_lease", rules.ask_lease),
                ("ask_parked", rules.ask_parked),
            ];
            if let Some((name, _)) = spans.into_iter().find(|(_, span)| span.is_zero()) {
                return Err(ConfigError::Zero(name));
            }
        }
        let never = |name: &&String| NEVER_KEPT.contains(&name.as_str()) || name.starts_with("proxy-");
        if let Some(name) = self.kept_headers.iter().find(never) {
            return Err(ConfigError::HeaderNotKept(name.clone()));
        }
        let mut calls = HashMap::new();
        for (operation, call, spec) in self.calls {
            let rules = self.operations.get(&operation).unwrap_or(&self.rules);
            let legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-');
            if call.is_empty() || call.len() > 64 || !call.bytes().all(legal) {
                return Err(ConfigError::CallName { operation, call });
            }
            if let Some(fault) = spec.key_form.fault() {
                return Err(ConfigError::KeyForm { operation, call, fault });
            }
            let least = rules.lease.saturating_add(rules.margin());
            match spec.class {
                CallClass::Dedupes { retention } if retention < least => {
                    return Err(ConfigError::RetentionTooShort { operation, call, retention, least });
                }
                _ => {}
            }
            let key = (operation, call);
            if calls.contains_key(&key) {
                let (operation, call) = key;
                return Err(ConfigError::CallDeclaredTwice { operation, call });
            }
            calls.insert(key, spec);
        }
        if let Some((operation, call)) = self.reconcilers.keys().find(|key| !calls.contains_key(key)) {
            return Err(ConfigError::ReconcilerWithoutCall { operation: operation.clone(), call: call.clone() });
        }
        let observer: Arc<dyn Observer> = Arc::new(Unbroken(self.observer));
        Ok(Engine {
            inner: Arc::new(Inner {
                heartbeat: Heartbeat::new(Arc::clone(&self.store), Arc::clone(&observer)),
                lookout: Lookout::new(self.clock.now()),
                recovering: Default::default(),
                store: self.store,
                clock: self.clock,
                namespace: self.namespace,
                settled: Default::default(),
                rules: self.rules,
                operations: self.operations,
                calls,
                kept_headers: self.kept_headers,
                call_refused: self.call_refused,
                forbidden_is_final: self.forbidden_is_final,
                reconcilers: self.reconcilers,
                observer,
            }),
        })
    }
}

impl fmt::Debug for EngineBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineBuilder")
            .field("namespace", &self.namespace)
            .field("rules", &self.rules)
            .field("calls", &self.calls)
            .finish_non_exhaustive()
    }
}

/// What a client needs to understand the answer a second time. Whatever speaks of the connection, of the caller or
/// of the moment is not kept.
const KEPT_HEADERS: [&str; 5] = ["content-type", "content-encoding", "location", "etag", "link"];

/// What no application can have kept; `proxy-*` besides.
const NEVER_KEPT: [&str; 14] = [
    "authorization",
    "connection",
    "content-length",
    "date",
    "idem-response-schema",
    "keep-alive",
    "set-cookie",
    "set-cookie2",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "www-authenticate",
    "x-request-id",
];
