//! One handler over sockets: plain, under idem, and under a peer. The services take turns within each round, so that a
//! busy machine is busy for all of them.
//!
//! Two handlers are measured, each against itself with plain `Json`:
//!
//! - `paying:` one that waits for a provider which answers after 2 ms, as the least that is worth protecting does
//! - `ratios:`, the last line: one that reads JSON and writes JSON, and does nothing. Its rate is what HTTP costs, so the
//!   ratio says how much idem costs beside that

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::post;
use axum::{Json, Router};
use axum_idempotent::{IdempotentLayer, IdempotentOptions};
use idem_axum::{Idem, Idempotent};
use idem_cluster::Cluster;
use idem_core::store::Store;
use idem_core::{IdempotentCommand, MemoryStore};
use idem_sqlx::{PgStore, SqliteStore};
use ruts::store::Ttl;
use ruts::store::moka::MokaStore;
use ruts::{CookieOptions, Session, SessionLayer};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tower_cookies::CookieManagerLayer;

use crate::table::median;

/// Every request is a first one with a key of its own: the way on which idem costs most.
#[derive(Debug, Deserialize, IdempotentCommand)]
#[idem(operation = "create_payment", version = 1)]
struct CreatePayment {
    account_id: String,
    cents: u64,
    #[idem(uppercase)]
    currency: String,
    merchant_reference: String,
}

#[derive(Serialize)]
struct Receipt {
    account_id: String,
    cents: u64,
    currency: String,
    merchant_reference: String,
    state: &'static str,
}

fn receipt(payment: CreatePayment) -> (StatusCode, Json<Receipt>) {
    let CreatePayment { account_id, cents, currency, merchant_reference } = payment;
    (StatusCode::CREATED, Json(Receipt { account_id, cents, currency, merchant_reference, state: "paid" }))
}

/// What the paying handler does besides.
async fn provider() {
    tokio::time::sleep(Duration::from_millis(2)).await;
}

type Failed = Box<dyn Error + Send + Sync>;

/// Measures the services of these names beside the plain handler; all of them where none is named.
pub(crate) fn run(names: &[&str]) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts on any machine that can be measured");
    if let Err(error) = runtime.block_on(measure(names)) {
        println!("http: {error}");
    }
}

async fn measure(names: &[&str]) -> Result<(), Failed> {
    let asked = |name: &str| names.is_empty() || names.contains(&name);
    let folder = tempfile::tempdir()?;
    let mut database = None;
    let mut services = vec![Service::start("plain", under_nothing()).await?];
    if asked("memory") {
        services.push(Service::start("memory", under_idem(MemoryStore::new())?).await?);
    }
    if asked("sqlite") {
        let sqlite = SqliteStore::open(folder.path().join("idem.sqlite")).await?;
        services.push(Service::start("sqlite", under_idem(sqlite)?).await?);
    }
    if asked("postgres") {
        // One that syncs, as a service's does; the process's end stops it.
        let server: &Cluster = Box::leak(Box::new(tokio::task::spawn_blocking(|| Cluster::start(&[])).await?));
        let database = database.insert(server.database().await);
        services.push(Service::start("postgres", under_idem(PgStore::open(database.options()).await?)?).await?);
    }
    if asked("peer") {
        services.push(Service::start("peer", under_the_peer()).await?);
    }
    for (title, path) in [("paying", "/charges"), ("ratios", "/payments")] {
        rounds(&mut services, path).await?;
        report(&mut services, title);
    }
    Ok(())
}

async fn rounds(services: &mut [Service], path: &'static str) -> Result<(), Failed> {
    let count = services.len();
    for round in 0..WARM_UP + ROUNDS {
        for turn in 0..count {
            let service = &mut services[(round + turn) % count];
            let cookies = if service.name == "peer" { sessions(service.address).await? } else { Vec::new() };
            let (rate, mut latencies) = load(service.address, path, Arc::new(cookies)).await?;
            if round >= WARM_UP {
                service.rates.push(rate);
                service.latencies.append(&mut latencies);
            }
        }
    }
    Ok(())
}

/// Prints what was measured, and forgets it.
fn report(services: &mut [Service], title: &str) {
    println!("{title:<8} {:>10} {:>9} {:>9}", "requests/s", "p50 µs", "p99 µs");
    let mut ratios = format!("{title}:");
    let plain = services[0].rates.clone();
    for service in services {
        let (rates, mut latencies) = (std::mem::take(&mut service.rates), std::mem::take(&mut service.latencies));
        latencies.sort_unstable();
        let at = |part: f64| latencies[((latencies.len() - 1) as f64 * part) as usize];
        println!("{:<8} {:>10.0} {:>9} {:>9}", service.name, median(rates.clone()), at(0.5), at(0.99));
        if service.name != "plain" {
            let each = rates.iter().zip(&plain).map(|(own, plain)| own / plain);
            ratios += &format!(" {}={:.3}", service.name, median(each.collect()));
        }
    }
    println!("{ratios}");
}

struct Service {
    name: &'static str,
    address: SocketAddr,
    /// Requests per second of each round.
    rates: Vec<f64>,
    /// Microseconds of each request.
    latencies: Vec<u32>,
}

