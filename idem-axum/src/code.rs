//! The names of refusals: one table of codes.

/// What the client does now, as the member `next` of a problem says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Next {
    /// Wait for `Retry-After`, then send the same request with the same key: it gets the answer.
    Wait,
    /// Send the same request with the same key, after `Retry-After`: it runs.
    SameKey,
    /// Look at the resource, then decide.
    Look,
    /// Ask a person.
    Ask,
    /// Correct the request.
    Fix,
    /// Nothing: the service is set up wrongly.
    Nothing,
}

impl Next {
    /// The text in the problem; `None` where the client can do nothing.
    #[must_use]
    pub fn as_str(self) -> Option<&'static str> {
        Some(match self {
            Self::Wait => "wait",
            Self::SameKey => "same_key",
            Self::Look => "look",
            Self::Ask => "ask",
            Self::Fix => "fix",
            Self::Nothing => return None,
        })
    }
}

/// The table: what each code is called, its status, what the client does, and its title.
macro_rules! codes {
    ($($(#[$doc:meta])+ $variant:ident = $code:literal, $status:literal, $next:ident, $title:literal;)+) => {
        /// The stable name of a refusal, the member `code` of every problem.
        ///
        /// ```
        /// use idem_axum::{Code, Next};
        ///
        /// assert_eq!(Code::InProgress.as_str(), "IDEMPOTENCY_REQUEST_IN_PROGRESS");
        /// assert_eq!((Code::InProgress.status(), Code::InProgress.next()), (409, Next::Wait));
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])+ $variant,)+
        }

        impl Code {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            const fn row(self) -> (&'static str, u16, Next, &'static str) {
                match self {
                    $(Self::$variant => ($code, $status, Next::$next, $title),)+
                }
            }
        }
    };
}

codes! {
    /// The request has no `Idempotency-Key`.
    KeyMissing = "IDEMPOTENCY_KEY_MISSING", 400, Fix, "The Idempotency-Key header is missing";
    /// The header is there and is no key, or is there twice. It is never taken for "no key".
    KeyInvalid = "IDEMPOTENCY_KEY_INVALID", 400, Fix, "The Idempotency-Key header is not a key";
    /// The request does not read; the status is that of axum's own extractor.
    RequestInvalid = "IDEMPOTENCY_REQUEST_INVALID", 400, Fix, "The request cannot be read";
    /// The key belongs to another command.
    KeyReused = "IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_REQUEST", 409, Look,
        "The key was used for a different request";
    /// The first request still runs.
    InProgress = "IDEMPOTENCY_REQUEST_IN_PROGRESS", 409, Wait, "The first request still runs";
    /// Nobody knows yet how the first request ended. 409; 503 to the client whose own work ended so.
    OutcomeUnknown = "IDEMPOTENCY_OUTCOME_UNKNOWN", 409, Wait, "The outcome is not known yet";
    /// Nobody knows how the first request ended, and only a person can find out.
    OutcomeUnresolved = "IDEMPOTENCY_OUTCOME_UNRESOLVED", 409, Ask, "The outcome has to be found out by a person";
    /// It is done, and its answer was not kept.
    ResponseNotKept = "IDEMPOTENCY_RESPONSE_NOT_KEPT", 409, Look, "The request is done; its answer was not kept";
    /// The replay window is over.
    KeyExpired = "IDEMPOTENCY_KEY_EXPIRED", 410, Look, "The key's time is over";
    /// A newer release wrote the record, in a rolling deploy for instance.
    ContractUnknown = "IDEMPOTENCY_CONTRACT_UNKNOWN", 503, Wait, "The key was used with a newer release";
    /// A release wrote the record whose contract is not kept any more.
    ContractRetired = "IDEMPOTENCY_CONTRACT_RETIRED", 409, Look, "The key was used with a release that is gone";
    /// It is done, and its answer, which is written anew for each request, could not be written just now.
    ResponseNotRendered = "IDEMPOTENCY_RESPONSE_NOT_RENDERED", 503, Wait,
        "The request is done; its answer cannot be written now";
    /// So much runs in this process already that nothing more is begun.
    Overloaded = "IDEMPOTENCY_OVERLOADED", 503, SameKey, "Nothing ran: the service is busy";
    /// The store did not answer, so nothing ran.
    StoreUnavailable = "IDEMPOTENCY_STORE_UNAVAILABLE", 503, SameKey, "Nothing ran: the request could not be recorded";
    /// The first request failed and may be retried, not yet.
    RetryLater = "IDEMPOTENCY_RETRY_LATER", 503, SameKey, "The request failed and may be retried later";
    /// The work failed without an answer of its own; to the client whose work it was.
    WorkFailed = "IDEMPOTENCY_WORK_FAILED", 503, SameKey, "The request failed and may be retried";
    /// The work ended, and how could not be stored yet.
    OutcomeNotStored = "IDEMPOTENCY_OUTCOME_NOT_STORED", 503, Wait, "The outcome could not be stored yet";
    /// Another service refused for good.
    CallRefused = "IDEMPOTENCY_CALL_REFUSED", 422, Fix, "The request was refused for good";
    /// The application named no tenant for the request.
    ScopeMissing = "IDEMPOTENCY_SCOPE_MISSING", 500, Nothing, "The service is set up wrongly";
    /// The handler asks for what its operation or its store is not set up for.
    SetupWrong = "IDEMPOTENCY_SETUP_WRONG", 500, Nothing, "The service is set up wrongly";
}

impl Code {
    /// The text in the problem; it does not change.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    /// The status that it usually goes out with.
    #[must_use]
    pub const fn status(self) -> u16 {
        self.row().1
    }

    /// What the client does now.
    #[must_use]
    pub const fn next(self) -> Next {
        self.row().2
    }

    /// One line for a person.
    #[must_use]
    pub const fn title(self) -> &'static str {
        self.row().3
    }
}
