//! The derives, documented where they are used.

/// Derives [`IdempotentCommand`](trait@crate::IdempotentCommand), and [`Canonical`](trait@crate::Canonical) with it.
///
/// ```
/// use idem_core::{IdempotentCommand, exact};
/// use rust_decimal::Decimal;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, IdempotentCommand)]
/// #[serde(deny_unknown_fields)]
/// #[idem(operation = "create_payment", version = 1)]
/// struct CreatePayment {
///     account_id: String,
///     #[serde(deserialize_with = "exact::decimal")]
///     #[idem(decimal(scale = 2))]
///     amount: Decimal,
///     #[idem(trim, uppercase)]
///     currency: String,
///     #[idem(default = "web")]
///     channel: Option<String>,
///     #[idem(exclude)]
///     trace_id: Option<String>,
/// }
///
/// let payment = CreatePayment {
///     account_id: "acc_1".into(),
///     amount: Decimal::from(10),
///     currency: " eur".into(),
///     channel: Some("web".into()),
///     trace_id: None,
/// };
/// assert_eq!(
///     payment.preimage(),
///     r#"["idem/1","create_payment",1,{"account_id":"acc_1","amount":"10.00","currency":"EUR"}]"#
/// );
/// ```
///
/// # On the type
///
/// | attribute | meaning |
/// | --- | --- |
/// | `operation = "…"` | the name the command is hashed under: ASCII letters, digits, `_`, `-`, `.` |
/// | `version = N` | the version of the contract, 1 to 2^31-1 |
/// | `previous = Old` | the frozen struct of the version before, see [versions](#versions) |
/// | `oldest = N` | the oldest version that is still compared with |
/// | `writes = N` | new records are written in the lowest version from N on that can say the command |
/// | `allow_empty` | there is nothing to hash, on purpose. Fields that are markers (`PhantomData`) are told by that name: behind an alias, see in the contract that something is left |
/// | `rename_all = "…"` | the case of canonical names, as in `snake_case`: of the fields of a struct, the variants of an enum |
/// | `bound = "…"` | what stands behind `where` in the implementations, in the place of the [bounds](#generics) that the derive finds |
/// | `crate = path` | where idem-core is, for crates that re-export it |
///
/// # Beside serde
///
/// Serde's names are not looked at: the wire may be spelled anew (`rename`, `alias`) without touching the hash. What
/// serde leaves out of the command cannot be hashed, so the [contract](crate::Contract) says where that can happen:
///
/// | serde's attribute | the contract says |
/// | --- | --- |
/// | `deny_unknown_fields` | `unknown fields: denied`; without, `not denied here`: a field ignored today may mean something after a deploy |
/// | `flatten` on a field | `(flattened)`, and `not denied here` whatever the type says: serde does not support both |
/// | `from`, `try_from`, `transparent` on the type | `not denied here`: the type that is read says for itself |
/// | `tag` without `content`, on an enum with unit or newtype variants | `not denied here` whatever the type says: serde passes over what it does not know beside a unit variant's tag, and what a newtype variant holds says for itself; write `Cash {}` for `Cash` |
/// | `untagged` with newtype variants | `not denied here`: what they hold says for itself |
/// | `skip`, `skip_deserializing` on a hashed field | `(not deserialized)`: right where your code fills it in, from the path or a header |
/// | `untagged` | `(untagged 1)`, `(untagged 2)`, …: the first variant that fits is taken, so their order in the source counts, and so does all that decides what fits. Of that, the contract does not show the width of an integer |
/// | `other` on a variant | `(any other)`: every name that is not known is this one command |
/// | `deserialize_with`, `with` on a field; `from`, `try_from` on a type inside | nothing of the code that they name: as a `Deserialize` of your own, it may read two requests as one value, which is then one command. Have it refuse what it cannot tell apart, as [`exact`](crate::exact) does, and take a change of it for a change of the contract |
///
/// `default` needs no word: absent and given at its default are one value for the handler too.
///
/// # On a field
///
/// | attribute | meaning |
/// | --- | --- |
/// | `exclude` | not part of what the client asks for, never hashed; its type needs nothing |
/// | `until = N` | a field that has gone: version N still hashes it, later ones do not |
/// | `decimal(scale = N)` | a `Decimal` with at least N places; never rounded, so 10.005 stays another amount than 10.00 |
/// | `decimal(scale = N, round = "half_even")` | rounds first (or `"half_up"`, away from zero): only where the API itself takes the rounded amounts for one |
/// | `default = D` | absent, `None` and D are one: text, a number, `true`, `[]` for an empty list, set or map, or else a value of the field's own type |
/// | `uppercase`, `lowercase` | ASCII letters in one case |
/// | `trim` | ASCII white space at both ends does not count |
/// | `verbatim` | text as sent, without NFC: opaque tokens |
/// | `unordered` | a list whose order does not count; doubles do. A list in it keeps its order |
/// | `digest` | bytes as `"sha256:HEX"` of them: large blobs, also each of a list |
/// | `timestamp(precision = "ms")` | an instant cut to `"s"`, `"ms"` or `"us"`, towards the past |
/// | `float` | a float as ECMAScript writes it (feature `float`); without, floats are refused |
/// | `with = "path"` | a rule of your own, for types of other crates too: see [`Elementwise`](crate::canonical::Elementwise) |
/// | `rename = "…"` | the canonical name, also on a variant |
///
/// A default does not fill the field in: the handler still sees `None`. Nor does it make a field optional for serde: a
/// plain `String` that may be left out needs `#[serde(default = "…")]` too.
///
/// # Generics
///
/// A parameter that is hashed has to have a canonical form; one that is not, or of which only an associated type is, asks
/// for nothing. A type of yours with parameters is bounded as a whole, as in `Vec<Item<K>>: Canonical`, or not at all where
/// its parameters have their bounds already. Where that is too little, as for the key of a map inside that type, say so
/// on the struct: `where T: MapKey`. Where it is too much, and the compiler reports an "overflow" or a bound on what is
/// not hashed, `bound` has the last word:
///
/// ```
/// use idem_core::{Canonical, IdempotentCommand};
///
/// trait Bank {
///     type Account;
/// }
///
/// /// Each of the two holds the other, and hashes of the bank its accounts alone.
/// #[derive(Canonical)]
/// #[idem(bound = "B::Account: Canonical")]
/// struct Order<B: Bank> {
///     account: B::Account,
///     parts: Vec<Part<B>>,
/// }
///
/// #[derive(Canonical)]
/// struct Part<B: Bank> {
///     account: B::Account,
///     within: Option<Box<Order<B>>>,
/// }
///
/// # struct Ours;
/// # impl Bank for Ours {
/// #     type Account = u64;
/// # }
/// #[derive(IdempotentCommand)]
/// #[idem(operation = "order", version = 1)]
/// struct PlaceOrder {
///     order: Order<Ours>,
/// }
///
/// let order = Order { account: 1, parts: vec![Part { account: 2, within: None }] };
/// assert_eq!(
///     PlaceOrder { order }.preimage(),
///     r#"["idem/1","order",1,{"order":{"account":"1","parts":[{"account":"2"}]}}]"#
/// );
/// ```
///
/// A newtype with a `bound` takes no attributes from the field that it stands in: two newtypes that hold each other
/// need that, as `#[idem(bound = "")]` on one of them.
///
/// # Versions
///
/// A record is compared [by the rules that wrote it](crate::IdempotentCommand::verdict), so a deploy must still know
/// them as long as its records live. Adding an `Option` or a field with a default, a new variant, another order, a wider
/// integer: hashes stay, and there is nothing to do. A field goes: the version goes up by one, the field stays with
/// `until` for as long, and `oldest` says how far back. Anything else: the struct as it was is kept under another name,
/// with the structs inside it, and the conversions say what one is in terms of the other:
///
/// ```
/// use idem_core::{IdempotentCommand, Verdict};
/// use serde::Deserialize;
///
/// #[derive(Deserialize, IdempotentCommand)]
/// #[serde(deny_unknown_fields)]
/// #[idem(operation = "create_payment", version = 1)]
/// struct CreatePaymentV1 {
///     merchant_ref: String,
/// }
///
/// #[derive(Deserialize, IdempotentCommand)]
/// #[serde(deny_unknown_fields)]
/// #[idem(operation = "create_payment", version = 2, previous = CreatePaymentV1)]
/// struct CreatePayment {
///     merchant_reference: String,
///     capture: bool,
/// }
///
/// /// What version 1 did without saying so.
/// impl From<CreatePaymentV1> for CreatePayment {
///     fn from(old: CreatePaymentV1) -> Self {
///         Self { merchant_reference: old.merchant_ref, capture: true }
///     }
/// }
///
/// impl TryFrom<&CreatePayment> for CreatePaymentV1 {
///     type Error = &'static str;
///
///     fn try_from(today: &CreatePayment) -> Result<Self, Self::Error> {
///         if !today.capture {
///             return Err("version 1 always captured");
///         }
///         Ok(Self { merchant_ref: today.merchant_reference.clone() })
///     }
/// }
///
/// let yesterday = CreatePaymentV1 { merchant_ref: "m-1".into() }.command_hash();
/// let retry = CreatePayment { merchant_reference: "m-1".into(), capture: true };
/// assert_eq!(retry.verdict(&yesterday), Verdict::Same);
/// let other = CreatePayment { capture: false, ..retry };
/// assert_eq!(other.verdict(&yesterday), Verdict::Different);
/// ```
///
/// A conversion that forgets a field cannot make two commands one: a version says a command only if the way back
/// gives today's command again, and a command that it cannot say is [`Different`](crate::Verdict::Different). `previous`
/// may have a `previous` of its own. For a rolling deploy, the first release with version 2 says `writes = 1`: it
/// understands both, and what it writes is understood by the one before.
///
/// Attributes reach through `Option`, `Vec`, `Box`, references, map values, newtypes and type aliases; `unordered`, which
/// is for the first list that it meets, through all but `Vec`. One that means nothing on the field's type is a compile
/// error:
///
/// ```compile_fail,E0277
/// # use idem_core::IdempotentCommand;
/// #[derive(IdempotentCommand)]
/// #[idem(operation = "count", version = 1)]
/// struct Count {
///     #[idem(uppercase)]
///     n: u32,
/// }
/// ```
pub use idem_derive::IdempotentCommand;

