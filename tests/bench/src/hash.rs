//! `idem-bench hash`: the hash of a command.

use std::hint::black_box;

use idem_core::IdempotentCommand;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::payment::{Texts, flat, nested};
use crate::table::{Subject, medians, subject};

pub(crate) fn run() {
    let (nested, flat) = (nested(), flat());
    let of_nested = measure("nested", &nested, || nested.texts());
    let of_flat = measure("flat, six texts", &flat, || flat.texts());
    println!("{}\n", sha_speed(of_nested.bytes, of_nested.raw));
    println!(
        "ratios: nested={:.2} flat={:.2} jcs_nested={:.1} jcs_flat={:.1} serde_nested={:.2}",
        of_nested.idem / of_nested.raw,
        of_flat.idem / of_flat.raw,
        of_nested.jcs / of_nested.idem,
        of_flat.jcs / of_flat.idem,
        of_nested.idem / of_nested.serde,
    );
}

/// Median nanoseconds.
struct Measured {
    bytes: usize,
    raw: f64,
    idem: f64,
    serde: f64,
    /// The fastest of the RFC 8785 crates.
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
    let times = medians(&mut subjects);
    let raw = times[0];
    println!("| {title} ({} bytes) | median ns | × sha2 |\n| --- | ---: | ---: |", preimage.len());
    for (subject, time) in subjects.iter().zip(&times) {
        println!("| {} | {time:.0} | {:.2} |", subject.name, time / raw);
    }
    println!();
    let jcs = times[4..].iter().copied().fold(f64::INFINITY, f64::min);
    Measured { bytes: preimage.len(), raw, idem: times[1], serde: times[2], jcs }
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
