//! T1: one record for each scope, inserted once.

use std::time::{Duration, SystemTime};

use crate::decide::{Decision, decide};
use crate::hash::{CommandHash, Verdict};
use crate::key::{IdempotencyKey, Scope, Tenant};
use crate::record::{Fence, Keep, OwnerToken, Revision, Status, StatusName};
use crate::rules::Rules;
use crate::store::{Claimed, End, Finish, NewClaim, Seen, Step, Store, SweepOrder, TakeOver, Tended};
use crate::testing::{
    Case, KEEP, LONG, MOMENT, a_step, answer, applied, at_once, beat, changed, completed, eventually, finish,
    fresh_tenant, hash, stored, written,
};

/// A first claim owns the record, and the record says so.
pub async fn a_first_claim_inserts(store: &dyn Store) {
    let case = Case::new(store);
    let (owner, now) = case.claim(LONG).await;
    let record = case.record().await;
    assert_eq!(record.ownership(), owner);
    assert_eq!((record.fence, record.revision, record.attempts), (Fence::FIRST, Revision::FIRST, 1));
    assert_eq!(record.status, Status::InProgress { locked_until: now + LONG });
    assert_eq!((record.hash, record.created_at), (hash(1), now));
    assert_eq!((record.calls, record.resource), (Vec::new(), None));
}

/// A claim that met a record has written nothing, whatever it is a claim of.
pub async fn a_second_claim_finds_the_record_unchanged(store: &dyn Store) {
    let case = Case::new(store);
    let (owner, _) = case.claim(LONG).await;
    let before = case.record().await;
    let other = NewClaim { hash: hash(2), lease: Duration::ZERO, ..case.new_claim(LONG) };
    let Ok(Claimed::Found(found)) = store.claim(&other).await else { panic!("a second claim owns the record") };
    assert_eq!(found.record, before);
    assert_eq!(case.record().await.ownership(), owner);
}

/// In whatever state a record is: a claim of another command finds it with the hash of its own command, so that it is
/// told apart, writes nothing, and owns nothing, though its answer was lost and it is sent again.
pub async fn a_claim_of_another_command_changes_no_record(store: &dyn Store) {
    for status in StatusName::ALL {
        for called in [false, true] {
            let case = Case::new(store);
            in_state(&case, status, called).await;
            assert_eq!(case.looked().await.map(|record| record.status.name()), Some(status));
            is_told_apart(&case).await;
        }
    }
    // While a worker asks, and when a person was called.
    let [asked, parked, failed] = [Case::new(store), Case::new(store), Case::new(store)];
    asked.unknown("charge").await;
    asked.take_to_ask().await;
    is_told_apart(&asked).await;
    parked.unknown("charge").await;
    in_state(&failed, StatusName::FailedRetryable, true).await;
    for case in [parked, failed] {
        let seen = Seen::of(&case.record().await);
        written(store.tend(&seen, &Tended::Parked { ask_in: Duration::ZERO }).await);
        assert!(case.record().await.is_parked());
        is_told_apart(&case).await;
    }
}

async fn is_told_apart(case: &Case<'_>) {
    let before = case.looked().await.expect("a record");
    let status = before.status.name();
    let other = NewClaim { hash: hash(2), ..case.new_claim(Duration::ZERO) };
    for _ in 0..2 {
        match case.store.claim(&other).await {
            Ok(Claimed::Found(found)) => {
                assert_eq!((&found.record, found.record.hash), (&before, hash(1)), "{status}");
                let said = decide(&found.record, Verdict::Different, found.now, &Rules::default());
                assert!(matches!(said, Decision::Mismatch { .. }), "{status}: {said:?}");
            }
            claimed => panic!("{status}: {claimed:?}"),
        }
    }
    // Nor does it get what it takes for its own.
    let take = case.take(&before);
    let take = TakeOver { seen: Seen { hash: hash(2), ..take.seen }, ..take };
    assert_eq!(changed(case.store.take_over(&take).await).as_ref(), Some(&before), "{status}");
    assert_eq!(changed(case.store.take_to_ask(&take).await).as_ref(), Some(&before), "{status}");
    assert_eq!(case.looked().await, Some(before), "{status}");
}

