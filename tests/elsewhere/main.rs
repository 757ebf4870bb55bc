//! The hash suite under the dependencies that `run` chose, and the proof that they are those.

#[path = "../suite/canonical/mod.rs"]
mod canonical;

#[test]
#[cfg(feature = "switched-on")]
fn the_features_are_on() {
    let value: serde_json::Value = serde_json::from_str(r#"{"b":1e400,"a":1}"#).expect("any precision");
    assert_eq!(value.to_string(), r#"{"b":1e+400,"a":1}"#, "the order of the text");
    assert_eq!(serde_json::to_string(&rust_decimal::Decimal::ONE).expect("a number"), "1.0");
}

#[test]
#[cfg(feature = "switched-on")]
fn two_exponents_are_two_numbers_however_long_they_are() {
    let text = |exponent: &str| {
        let value: serde_json::Value = serde_json::from_str(&format!("1{exponent}")).expect("any precision");
        canonical::canonical!(serde_json::Value = value)
    };
    let long = ["e98765432109876543210987654321098765432109876543210", "e98765432109876543210987654321098765432109876543211"];
    assert_eq!(long.map(text), long.map(|exponent| format!("1{exponent}")));
    assert_eq!(text("0e170141183460469231731687303715884105727"), "1e170141183460469231731687303715884105728");
    assert_eq!(text(&format!("00e{}", "9".repeat(38))), format!("1e1{}1", "0".repeat(37)));
}

#[test]
fn the_release_of_the_tables_is_the_one_asked_for() {
    let asked = std::env::var("IDEM_UNICODE").expect("`run` says which Unicode the lock file brings");
    let (major, minor, micro) = unicode_normalization::UNICODE_VERSION;
    assert_eq!(format!("{major}.{minor}.{micro}"), asked);
}
