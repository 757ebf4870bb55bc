//! A process that dies at one of its suspension points.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};
use serde::{Deserialize, Serialize};

/// Where it dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Point {
    /// How many suspensions it survives.
    pub(crate) suspension: u32,
    pub(crate) moment: Moment,
}

/// On which side of the wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Moment {
    /// When it begins to wait, that many microseconds later: what it asked for is on its way, or arrived.
    Suspending { after: u64 },
    /// When what it waited for is there, and nothing has been made of it yet.
    Waking,
}

/// A future that takes its process with it.
pub(crate) struct Dies<F> {
    future: Pin<Box<F>>,
    /// `None`: it lives.
    at: Option<Point>,
    suspensions: u32,
}

impl<F: Future> Dies<F> {
    pub(crate) fn at(at: Option<Point>, future: F) -> Self {
        Self { future: Box::pin(future), at, suspensions: 0 }
    }

    /// What it comes to, and how often it was suspended on the way.
    pub(crate) async fn counted(mut self) -> (F::Output, u32) {
        let output = poll_fn(|context| Pin::new(&mut self).poll(context)).await;
        (output, self.suspensions)
    }
}

impl<F: Future> Future for Dies<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let reached = self.at.filter(|at| at.suspension + 1 == self.suspensions);
        if reached.is_some_and(|at| at.moment == Moment::Waking) {
            die();
        }
        let polled = self.future.as_mut().poll(context);
        if polled.is_pending() {
            if let Some(Point { suspension, moment: Moment::Suspending { after } }) = self.at
                && suspension == self.suspensions
            {
                // The runtime's other threads go on meanwhile, with what was asked for.
                sleep(Duration::from_micros(after));
                die();
            }
            self.suspensions += 1;
        }
        polled
    }
}

/// As `kill -9` from outside: nothing is unwound, flushed or closed.
fn die() -> ! {
    kill_process(getpid(), Signal::KILL).expect("a process may kill itself");
    loop {
        sleep(Duration::from_secs(1));
    }
}
