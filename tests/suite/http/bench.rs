//! A service on a socket, a client for it, and what tests look at.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use axum::Router;
use axum::extract::FromRequest;
use axum::routing::post;
use idem_axum::{
    CallError, Claim, Failure, Fate, Idem, IdemBuilder, IdempotencyKey, Idempotent, IdempotentCommand, IntoReply,
    MemoryStore, NoTenants, Rules, Tenant, Tenants,
};
use idem_core::{Clock, Record, Scope, Store};
use reqwest::header::HeaderMap;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::http::command::Pay;

pub(crate) const TENANT: &str = "acme";

/// How often something happened outside.
#[derive(Clone, Default)]
pub(crate) struct Effects(Arc<AtomicUsize>);

impl Effects {
    pub(crate) fn happen(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// Waits until it happened that often.
    pub(crate) async fn reach(&self, count: usize) {
        while self.count() < count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// idem over a store, for one tenant.
pub(crate) fn idem(store: impl Store + 'static) -> IdemBuilder<Tenants> {
    unscoped(store).single_tenant(TENANT).unwrap()
}

pub(crate) fn unscoped(store: impl Store + 'static) -> IdemBuilder<NoTenants> {
    // Short waits, so that a retry is due at once.
    let rules = Rules { backoff: Duration::from_millis(1), ..Rules::default() };
    Idem::builder(store).rules(rules)
}

/// `POST path` for one command, with this work.
pub(crate) fn route<C, R, W, F, T>(path: &str, work: W) -> Router<Idem>
where
    Idempotent<C, R>: FromRequest<Idem> + Send + 'static,
    C: IdempotentCommand + Send + Sync + 'static,
    R: 'static,
    W: Fn(C, Claim) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<T, Failure>> + Send + 'static,
    T: IntoReply + 'static,
{
    Router::new().route(path, post(async move |command: Idempotent<C, R>| command.execute(work).await))
}

/// `POST /pay` with this work.
pub(crate) fn pay<W, F, T>(idem: Idem, work: W) -> Router
where
    W: Fn(Pay, Claim) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<T, Failure>> + Send + 'static,
    T: IntoReply + 'static,
{
    route::<Pay, axum::Json<Pay>, _, _, _>("/pay", work).with_state(idem)
}

pub(crate) fn payment() -> Value {
    json!({ "account": "acc_1", "cents": 1000 })
}

/// The record of a key.
pub(crate) fn record(store: &MemoryStore, key: &str) -> Option<Record> {
    let key: IdempotencyKey = key.parse().unwrap();
    store.record(&Scope::new(Tenant::new(TENANT).unwrap(), Pay::OPERATION, key))
}

/// A service on a socket of its own.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    client: reqwest::Client,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(router: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, client: reqwest::Client::new(), task }
    }

    /// The same service, whose clients speak HTTP/2 from now on.
    pub(crate) fn over_http2(mut self) -> Self {
        self.client = reqwest::Client::builder().http2_prior_knowledge().build().unwrap();
        self
    }

    /// `POST /pay` of [`payment`].
    pub(crate) async fn pay(&self, key: &str) -> Answer {
        self.post("/pay", key, payment()).await
    }

    pub(crate) async fn post(&self, path: &str, key: &str, body: Value) -> Answer {
        self.send(self.request(path).header("idempotency-key", key).json(&body)).await
    }

    pub(crate) fn request(&self, path: &str) -> reqwest::RequestBuilder {
        self.client.post(format!("http://{}{path}", self.address))
    }

    pub(crate) async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Answer { status, headers, body: response.bytes().await.unwrap().to_vec() }
    }

    /// Opens a connection and sends `POST /pay`; `lines` are header lines as they are.
    pub(crate) async fn open(&self, lines: &[&[u8]], body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let mut request = format!(
            "POST /pay HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
            body.len()
        )
        .into_bytes();
        for line in lines {
            request.extend_from_slice(line);
            request.extend_from_slice(b"\r\n");
        }
        request.extend_from_slice(b"\r\n");
        request.extend_from_slice(body);
        stream.write_all(&request).await.unwrap();
        stream
    }

    /// Sends header lines as they are, and gives the answer as text.
    pub(crate) async fn raw(&self, lines: &[&[u8]]) -> String {
        let mut stream = self.open(lines, payment().to_string().as_bytes()).await;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        String::from_utf8(answer).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a client got.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn replayed(&self) -> bool {
        self.header("idempotency-replayed") == Some("true")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{self:?} has no JSON"))
    }

    /// The code of a problem; empty for any other answer.
    pub(crate) fn code(&self) -> String {
        match self.header("content-type") {
            Some("application/problem+json") => self.json()["code"].as_str().unwrap_or_default().to_owned(),
            _ => String::new(),
        }
    }
}

/// A provider's error.
#[derive(Debug, thiserror::Error)]
#[error("the provider failed: {0:?}")]
pub(crate) struct ProviderFailed(pub(crate) Fate);

impl CallError for ProviderFailed {
    fn fate(&self) -> Fate {
        self.0
    }
}

/// The machine's clock, and as much later as a test says.
#[derive(Clone, Default)]
pub(crate) struct LateClock(Arc<Mutex<Duration>>);

impl LateClock {
    pub(crate) fn pass(&self, span: Duration) {
        *self.0.lock().unwrap() += span;
    }
}

#[async_trait]
impl Clock for LateClock {
    fn now(&self) -> SystemTime {
        SystemTime::now() + *self.0.lock().unwrap()
    }

    async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }

    fn fraction(&self) -> f64 {
        0.5
    }
}

/// A clock that goes on only when a test says so.
#[derive(Clone)]
pub(crate) struct StillClock(Arc<Mutex<SystemTime>>);

impl StillClock {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(SystemTime::now())))
    }

    pub(crate) fn pass(&self, span: Duration) {
        *self.0.lock().unwrap() += span;
    }
}

#[async_trait]
impl Clock for StillClock {
    fn now(&self) -> SystemTime {
        *self.0.lock().unwrap()
    }

    async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span).await;
    }

    fn fraction(&self) -> f64 {
        0.5
    }
}

/// Asks again until the answer is no longer "wait" or "same key".
pub(crate) async fn settled(server: &Server, key: &str) -> Answer {
    for _ in 0..200 {
        let answer = server.pay(key).await;
        if answer.header("retry-after").is_none() {
            return answer;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("{key} does not settle");
}
