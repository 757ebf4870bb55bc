//! Records as people and programs read them.

use std::time::{Duration, SystemTime};

use comfy_table::{ContentArrangement, Table, presets};
use idem_core::operator::Standing;
use idem_core::store::Found;
use idem_core::{CallClass, CallRecord, CallState, Record};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

/// A record in a list.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    /// `parked`, `unknown`, `in_progress`, `retryable`; none where it is settled.
    state: Option<&'static str>,
    status: &'static str,
    tenant: String,
    operation: String,
    key: String,
    fence: u64,
    revision: u64,
    created_at: String,
    age_seconds: u64,
    attempts: u32,
    questions: u32,
    calls: Vec<Call>,
}

/// A call of a record.
#[derive(Debug, Serialize)]
pub(crate) struct Call {
    name: String,
    /// What its provider is to be asked by.
    key: String,
    class: &'static str,
    state: &'static str,
    opened_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Body>,
}

/// Bytes that are somebody's data.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Body {
    /// Nobody asked for them.
    Hidden {
        /// How many.
        bytes: usize,
    },
    /// What an answer of a refused call was.
    Refused {
        /// Its status.
        status: u16,
        /// Its body.
        body: String,
    },
    Json(Value),
    Text(String),
}

impl Body {
    pub(crate) fn of(bytes: &[u8], shown: bool) -> Self {
        if !shown {
            return Self::Hidden { bytes: bytes.len() };
        }
        match serde_json::from_slice(bytes) {
            Ok(value) => Self::Json(value),
            Err(_) => Self::Text(String::from_utf8_lossy(bytes).into_owned()),
        }
    }

    /// What a call came to.
    pub(crate) fn of_state(state: &CallState, shown: bool) -> Option<Self> {
        match (state, state.refusal()) {
            (CallState::Open | CallState::Withdrawn, _) => None,
            (CallState::Rejected(_), Some(reply)) if shown => {
                Some(Self::Refused { status: reply.status, body: String::from_utf8_lossy(&reply.body).into_owned() })
            }
            (CallState::Applied(outcome) | CallState::Rejected(outcome), _) => Some(Self::of(outcome, shown)),
        }
    }
}

impl Line {
    pub(crate) fn of(found: &Found, bodies: bool) -> Self {
        let Found { record, now } = found;
        Self::at(record, *now, bodies)
    }

    pub(crate) fn at(record: &Record, now: SystemTime, bodies: bool) -> Self {
        Self {
            state: Standing::of(record).map(Standing::as_str),
            status: record.status.name().as_str(),
            tenant: record.scope.tenant().as_str().to_owned(),
            operation: record.scope.operation().to_owned(),
            key: record.scope.key().as_str().to_owned(),
            fence: record.fence.get(),
            revision: record.revision.get(),
            created_at: instant(record.created_at),
            age_seconds: now.duration_since(record.created_at).unwrap_or_default().as_secs(),
            attempts: record.attempts,
            questions: record.ask_attempts,
            calls: record.calls.iter().map(|call| Call::of(call, bodies)).collect(),
        }
    }
}

impl Call {
    fn of(call: &CallRecord, bodies: bool) -> Self {
        Self {
            name: call.name.clone(),
            key: call.key.as_str().to_owned(),
            class: match call.class {
                CallClass::Dedupes { .. } => "dedupes",
                CallClass::QueryOnly { .. } => "query_only",
                CallClass::Neither => "neither",
            },
            state: call_state(&call.state),
            opened_at: instant(call.opened_at),
            outcome: Body::of_state(&call.state, bodies),
        }
    }
}

pub(crate) fn call_state(state: &CallState) -> &'static str {
    match state {
        CallState::Open => "open",
        CallState::Applied(_) => "applied",
        CallState::Rejected(_) => "rejected",
        CallState::Withdrawn => "withdrawn",
    }
}

/// Lines as a table.
pub(crate) fn table(lines: &[Line]) -> Table {
    let mut table =
        empty_table(["state", "tenant", "operation", "key", "fence", "open calls", "age", "attempts", "questions"]);
    for line in lines {
        let open = line.calls.iter().filter(|call| call.state == "open");
        let open: Vec<_> = open.map(|call| format!("{} {}", call.name, call.key)).collect();
        table.add_row([
            line.state.unwrap_or(line.status),
            &line.tenant,
            &line.operation,
            &line.key,
            &line.fence.to_string(),
            &open.join("\n"),
            &span(Duration::from_secs(line.age_seconds)),
            &line.attempts.to_string(),
            &line.questions.to_string(),
        ]);
    }
    table
}

pub(crate) fn empty_table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_header(header);
    table
}

/// An instant as `--opened-from` takes it.
pub(crate) fn instant(at: SystemTime) -> String {
    Timestamp::try_from(at).map_or_else(|_| "after the year 9999".to_owned(), |at| at.to_string())
}

/// A span as `--older-than` takes it, in whole seconds.
pub(crate) fn span(span: Duration) -> String {
    let seconds = i64::try_from(span.as_secs()).unwrap_or(i64::MAX);
    format!("{:#}", jiff::SignedDuration::from_secs(seconds))
}
