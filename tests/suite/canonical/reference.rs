//! The reference implementation in `docs`, which shares no code with idem, writes what the derive writes.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use idem_core::IdempotentCommand;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;

use super::order::orders;
use super::preimage;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn python(arguments: &[&str], input: String) -> Output {
    let mut child = Command::new("python3")
        .args(arguments)
        .current_dir(ROOT)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python3 runs the reference implementation; tests/run installs it");
    let mut stdin = child.stdin.take().unwrap();
    // Beside the reading: each side of the pipe would otherwise wait for the other.
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    output
}

#[test]
fn the_reference_reproduces_every_vector() {
    let vectors = ["tests/vectors/canonical-form-1.json", "tests/vectors/described.json"];
    let output = python(&["docs/canonical-form.py", "check", vectors[0], vectors[1]], String::new());
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    // The 79th says that its version cannot express the command.
    assert_eq!(said, "78 vectors reproduced\n");
}

#[test]
fn the_reference_and_the_derive_agree_on_generated_commands() {
    let mut runner = TestRunner::deterministic();
    let orders: Vec<_> = (0..500).map(|_| orders().new_tree(&mut runner).unwrap().current()).collect();
    let input: String = orders.iter().map(|order| order.described().to_string() + "\n").collect();
    let output = python(&["docs/canonical-form.py", "write"], input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = lines.split_terminator('\n').collect();
    assert_eq!(lines.len(), orders.len());
    for (order, line) in orders.iter().zip(lines) {
        assert_eq!(order.preimage(), line, "{order:?}");
    }
}

#[test]
fn the_reference_refuses_text_newer_than_its_unicode_and_guesses_nothing() {
    let version = python(&["-c", "import unicodedata; print(unicodedata.unidata_version)"], String::new());
    let version = String::from_utf8(version.stdout).unwrap();
    let major: u32 = version.split('.').next().unwrap().parse().unwrap();
    // U+1C89 came with Unicode 16, U+1FAE8 with 15, and U+0378 is still to come.
    let line = |c: char| format!("{}\n", serde_json::json!(["t", 1, ["text", format!("{c}e\u{301}")]]));
    let output = python(&["docs/canonical-form.py", "write"], ['\u{1c89}', '\u{1fae8}', '\u{378}'].map(line).concat());
    let lines = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<_> = lines.lines().collect();
    for (line, (c, since)) in lines.iter().zip([('\u{1c89}', 16), ('\u{1fae8}', 15)]) {
        match major >= since {
            true => assert_eq!(*line, format!("[\"idem/1\",\"t\",1,\"{c}\u{e9}\"]")),
            false => assert!(line.starts_with("refused: U+"), "{line}"),
        }
    }
    assert_eq!(lines[2], "[\"idem/1\",\"t\",1,\"\u{378}e\u{301}\"]");
}

#[test]
fn the_reference_and_the_derive_agree_on_numbers_of_json() {
    let literals = [
        "0",
        "-0",
        "-0.0",
        "1.0",
        "1e0",
        "9007199254740993",
        "9007199254740993.0",
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775808",
        "-9223372036854775809",
        "-18446744073709551615",
        "1e21",
        "1e-7",
        "123456789012345680000.0",
        "5e-324",
        "1.7976931348623157e308",
        "0.1",
        "-1.5",
        "1e-400",
    ];
    // What no double holds is for those who switch `serde_json/arbitrary_precision` on.
    let plain = format!("1{}", "0".repeat(400));
    let fraction = format!("{}.5", "12".repeat(200));
    let longest = format!("1{}", "0".repeat(5000));
    // Around the largest `i128`, and far beyond it: whoever counts in one has to notice.
    let exponents = [
        "1e170141183460469231731687303715884105726",
        "1e170141183460469231731687303715884105727",
        "10e170141183460469231731687303715884105727",
        "0.1e170141183460469231731687303715884105727",
        "1e170141183460469231731687303715884105728",
        "-10e170141183460469231731687303715884105728",
        "0.01E+170141183460469231731687303715884105729",
        "1e98765432109876543210987654321098765432109876543210",
        "1e98765432109876543210987654321098765432109876543211",
        "990e99999999999999999999999999999999999999999999999999",
        "0.1e100000000000000000000000000000000000000000000000000",
        "1e0000000000000000000000000000000000000000000000000400",
        "0e98765432109876543210987654321098765432109876543210",
        "1e-98765432109876543210987654321098765432109876543210",
    ];
    let beyond = ["1.50e400", "-1e400", "0.15e402", "1e999999", &plain, &fraction, &longest];
    let beyond = beyond.into_iter().chain(exponents);
    let beyond = beyond.filter(|literal| serde_json::from_str::<serde_json::Value>(literal).is_ok());
    let literals: Vec<_> = literals.into_iter().chain(beyond).collect();
    let input =
        literals.iter().map(|literal| format!("[\"t\",1,[\"object\",[[\"v\",[\"json\",{literal}]]]]]\n")).collect();
    let output = python(&["docs/canonical-form.py", "write"], input);
    let lines = String::from_utf8(output.stdout).unwrap();
    for (literal, line) in literals.iter().zip(lines.lines()) {
        let value: serde_json::Value = serde_json::from_str(literal).unwrap();
        assert_eq!(preimage!(serde_json::Value = value), line, "{literal}");
    }
    assert_eq!(lines.lines().count(), literals.len());
}

/// Both tables come from one generator and are never changed, so that they are compared as they are printed.
#[test]
fn both_carry_one_frozen_table() {
    let read = |path: &str| std::fs::read_to_string(format!("{ROOT}/{path}")).unwrap();
    let rust = read("idem-core/src/canonical/unicode16.rs");
    let rust: Vec<(u32, u32)> = rust
        .split("(0x")
        .skip(1)
        .map(|pair| {
            let (low, high) = pair.split_once(')').unwrap().0.split_once(", 0x").unwrap();
            (u32::from_str_radix(low, 16).unwrap(), u32::from_str_radix(high, 16).unwrap())
        })
        .collect();
    assert_eq!(rust.len(), 731);
    assert!(unassigned() == rust, "the tables differ");
}

/// The ranges that the reference holds for unassigned in Unicode 16.
pub(super) fn unassigned() -> Vec<(u32, u32)> {
    let python = std::fs::read_to_string(format!("{ROOT}/docs/canonical-form.py")).unwrap();
    let table = python.split("in (entry.partition(\"-\") for entry in \"\"\"").nth(1).unwrap();
    let entries = table.split("\"\"\"").next().unwrap().split_whitespace();
    entries
        .map(|entry| {
            let (low, high) = entry.split_once('-').unwrap_or((entry, entry));
            (u32::from_str_radix(low, 16).unwrap(), u32::from_str_radix(high, 16).unwrap())
        })
        .collect()
}
