//! The catalogue: what people do to commands, one change each.
//!
//! Every type is there twice, and nobody reads the fields: they are for serde and for the hash.
#![allow(dead_code, unused_imports)]

use super::Pair;

/// Each pair: the command before `=>` and after it, then further types of both.
macro_rules! pairs {
    ($($name:ident: $old:tt => $new:tt;)*) => {
        pub(super) const PAIRS: &[Pair] = &[$(Pair {
            name: stringify!($name),
            contracts: || [$name::old::contract(), $name::new::contract()],
            hashes: |request| [$name::old::hash(request), $name::new::hash(request)],
        }),*];
        $(mod $name {
            pub(super) mod old { pairs!(@side $old); }
            pub(super) mod new { pairs!(@side $new); }
        })*
    };
    (@side { as $operation:literal $version:literal $command:item $($more:item)* }) => {
        use std::collections::{BTreeMap, BTreeSet, HashSet};

        use idem_core::{Canonical, CommandHash, Contract, IdempotentCommand, exact};
        use rust_decimal::Decimal;
        use serde::Deserialize;
        use serde_json::Value;

        #[derive(Deserialize, IdempotentCommand)]
        #[idem(operation = $operation, version = $version)]
        $command
        $($more)*

        pub(in super::super) fn contract() -> Contract {
            idem_core::contract::of::<Command>()
        }

        pub(in super::super) fn hash(request: &serde_json::Value) -> Option<CommandHash> {
            serde_json::from_value::<Command>(request.clone()).ok().map(|command| command.command_hash())
        }
    };
    (@side { $($items:item)* }) => { pairs!(@side { as "t" 1 $($items)* }); };
}

