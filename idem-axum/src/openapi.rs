//! What OpenAPI says of an operation that takes an [`Idempotent`](crate::Idempotent), for utoipa: the header, the
//! refusals, and what a first answer and a replay carry.
//!
//! The key is [`IdempotencyKeyHeader`] (or [`OptionalIdempotencyKeyHeader`]), the refusals are [`Refusals`], and
//! [`Described`] adds the answers' headers to every operation that has the key.
//!
//! ```
//! use idem_axum::openapi::{Described, IdempotencyKeyHeader, Refusals};
//! use utoipa::openapi::path::{HttpMethod, OperationBuilder, PathItem};
//! use utoipa::openapi::{OpenApiBuilder, PathsBuilder, ResponseBuilder, ResponsesBuilder};
//! use utoipa::{IntoParams, IntoResponses, Modify};
//!
//! // With utoipa's macros: `#[utoipa::path(post, path = "/payments", params(IdempotencyKeyHeader),
//! // responses((status = 201, description = "Paid"), Refusals))]` and `#[openapi(modifiers(&Described))]`.
//! let responses = ResponsesBuilder::new()
//!     .responses_from_iter(Refusals::responses())
//!     .response("201", ResponseBuilder::new().description("Paid"));
//! let operation = OperationBuilder::new()
//!     .parameters(Some(IdempotencyKeyHeader::into_params(|| None)))
//!     .responses(responses.build());
//! let paths = PathsBuilder::new().path("/payments", PathItem::new(HttpMethod::Post, operation)).build();
//! let mut api = OpenApiBuilder::new().paths(paths).build();
//! Described.modify(&mut api);
//! let text = serde_json::to_string(&api)?;
//! assert!(text.contains("IDEMPOTENCY_KEY_EXPIRED") && text.contains("Idempotency-Replayed"));
//! # Ok::<(), serde_json::Error>(())
//! ```

use std::borrow::Cow;
use std::collections::BTreeMap;

use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::schema::{KnownFormat, SchemaFormat, SchemaType};
use utoipa::openapi::{
    ContentBuilder, HeaderBuilder, ObjectBuilder, OpenApi, RefOr, Required, Response, ResponseBuilder, Schema, Type,
};
use utoipa::{IntoParams, IntoResponses, Modify, PartialSchema, ToSchema};

use crate::code::Code;

/// The header `Idempotency-Key` of an operation that needs one.
#[derive(Debug, Clone, Copy)]
pub struct IdempotencyKeyHeader;

/// The header `Idempotency-Key` of an operation that takes requests without one.
#[derive(Debug, Clone, Copy)]
pub struct OptionalIdempotencyKeyHeader;

/// All refusals, by their status, as `application/problem+json`. A response of the operation's own with one of these
/// statuses takes its place where it is written after it.
#[derive(Debug, Clone, Copy)]
pub struct Refusals;

/// The 202 with which a service answers a request in progress that chose so
/// ([`in_progress_is_accepted`](crate::IdemBuilder::in_progress_is_accepted)). Apart from [`Refusals`], since a 202 is
/// a success for many operations.
#[derive(Debug, Clone, Copy)]
pub struct InProgressAccepted;

/// The problem document of every refusal; for `components(schemas(..))` under the name `IdempotencyProblem`.
#[derive(Debug, Clone, Copy)]
pub struct ProblemDocument;

/// Adds what answers carry to every operation that has an `Idempotency-Key`: `Idempotency-Replayed` and
/// `Idempotency-Expires` to its answers (a refusal for good is kept as a success is), `Retry-After` to those where
/// waiting helps.
#[derive(Debug, Clone, Copy)]
pub struct Described;

impl IntoParams for IdempotencyKeyHeader {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        vec![key(Required::True, "The name of this logical request, the same in each of its tries.")]
    }
}

impl IntoParams for OptionalIdempotencyKeyHeader {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let text = "The name of this logical request, the same in each of its tries. A request without one is not \
                    protected: sent twice, it happens twice.";
        vec![key(Required::False, text)]
    }
}

fn key(required: Required, description: &str) -> Parameter {
    let schema = text()
        .min_length(Some(1))
        // Two more for the quotation marks of a structured-field string.
        .max_length(Some(257))
        .pattern(Some(r#"^("[!#-+\-.-:<-\[\]-~]+"|[!#-+\-.-:<-\[\]-~]+)$"#))
        .examples(["8e03978e-40d5-43e8-bc93-6894a57f9324"]);
    ParameterBuilder::new()
        .name(KEY)
        .parameter_in(ParameterIn::Header)
        .required(required)
        .description(Some(description))
        .schema(Some(schema))
        .build()
}

impl IntoResponses for Refusals {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
        for &code in Code::ALL {
            by_status.entry(code.status()).or_default().push(code);
        }
        for (status, code) in [
            // What axum's extractors refuse with besides 400.
            (413, Code::RequestInvalid),
            (415, Code::RequestInvalid),
            (422, Code::RequestInvalid),
            // With `Profile::Ietf`.
            (422, Code::KeyReused),
            // To the client whose own work ended so.
            (503, Code::OutcomeUnknown),
            // Without a key.
            (500, Code::WorkFailed),
        ] {
            by_status.entry(status).or_default().push(code);
        }
        let response = |(status, codes): (u16, Vec<Code>)| (status.to_string(), RefOr::T(refusal(&codes)));
        by_status.into_iter().map(response).collect()
    }
}

impl IntoResponses for InProgressAccepted {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        BTreeMap::from([("202".to_owned(), RefOr::T(refusal(&[Code::InProgress])))])
    }
}

