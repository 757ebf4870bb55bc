//! The derives, documented where they are used.

/// Derives [`IdempotentCommand`](trait@crate::IdempotentCommand), and [`Canonical`](trait@crate::Canonical) with it.
///
/// ```
/// use idem_core::IdempotentCommand;
/// use rust_decimal::Decimal;
///
/// #[derive(IdempotentCommand)]
/// #[idem(operation = "create_payment", version = 1)]
/// struct CreatePayment {
///     account_id: String,
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
/// | `allow_empty` | there is nothing to hash, on purpose |
/// | `rename_all = "…"` | the case of canonical names, as in `snake_case`: of the fields of a struct, the variants of an enum |
/// | `crate = path` | where idem-core is, for crates that re-export it |
///
/// `#[serde(deny_unknown_fields)]` is read, and named in the contract. Serde's names are not looked at: the wire may
/// be spelled anew without touching the hash.
///
/// # On a field
///
/// | attribute | meaning |
/// | --- | --- |
/// | `exclude` | not part of what the client asks for, never hashed; its type needs nothing |
/// | `decimal(scale = N)` | a `Decimal` with at least N places; never rounded, so 10.005 stays another amount than 10.00 |
/// | `decimal(scale = N, round = "half_even")` | rounds first (or `"half_up"`, away from zero): only where the API itself takes the rounded amounts for one |
/// | `default = D` | absent, `None` and D are one: text, a number, `true`, `[]`, or a value of the field's own type |
/// | `uppercase`, `lowercase` | ASCII letters in one case |
/// | `trim` | ASCII white space at both ends does not count |
/// | `verbatim` | text as sent, without NFC: opaque tokens |
/// | `unordered` | a list whose order does not count; doubles do |
/// | `digest` | bytes as `"sha256:HEX"` of them: large blobs |
/// | `timestamp(precision = "ms")` | an instant cut to `"s"`, `"ms"` or `"us"`, towards the past |
/// | `float` | a float as ECMAScript writes it (feature `float`); without, floats are refused |
/// | `rename = "…"` | the canonical name, also on a variant |
///
/// A default does not fill the field in: the handler still sees `None`.
///
/// Attributes reach through `Option`, `Vec`, `Box`, references, map values, newtypes and type aliases. One that means
/// nothing on the field's type is a compile error:
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
///
/// #[derive(Canonical)]
/// struct Iban(String);
///
/// #[derive(Canonical)]
/// #[idem(rename_all = "snake_case")]
/// enum Method {
///     Cash,
///     BankTransfer { iban: Iban },
/// }
///
/// #[derive(IdempotentCommand)]
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