/// Derives [`Canonical`](trait@crate::Canonical) for a struct or enum inside a command.
///
/// Takes the field attributes of [`IdempotentCommand`](macro@crate::IdempotentCommand). A struct with names is an
/// object, a newtype is what it holds (and takes attributes where it is used), another tuple struct is an array; a unit
/// variant is its name, other variants are an object with the name as its one member.
///
/// ```
/// use idem_core::{Canonical, IdempotentCommand};
/// use serde::Deserialize;
///
/// #[derive(Canonical, Deserialize)]
/// struct Iban(String);
///
/// #[derive(Canonical, Deserialize)]
/// #[serde(rename_all = "snake_case", deny_unknown_fields)]
/// #[idem(rename_all = "snake_case")]
/// enum Method {
///     Cash,
///     BankTransfer { iban: Iban },
/// }
///
/// #[derive(Deserialize, IdempotentCommand)]
/// #[serde(deny_unknown_fields)]
/// #[idem(operation = "pay", version = 1)]
/// struct Pay {
///     #[idem(default = Method::Cash)]
///     method: Method,
/// }
///
/// let pay = Pay { method: Method::BankTransfer { iban: Iban("NL91ABNA0417164300".into()) } };
/// assert_eq!(
///     pay.preimage(),
///     r#"["idem/1","pay",1,{"method":{"bank_transfer":{"iban":"NL91ABNA0417164300"}}}]"#
/// );
/// assert_eq!(Pay { method: Method::Cash }.preimage(), r#"["idem/1","pay",1,{}]"#);
/// ```
pub use idem_derive::Canonical;