fn refusal(codes: &[Code]) -> Response {
    let lines: Vec<_> = codes.iter().map(|code| format!("`{}`: {}", code.as_str(), code.title())).collect();
    let content = ContentBuilder::new().schema(Some(ProblemDocument::schema())).build();
    ResponseBuilder::new().description(lines.join("\n\n")).content("application/problem+json", content).build()
}

impl ToSchema for ProblemDocument {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("IdempotencyProblem")
    }
}

impl PartialSchema for ProblemDocument {
    fn schema() -> RefOr<Schema> {
        let codes = Code::ALL.iter().map(|code| code.as_str());
        let mut advice: Vec<_> = Code::ALL.iter().filter_map(|code| code.next().as_str()).collect();
        advice.sort_unstable();
        advice.dedup();
        let resource = || {
            let about = "What the request made, or was about to make";
            ObjectBuilder::new()
                .description(Some(about))
                .property("type", text())
                .property("id", text())
                .required("type")
                .required("id")
        };
        let original = ObjectBuilder::new()
            .description(Some("With a mismatch: what became of the request that the key was first used for"))
            .property("state", text().enum_values(Some(idem_core::StatusName::ALL.map(|name| name.as_str()))))
            .property("created_at", text().format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime))))
            .property("resource", resource())
            .property("status", integer())
            .required("state")
            .required("created_at");
        let about_key = "With a mismatch: whether the same request under a new key duplicates nothing";
        ObjectBuilder::new()
            .description(Some("A refusal (RFC 9457)"))
            .property("type", text().format(Some(SchemaFormat::Custom("uri-reference".to_owned()))))
            .property("title", text())
            .property("status", integer())
            .property("detail", text())
            .property("code", text().enum_values(Some(codes)).description(Some("The refusal's name; it never changes")))
            .property("next", text().enum_values(Some(advice)).description(Some("What the client does now")))
            .property("safe_new_key", of(Type::Boolean).description(Some(about_key)))
            .property("resource", resource())
            .property("original", original)
            .required("type")
            .required("title")
            .required("status")
            .required("detail")
            .required("code")
            .into()
    }
}

impl Modify for Described {
    fn modify(&self, api: &mut OpenApi) {
        let operations = api.paths.paths.values_mut().flat_map(operations);
        for operation in operations.filter(|operation| takes_a_key(operation)) {
            for (status, response) in &mut operation.responses.responses {
                // A reference leads to what others share.
                let RefOr::T(response) = response else { continue };
                for (name, about, schema) in headers(status) {
                    let header = HeaderBuilder::new().description(Some(about)).schema(Some(schema)).build();
                    response.headers.entry(name.to_owned()).or_insert(RefOr::T(header));
                }
            }
        }
    }
}

fn operations(path: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, put, post, delete, options, head, patch, trace, query, .. } = path;
    [get, put, post, delete, options, head, patch, trace, query].into_iter().flatten()
}

fn takes_a_key(operation: &Operation) -> bool {
    operation.parameters.iter().flatten().any(|parameter| match parameter {
        RefOr::T(parameter) => parameter.name.eq_ignore_ascii_case(KEY),
        RefOr::Ref(_) => false,
    })
}

fn headers(status: &str) -> Vec<(&'static str, &'static str, ObjectBuilder)> {
    let mut headers = Vec::new();
    if matches!(status.as_bytes().first(), Some(b'2'..=b'5')) {
        let replayed = "`true` where the answer is the first one again";
        headers.push(("Idempotency-Replayed", replayed, text().enum_values(Some(["true"]))));
        headers.push(("Idempotency-Expires", "Until when the key answers, as an HTTP date", text()));
    }
    if matches!(status, "202" | "409" | "429" | "503") {
        headers.push(("Retry-After", "Where waiting helps: seconds until the next try", integer()));
    }
    headers
}

fn text() -> ObjectBuilder {
    of(Type::String)
}

fn integer() -> ObjectBuilder {
    of(Type::Integer)
}

fn of(kind: Type) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(SchemaType::new(kind))
}

const KEY: &str = "Idempotency-Key";
