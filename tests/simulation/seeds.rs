//! Many seeds, and one of them again.

use std::env;
use std::io::Write as _;
use std::time::Instant;

use crate::run::{Counts, Report, run};

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// Past the test harness, which keeps what a test prints for itself.
fn say(text: &str) {
    writeln!(std::io::stderr(), "{text}").expect("standard error is open");
}

fn must_keep(seed: u64, report: &Report) {
    if report.broken.is_empty() {
        return;
    }
    let history: Vec<_> =
        report.history.iter().map(|event| format!("{:>12?} {:?} {}", event.at, event.kind, event.what)).collect();
    panic!("{}\n{}\nreplay it with IDEM_SEED={seed}", history.join("\n"), report.broken.join("\n"));
}

/// `IDEM_SEED` plays one, `IDEM_SEEDS` says how many; with `IDEM_SOAK` they begin somewhere.
#[test]
fn whatever_goes_wrong_every_promise_is_kept() {
    if let Some(seed) = number("IDEM_SEED") {
        return must_keep(seed, &run(seed));
    }
    let soak = env::var_os("IDEM_SOAK").is_some();
    let many = number("IDEM_SEEDS").unwrap_or(if soak { 400_000 } else { 20_000 });
    let from = if soak { fastrand::u64(..1 << 40) } else { 1 };
    say(&format!("seeds {from} to {}", from + many - 1));
    let begun = Instant::now();
    let threads = 2;
    let counts = std::thread::scope(|scope| {
        let play = |offset| {
            let mut counts = Counts::default();
            for seed in (from + offset..from + many).step_by(threads as usize) {
                let report = run(seed);
                must_keep(seed, &report);
                counts.add(&report.counts);
            }
            counts
        };
        let playing: Vec<_> = (0..threads).map(|offset| scope.spawn(move || play(offset))).collect();
        let mut sum = Counts::default();
        for played in playing {
            sum.add(&played.join().expect("a seed broke a promise; it is named above"));
        }
        sum
    });
    for (name, count) in counts.named() {
        say(&format!("{name:<34} {count:>9}"));
        assert!(many < 1000 || count > many / 200, "only {count} {name} in {many} seeds");
    }
    say(&format!("{many} seeds in {:.1} s", begun.elapsed().as_secs_f64()));
}

#[test]
fn a_seed_gives_the_same_run_again() {
    let mut different = std::collections::BTreeSet::new();
    for seed in 1..=50 {
        let (once, again) = (run(seed), run(seed));
        assert_eq!(once.history, again.history, "seed {seed}");
        assert_eq!(once.fingerprint(), again.fingerprint());
        different.insert(once.fingerprint());
    }
    assert!(different.len() > 45, "the seeds are alike");
}
