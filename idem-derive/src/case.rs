//! `rename_all`: the words of a Rust name in another case.

/// A naming convention, by the names serde uses.
#[derive(Clone, Copy)]
pub(crate) enum Case {
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

impl Case {
    pub(crate) const NAMES: [&str; 8] = [
        "lowercase",
        "UPPERCASE",
        "PascalCase",
        "camelCase",
        "snake_case",
        "SCREAMING_SNAKE_CASE",
        "kebab-case",
        "SCREAMING-KEBAB-CASE",
    ];

    pub(crate) fn named(name: &str) -> Option<Self> {
        const CASES: [Case; 8] = [
            Case::Lower,
            Case::Upper,
            Case::Pascal,
            Case::Camel,
            Case::Snake,
            Case::ScreamingSnake,
            Case::Kebab,
            Case::ScreamingKebab,
        ];
        Self::NAMES.iter().position(|known| *known == name).map(|at| CASES[at])
    }

    /// Renames a field (`merchant_reference`) or a variant (`BankTransfer`). ASCII only, so that the result does not
    /// depend on the tables of the toolchain.
    pub(crate) fn apply(self, name: &str) -> String {
        let words = words(name);
        let joined = |separator: &str| words.join(separator);
        let title = |word: &String| word[..1].to_ascii_uppercase() + &word[1..];
        match self {
            Self::Lower => joined(""),
            Self::Upper => joined("").to_ascii_uppercase(),
            Self::Pascal => words.iter().map(title).collect(),
            Self::Camel => {
                let rest: String = words.iter().skip(1).map(title).collect();
                words.first().cloned().unwrap_or_default() + &rest
            }
            Self::Snake => joined("_"),
            Self::ScreamingSnake => joined("_").to_ascii_uppercase(),
            Self::Kebab => joined("-"),
            Self::ScreamingKebab => joined("-").to_ascii_uppercase(),
        }
    }
}

/// The words of a name, in lower case: split at `_` and before each capital.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut starts = true;
    for c in name.chars() {
        if c == '_' {
            starts = true;
            continue;
        }
        if starts || c.is_ascii_uppercase() {
            words.push(String::new());
            starts = false;
        }
        if let Some(word) = words.last_mut() {
            word.push(c.to_ascii_lowercase());
        }
    }
    words
}
