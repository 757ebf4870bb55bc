//! The header, as it arrives on a socket.

use axum::http::StatusCode;
use idem_axum::MemoryStore;

use crate::http::bench::{Effects, Server, idem, pay, payment};

struct Bench {
    server: Server,
    store: MemoryStore,
    effects: Effects,
}

async fn bench() -> Bench {
    let (store, effects) = (MemoryStore::new(), Effects::default());
    let happening = effects.clone();
    let work = move |_, _| {
        happening.happen();
        async { Ok(StatusCode::CREATED) }
    };
    let server = Server::start(pay(idem(store.clone()).build().unwrap(), work)).await;
    Bench { server, store, effects }
}

impl Bench {
    async fn refuses(&self, lines: &[&[u8]], reason: &str) {
        let shown = lines.iter().map(|line| String::from_utf8_lossy(line)).collect::<Vec<_>>();
        let answer = self.server.raw(lines).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{shown:?} got {answer}");
        assert!(answer.contains("\"code\":\"IDEMPOTENCY_KEY_INVALID\""), "{shown:?} got {answer}");
        assert!(answer.contains(reason), "{shown:?} got {answer}");
        assert_eq!((self.effects.count(), self.store.len()), (0, 0), "{shown:?} left something");
    }
}

#[tokio::test]
async fn a_doubled_header_line_is_refused_with_equal_and_with_other_values() {
    let bench = bench().await;
    bench.refuses(&[b"idempotency-key: k-1", b"idempotency-key: k-1"], "there 2 times").await;
    bench.refuses(&[b"idempotency-key: k-1", b"Idempotency-Key: k-2"], "there 2 times").await;
    bench.refuses(&[b"idempotency-key:", b"idempotency-key: k-1"], "there 2 times").await;
    assert!(bench.server.raw(&[b"idempotency-key: k-1"]).await.starts_with("HTTP/1.1 201 "));
    assert_eq!((bench.effects.count(), bench.store.len()), (1, 1));
}

#[tokio::test]
async fn a_blank_or_padded_key_is_refused_and_not_taken_for_absent() {
    let bench = bench().await;
    bench.refuses(&[b"idempotency-key:"], "at least one character").await;
    bench.refuses(&[b"idempotency-key: \t "], "at least one character").await;
    bench.refuses(&[b"idempotency-key:   a  b  "], "byte 1 is 0x20").await;
    bench.refuses(&[b"idempotency-key: \"\""], "at least one character").await;
    bench.refuses(&[b"idempotency-key: \" a\""], "byte 0 is 0x20").await;
}

#[tokio::test]
async fn an_unreadable_key_is_refused_and_not_taken_for_absent() {
    let bench = bench().await;
    bench.refuses(&[b"idempotency-key: k\xC3\xA9"], "byte 1 is 0xC3").await;
    bench.refuses(&[b"idempotency-key: \xFF"], "byte 0 is 0xFF").await;
}

#[tokio::test]
async fn parameters_escapes_and_lists_are_refused() {
    let bench = bench().await;
    bench.refuses(&[b"idempotency-key: \"k\";v=1"], "parameters are not taken").await;
    bench.refuses(&[b"idempotency-key: k;v=1"], "byte 1 is 0x3B").await;
    bench.refuses(&[b"idempotency-key: \"k\", \"l\""], "closing quotation mark").await;
    bench.refuses(&[b"idempotency-key: k,l"], "byte 1 is 0x2C").await;
    bench.refuses(&[b"idempotency-key: \"k\\\"\""], "escape").await;
    bench.refuses(&[b"idempotency-key: \"k"], "nothing closes").await;
}

#[tokio::test]
async fn lengths_from_1_to_255_are_keys_and_a_refusal_does_not_echo() {
    let bench = bench().await;
    for length in [256, 8000] {
        let line = format!("idempotency-key: {}", "k".repeat(length));
        bench.refuses(&[line.as_bytes()], &format!("this one has {length}")).await;
        assert!(!bench.server.raw(&[line.as_bytes()]).await.contains("kkkk"));
    }
    assert!(!bench.server.raw(&[b"idempotency-key: my secret"]).await.contains("secret"));
    for length in [1, 255] {
        let line = format!("idempotency-key: {}", "k".repeat(length));
        assert!(bench.server.raw(&[line.as_bytes()]).await.starts_with("HTTP/1.1 201 "), "{length}");
    }
    assert_eq!(bench.store.len(), 2);
}

#[tokio::test]
async fn quoted_bare_and_outer_blanks_are_one_key() {
    let bench = bench().await;
    bench.server.raw(&[b"idempotency-key: \"8e03978e\""]).await;
    for line in [&b"idempotency-key: 8e03978e"[..], b"idempotency-key:   8e03978e  ", b"IDEMPOTENCY-KEY:\t\"8e03978e\""]
    {
        let answer = bench.server.raw(&[line]).await;
        assert!(answer.contains("idempotency-replayed: true"), "{answer}");
    }
    assert_eq!((bench.effects.count(), bench.store.len()), (1, 1));
}

#[tokio::test]
async fn a_missing_key_is_refused_and_nothing_runs() {
    let bench = bench().await;
    let answer = bench.server.send(bench.server.request("/pay").json(&payment())).await;
    assert_eq!((answer.status, answer.code()), (400, "IDEMPOTENCY_KEY_MISSING".to_owned()));
    assert_eq!((bench.effects.count(), bench.store.len()), (0, 0));
}
