//! What reaches the hash is the preimage, whatever way it takes through the buffer before it.

use idem_core::IdempotentCommand;
use sha2::Digest;

/// Texts longer than any buffer on the way come out whole.
#[test]
fn long_texts_hash_like_their_preimage() {
    #[derive(IdempotentCommand)]
    #[idem(operation = "t", version = 1)]
    struct Long<'a> {
        a: &'a str,
        b: &'a [u8],
        c: &'a str,
    }
    for len in (0..1200).step_by(7) {
        let (a, b, c) = ("a\n".repeat(len), vec![7; len], "e\u{301}".repeat(len / 2));
        let long = Long { a: &a, b: &b, c: &c };
        let expected: [u8; 32] = sha2::Sha256::digest(long.preimage()).into();
        assert_eq!(long.command_hash().digest(), &expected, "length {len}");
    }
}

/// Short texts, names and numbers take short cuts into the buffer before the hash; none of them loses a byte.
#[test]
fn texts_names_and_numbers_of_every_length_hash_like_their_preimage() {
    macro_rules! names {
        ($($field:ident)*) => {
            #[derive(IdempotentCommand)]
            #[idem(operation = "t", version = 1)]
            struct Named<'a> {
                text: &'a str,
                #[idem(uppercase)]
                upper: &'a str,
                number: u128,
                $($field: bool,)*
            }

            fn named(text: &str, number: u128) -> Named<'_> {
                Named { text, upper: text, number, $($field: true,)* }
            }
        };
    }
    names!(a ab abc abcd abcde abcdef abcdefg abcdefgh abcdefghi abcdefghij abcdefghijk abcdefghijkl abcdefghijklm
        abcdefghijklmn abcdefghijklmno abcdefghijklmnop abcdefghijklmnopq abcdefghijklmnopqr abcdefghijklmnopqrs);

    let check = |text: &str, number: u128| {
        let command = named(text, number);
        let expected: [u8; 32] = sha2::Sha256::digest(command.preimage()).into();
        assert_eq!(command.command_hash().digest(), &expected, "{text:?} {number}");
    };
    for len in 0..=40 {
        let letters: String = ('a'..='z').cycle().take(len).collect();
        check(&letters, 10u128.pow(len.min(38) as u32));
        for at in 0..len {
            for special in ["\"", "\\", "\0", "\u{1f}", "\u{7f}", " ", "!", "\u{e9}", "e\u{301}"] {
                let mut text = letters.clone();
                text.replace_range(at..=at, special);
                check(&text, at as u128);
            }
        }
    }
}
