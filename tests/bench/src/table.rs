//! Interleaved measurement, and its table.

use std::hint::black_box;
use std::time::Instant;

/// One way to do the work: takes the work a number of times.
pub(crate) struct Subject<'a> {
    pub(crate) name: &'static str,
    pub(crate) work: Box<dyn FnMut() + 'a>,
}

/// A subject that does the work once a call. Its result is kept from the optimiser.
pub(crate) fn subject<'a, T>(name: &'static str, mut work: impl FnMut() -> T + 'a) -> Subject<'a> {
    let work = Box::new(move || {
        for _ in 0..BATCH {
            black_box(work());
        }
    });
    Subject { name, work }
}

/// The median nanoseconds of each subject. The subjects take turns, so that a busy machine is busy for all of them.
pub(crate) fn medians(subjects: &mut [Subject<'_>]) -> Vec<f64> {
    let mut times = vec![Vec::with_capacity(ROUNDS); subjects.len()];
    for round in 0..ROUNDS + WARM_UP {
        for (subject, times) in subjects.iter_mut().zip(&mut times) {
            let start = Instant::now();
            (subject.work)();
            let time = start.elapsed().as_nanos() as f64 / BATCH as f64;
            if round >= WARM_UP {
                times.push(time);
            }
        }
    }
    times.into_iter().map(median).collect()
}

/// The middle one of at least one value.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

const BATCH: usize = 100;
const ROUNDS: usize = 1001;
const WARM_UP: usize = 100;
