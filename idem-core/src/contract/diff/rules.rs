//! The rules: what a difference between two parts means for hashes that are kept. One table.

use crate::canonical::shape::{Member, Shape, Variant, Wire};
use crate::contract::Contract;
use crate::contract::diff::Effect;
use crate::contract::diff::walk::{Optional, Parts, Within};
use crate::contract::text::{NOT_HASHED, line, visible, word};

/// A kind of difference between two contracts, and what it does.
pub struct Rule {
    code: &'static str,
    effect: Effect,
    consequence: &'static str,
    sees: fn(&Parts<'_>) -> Option<Told>,
}

/// What was and what is.
type Told = (Option<String>, Option<String>);

impl Rule {
    /// Every rule.
    pub const ALL: &'static [Self] = TABLE;

    /// A stable name.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// What it does to hashes that are kept.
    pub fn effect(&self) -> Effect {
        self.effect
    }

    /// What follows for requests, as a sentence without its full stop.
    pub fn consequence(&self) -> &'static str {
        self.consequence
    }

    pub(super) fn sees(&self, parts: &Parts<'_>) -> Option<Told> {
        (self.sees)(parts)
    }

    /// The rule that tells a difference which this one sees there.
    pub(super) fn within(&'static self, within: Option<Within>) -> &'static Self {
        let code = match within {
            Some(within) if self.effect == Effect::Additive => match within {
                Within::Untagged => "variant_may_take_over",
                Within::Flattened => "flattened_may_take_over",
                Within::FilledIn => "filled_in_otherwise",
            },
            _ => return self,
        };
        Self::ALL.iter().find(|rule| rule.code == code).unwrap_or(self)
    }
}

// The function is the same where the code is.
impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.code == other.code
    }
}

impl Eq for Rule {}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.code)
    }
}

macro_rules! rules {
    ($($effect:ident $code:ident: $consequence:literal, $sees:expr;)*) => {
        [$(Rule { code: stringify!($code), effect: Effect::$effect, consequence: $consequence, sees: $sees }),*]
    };
}