impl Service {
    async fn start(name: &'static str, router: Router) -> Result<Self, Failed> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        tokio::spawn(axum::serve(listener, router).into_future());
        Ok(Self { name, address, rates: Vec::new(), latencies: Vec::new() })
    }
}

async fn plain(Json(payment): Json<CreatePayment>) -> (StatusCode, Json<Receipt>) {
    receipt(payment)
}

async fn paying(payment: Json<CreatePayment>) -> (StatusCode, Json<Receipt>) {
    provider().await;
    plain(payment).await
}

async fn idempotent(payment: Idempotent<CreatePayment>) -> Response {
    payment.execute(async |payment, _| Ok(receipt(payment))).await
}

async fn paying_once(payment: Idempotent<CreatePayment>) -> Response {
    let work = async |payment, _| {
        provider().await;
        Ok(receipt(payment))
    };
    payment.execute(work).await
}

fn under_nothing() -> Router {
    Router::new().route("/payments", post(plain)).route("/charges", post(paying))
}

fn under_idem(store: impl Store + 'static) -> Result<Router, Failed> {
    let idem = Idem::builder(store).single_tenant("acme")?.build()?;
    let router = Router::new().route("/payments", post(idempotent)).route("/charges", post(paying_once));
    Ok(router.with_state(idem))
}

/// In the mode that its documentation calls the fastest: the key as it is, nothing hashed.
fn under_the_peer() -> Router {
    let options = IdempotentOptions::default().use_idempotency_key_header(Some("idempotency-key"), true);
    let cookie = CookieOptions::build().name("session").max_age(24 * 60 * 60).path("/");
    under_nothing()
        .layer(IdempotentLayer::<MokaStore>::new(options))
        .route("/session", post(start_session))
        .layer(SessionLayer::new(Arc::new(MokaStore::builder().build())).with_cookie_options(cookie))
        .layer(CookieManagerLayer::new())
}

async fn start_session(session: Session<MokaStore>) -> StatusCode {
    let Some(day) = Ttl::new(24 * 60 * 60).ok() else { return StatusCode::INTERNAL_SERVER_ERROR };
    match session.set("user", &String::from("ada"), day, None).await {
        Ok(_) => StatusCode::CREATED,
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Sessions for one turn: the peer remembers nothing without one, and one alone would grow all the time.
async fn sessions(address: SocketAddr) -> Result<Vec<String>, Failed> {
    let mut connection = Connection::open(address).await?;
    let mut cookies = Vec::new();
    for _ in 0..SESSIONS {
        let head = connection.exchange(b"POST /session HTTP/1.1\r\nhost: bench\r\ncontent-length: 0\r\n\r\n").await?;
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).ok_or("no session began")?;
        cookies.push(cookie.split(';').next().unwrap_or_default().to_owned());
    }
    Ok(cookies)
}

/// One turn: requests per second, and the microseconds of each.
async fn load(address: SocketAddr, path: &'static str, cookies: Arc<Vec<String>>) -> Result<(f64, Vec<u32>), Failed> {
    let start = Instant::now();
    let clients: Vec<_> =
        (0..CONNECTIONS).map(|_| tokio::spawn(client(address, path, Arc::clone(&cookies), start))).collect();
    let mut latencies = Vec::new();
    for client in clients {
        latencies.append(&mut client.await??);
    }
    Ok((latencies.len() as f64 / start.elapsed().as_secs_f64(), latencies))
}

async fn client(
    address: SocketAddr,
    path: &str,
    cookies: Arc<Vec<String>>,
    start: Instant,
) -> Result<Vec<u32>, Failed> {
    let body = r#"{"account_id":"acc_1","cents":1000,"currency":"eur","merchant_reference":"order-1041"}"#;
    let mut connection = Connection::open(address).await?;
    let mut latencies = Vec::new();
    while start.elapsed() < TURN {
        let number = NEXT_KEY.fetch_add(1, Ordering::Relaxed);
        let cookie = match cookies.get(number as usize % cookies.len().max(1)) {
            Some(cookie) => format!("cookie: {cookie}\r\n"),
            None => String::new(),
        };
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\nidempotency-key: bench-{number:020}\r\n{cookie}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        let sent = Instant::now();
        let head = connection.exchange(request.as_bytes()).await?;
        latencies.push(u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX));
        if !head.starts_with("HTTP/1.1 201 ") || head.contains("idempotency-replayed") {
            return Err(format!("a request was not the first of its key:\n{head}").into());
        }
    }
    Ok(latencies)
}

/// The least that speaks HTTP/1.1, so that the client costs little.
struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    async fn open(address: SocketAddr) -> Result<Self, Failed> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(4096) })
    }

    /// Sends a request, reads the answer whole, and gives its head.
    async fn exchange(&mut self, request: &[u8]) -> Result<String, Failed> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err("the service hung up".into());
            }
            let Some(end) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
            let head = std::str::from_utf8(&self.buffer[..end])?;
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if self.buffer.len() >= end + 4 + length.map_or(Ok(0), str::parse)? {
                return Ok(head.to_owned());
            }
        }
    }
}

static NEXT_KEY: AtomicU64 = AtomicU64::new(0);

const CONNECTIONS: usize = 16;
const SESSIONS: usize = 256;
const TURN: Duration = Duration::from_millis(250);
const WARM_UP: usize = 2;
const ROUNDS: usize = 15;
