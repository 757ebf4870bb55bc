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

/// Most commands open with a text that was put together beforehand; a long operation's is written out.
#[test]
fn every_opening_says_operation_and_version() {
    macro_rules! openings {
        ($($name:ident $operation:literal $version:literal,)*) => {$(
            #[derive(IdempotentCommand)]
            #[idem(operation = $operation, version = $version)]
            struct $name {
                a: bool,
            }

            let command = $name { a: true };
            let expected = format!(r#"["idem/1","{}",{},{{"a":true}}]"#, $operation, $version);
            assert_eq!(command.preimage(), expected);
            let expected: [u8; 32] = sha2::Sha256::digest(expected).into();
            assert_eq!(command.command_hash().digest(), &expected);
        )*};
    }
    openings! {
        Short "t" 1,
        Round "pay.v2-eu" 10,
        Largest "create_payment" 2_147_483_647,
        Long "a_name_of_sixty_four_bytes_that_just_fits_0123456789012345678901" 1_000,
        Longer "a_name_of_sixty_five_bytes_that_fits_no_more_01234567890123456789" 1_000,
    }
}

/// Numbers on both sides of what fits into a register.
#[test]
fn short_and_long_numbers_are_written_alike() {
    #[derive(IdempotentCommand)]
    #[idem(operation = "t", version = 1)]
    struct Numbers {
        #[idem(decimal(scale = 2))]
        amount: rust_decimal::Decimal,
        number: i64,
    }
    let mantissas = (0..20).map(|n| 10_i64.pow(n.min(18)) / 3).chain([9, 10, 99, 100, 101, 999_999_999_999]);
    let edges = [u32::MAX.into(), i64::from(u32::MAX) + 1, 1_000_000_000_000, 0];
    for magnitude in mantissas.chain(edges) {
        for number in [magnitude, -magnitude] {
            for scale in 0..4_u32 {
                let amount = rust_decimal::Decimal::new(number, scale);
                let expected = amount.normalize();
                let places = expected.scale().max(2) as usize;
                let expected = format!(r#"["idem/1","t",1,{{"amount":"{expected:.places$}","number":"{number}"}}]"#);
                let numbers = Numbers { amount, number };
                assert_eq!(numbers.preimage(), expected);
                let expected: [u8; 32] = sha2::Sha256::digest(expected).into();
                assert_eq!(numbers.command_hash().digest(), &expected);
            }
        }
    }
}