const TABLE: &[Rule] = &rules! {
    // The whole.
    Breaking operation_changed: "records are kept under the operation's name: none of the old ones is found any more",
        |parts| contracts(parts, |contract| word(contract.operation()));
    Breaking version_changed: "the version is part of every hash; records of the old one need its rules to be kept",
        |parts| contracts(parts, |contract| contract.version().to_string());
    Breaking form_changed: "the canonical form is part of every hash",
        |parts| contracts(parts, |contract| format!("idem/{}", contract.form()));

    // Members.
    Additive optional_member_added: "it is left out where it is absent, so what could be asked before keeps its hash",
        |parts| member(parts, |old, new| old.is_none() && new.is_some_and(can_be_absent));
    Breaking required_member_added: "every hash has a member more, and yesterday's request does not say it",
        |parts| member(parts, |old, new| old.is_none() && new.is_some_and(|new| is_hashed(new) && !can_be_absent(new)));
    Breaking member_removed: "requests that differ in it alone are one now: the second would get the first one's answer",
        |parts| member(parts, |old, new| old.is_some_and(is_hashed) && new.is_none());
    Breaking member_renamed: "the name is part of every hash in which the member is given",
        |parts| member(parts, |old, new| matches!((old, new), (Some(old), Some(new)) if old.name() != new.name()));
    Breaking member_excluded: "requests that differ in it alone are one now: the second would get the first one's answer",
        |parts| member(parts, |old, new| old.is_some_and(is_hashed) && new.is_some_and(|new| !is_hashed(new)));
    Breaking member_included: "it was sent and not hashed; a retry that sends it again has another hash",
        |parts| member(parts, |old, new| old.is_some_and(|old| !is_hashed(old)) && new.is_some_and(is_hashed));
    Additive unhashed_member_added: "it is no part of a hash", |parts| unhashed(parts, |old, _| old.is_none());
    Additive unhashed_member_removed: "it was no part of a hash", |parts| unhashed(parts, |_, new| new.is_none());
    Breaking default_added: "a request that gives this value was hashed with it, and is hashed without it now",
        |parts| default(parts, |old, new| old.is_none() && new.is_some());
    Breaking default_removed: "a request that gives this value was hashed without it, and is hashed with it now",
        |parts| default(parts, |old, new| old.is_some() && new.is_none());
    Breaking default_changed: "a request without the member means another value now, under the hash that it had",
        |parts| default(parts, |old, new| old.is_some() && new.is_some() && old != new);

    // Values that may be none.
    Additive optional_now: "a value that is there keeps its text", |parts| optional(parts, Optional::Now);
    Breaking null_is_none_now: "a request that gives null was hashed with a value, and is hashed with none now",
        |parts| optional(parts, Optional::NullToo);
    Breaking required_now: "a request without it can no longer be said, and its retry is refused",
        |parts| optional(parts, Optional::NoMore);
    Breaking null_told_now: "a request that gives null was hashed as one that leaves the member out",
        |parts| optional(parts, Optional::AndNull);
    Breaking brackets_changed: "a value whose own text can be null stands in brackets, to tell it from none",
        |parts| optional(parts, Optional::Brackets);

    // Variants.
    Additive variant_added: "no request before could have asked for it",
        |parts| variant(parts, |old, new, beside| old.is_none() && new.is_some_and(|new| !may_take_over(new, beside)));
    Breaking variant_may_take_over: "a request that another variant took, any other or the first that fits, may be this one now",
        |parts| variant(parts, |old, new, beside| old.is_none() && new.is_some_and(|new| may_take_over(new, beside)));
    Breaking variant_removed: "a request that asks for it can no longer be said, and its retry is refused",
        |parts| variant(parts, |old, new, _| old.is_some() && new.is_none());
    Breaking variant_renamed: "the name is part of every hash that has the variant",
        |parts| variant(parts, |old, new, _| matches!((old, new), (Some(old), Some(new)) if old.name != new.name));
    Breaking variant_content_changed: "a variant with a value has another text than one without",
        |parts| variant(parts, |old, new, _| matches!((old, new), (Some(old), Some(new)) if old.shape.is_some() != new.shape.is_some()));

    // How it comes in.
    Breaking reading_changed: "one request is read as another value than before", |parts| {
        let (old, new) = match parts {
            Parts::Members(Some(Member::Hashed { wire: old, .. }), Some(Member::Hashed { wire: new, .. })) => (*old, *new),
            Parts::Variants { old: Some(old), new: Some(new), .. } => (old.wire, new.wire),
            _ => return None,
        };
        let told = |wire: Option<Wire>| Some(wire.map_or("as it stands".into(), Wire::note).into_owned());
        (old != new).then(|| (told(old), told(new)))
    };
    // Told in the place of an additive rule, by what the part stands in.
    Breaking flattened_may_take_over: "what comes in under this name was part of what is flattened beside it, or is it now",
        |_| None;
    Breaking filled_in_otherwise: "no request says the value, so that nothing keeps yesterday's: any hash may change",
        |_| None;
    Additive unknown_fields_changed: "hashes stay; requests with unknown members are refused, or are not any more",
        |parts| shapes(parts, |old, new| has_policy(old) && has_policy(new) && old.denies_unknown() != new.denies_unknown());

    // Values.
    Breaking class_changed: "another kind of value has another text",
        |parts| shapes(parts, |old, new| class(old) != class(new));
    Breaking order_changed: "lists that differ in order or in doubles are one now, or are two now",
        |parts| shapes(parts, |old, new| class(old) == LIST && class(new) == LIST && order(old) != order(new));
    Breaking elements_changed: "another number of elements is another text",
        |parts| shapes(parts, |old, new| matches!((old, new), (Shape::Tuple(old), Shape::Tuple(new)) if old.len() != new.len()));
    Breaking scale_changed: "the same amount is written with another number of zeros",
        |parts| leaves(parts, |rules| rules.starts_with(SCALE));
    Breaking rounding_changed: "amounts are rounded otherwise: two that were two may be one now, and the reverse",
        |parts| leaves(parts, |rules| rules.starts_with(ROUND));
    Breaking normalisation_changed: "the same value is written otherwise, or two that were two are one now",
        |parts| leaves(parts, |rules| !rules.starts_with(SCALE) && !rules.starts_with(ROUND));
    Additive keys_widened: "no request before could have had these keys",
        |parts| keys(parts, |old, new| old != new && is_wider(new, old));
    Breaking keys_changed: "the same keys are written otherwise, or some can no longer be said",
        |parts| keys(parts, |old, new| old != new && !is_wider(new, old));
};

fn contracts(parts: &Parts<'_>, told: impl Fn(&Contract) -> String) -> Option<Told> {
    let Parts::Contracts(old, new) = parts else { return None };
    let (old, new) = (told(old), told(new));
    (old != new).then_some((Some(old), Some(new)))
}

fn member(parts: &Parts<'_>, is: impl Fn(Option<&Member>, Option<&Member>) -> bool) -> Option<Told> {
    let Parts::Members(old, new) = parts else { return None };
    is(*old, *new).then(|| (old.map(member_line), new.map(member_line)))
}

/// A member that was or is not hashed, and no other.
fn unhashed(parts: &Parts<'_>, is: impl Fn(Option<&Member>, Option<&Member>) -> bool) -> Option<Told> {
    member(parts, |old, new| is(old, new) && !old.is_some_and(is_hashed) && !new.is_some_and(is_hashed))
}

fn default(parts: &Parts<'_>, is: impl Fn(Option<&String>, Option<&String>) -> bool) -> Option<Told> {
    let Parts::Members(Some(Member::Hashed { default: old, .. }), Some(Member::Hashed { default: new, .. })) = parts
    else {
        return None;
    };
    is(old.as_ref(), new.as_ref()).then(|| {
        let told = |default: &Option<String>| Some(default.as_deref().map_or_else(|| "no default".into(), visible));
        (told(old), told(new))
    })
}

