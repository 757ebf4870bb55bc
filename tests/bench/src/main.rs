//! Measures idem against what people use instead.
//!
//! ```text
//! cargo run --release -p idem-bench -- hash      the hash of a command, in nanoseconds
//! cargo run --release -p idem-bench -- http      requests per second of one handler, with and without idem
//! cargo run --release -p idem-bench -- http memory peer     of these services alone
//! ```
//!
//! Each subcommand ends with one line `ratios: name=value …`.
#![allow(clippy::print_stdout, reason = "a benchmark speaks to a person")]

mod hash;
mod http;
mod payment;
mod table;

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["hash"] => hash::run(),
        ["http", names @ ..] => http::run(names),
        // For an instruction counter: see `tests/bench/instructions`.
        ["repeat", what, times] if hash::repeat(what, times) => {}
        _ => {
            eprintln!("usage: idem-bench hash | http [memory | sqlite | postgres | peer]…");
            return 2.into();
        }
    }
    0.into()
}
