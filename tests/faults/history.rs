//! What happened, in order: the text that a failed assertion comes with.

use std::fmt;
use std::sync::Mutex;
use std::time::Instant;

/// Events of one run.
#[derive(Debug)]
pub(crate) struct History {
    started: Instant,
    events: Mutex<Vec<String>>,
}

/// What one event is, in the manner of histories of distributed systems.
#[derive(Debug, Clone, Copy)]
pub(crate) enum What {
    /// Somebody asks.
    Invoke,
    /// It was done.
    Ok,
    /// It was not done.
    Fail,
    /// Nobody knows.
    Info,
}

impl History {
    pub(crate) fn new() -> Self {
        Self { started: Instant::now(), events: Mutex::default() }
    }

    pub(crate) fn add(&self, what: What, key: &str, text: impl fmt::Display) {
        let at = self.started.elapsed().as_micros();
        let word = match what {
            What::Invoke => "invoke",
            What::Ok => "ok",
            What::Fail => "fail",
            What::Info => "info",
        };
        self.events.lock().unwrap().push(format!("{at:>9} µs {key:<24} {word:<6} {text}"));
    }

    /// All that happened to one key.
    pub(crate) fn of(&self, key: &str) -> String {
        let events = self.events.lock().unwrap();
        events.iter().filter(|event| event.contains(&format!(" {key} "))).cloned().collect::<Vec<_>>().join("\n")
    }
}