/// Brings a record into a state, due where that state has a time. A call of one that expires is closed.
async fn in_state(case: &Case<'_>, status: StatusName, called: bool) {
    let (owner, _) = case.claim(LONG).await;
    if called {
        case.step(&owner, case.announce("charge")).await;
    }
    let closed = if called && status == StatusName::Expired { vec![applied("charge", "{}")] } else { Vec::new() };
    let over = Keep { window: MOMENT, body: MOMENT, metadata: LONG };
    let end = match status {
        StatusName::InProgress => {
            case.step(&owner, Step { lease: MOMENT, ..a_step() }).await;
            return case.time_comes().await;
        }
        StatusName::Completed => completed(),
        StatusName::FailedReplayable => End::FailedReplayable { response: answer("no"), keep: KEEP },
        StatusName::FailedRetryable => End::FailedRetryable { retry_in: Duration::ZERO, keep: KEEP },
        StatusName::Unknown => End::Unknown { ask_in: Duration::ZERO },
        StatusName::Expired => End::Completed { response: answer("{}"), keep: over },
    };
    stored(case.store.finish(&owner, &Finish { closed, ..finish(end) }).await);
    if status == StatusName::Expired {
        eventually(async || {
            case.store.sweep(SweepOrder { limit: 100, purge_tombstones: false }).await.expect("a batch");
            case.looked().await.is_some_and(|record| record.status.name() == StatusName::Expired)
        })
        .await;
    }
}

/// A claim whose answer was lost, sent again: its own token is in the record, so it is the owner.
pub async fn a_claim_sent_again_finds_its_own_token(store: &dyn Store) {
    let case = Case::new(store);
    let claim = case.new_claim(LONG);
    assert!(matches!(store.claim(&claim).await, Ok(Claimed::Inserted { .. })));
    let Ok(Claimed::Found(found)) = store.claim(&claim).await else { panic!("one claim inserted twice") };
    assert_eq!((found.record.owner, found.record.fence), (claim.owner, Fence::FIRST));
    assert_eq!(found.record.revision, Revision::FIRST);
}

/// Of sixteen first claims at once one inserts; the others find its record.
pub async fn of_concurrent_claims_one_inserts(store: &dyn Store) {
    for round in 0..8 {
        let case = Case::of(store, fresh_tenant(), "create_payment", &format!("key-{round}"));
        let claims = at_once(async || {
            let claim = case.new_claim(LONG);
            (claim.owner, store.claim(&claim).await)
        })
        .await;
        let mut inserted = Vec::new();
        let mut found = Vec::new();
        let mut held = 0;
        for (owner, claimed) in claims {
            match claimed {
                Ok(Claimed::Inserted { .. }) => inserted.push(owner),
                Ok(Claimed::Found(there)) => found.push(there.record.owner),
                // A rival's insert was not committed in time; it is nobody's claim.
                Ok(Claimed::Held) => held += 1,
                Err(error) => panic!("losing the race is no error: {error:?}"),
            }
        }
        assert_eq!((inserted.len(), found.len() + held), (1, 15));
        assert!(found.iter().all(|owner| *owner == inserted[0]));
    }
}

/// `Key`, `key` and `key-` are three keys.
pub async fn keys_are_compared_byte_by_byte(store: &dyn Store) {
    let tenant = fresh_tenant();
    for key in ["key", "Key", "KEY", "key-", "key_", "ke%", "k", "0", "00", "0.0", "1e0"] {
        let case = Case::of(store, tenant.clone(), "create_payment", key);
        case.claim(LONG).await;
        assert_eq!(case.record().await.scope, case.scope, "{key}");
    }
}

/// Letter case, trailing spaces and composed letters make other tenants.
pub async fn tenants_are_compared_byte_by_byte(store: &dyn Store) {
    let base = fresh_tenant();
    for tail in ["a", "A", "a ", "\u{e9}", "e\u{301}", "ß", "ss", "\u{1f4b6}", "'", "\\", "%"] {
        let tenant = Tenant::new(format!("{}{tail}", base.as_str())).expect("a legal tenant");
        let case = Case::of(store, tenant, "create_payment", "key-1");
        case.claim(LONG).await;
        assert_eq!(case.record().await.scope, case.scope, "{tail}");
    }
}

/// The same key is used once in each operation, and by each tenant.
pub async fn one_key_serves_two_operations_and_two_tenants(store: &dyn Store) {
    let tenant = fresh_tenant();
    let payment = Case::of(store, tenant.clone(), "create_payment", "key-1");
    let refund = Case::of(store, tenant, "create_refund", "key-1");
    let stranger = Case::new(store);
    let (owner, _) = payment.claim(LONG).await;
    refund.claim(LONG).await;
    stranger.claim(LONG).await;
    payment.finish(&owner, completed()).await;
    assert!(matches!(refund.record().await.status, Status::InProgress { .. }));
    assert!(matches!(stranger.record().await.status, Status::InProgress { .. }));
}