pairs! {
    operation: { as "pay" 1 struct Command { a: String } } => { as "charge" 1 struct Command { a: String } };
    version: { as "t" 1 struct Command { a: String } } => { as "t" 2 struct Command { a: String } };

    types_renamed_and_fields_reordered:
        { struct Command { a: u8, b: Item } #[derive(Deserialize, Canonical)] struct Item { x: String, y: bool } } =>
        { struct Command { b: Thing, a: u64 } #[derive(Deserialize, Canonical)] struct Thing { y: bool, x: Box<str> } };
    newtype_around: { struct Command { a: String } } =>
        { struct Command { a: Name } #[derive(Deserialize, Canonical)] struct Name(String); };
    shared_type_split:
        { struct Command { a: Item, b: Item } #[derive(Deserialize, Canonical)] struct Item { x: u8 } } =>
        { struct Command { a: One, b: Two }
          #[derive(Deserialize, Canonical)] struct One { x: u8 }
          #[derive(Deserialize, Canonical)] struct Two { x: u8 } };

    option_added: { struct Command { a: String } } => { struct Command { a: String, b: Option<String> } };
    option_of_option_added: { struct Command { a: String } } =>
        { struct Command { a: String, b: Option<Option<u8>> } };
    option_with_a_default_added: { struct Command { a: String } } =>
        { struct Command { a: String, #[idem(default = "web")] b: Option<String> } };
    value_with_a_default_added: { struct Command { a: String } } =>
        { struct Command { a: String, #[serde(default)] #[idem(default = 0)] b: u8 } };
    list_with_a_default_added: { struct Command { a: String } } =>
        { struct Command { a: String, #[serde(default)] #[idem(default = [])] b: Vec<u16> } };
    required_added: { struct Command { a: String } } => { struct Command { a: String, b: bool } };
    field_renamed: { struct Command { a: String, c: u8 } } => { struct Command { b: String, c: u8 } };
    optional_field_renamed: { struct Command { a: Option<String>, c: u8 } } =>
        { struct Command { b: Option<String>, c: u8 } };
    two_fields_renamed: { struct Command { a: u8, b: u8 } } => { struct Command { c: u8, d: u8 } };
    field_excluded: { struct Command { a: u8, b: Option<String> } } =>
        { struct Command { a: u8, #[idem(exclude)] b: Option<String> } };
    excluded_added: { struct Command { a: u8 } } => { struct Command { a: u8, #[idem(exclude)] b: Option<String> } };
    default_given: { struct Command { a: Option<u8> } } => { struct Command { #[idem(default = 1)] a: Option<u8> } };
    default_changed: { struct Command { #[idem(default = "web")] a: Option<String> } } =>
        { struct Command { #[idem(default = "app")] a: Option<String> } };
    default_of_a_type_of_ones_own:
        { struct Command { #[idem(default = Kind::A)] a: Option<Kind> }
          #[derive(Deserialize, Canonical)] enum Kind { A, B } } =>
        { struct Command { #[idem(default = Kind::B)] a: Option<Kind> }
          #[derive(Deserialize, Canonical)] enum Kind { A, B } };
    made_optional: { struct Command { a: String, b: u8 } } => { struct Command { a: Option<String>, b: u8 } };
    made_optional_twice: { struct Command { a: String, b: Vec<Option<u8>> } } =>
        { struct Command { a: Option<Option<String>>, b: Vec<Option<u8>> } };
    absent_told_from_null: { struct Command { a: Option<String> } } =>
        { struct Command { #[serde(default, deserialize_with = "given")] a: Option<Option<String>> }
          fn given<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<Option<String>>, D::Error> {
              Option::deserialize(from).map(Some)
          } };
    json_made_optional: { struct Command { a: Value, b: u8 } } => { struct Command { a: Option<Value>, b: u8 } };
    unit_made_optional: { struct Command { a: (), b: u8 } } => { struct Command { a: Option<()>, b: u8 } };
    elements_of_json_made_optional: { struct Command { a: Vec<Value> } } => { struct Command { a: Vec<Option<Value>> } };
    elements_made_optional: { struct Command { a: Vec<u8>, b: Vec<u16> } } =>
        { struct Command { a: Vec<u8>, b: Vec<Option<u16>> } };
    brackets: { struct Command { a: Vec<Option<u16>> } } => { struct Command { a: Vec<Option<Option<u16>>> } };

    variant_added:
        { struct Command { a: Kind } #[derive(Deserialize, Canonical)] enum Kind { A, B(u8) } } =>
        { struct Command { a: Kind } #[derive(Deserialize, Canonical)] enum Kind { A, B(u8), C { x: u8 } } };
    variant_renamed:
        { struct Command { a: Kind } #[derive(Deserialize, Canonical)] enum Kind { A, B(u8) } } =>
        { struct Command { a: Kind } #[derive(Deserialize, Canonical)] enum Kind { A, C(u8) } };
    variant_with_a_value:
        { struct Command { a: Kind } #[derive(Deserialize, Canonical)] enum Kind { A, B } } =>
        { struct Command { a: Kind } #[derive(Deserialize, Canonical)] enum Kind { A, B(u8) } };
    variant_beside_any_other:
        { struct Command { a: Kind }
          #[derive(Deserialize, Canonical)] #[idem(rename_all = "snake_case")] #[serde(rename_all = "snake_case")]
          enum Kind { A, #[serde(other)] B } } =>
        { struct Command { a: Kind }
          #[derive(Deserialize, Canonical)] #[idem(rename_all = "snake_case")] #[serde(rename_all = "snake_case")]
          enum Kind { A, C, #[serde(other)] B } };
    variant_gained_a_member:
        { struct Command { a: Kind } #[derive(Deserialize, Canonical)] enum Kind { A { x: u8 } } } =>
        { struct Command { a: Kind } #[derive(Deserialize, Canonical)] enum Kind { A { x: u8, y: Option<u8> } } };

    untagged_reordered:
        { struct Command { a: Kind }
          #[derive(Deserialize, Canonical)] #[serde(untagged)] enum Kind { A { x: u8 }, B { x: u8, y: Option<u8> } } } =>
        { struct Command { a: Kind }
          #[derive(Deserialize, Canonical)] #[serde(untagged)] enum Kind { B { x: u8, y: Option<u8> }, A { x: u8 } } };
    untagged_variant_added_first:
        { struct Command { a: Kind } #[derive(Deserialize, Canonical)] #[serde(untagged)] enum Kind { B { x: u8 } } } =>
        { struct Command { a: Kind }
          #[derive(Deserialize, Canonical)] #[serde(untagged)] enum Kind { A { x: u8 }, B { x: u8 } } };
    untagged_variant_added_last:
        { struct Command { a: Kind } #[derive(Deserialize, Canonical)] #[serde(untagged)] enum Kind { B { x: u8 } } } =>
        { struct Command { a: Kind }
          #[derive(Deserialize, Canonical)] #[serde(untagged)] enum Kind { B { x: u8 }, A { z: u8 } } };
    tagged_variant_beside_an_untagged_one:
        { struct Command { a: Kind }
          #[derive(Deserialize, Canonical)] enum Kind { #[serde(untagged)] Any(String) } } =>
        { struct Command { a: Kind }
          #[derive(Deserialize, Canonical)] #[idem(rename_all = "lowercase")] #[serde(rename_all = "lowercase")]
          enum Kind { A, #[idem(rename = "Any")] #[serde(untagged)] Any(String) } };
    untagged_variant_gained_a_member:
        { struct Command { a: Kind }
          #[derive(Deserialize, Canonical)] #[serde(untagged, deny_unknown_fields)]
          enum Kind { A { x: u8 }, B { x: u8, y: u8 } } } =>
        { struct Command { a: Kind }
          #[derive(Deserialize, Canonical)] #[serde(untagged, deny_unknown_fields)]
          enum Kind { A { x: u8, y: Option<u8> }, B { x: u8, y: u8 } } };
    untagged_variants_member_made_optional:
        { struct Command { a: Kind }
          #[derive(Deserialize, Canonical)] #[serde(untagged)] enum Kind { A { x: u8 }, B { y: u8 } } } =>
        { struct Command { a: Kind }
          #[derive(Deserialize, Canonical)] #[serde(untagged)] enum Kind { A { x: Option<u8> }, B { y: u8 } } };
    untagged_variant_that_denies:
        { struct Command { a: Kind }
          #[derive(Deserialize, Canonical)] #[serde(untagged)] enum Kind { A { x: u8 }, B { x: u8, y: u8 } } } =>
        { struct Command { a: Kind }
          #[derive(Deserialize, Canonical)] #[serde(untagged, deny_unknown_fields)]
          enum Kind { A { x: u8 }, B { x: u8, y: u8 } } };
    enum_inside_an_untagged_variant:
        { struct Command { a: Kind }
          #[derive(Deserialize, Canonical)] #[serde(untagged)] enum Kind { First(Vec<Letter>), Rest(Vec<String>) }
          #[derive(Deserialize, Canonical)] enum Letter { A } } =>
        { struct Command { a: Kind }
          #[derive(Deserialize, Canonical)] #[serde(untagged)] enum Kind { First(Vec<Letter>), Rest(Vec<String>) }
          #[derive(Deserialize, Canonical)] enum Letter { A, B } };
    recursion_through_an_untagged_variant:
        { struct Command { a: Tree }
          #[derive(Deserialize, Canonical)] struct Tree { x: u8, next: Option<Kind> }
          #[derive(Deserialize, Canonical)] #[serde(untagged)] enum Kind { A(Box<Tree>), B { x: u8, z: u8 } } } =>
        { struct Command { a: Tree }
          #[derive(Deserialize, Canonical)] struct Tree { x: u8, next: Option<Kind>, z: Option<u8> }
          #[derive(Deserialize, Canonical)] #[serde(untagged)] enum Kind { A(Box<Tree>), B { x: u8, z: u8 } } };
    untagged_unit_made_optional:
        { struct Command { a: Kind }
          #[derive(Deserialize, Canonical)] #[serde(untagged)] enum Kind { Nothing, A(u8) } } =>
        { struct Command { a: Option<Kind> }
          #[derive(Deserialize, Canonical)] #[serde(untagged)] enum Kind { Nothing, A(u8) } };

    flattened_option_added: { struct Command { a: u8 } } =>
        { struct Command { a: u8, #[serde(flatten)] rest: Option<BTreeMap<String, String>> } };
    option_added_beside_what_is_flattened:
        { struct Command { x: u8, #[serde(flatten)] rest: BTreeMap<String, String> } } =>
        { struct Command { x: u8, b: Option<String>, #[serde(flatten)] rest: BTreeMap<String, String> } };
    excluded_added_beside_what_is_flattened:
        { struct Command { x: u8, #[serde(flatten)] rest: BTreeMap<String, String> } } =>
        { struct Command { x: u8, #[idem(exclude)] b: Option<String>, #[serde(flatten)] rest: BTreeMap<String, String> } };
    flattened_gained_a_member_beside_another:
        { struct Command { #[serde(flatten)] item: Item, #[serde(flatten)] rest: BTreeMap<String, String> }
          #[derive(Deserialize, Canonical)] struct Item { x: Option<u8> } } =>
        { struct Command { #[serde(flatten)] item: Item, #[serde(flatten)] rest: BTreeMap<String, String> }
          #[derive(Deserialize, Canonical)] struct Item { x: Option<u8>, b: Option<String> } };
    flattened_gained_a_member_alone:
        { struct Command { #[serde(flatten)] item: Item } #[derive(Deserialize, Canonical)] struct Item { x: u8 } } =>
        { struct Command { #[serde(flatten)] item: Item }
          #[derive(Deserialize, Canonical)] struct Item { x: u8, b: Option<String> } };
    skipped_option_added: { struct Command { a: u8 } } =>
        { struct Command { a: u8, #[serde(skip, default = "filled_in")] b: Option<u8> }
          fn filled_in() -> Option<u8> { Some(7) } };
    skipped_value_gained_an_option:
        { struct Command { a: u8, #[serde(skip)] b: Caller } #[derive(Default, Canonical)] struct Caller { x: u8 } } =>
        { struct Command { a: u8, #[serde(skip, default = "filled_in")] b: Caller }
          #[derive(Canonical)] struct Caller { x: u8, y: Option<u8> }
          fn filled_in() -> Caller { Caller { x: 0, y: Some(1) } } };

    read_now: { struct Command { a: u8, #[serde(skip)] b: Option<u8> } } => { struct Command { a: u8, b: Option<u8> } };
    unknown_fields_denied: { struct Command { a: u8 } } => { #[serde(deny_unknown_fields)] struct Command { a: u8 } };

    integer_to_text: { struct Command { a: u8 } } => { struct Command { a: String } };
    value_to_list: { struct Command { a: u8 } } => { struct Command { a: Vec<u16> } };
    bytes_to_integers: { struct Command { a: Vec<u8> } } => { struct Command { a: Vec<u16> } };
    integer_widened: { struct Command { a: u8 } } => { struct Command { a: i64 } };
    list_to_unordered: { struct Command { a: Vec<u16> } } => { struct Command { #[idem(unordered)] a: Vec<u16> } };
    list_to_set: { struct Command { a: Vec<u16> } } => { struct Command { a: BTreeSet<u16> } };
    set_of_another_make: { struct Command { a: BTreeSet<u16> } } => { struct Command { a: HashSet<u16> } };
    element_more: { struct Command { a: (u8, u8) } } => { struct Command { a: (u8, u8, u8) } };
    scale: { struct Command { #[idem(decimal(scale = 2))] #[serde(deserialize_with = "exact::decimal")] a: Decimal } } =>
        { struct Command { #[idem(decimal(scale = 3))] #[serde(deserialize_with = "exact::decimal")] a: Decimal } };
    scale_given: { struct Command { #[serde(deserialize_with = "exact::decimal")] a: Decimal } } =>
        { struct Command { #[idem(decimal(scale = 1))] #[serde(deserialize_with = "exact::decimal")] a: Decimal } };
    rounded: { struct Command { #[idem(decimal(scale = 2))] #[serde(deserialize_with = "exact::decimal")] a: Decimal } } =>
        { struct Command { #[idem(decimal(scale = 2, round = "half_even"))]
          #[serde(deserialize_with = "exact::decimal")] a: Decimal } };
    rounded_otherwise: { struct Command { #[idem(decimal(scale = 1, round = "half_up"))]
          #[serde(deserialize_with = "exact::decimal")] a: Decimal } } =>
        { struct Command { #[idem(decimal(scale = 1, round = "half_even"))]
          #[serde(deserialize_with = "exact::decimal")] a: Decimal } };
    uppercase_removed: { struct Command { #[idem(uppercase)] a: String } } => { struct Command { a: String } };
    trimmed: { struct Command { a: Vec<String> } } => { struct Command { #[idem(trim)] a: Vec<String> } };
    verbatim: { struct Command { a: Option<String> } } => { struct Command { #[idem(verbatim)] a: Option<String> } };
    key_name_added:
        { struct Command { a: BTreeMap<Kind, u8> }
          #[derive(Deserialize, Canonical, PartialEq, Eq, PartialOrd, Ord)] enum Kind { A, B } } =>
        { struct Command { a: BTreeMap<Kind, u8> }
          #[derive(Deserialize, Canonical, PartialEq, Eq, PartialOrd, Ord)] enum Kind { A, B, C } };
    keys_of_another_class: { struct Command { a: BTreeMap<u8, bool> } } =>
        { struct Command { a: BTreeMap<String, bool> } };

    nested_change:
        { struct Command { a: Vec<Item>, b: BTreeMap<String, Item> }
          #[derive(Deserialize, Canonical)] struct Item { #[idem(lowercase)] x: String } } =>
        { struct Command { a: Vec<Item>, b: BTreeMap<String, Item> }
          #[derive(Deserialize, Canonical)] struct Item { x: String } };
    recursive_addition:
        { struct Command { a: Tree } #[derive(Deserialize, Canonical)] struct Tree { x: u8, inside: Vec<Tree> } } =>
        { struct Command { a: Tree }
          #[derive(Deserialize, Canonical)] struct Tree { x: u8, inside: Vec<Tree>, y: Option<u8> } };
    recursive_break:
        { struct Command { a: Tree } #[derive(Deserialize, Canonical)] struct Tree { x: u8, inside: Vec<Tree> } } =>
        { struct Command { a: Tree } #[derive(Deserialize, Canonical)] struct Tree { x: bool, inside: Vec<Tree> } };
    recursion_unrolled:
        { struct Command { a: Tree } #[derive(Deserialize, Canonical)] struct Tree { inside: Vec<Tree> } } =>
        { struct Command { a: Root }
          #[derive(Deserialize, Canonical)] struct Root { inside: Vec<Tree> }
          #[derive(Deserialize, Canonical)] struct Tree { inside: Vec<Tree> } };
}
