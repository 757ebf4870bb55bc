//! Interleaved measurement, and its table.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// One way to do the work: takes how many times.
pub(crate) struct Subject<'a> {
    pub(crate) name: &'static str,
    work: Box<dyn FnMut(u32) + 'a>,
}

/// A subject that does the work that often. Its result is kept from the optimiser.
pub(crate) fn subject<'a, T>(name: &'static str, mut work: impl FnMut() -> T + 'a) -> Subject<'a> {
    let work = Box::new(move |times| {
        for _ in 0..times {
            black_box(work());
        }
    });
    Subject { name, work }
}

/// Nanoseconds of one piece of work.
pub(crate) struct Time {
    pub(crate) median: f64,
    /// The first percentile: what it takes while nobody else uses the core. Code that waits for one instruction after
    /// the other, as SHA-256 does, hardly feels a busy neighbour on the same core; code that does four at once does.
    pub(crate) quiet: f64,
}

impl Subject<'_> {
    fn nanos(&mut self, times: u32) -> f64 {
        let start = Instant::now();
        (self.work)(times);
        start.elapsed().as_nanos() as f64 / f64::from(times)
    }

    /// How often the work is done in one turn. Turns take the same time, whatever the subject: what the others leave of
    /// caches and branch predictors then costs each subject the same part of its turn.
    fn turn(&mut self) -> u32 {
        self.nanos(100);
        (TURN.as_nanos() as f64 / self.nanos(100)).ceil() as u32
    }
}

/// The times of each subject. The subjects take turns, so that a busy machine is busy for all of them.
pub(crate) fn times(subjects: &mut [Subject<'_>]) -> Vec<Time> {
    let turns: Vec<u32> = subjects.iter_mut().map(Subject::turn).collect();
    let mut times = vec![Vec::with_capacity(ROUNDS); subjects.len()];
    for _ in 0..ROUNDS {
        for ((subject, times), turn) in subjects.iter_mut().zip(&mut times).zip(&turns) {
            times.push(subject.nanos(*turn));
        }
    }
    times.into_iter().map(|times| Time { median: quantile(&times, 0.5), quiet: quantile(&times, 0.01) }).collect()
}

/// The middle one of at least one value.
pub(crate) fn median(values: Vec<f64>) -> f64 {
    quantile(&values, 0.5)
}

fn quantile(values: &[f64], part: f64) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[(values.len() as f64 * part) as usize]
}

const TURN: Duration = Duration::from_micros(100);
const ROUNDS: usize = 3000;
