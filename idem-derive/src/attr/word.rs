//! The words that mean something, and what to say to the others.

use proc_macro2::Span;

use crate::ctxt::Ctxt;

/// Where an attribute stands.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Place {
    Type,
    Variant,
    Field,
    Decimal,
    Timestamp,
}

impl Place {
    const ALL: [Self; 3] = [Self::Type, Self::Variant, Self::Field];

    fn words(self) -> &'static [&'static str] {
        match self {
            Self::Type => {
                &["operation", "version", "oldest", "writes", "previous", "allow_empty", "rename_all", "bound", "crate"]
            }
            Self::Variant => &["rename"],
            Self::Field => &[
                "exclude",
                "until",
                "rename",
                "default",
                "decimal",
                "uppercase",
                "lowercase",
                "trim",
                "verbatim",
                "float",
                "digest",
                "timestamp",
                "unordered",
                "with",
            ],
            Self::Decimal => &["scale", "round"],
            Self::Timestamp => &["precision"],
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Type => "a struct or enum",
            Self::Variant => "a variant",
            Self::Field => "a field",
            Self::Decimal => "`decimal(..)`",
            Self::Timestamp => "`timestamp(..)`",
        }
    }
}

/// Refuses a word that means nothing here: one that is silently ignored would change the hash. Gives back the word that
/// was probably meant.
pub(super) fn unknown(ctxt: &Ctxt, word: &str, span: Span, place: Place) -> Option<&'static str> {
    let near = nearest(word, place.words().iter().copied());
    let elsewhere = Place::ALL.into_iter().find(|other| *other != place && other.words().contains(&word));
    let hint = match (near, elsewhere) {
        (_, Some(other)) => format!("`{word}` belongs on {}, not on {}", other.name(), place.name()),
        (Some(near), None) => format!("unknown attribute `{word}`; did you mean `{near}`?"),
        (None, None) => {
            format!("unknown attribute `{word}`; {} takes `{}`", place.name(), place.words().join("`, `"))
        }
    };
    ctxt.error(span, hint);
    near
}

/// The known word that was probably meant.
pub(super) fn nearest<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    let distance = |known: &str| strsim::damerau_levenshtein(&word.to_lowercase(), &known.to_lowercase());
    let (near, distance) = known.into_iter().map(|known| (known, distance(known))).min_by_key(|(_, d)| *d)?;
    (distance <= near.len().max(3) / 3 + 1).then_some(near)
}