/// The longest legal key and tenant are kept whole, also where a character is four bytes.
pub async fn the_longest_names_are_kept(store: &dyn Store) {
    let fresh = fresh_tenant();
    let rest = Tenant::MAX_LEN - fresh.as_str().len();
    let wide = format!("{}{}{}", fresh.as_str(), "\u{1f4b6}".repeat(rest / 4), "x".repeat(rest % 4));
    let tenant = Tenant::new(wide).expect("a legal tenant");
    let long = "~".repeat(IdempotencyKey::MAX_LEN - 1);
    for last in ["~", "!"] {
        let case = Case::of(store, tenant.clone(), &"o".repeat(255), &format!("{long}{last}"));
        case.claim(LONG).await;
        assert_eq!(case.record().await.scope, case.scope);
    }
}

/// A hash comes back with the form and the version it was taken by.
pub async fn form_and_version_of_the_hash_are_kept(store: &dyn Store) {
    for (form, version) in [(1, 1), (2, 7), (u16::MAX, i32::MAX as u32)] {
        let digest: [u8; 32] = std::array::from_fn(|at| (at as u8).wrapping_mul(37));
        let hash = CommandHash::from_parts(form, version, digest).expect("a legal hash");
        let case = Case::new(store);
        let claim = NewClaim { hash, ..case.new_claim(LONG) };
        assert!(matches!(store.claim(&claim).await, Ok(Claimed::Inserted { .. })));
        assert_eq!(case.record().await.hash, hash);
    }
}

/// "For ever" is a legal span, and no instant of it is lost on the way.
pub async fn a_span_may_be_without_end(store: &dyn Store) {
    let case = Case::new(store);
    let (owner, now) = case.claim(Duration::MAX).await;
    let Status::InProgress { locked_until } = case.record().await.status else { panic!("it is in progress") };
    assert!(now + LONG < locked_until);
    assert_eq!(beat(store, vec![(owner, Duration::MAX)]).await, [true]);
}

/// A store that counts in milliseconds, or finer, cuts what is left over: no span gets longer by being kept, and none
/// shorter by a whole millisecond. Guards still find what they saw.
pub async fn a_part_of_a_tick_is_cut(store: &dyn Store) {
    let is_cut = |kept: SystemTime, exact: SystemTime| {
        let lacks = exact.duration_since(kept).expect("nothing gets longer");
        assert!(lacks < Duration::from_millis(1), "{lacks:?} are missing");
    };
    for nanos in [1, 999, 1_001, 999_999, 1_234_567, 999_999_999] {
        let odd = LONG + Duration::from_nanos(nanos);
        let case = Case::new(store);
        let (owner, now) = case.claim(odd).await;
        let Status::InProgress { locked_until } = case.record().await.status else { panic!("it is in progress") };
        is_cut(locked_until, now + odd);
        let now = case.step(&owner, Step { lease: odd, ..case.announce("charge") }).await;
        let Status::InProgress { locked_until } = case.record().await.status else { panic!("it is in progress") };
        is_cut(locked_until, now + odd);
        let keep = Keep { window: odd, body: odd - LONG, metadata: odd };
        let retry_in = Duration::from_nanos(nanos % 1_000_000);
        let now = case.finish(&owner, End::FailedRetryable { retry_in, keep }).await;
        let Status::FailedRetryable { next_attempt_at, expires_at, purge_at, .. } = case.record().await.status else {
            panic!("it failed")
        };
        is_cut(next_attempt_at, now + retry_in);
        is_cut(expires_at, now + odd);
        is_cut(purge_at, now + odd + odd);
        case.time_comes().await;
        let owner = case.take_over().await;
        let now = case.finish(&owner, End::Completed { response: answer("{}"), keep }).await;
        let Status::Completed(kept) = case.record().await.status else { panic!("it is completed") };
        assert_eq!(kept.at, now);
        is_cut(kept.expires_at, now + odd);
        is_cut(kept.body_until, now + (odd - LONG));
        is_cut(kept.purge_at, now + odd + odd);
    }
}

/// What a write answered as its time is what the record shows: nothing is rounded in between.
pub async fn times_read_back_as_they_were_answered(store: &dyn Store) {
    for number in 0..8 {
        let scope = Scope::new(fresh_tenant(), "create_payment", format!("key-{number}").parse().expect("a legal key"));
        let case = Case { store, scope };
        let lease = Duration::from_millis(60_001 + number);
        let claim = NewClaim { owner: OwnerToken::random(), ..case.new_claim(lease) };
        let Ok(Claimed::Inserted { now }) = store.claim(&claim).await else { panic!("it is a first claim") };
        let record = case.record().await;
        assert_eq!(record.created_at, now);
        assert_eq!(record.status, Status::InProgress { locked_until: now + lease });
    }
}
