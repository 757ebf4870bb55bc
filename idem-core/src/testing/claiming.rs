//! T1: one record for each scope, inserted once.

use std::time::Duration;

use crate::hash::CommandHash;
use crate::key::{IdempotencyKey, Scope, Tenant};
use crate::record::{Fence, OwnerToken, Revision, Status};
use crate::store::{Claimed, NewClaim, Store};
use crate::testing::{Case, LONG, at_once, beat, completed, fresh_tenant, hash};

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
