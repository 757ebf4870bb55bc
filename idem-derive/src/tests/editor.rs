//! What an editor expands while the user is still typing: always the implementation, never a panic.

use proc_macro2::{TokenStream, TokenTree};

use super::expanded;
use crate::model::Derive;

/// Attributes cut off anywhere.
const HALF_TYPED: &[&str] = &[
    "#[idem]",
    "#[idem()]",
    "#[idem =]",
    "#[idem = \"x\"]",
    "#[idem(,)]",
    "#[idem(.)]",
    "#[idem(dec)]",
    "#[idem(decimal)]",
    "#[idem(decimal())]",
    "#[idem(decimal(sc))]",
    "#[idem(decimal(scale))]",
    "#[idem(decimal(scale =))]",
    "#[idem(decimal(scale = ,))]",
    "#[idem(decimal(scale = 2, round))]",
    "#[idem(decimal(scale = 2, round = ))]",
    "#[idem(default)]",
    "#[idem(default =)]",
    "#[idem(default = -)]",
    "#[idem(default = 1 +)]",
    "#[idem(with = money::)]",
    "#[idem(default = [)]",
    "#[idem(default = Some(]",
    "#[idem(rename = )]",
    "#[idem(until)]",
    "#[idem(until = )]",
    "#[idem(exclude exclude)]",
    "#[idem(timestamp(precision = ))]",
    "#[idem(\"exclude\")]",
    "#[idem::x(exclude)]",
];

#[test]
fn a_half_typed_attribute_on_a_field_still_gives_the_implementation() {
    for attribute in HALF_TYPED {
        let source =
            format!("#[idem(operation = \"pay\", version = 1)] struct Pay {{ {attribute} amount: Decimal, b: u8 }}");
        // What has no closing bracket never reaches a macro.
        if source.parse::<TokenStream>().is_err() {
            continue;
        }
        let expanded = expanded(Derive::Command, &source);
        assert!(expanded.contains("IdempotentCommand for Pay"), "{attribute}\n{expanded}");
        let is_other_attribute = attribute.starts_with("#[idem::x");
        assert_eq!(expanded.contains("compile_error!"), !is_other_attribute, "{attribute}\n{expanded}");
    }
}

#[test]
fn a_half_typed_attribute_on_the_type_still_gives_the_implementation() {
    for attribute in [
        "",
        "#[idem]",
        "#[idem()]",
        "#[idem =]",
        "#[idem(operation)]",
        "#[idem(operation = )]",
        "#[idem(operation = \"pay\")]",
        "#[idem(operation = \"pay\", version = )]",
        "#[idem(operation = \"pay\", version = 2, previous)]",
        "#[idem(operation = \"pay\", version = 2, previous = )]",
        "#[idem(operation = \"pay\", version = 2, oldest = )]",
        "#[idem(operation = \"pay\", version = 2, writes = x)]",
        "#[idem(operation = \"pay\", version = 1, crate = )]",
        "#[idem(operation = \"pay\", version = 1, bound = )]",
        "#[idem(operation = \"pay\", version = 1, bound = \"T: 1\")]",
        "#[idem(operation = \"pay\", version = 2, previous = old::)]",
        "#[idem(operation = \"pay\", version = 1, rename_all = \"snake\")]",
    ] {
        let source = format!("{attribute} struct Pay<'a, T: Clone = u8> {{ a: &'a T }}");
        let expanded = expanded(Derive::Command, &source);
        assert!(expanded.contains("IdempotentCommand for Pay<'a, T>"), "{attribute}\n{expanded}");
        assert!(expanded.contains("compile_error!"), "{attribute}\n{expanded}");
    }
}

/// Takes one token out of a type with everything, each in turn, and puts another in its place: the derive answers with
/// an implementation or an error, and never panics.
#[test]
fn no_broken_type_makes_the_derive_panic() {
    const SOURCES: [&str; 3] = [
        "#[idem(operation = \"pay\", version = 3, oldest = 2, writes = 2, previous = Old<T>, rename_all = \"camelCase\")]
         pub struct Pay<'a, T: Clone = u8, const N: usize = 2> where T: Copy {
             #[idem(decimal(scale = 2, round = \"half_up\"), default = \"-1.50\", rename = \"a\")] pub amount: Decimal,
             #[idem(trim, uppercase)] #[serde(flatten)] currency: &'a str,
             #[idem(until = 1)] r#type: [T; N],
             #[idem(unordered, default = [])] list: Vec<T>,
             #[idem(exclude)] trace: Option<String>,
             #[idem(timestamp(precision = \"ms\"))] at: (Instant),
             mark: PhantomData<T>,
         }",
        "#[idem(crate = my::idem, rename_all = \"kebab-case\")]
         enum Method { Cash, #[idem(rename = \"card\")] Card(#[idem(verbatim)] String), Two(u8, u8), Bank { #[idem(default = 1)] n: u8 } }",
        "#[idem(operation = \"x\", version = 1, allow_empty)] struct Row(#[idem(exclude)] u8, PhantomData<u8>);",
    ];
    const OTHERS: [&str; 7] = ["", ",", "=", "\"\"", "r#type", "9999999999999999999999", "()"];
    let mut expansions = 0;
    for source in SOURCES {
        let tokens: TokenStream = source.parse().unwrap();
        for at in 0..count(tokens.clone()) {
            for other in OTHERS {
                let mut left = at;
                let broken = replaced(tokens.clone(), &mut left, &other.parse().unwrap());
                for derive in [Derive::Command, Derive::Value] {
                    assert!(!crate::derive(broken.clone(), derive).is_empty(), "{broken}");
                    expansions += 1;
                }
            }
        }
    }
    assert!(expansions > 2000, "{expansions}");
}

fn count(tokens: TokenStream) -> usize {
    tokens
        .into_iter()
        .map(|token| if let TokenTree::Group(group) = token { 1 + count(group.stream()) } else { 1 })
        .sum()
}

/// The tokens with another in the place of the one that is `left` tokens away.
fn replaced(tokens: TokenStream, left: &mut usize, other: &TokenStream) -> TokenStream {
    let mut out = TokenStream::new();
    for token in tokens {
        let is_it = *left == 0;
        *left = left.wrapping_sub(1);
        match token {
            _ if is_it => out.extend(other.clone()),
            TokenTree::Group(group) => {
                let inner = replaced(group.stream(), left, other);
                out.extend([TokenTree::from(proc_macro2::Group::new(group.delimiter(), inner))]);
            }
            token => out.extend([token]),
        }
    }
    out
}
