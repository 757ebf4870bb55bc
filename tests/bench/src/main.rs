//! Measures idem against what people use instead, and against the least that its database takes.
//!
//! ```text
//! cargo run --release -p idem-bench -- hash                  the hash of a command, in nanoseconds
//! cargo run --release -p idem-bench -- http                  requests per second of one handler, with and without idem
//! cargo run --release -p idem-bench -- http memory peer      of these services alone
//! cargo run --release -p idem-bench -- claims [--rounds 9]   the stores, beside pgbench and rusqlite
//! cargo run --release -p idem-bench -- sweep [--rows 1000000]   claims while a million records are cleaned up
//! ```
//!
//! Each subcommand ends with one line `ratios: name=value …`.
#![allow(clippy::print_stdout, reason = "a benchmark speaks to a person")]

mod claims;
mod hash;
mod http;
mod payment;
mod server;
mod sweep;
mod table;

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["hash"] => hash::run(),
        ["http", names @ ..] => http::run(names),
        ["claims"] => claims::run(9),
        ["claims", "--rounds", rounds] if let Ok(rounds) = rounds.parse() => claims::run(rounds),
        ["sweep"] => sweep::run(1_000_000),
        ["sweep", "--rows", rows] if let Ok(rows) = rows.parse() => sweep::run(rows),
        // For an instruction counter: see `tests/bench/instructions`.
        ["repeat", what, times] if hash::repeat(what, times) => {}
        _ => {
            eprintln!(
                "usage: idem-bench hash | http [memory | sqlite | postgres | peer]… | claims [--rounds N] | sweep [--rows N]"
            );
            return 2.into();
        }
    }
    0.into()
}
