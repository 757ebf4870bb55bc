//! The window, what is remembered after it, and a sweep that forgets both.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use idem_axum::{Idem, IdemBuilder, MemoryStore, Tenants};
use idem_core::StatusName;
use idem_core::retention::Sweep;
use tokio::sync::Semaphore;

use crate::http::bench::{Answer, Effects, LateClock, Server, idem, pay, payment, record, route};
use crate::http::command::Refund;

struct Bench {
    server: Server,
    idem: Idem,
    store: MemoryStore,
    clock: LateClock,
    effects: Effects,
    go: Arc<Semaphore>,
}

/// Payments and refunds whose work waits for a permit; there are plenty unless the test takes them.
async fn bench(options: impl FnOnce(IdemBuilder<Tenants>) -> IdemBuilder<Tenants>) -> Bench {
    let (clock, effects, go) = (LateClock::default(), Effects::default(), Arc::new(Semaphore::new(1000)));
    let store = MemoryStore::with_clock(Arc::new(clock.clone()));
    let idem = options(idem(store.clone())).build().unwrap();
    let (happening, gate) = (effects.clone(), Arc::clone(&go));
    let work = move || {
        happening.happen();
        let gate = Arc::clone(&gate);
        async move {
            gate.acquire().await.unwrap().forget();
            Ok((StatusCode::CREATED, "done"))
        }
    };
    let refund = work.clone();
    let refunds = route::<Refund, Json<Refund>, _, _, _>("/refunds", move |_, _| refund()).with_state(idem.clone());
    let server = Server::start(pay(idem.clone(), move |_, _| work()).merge(refunds)).await;
    Bench { server, idem, store, clock, effects, go }
}

impl Bench {
    async fn refund(&self) -> Answer {
        self.server.post("/refunds", "k", payment()).await
    }

    async fn sweep(&self) -> (u64, u64) {
        let swept = self.idem.engine().sweep(&Sweep::default()).await.unwrap();
        (swept.expired, swept.purged)
    }
}

fn is(answer: &Answer, status: u16, code: &str, replayed: bool) {
    assert_eq!((answer.status, answer.code().as_str(), answer.replayed()), (status, code, replayed), "{answer:?}");
}

/// Everything that could be over is, but the lease, which its owner renews: the key is still taken.
#[tokio::test]
async fn work_that_outlives_its_window_keeps_its_key_and_two_sweepers_remove_nothing_live() {
    let moment = Duration::from_secs(1);
    let lease = Duration::from_secs(6);
    let bench = bench(|idem| idem.window(moment).metadata_retention(moment).lease(lease)).await;
    bench.server.pay("ended").await;
    bench.go.forget_permits(1000);
    let _first = bench.server.open(&[b"idempotency-key: k"], payment().to_string().as_bytes()).await;
    bench.effects.reach(2).await;
    let until = |bench: &Bench| match record(&bench.store, "k").unwrap().status {
        idem_core::Status::InProgress { locked_until } => locked_until,
        other => panic!("{other:?}"),
    };
    let begun = until(&bench);
    for _ in 0..2 {
        let before = until(&bench);
        bench.clock.pass(lease / 2);
        while until(&bench) == before {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    assert!(until(&bench) > begun + lease, "the first lease would be over by now");
    is(&bench.server.pay("k").await, 409, "IDEMPOTENCY_REQUEST_IN_PROGRESS", false);
    let (one, other) = tokio::join!(bench.sweep(), bench.sweep());
    assert_eq!(one.0 + other.0, 1, "only what has ended");
    assert!(record(&bench.store, "ended").is_none_or(|ended| ended.status.name() == StatusName::Expired));
    is(&bench.server.pay("k").await, 409, "IDEMPOTENCY_REQUEST_IN_PROGRESS", false);
    bench.go.add_permits(1);
    bench.idem.drain(Duration::from_secs(30)).await.unwrap();
    is(&bench.server.pay("k").await, 201, "", true);
    assert_eq!(bench.effects.count(), 2);
}

#[tokio::test]
async fn after_its_window_a_key_is_known_for_the_metadatas_time_and_new_after_it() {
    let hour = Duration::from_secs(3600);
    let options = |idem: IdemBuilder<Tenants>| {
        let idem = idem.operation::<Refund>(|refund| refund.metadata_retention(3 * hour));
        idem.window(hour).metadata_retention(hour)
    };
    let bench = bench(options).await;
    for path in ["/pay", "/refunds"] {
        is(&bench.server.post(path, "k", payment()).await, 201, "", false);
    }
    bench.clock.pass(hour / 2);
    assert_eq!(bench.sweep().await, (0, 0));
    is(&bench.server.pay("k").await, 201, "", true);
    bench.clock.pass(hour);
    // Judged by its time, whether swept or not.
    is(&bench.server.pay("k").await, 410, "IDEMPOTENCY_KEY_EXPIRED", false);
    assert_eq!(bench.sweep().await, (2, 0));
    is(&bench.server.pay("k").await, 410, "IDEMPOTENCY_KEY_EXPIRED", false);
    assert_eq!(record(&bench.store, "k").unwrap().status.name(), StatusName::Expired);
    bench.clock.pass(hour);
    assert_eq!(bench.sweep().await, (0, 1), "the other operation remembers for longer");
    is(&bench.refund().await, 410, "IDEMPOTENCY_KEY_EXPIRED", false);
    assert_eq!(bench.effects.count(), 2);
    // Nobody knows the key any more: it is as good as new.
    is(&bench.server.pay("k").await, 201, "", false);
    assert_eq!(bench.effects.count(), 3);
    bench.clock.pass(3 * hour);
    assert_eq!(bench.sweep().await, (1, 2), "a round goes on until nothing is over: the payment's record goes in one");
    is(&bench.refund().await, 201, "", false);
}

#[tokio::test]
async fn a_body_is_kept_for_its_whole_window_or_for_less_where_that_is_asked_for() {
    let day = Duration::from_secs(24 * 3600);
    let bench =
        bench(|idem| idem.window(3 * day).operation::<Refund>(|refund| refund.body_retention(day).window(3 * day)))
            .await;
    for path in ["/pay", "/refunds"] {
        is(&bench.server.post(path, "k", payment()).await, 201, "", false);
    }
    bench.clock.pass(2 * day);
    bench.sweep().await;
    is(&bench.server.pay("k").await, 201, "", true);
    is(&bench.refund().await, 409, "IDEMPOTENCY_RESPONSE_NOT_KEPT", false);
    bench.clock.pass(2 * day);
    is(&bench.server.pay("k").await, 410, "IDEMPOTENCY_KEY_EXPIRED", false);
    is(&bench.refund().await, 410, "IDEMPOTENCY_KEY_EXPIRED", false);
    assert_eq!(bench.effects.count(), 2);
}
