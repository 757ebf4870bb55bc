//! One amount has many spellings, and two amounts never share one.

use idem_core::{IdempotentCommand, Verdict};
use rust_decimal::Decimal;
use serde::Deserialize;

use super::{assert_all_differ, canonical};

#[derive(Deserialize, IdempotentCommand)]
#[serde(deny_unknown_fields)]
#[idem(operation = "create_payment", version = 1)]
struct CreatePayment {
    #[idem(decimal(scale = 2))]
    #[serde(deserialize_with = "idem_core::exact::decimal")]
    amount: Decimal,
    #[idem(uppercase)]
    currency: String,
    #[idem(decimal(scale = 2), default = "0.00")]
    #[serde(default, deserialize_with = "idem_core::exact::decimal")]
    tip: Option<Decimal>,
}

fn request(body: &str) -> Result<CreatePayment, String> {
    serde_json::from_str(body).map_err(|error| error.to_string())
}

fn amount(json: &str) -> Result<String, String> {
    let payment = request(&format!(r#"{{"amount":{json},"currency":"EUR"}}"#))?;
    Ok(canonical!(
        #[idem(decimal(scale = 2))]
        Decimal = payment.amount
    ))
}

#[test]
fn one_amount_in_many_spellings_is_one_command() {
    for json in [r#""10""#, r#""10.0""#, r#""10.00""#, r#""1e1""#, r#""+10""#, r#""010""#, r#""10.""#, "10"] {
        assert_eq!(amount(json).unwrap(), r#""10.00""#, "{json}");
    }
}

#[test]
fn the_order_of_members_the_case_of_a_currency_and_white_space_do_not_matter() {
    let first = request(r#"{"amount":"10.00","currency":"EUR"}"#).unwrap();
    let retry = request("{ \"currency\": \"eur\",\n  \"amount\": 10 }").unwrap();
    assert_eq!(retry.verdict(&first.command_hash()), Verdict::Same);
}

#[test]
fn text_that_is_not_plainly_a_number_is_refused() {
    for text in [" 10", "10 ", "1_000", "1,00", "", "-", ".", "1.0.0", "0x10", "NaN", "1e", "1e+", "--1", "\u{661}"] {
        let json = serde_json::Value::from(text).to_string();
        let refused = amount(&json).expect_err(text);
        assert!(refused.contains("not an amount"), "{text}: {refused}");
    }
    for json in ["null", "true", "[]", "{}", r#"{"a":1}"#] {
        amount(json).expect_err(json);
    }
}

#[test]
fn a_json_number_with_a_fraction_is_refused_before_it_loses_cents() {
    for json in ["10.00", "12345678901234567.89", "12345678901234567.90", "1e1", "18446744073709551616", "-0"] {
        let refused = amount(json).expect_err(json);
        assert!(refused.contains(r#"send a string such as "10.50""#), "{json}: {refused}");
    }
    assert_eq!(amount("18446744073709551615").unwrap(), r#""18446744073709551615.00""#);
    assert_eq!(amount("-9223372036854775808").unwrap(), r#""-9223372036854775808.00""#);
}

#[test]
fn text_with_more_digits_than_an_amount_holds_is_refused_not_rounded() {
    for text in ["0.12345678901234567890123456785", "1e-29", "7.92281625142643375935439503351"] {
        let refused = amount(&format!("{text:?}")).expect_err(text);
        assert!(refused.contains("would have to be rounded"), "{text}: {refused}");
    }
    for text in ["79228162514264337593543950336", "1e29", "1e999999999999"] {
        let refused = amount(&format!("{text:?}")).expect_err(text);
        assert!(refused.contains("larger than an amount"), "{text}: {refused}");
    }
}

#[test]
fn zeros_are_no_digits_to_lose() {
    for text in ["1.00000000000000000000000000000000", "100000000000000000000000000000000e-32", "0e999999999999"] {
        amount(&format!("{text:?}")).expect(text);
    }
    let largest = amount(r#""79228162514264337593543950335.000""#).unwrap();
    assert_eq!(largest, r#""79228162514264337593543950335.00""#);
    assert_eq!(amount(r#""0.0000000000000000000000000001""#).unwrap(), r#""0.0000000000000000000000000001""#);
}

#[test]
fn an_amount_keeps_the_places_it_was_sent_with() {
    let payment = request(r#"{"amount":"10.500","currency":"EUR"}"#).unwrap();
    assert_eq!(payment.amount.to_string(), "10.500");
}

#[test]
fn digits_beyond_the_scale_make_another_command() {
    let two_places = |text: &str| {
        canonical!(
            #[idem(decimal(scale = 2))]
            Decimal = text.parse().unwrap()
        )
    };
    assert_all_differ(&["10.00", "10.004", "10.005", "10.009", "10.01"].map(two_places));
    assert_eq!(two_places("1.005"), r#""1.005""#);
    assert_eq!(two_places("-1.015"), r#""-1.015""#);
    assert_eq!(two_places("10.000"), r#""10.00""#);
}

#[test]
fn zero_has_no_sign() {
    let negative = -Decimal::ZERO;
    assert!(negative.is_sign_negative());
    for zero in [Decimal::ZERO, negative, "-0.00".parse().unwrap(), Decimal::new(0, 28)] {
        assert_eq!(
            canonical!(
                #[idem(decimal(scale = 2))]
                Decimal = zero
            ),
            r#""0.00""#
        );
        assert_eq!(canonical!(Decimal = zero), r#""0""#);
    }
    assert_eq!(
        canonical!(
            #[idem(decimal(scale = 2))]
            Decimal = "-0.004".parse().unwrap()
        ),
        r#""-0.004""#
    );
}

#[test]
fn extreme_decimals_are_padded_by_digit_work() {
    let text = canonical!(
        #[idem(decimal(scale = 2))]
        Decimal = Decimal::MAX
    );
    assert_eq!(text, r#""79228162514264337593543950335.00""#);
    let text = canonical!(
        #[idem(decimal(scale = 28))]
        Decimal = Decimal::MIN
    );
    assert_eq!(text, r#""-79228162514264337593543950335.0000000000000000000000000000""#);
    assert_eq!(
        canonical!(
            #[idem(decimal(scale = 0))]
            Decimal = Decimal::new(-1200, 2)
        ),
        r#""-12""#
    );
    assert_eq!(
        canonical!(
            #[idem(decimal(scale = 0))]
            Decimal = Decimal::new(-1210, 2)
        ),
        r#""-12.1""#
    );
}

#[test]
fn an_absent_tip_and_a_tip_of_zero_are_one() {
    let hash = |body: &str| request(body).unwrap().command_hash();
    let absent = hash(r#"{"amount":1,"currency":"EUR"}"#);
    for tip in ["null", "0", r#""0.00""#, r#""-0""#, r#""0e5""#] {
        assert_eq!(hash(&format!(r#"{{"amount":1,"currency":"EUR","tip":{tip}}}"#)), absent, "{tip}");
    }
    assert_ne!(hash(r#"{"amount":1,"currency":"EUR","tip":"0.01"}"#), absent);
}

#[test]
fn scale_reaches_through_what_holds_the_amount() {
    type Amounts = Option<Vec<Box<Decimal>>>;
    let one = || Box::new(Decimal::ONE);
    assert_eq!(
        canonical!(
            #[idem(decimal(scale = 2))]
            Amounts = Some(vec![one(), one()])
        ),
        r#"["1.00","1.00"]"#
    );
    let by_name = std::collections::BTreeMap::from([("fee", Some(Decimal::ONE)), ("tax", None)]);
    assert_eq!(
        canonical!(#[idem(decimal(scale = 1))] std::collections::BTreeMap<&'static str, Option<Decimal>> = by_name),
        r#"{"fee":"1.0","tax":null}"#
    );
}