fn optional(parts: &Parts<'_>, became: Optional) -> Option<Told> {
    let (was, is) = match became {
        Optional::Now => ("required", "optional"),
        Optional::NoMore => ("optional", "required"),
        Optional::NullToo => ("required, and null is a value", "optional, and null is none"),
        Optional::AndNull => ("absent or a value", "absent, null or a value"),
        Optional::Brackets => ("one way to be null", "another way to be null"),
    };
    matches!(parts, Parts::Optional(optional) if *optional == became).then(|| (Some(was.into()), Some(is.into())))
}

fn variant(parts: &Parts<'_>, is: impl Fn(Option<&Variant>, Option<&Variant>, &[Variant]) -> bool) -> Option<Told> {
    let Parts::Variants { old, new, beside } = parts else { return None };
    is(*old, *new, beside).then(|| (old.map(variant_line), new.map(variant_line)))
}

fn shapes(parts: &Parts<'_>, is: impl Fn(&Shape, &Shape) -> bool) -> Option<Told> {
    let Parts::Shapes(old, new) = parts else { return None };
    is(old, new).then(|| (Some(line(old)), Some(line(new))))
}

/// Values of one class of which other ones of these rules hold.
fn leaves(parts: &Parts<'_>, which: impl Fn(&str) -> bool) -> Option<Told> {
    let chosen = |shape: &Shape| match shape {
        Shape::Leaf { rules, .. } => rules.iter().filter(|rule| which(rule)).cloned().collect(),
        _ => Vec::new(),
    };
    shapes(parts, |old, new| class(old) == class(new) && chosen(old) != chosen(new))
}

fn keys(parts: &Parts<'_>, is: impl Fn(&str, &str) -> bool) -> Option<Told> {
    shapes(
        parts,
        |old, new| matches!((old, new), (Shape::Map { key: old, .. }, Shape::Map { key: new, .. }) if is(old, new)),
    )
}

/// Whether all that the old keys can be is among what the new ones can be, under the same text.
fn is_wider(new: &str, old: &str) -> bool {
    if new == "text" && (old == "integer" || old.starts_with("name(")) {
        return true;
    }
    let names =
        |keys: &str| Some(keys.strip_prefix("name(")?.strip_suffix(')')?.split(',').map(str::to_owned).collect());
    let (Some(old), Some(new)): (Option<Vec<_>>, Option<Vec<_>>) = (names(old), names(new)) else { return false };
    old.iter().all(|name| new.contains(name))
}

fn is_hashed(member: &Member) -> bool {
    matches!(member, Member::Hashed { .. })
}

/// Whether a request that does not speak of the member is read as one without it. What is flattened is there, and empty;
/// what is not deserialized is filled in.
fn can_be_absent(member: &Member) -> bool {
    let Member::Hashed { wire, shape, default, .. } = member else { return false };
    let is_filled = matches!(wire, Some(Wire::Flattened | Wire::NotDeserialized));
    !is_filled && (matches!(shape, Shape::Optional(_)) || default.is_some())
}

/// Whether a new variant may be what requests are now that were one of these.
fn may_take_over(new: &Variant, beside: &[Variant]) -> bool {
    beside.iter().any(|old| match (new.wire, old.wire) {
        (Some(Wire::NotDeserialized), _) => false,
        // They are tried in their order, after those that have a name.
        (Some(Wire::Untagged(place)), Some(Wire::Untagged(other))) => place <= other,
        (_, wire) => matches!(wire, Some(Wire::AnyOther | Wire::Untagged(_))),
    })
}

fn has_policy(shape: &Shape) -> bool {
    matches!(shape, Shape::Object { .. } | Shape::OneOf { .. })
}

fn class(shape: &Shape) -> &str {
    match shape {
        Shape::Leaf { class, .. } => class,
        Shape::List(_) | Shape::Unordered(_) | Shape::Set(_) => LIST,
        Shape::Map { .. } => "map",
        Shape::Optional(_) => "optional",
        Shape::Tuple(_) => "tuple",
        Shape::Object { .. } => "object",
        Shape::OneOf { .. } => "one of",
        Shape::Named { .. } | Shape::Again(_) => "number",
        Shape::Nothing => "nothing",
    }
}

fn order(shape: &Shape) -> std::mem::Discriminant<Shape> {
    std::mem::discriminant(shape)
}

fn member_line(member: &Member) -> String {
    match member {
        Member::Hashed { name, shape, default, .. } => {
            let default = default.as_deref().map(|default| format!(" = {}", visible(default))).unwrap_or_default();
            format!("{}: {}{default}", word(name), line(shape))
        }
        Member::Excluded { name } => format!("{}: {NOT_HASHED}", word(name)),
    }
}

fn variant_line(variant: &Variant) -> String {
    let name = word(&variant.name);
    variant.shape.as_ref().map_or_else(|| name.clone(), |shape| format!("{name}: {}", line(shape)))
}

const LIST: &str = "list";
const SCALE: &str = "scale = ";
const ROUND: &str = "round = ";
