//! Commands that are made of more than a body.

use std::convert::Infallible;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{FromRequest, Multipart, Path, Query, Request};
use axum::http::StatusCode;
use axum_extra::TypedHeader;
use axum_extra::headers::UserAgent;
use idem_axum::{CommandFrom, MemoryStore};
use idem_core::IdempotentCommand;
use reqwest::multipart::{Form, Part};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::http::bench::{Answer, Server, idem, route};

/// A transfer: who by the path, how urgent by the query, by which program by a header, how much by the body.
#[derive(Debug, IdempotentCommand)]
#[idem(operation = "transfer", version = 1)]
struct Transfer {
    account: u64,
    urgent: bool,
    program: String,
    cents: u64,
}

#[derive(Debug, Deserialize)]
struct Options {
    urgent: bool,
}

#[derive(Debug, Deserialize)]
struct Amount {
    cents: u64,
}

type Tuple = (Path<u64>, Query<Options>, TypedHeader<UserAgent>, Json<Amount>);

impl CommandFrom<Tuple> for Transfer {
    type Refusal = Infallible;

    fn command_from(
        (Path(account), Query(options), TypedHeader(agent), Json(amount)): Tuple,
    ) -> Result<Self, Infallible> {
        Ok(Self { account, urgent: options.urgent, program: agent.to_string(), cents: amount.cents })
    }
}

/// The same, named, by axum's derive.
#[derive(FromRequest)]
struct Named {
    account: Path<u64>,
    #[from_request(via(Query))]
    options: Options,
    program: TypedHeader<UserAgent>,
    #[from_request(via(Json))]
    amount: Amount,
}

