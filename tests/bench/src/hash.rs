//! `idem-bench hash`: the hash of a command.

use std::hint::black_box;

use idem_core::IdempotentCommand;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::payment::{Texts, flat, nested};
use crate::table::{Subject, Time, subject, times};

pub(crate) fn run() {
    let (nested, flat) = (nested(), flat());
    let of_nested = measure("nested", &nested, || nested.texts());
    let of_flat = measure("flat, six texts", &flat, || flat.texts());
    println!("{}\n", sha_speed(of_nested.bytes, of_nested.raw.median));
    let of_sha =
        |measured: &Measured| (measured.idem.median / measured.raw.median, measured.idem.quiet / measured.raw.quiet);
    let ((nested, nested_quiet), (flat, flat_quiet)) = (of_sha(&of_nested), of_sha(&of_flat));
    println!(
        "ratios: nested={nested:.2} flat={flat:.2} jcs_nested={:.1} jcs_flat={:.1} serde_nested={:.2} \
         nested_quiet={nested_quiet:.2} flat_quiet={flat_quiet:.2}",
        of_nested.jcs / of_nested.idem.median,
        of_flat.jcs / of_flat.idem.median,
        of_nested.idem.median / of_nested.serde,
    );
}

struct Measured {
    bytes: usize,
    raw: Time,
    idem: Time,
    /// Median nanoseconds.
    serde: f64,
    /// Median nanoseconds of the fastest of the RFC 8785 crates.
    jcs: f64,
}

fn measure<C: IdempotentCommand + Serialize>(title: &str, command: &C, texts: impl Fn() -> Texts<'static>) -> Measured {
    let preimage = command.preimage();
    let command = || black_box(command);
    let json = |bytes: serde_json::Result<Vec<u8>>| Sha256::digest(bytes.expect("plain data"));
    let mut subjects: Vec<Subject<'_>> = vec![
        subject("sha2 on the finished preimage", || Sha256::digest(black_box(preimage.as_bytes()))),
        subject("idem", || command().command_hash()),
        subject("serde_json + sha2 (not canonical)", || json(serde_json::to_vec(command()))),
        subject("sorted dictionary of texts + serde_json + sha2", || json(serde_json::to_vec(&texts()))),
        subject("serde_json_canonicalizer + sha2", || json(serde_json_canonicalizer::to_vec(command()))),
        subject("serde_jcs + sha2", || json(serde_jcs::to_vec(command()))),
        subject("json-canon + sha2", || json(json_canon::to_vec(command()))),
    ];
    let mut times = times(&mut subjects);
    let raw = &times[0];
    println!("| {title} ({} bytes) | median ns | × sha2 | quiet ns | × sha2 |", preimage.len());
    println!("| --- | ---: | ---: | ---: | ---: |");
    for (subject, Time { median, quiet }) in subjects.iter().zip(&times) {
        println!(
            "| {} | {median:.0} | {:.2} | {quiet:.0} | {:.2} |",
            subject.name,
            median / raw.median,
            quiet / raw.quiet
        );
    }
    println!();
    let jcs = times[4..].iter().map(|time| time.median).fold(f64::INFINITY, f64::min);
    let serde = times[2].median;
    let (idem, raw) = (times.swap_remove(1), times.swap_remove(0));
    Measured { bytes: preimage.len(), raw, idem, serde, jcs }
}

/// Whether the limit is the processor's own SHA-256, which the goals are about.
fn sha_speed(bytes: usize, nanos: f64) -> String {
    #[cfg(target_arch = "x86_64")]
    let has_instructions = std::arch::is_x86_feature_detected!("sha");
    #[cfg(not(target_arch = "x86_64"))]
    let has_instructions = false;
    // Padding makes whole blocks of 64 bytes of the text, one bit and its length.
    let blocks = (bytes + 9).div_ceil(64);
    let speed = (blocks * 64) as f64 / nanos;
    let word = if has_instructions { "has" } else { "does not say that it has" };
    format!("The processor {word} SHA instructions; sha2 took {speed:.2} bytes a nanosecond.")
}

/// Does one thing many times, for an instruction counter. False: not known.
pub(crate) fn repeat(what: &str, times: &str) -> bool {
    let Ok(times) = times.parse::<u64>() else { return false };
    let (nested, flat) = (nested(), flat());
    let texts = [nested.preimage(), flat.preimage()];
    let raw = |text: &String| _ = black_box(Sha256::digest(black_box(text.as_bytes())));
    let work: &dyn Fn() = match what {
        "sha2-nested" => &|| raw(&texts[0]),
        "sha2-flat" => &|| raw(&texts[1]),
        "hash-nested" => &|| _ = black_box(black_box(&nested).command_hash()),
        "hash-flat" => &|| _ = black_box(black_box(&flat).command_hash()),
        _ => return false,
    };
    (0..times).for_each(|_| work());
    true
}
