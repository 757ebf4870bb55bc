//! Text: what people see as one word is one, what differs stays apart.

use proptest::prelude::*;

use super::{assert_all_differ, canonical};

fn text(value: &str) -> String {
    canonical!(String = value.into())
}

fn uppercase(value: &str) -> String {
    canonical!(
        #[idem(uppercase)]
        String = value.into()
    )
}

#[test]
fn composed_and_decomposed_letters_are_one() {
    assert_eq!(text("Caf\u{e9}"), text("Cafe\u{301}"));
    assert_eq!(text("\"e\u{301}\n\\e\u{301}"), "\"\\\"\u{e9}\\n\\\\\u{e9}\"");
    // The letter before the first mark was plain ASCII a moment ago.
    assert_eq!(text("ae\u{301}"), "\"a\u{e9}\"");
    assert_eq!(text("\u{301}"), "\"\u{301}\"");
}

#[test]
fn compatibility_forms_and_invisible_characters_stay_apart() {
    assert_all_differ(&["\u{fb01}", "fi", "\u{ff21}", "A", "a\u{200b}b", "ab", "a b", "a\u{a0}b"].map(text));
}

#[test]
fn enum_payloads_are_normalised_and_map_keys_are_not() {
    #[derive(idem_core::Canonical)]
    enum Note {
        Text(String),
    }
    let note = |value: &str| canonical!(Note = Note::Text(value.into()));
    assert_eq!(note("e\u{301}"), note("\u{e9}"));

    type Notes = std::collections::BTreeMap<&'static str, u8>;
    let both = canonical!(Notes = [("e\u{301}", 1), ("\u{e9}", 2)].into());
    assert_eq!(both, "{\"e\u{301}\":\"1\",\"\u{e9}\":\"2\"}", "no entry disappears");
}

#[test]
fn uppercase_is_ascii_and_knows_no_locale() {
    assert_eq!(uppercase("eur"), uppercase("EUR"));
    assert_all_differ(&["stra\u{df}e", "STRASSE", "\u{131}", "i", "\u{130}"].map(uppercase));
    assert_eq!(uppercase("stra\u{df}e"), "\"STRA\u{df}E\"");
    assert_eq!(
        ["i", "I", "\u{131}", "\u{130}", "i\u{307}", "I\u{307}"].map(uppercase),
        ["I", "I", "\u{131}", "\u{130}", "\u{130}", "\u{130}"].map(|text| format!("\"{text}\""))
    );
    let long = "ab\u{e9}".repeat(100);
    assert_eq!(uppercase(&long), text(&"AB\u{e9}".repeat(100)));
}

#[test]
fn case_and_trim_come_in_one_order() {
    let lower = canonical!(
        #[idem(lowercase)]
        String = "\u{130}I\u{c9}A\u{30a}".into()
    );
    assert_eq!(lower, "\"\u{130}i\u{c9}a\u{30a}\"".replace("a\u{30a}", "\u{c5}"));
    assert_eq!(
        canonical!(
            #[idem(trim)]
            String = " \t\r\n\u{c}a b\u{a0} ".into()
        ),
        "\"a b\u{a0}\""
    );
    assert_eq!(
        canonical!(
            #[idem(uppercase, trim)]
            String = " eur\n".into()
        ),
        "\"EUR\""
    );
    assert_eq!(canonical!(#[idem(trim, lowercase)] Option<Vec<&'static str>> = Some(vec![" A "])), "[\"a\"]");
}

#[test]
fn verbatim_text_is_escaped_and_nothing_else() {
    let verbatim = |value: &str| {
        canonical!(
            #[idem(verbatim)]
            String = value.into()
        )
    };
    assert_all_differ(&["e\u{301}", "\u{e9}", " e\u{301}"].map(verbatim));
    assert_eq!(verbatim("e\u{301}\""), "\"e\u{301}\\\"\"");
}

#[test]
fn text_with_a_character_of_a_later_unicode_stays_as_it_was_sent() {
    // U+1ACF, U+0378 and U+10FFFF are not assigned in Unicode 16; U+E000 and U+10FFFD are for private use.
    for later in ["a\u{1acf}\u{316}", "e\u{301}\u{378}", "\u{10ffff}e\u{301}"] {
        assert_eq!(text(later), format!("\"{later}\""));
    }
    assert_eq!(text("e\u{301}\u{e000}\u{10fffd}"), "\"\u{e9}\u{e000}\u{10fffd}\"");
    assert_eq!(uppercase("e\u{301}\u{378}"), "\"E\u{301}\u{378}\"");
}

#[test]
fn escapes_are_those_of_rfc_8785() {
    for byte in 0..0x80u8 {
        let c = char::from(byte);
        assert_eq!(text(&c.to_string()), serde_json::Value::from(c.to_string()).to_string());
    }
}

/// Characters that matter: composing, marks, later ones, escapes, long runs.
fn texts() -> impl Strategy<Value = String> {
    let chars = prop_oneof![
        any::<char>(),
        prop::sample::select(
            "aeiouAEIOU \"\\\n<\u{300}\u{301}\u{307}\u{30a}\u{316}\u{338}\u{345}\u{130}\u{131}\u{df}\
             \u{1acf}\u{378}\u{ac00}\u{11a8}\u{1100}\u{1161}\u{212b}\u{fb01}\u{e000}\u{1d15e}"
                .chars()
                .collect::<Vec<_>>()
        ),
    ];
    prop::collection::vec(chars, 0..100).prop_map(String::from_iter)
}

proptest! {
    #[test]
    fn normalising_twice_is_normalising_once(sent in texts()) {
        let once = |value: &str| serde_json::from_str::<String>(&text(value)).unwrap();
        let upper = |value: &str| serde_json::from_str::<String>(&uppercase(value)).unwrap();
        prop_assert_eq!(once(&once(&sent)), once(&sent));
        prop_assert_eq!(upper(&upper(&sent)), upper(&sent));
        prop_assert_eq!(upper(&once(&sent)), upper(&sent));
    }

    #[test]
    fn text_comes_out_as_one_json_string(sent in texts()) {
        let verbatim = canonical!(#[idem(verbatim)] String = sent.clone());
        prop_assert_eq!(serde_json::from_str::<String>(&verbatim).unwrap(), sent);
    }
}
