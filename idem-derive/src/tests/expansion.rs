//! What each kind of type expands to, for the eyes of a reviewer.

use super::expanded;
use crate::model::Derive;

macro_rules! snapshots {
    ($($name:ident, $derive:ident: $source:literal;)*) => {$(
        #[test]
        fn $name() {
            insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
                insta::assert_snapshot!(stringify!($name), expanded(Derive::$derive, $source));
            });
        }
    )*};
}

snapshots! {
    command, Command: "
        #[idem(operation = \"create_payment\", version = 1)]
        #[serde(deny_unknown_fields)]
        pub struct CreatePayment {
            account_id: String,
            #[idem(decimal(scale = 2), default = \"0.50\")]
            amount: Decimal,
            #[idem(trim, uppercase)]
            currency: String,
            #[idem(default = \"web\")]
            channel: Option<String>,
            #[idem(exclude)]
            trace_id: Option<String>,
        }";
    command_with_a_previous_version, Command: "
        #[idem(operation = \"create_payment\", version = 3, previous = CreatePaymentV1, oldest = 1, writes = 2)]
        struct CreatePayment {
            reference: String,
            #[idem(until = 2, unordered)]
            tags: Vec<String>,
        }";
    command_that_is_a_newtype, Command: "
        #[idem(operation = \"cancel\", version = 1)]
        struct Cancel(#[idem(verbatim)] String);";
    command_that_is_an_enum, Command: "
        #[idem(operation = \"change\", version = 1)]
        enum Change { Open, Close { at: u64, #[serde(flatten)] why: Why } }";
    command_that_is_a_row, Command: "
        #[idem(operation = \"move\", version = 1)]
        struct Move(u64, #[idem(timestamp(precision = \"ms\"))] SystemTime, PhantomData<Unit>);";
    command_with_parameters, Command: "
        #[idem(operation = \"transfer\", version = 1)]
        struct Transfer<'a, B: Bank, T = String> {
            from: &'a B::Account,
            #[idem(with = \"rules::Iban\")]
            to: T,
            #[idem(default = \"web\")]
            channel: Option<T>,
            page: Page<B>,
            by_name: BTreeMap<T, u64>,
            #[idem(unordered, trim)]
            tags: Vec<T>,
        }";
    command_without_fields, Command: "
        #[idem(operation = \"ping\", version = 1, allow_empty)]
        struct Ping;";
    value_that_is_a_row, Value: "struct Range<T>(T, #[idem(exclude)] Cache, T);";
    value_that_is_a_newtype, Value: "struct Iban(String);";
    value_that_is_an_enum, Value: "
        #[idem(rename_all = \"snake_case\")]
        enum Method<'a> { Cash, BankTransfer(&'a str), #[serde(other)] Split(u8, u8) }";
    value_that_is_a_name, Value: "
        #[idem(rename_all = \"snake_case\")]
        enum Account { Savings, #[idem(rename = \"current account\")] Current }";
    value_with_bounds_of_its_own, Value: "
        #[idem(bound = \"B::Account: idem_core::Canonical\")]
        struct Held<B: Bank>(Option<Box<Holder<B>>>);";
    value_with_a_generic_field, Value: "
        #[idem(crate = my_sdk::idem)]
        struct Page<T: Clone = u8, const N: usize = 2> where T: Copy { items: [T; N], next: Option<Box<Page<T, N>>> }";
    mistake, Command: "
        #[idem(operation = \"create_payment\", version = 1)]
        struct CreatePayment<T> { #[idem(exlude)] trace_id: T, #[idem(decimal(scale = 29))] amount: Decimal }";
}