impl CommandFrom<Named> for Transfer {
    type Refusal = (StatusCode, &'static str);

    fn command_from(read: Named) -> Result<Self, Self::Refusal> {
        if read.amount.cents == 0 {
            return Err((StatusCode::UNPROCESSABLE_ENTITY, "nothing to transfer"));
        }
        let program = read.program.to_string();
        Ok(Self { account: read.account.0, urgent: read.options.urgent, program, cents: read.amount.cents })
    }
}

async fn transfers() -> (Server, MemoryStore) {
    let store = MemoryStore::new();
    let work = async |transfer: Transfer, _| Ok(format!("{transfer:?}"));
    let router = route::<Transfer, Tuple, _, _, _>("/tuple/{account}", work)
        .merge(route::<Transfer, Named, _, _, _>("/named/{account}", work))
        .with_state(idem(store.clone()).build().unwrap());
    (Server::start(router).await, store)
}

async fn transfer(server: &Server, path: &str, program: &str, body: &str) -> Answer {
    let request = server.request(path).header("idempotency-key", "k").header("user-agent", program);
    server.send(request.header("content-type", "application/json").body(body.to_owned())).await
}

#[tokio::test]
async fn a_tuple_brings_path_query_and_headers_into_the_command() {
    let (server, store) = transfers().await;
    let first = transfer(&server, "/tuple/7?urgent=true", "pos/1", r#"{"cents":5}"#).await;
    assert_eq!(first.body, br#"Transfer { account: 7, urgent: true, program: "pos/1", cents: 5 }"#);
    assert!(transfer(&server, "/tuple/7?urgent=true", "pos/1", r#"{ "cents": 5 }"#).await.replayed());
    // One command, however it was read.
    assert!(transfer(&server, "/named/7?urgent=true", "pos/1", r#"{"cents":5}"#).await.replayed());
    for (path, program, body) in [
        ("/tuple/8?urgent=true", "pos/1", r#"{"cents":5}"#),
        ("/tuple/7?urgent=false", "pos/1", r#"{"cents":5}"#),
        ("/tuple/7?urgent=true", "pos/2", r#"{"cents":5}"#),
        ("/tuple/7?urgent=true", "pos/1", r#"{"cents":6}"#),
    ] {
        let other = transfer(&server, path, program, body).await;
        assert_eq!(other.code(), "IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_REQUEST", "{path} {program} {body}");
    }
    assert_eq!(store.len(), 1);
}

#[tokio::test]
async fn what_a_part_of_it_refuses_has_axums_status_and_leaves_no_record() {
    let (server, store) = transfers().await;
    for shape in ["tuple", "named"] {
        for (rest, body, status) in [
            ("x?urgent=true", r#"{"cents":5}"#, 400),
            ("7?urgent=maybe", r#"{"cents":5}"#, 400),
            ("7?urgent=true", r#"{"cents":"#, 400),
            ("7?urgent=true", r#"{"cents":"x"}"#, 422),
        ] {
            let refused = transfer(&server, &format!("/{shape}/{rest}"), "pos/1", body).await;
            assert_eq!(
                (refused.status, refused.code().as_str()),
                (status, "IDEMPOTENCY_REQUEST_INVALID"),
                "{rest} {body}"
            );
        }
    }
    let own = transfer(&server, "/named/7?urgent=true", "pos/1", r#"{"cents":0}"#).await;
    assert_eq!((own.status, own.body.as_slice()), (422, &b"nothing to transfer"[..]));
    assert!(store.is_empty());
}

/// A document that somebody hands in. The command knows it by its digest; the bytes are for the work.
#[derive(Debug, IdempotentCommand)]
#[idem(operation = "hand_in", version = 1)]
struct HandIn {
    title: String,
    digest: String,
    #[idem(exclude)]
    bytes: Bytes,
}

/// A multipart body, read whole: a stream could not be compared.
#[derive(Default)]
struct Upload {
    title: String,
    document: Bytes,
}

impl<S: Send + Sync> FromRequest<S> for Upload {
    type Rejection = (StatusCode, String);

    async fn from_request(request: Request, state: &S) -> Result<Self, Self::Rejection> {
        let mut parts = Multipart::from_request(request, state).await.map_err(|no| (no.status(), no.body_text()))?;
        let mut upload = Self::default();
        while let Some(part) = parts.next_field().await.map_err(|no| (no.status(), no.body_text()))? {
            let name = part.name().unwrap_or_default().to_owned();
            let bytes = part.bytes().await.map_err(|no| (no.status(), no.body_text()))?;
            match name.as_str() {
                "title" => upload.title = String::from_utf8_lossy(&bytes).into_owned(),
                "document" => upload.document = bytes,
                _ => return Err((StatusCode::BAD_REQUEST, format!("what is `{name}`?"))),
            }
        }
        Ok(upload)
    }
}

impl CommandFrom<Upload> for HandIn {
    type Refusal = Infallible;

    fn command_from(Upload { title, document }: Upload) -> Result<Self, Infallible> {
        Ok(Self { title, digest: format!("{:x?}", Sha256::digest(&document)), bytes: document })
    }
}

#[tokio::test]
async fn a_multipart_body_is_one_command_whatever_its_boundary() {
    let store = MemoryStore::new();
    let work = async |document: HandIn, _| Ok((StatusCode::CREATED, document.bytes.to_vec()));
    let router = route::<HandIn, Upload, _, _, _>("/documents", work).with_state(idem(store.clone()).build().unwrap());
    let server = Server::start(router).await;
    let send = async |form: Form| {
        server.send(server.request("/documents").header("idempotency-key", "k").multipart(form)).await
    };
    let document = |bytes: &'static [u8]| Form::new().text("title", "a").part("document", Part::bytes(bytes));
    assert_eq!(send(Form::new().text("titel", "a")).await.status, 400);
    assert!(store.is_empty());
    assert_eq!(send(document(b"\0\xFF")).await.body, b"\0\xFF");
    // Each form has a random boundary of its own; the order of its parts says nothing either.
    let turned = Form::new().part("document", Part::bytes(&b"\0\xFF"[..])).text("title", "a");
    for again in [document(b"\0\xFF"), turned] {
        assert!(send(again).await.replayed());
    }
    assert_eq!(send(document(b"\0\xFE")).await.code(), "IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_REQUEST");
    // A form of a browser's is none.
    let request = server.request("/documents").header("idempotency-key", "k").json(&json!({ "title": "a" }));
    assert_eq!(server.send(request).await.status, 400);
}
