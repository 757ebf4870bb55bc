//! Webhooks: known by their ids, and by when they were signed.

use std::time::{Duration, SystemTime};

use idem_core::store::{Claimed, Claiming, Evidence, NewCall, NewClaim, Owning, Recovering, Step};
use idem_core::{
    CallClass, CallState, CommandHash, DownstreamKey, Fence, OwnerToken, Ownership, Scope, StoreError, Tenant,
};
use idem_sqlx::inbox::{self, Marked, Seen};
use idem_sqlx::webhook::{self, Endpoint, InvalidEndpoint, Secret, SignedAt, WebhookError};

use super::{Place, Tx};

const TOLERANCE: Duration = Duration::from_secs(300);
const MOMENT: Duration = Duration::from_secs(30);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn endpoint() -> Endpoint {
    Endpoint::new("provider", TOLERANCE, DAY).unwrap()
}

/// As a provider signs it, and as a handler verifies it.
fn signed(at: SystemTime) -> SignedAt {
    let (secret, body) = (Secret::new("whsec_1").unwrap(), br#"{"id":"evt_1"}"#);
    secret.verify(&secret.sign(at, body), body).unwrap()
}

async fn deliver<P: Place>(place: &P, endpoint: &Endpoint, at: SignedAt) -> Result<Seen<()>, WebhookError> {
    let work = |mut tx: Marked<'static, P::Db>| async move {
        P::insert(&mut tx, "settled").await?;
        Ok((tx, ()))
    };
    webhook::once(place.begin().await, endpoint, "evt_1", at, work).await
}

/// Also under the new signature with which a provider sends it again.
pub(super) async fn a_webhook_has_one_effect<P: Place>() {
    let place = P::fresh().await;
    let now = SystemTime::now();
    for (at, seen) in
        [(now, Seen::First(())), (now, Seen::Again), (now - MOMENT, Seen::Again), (now + MOMENT, Seen::Again)]
    {
        assert_eq!(deliver(&place, &endpoint(), signed(at)).await.unwrap(), seen);
    }
    assert_eq!(place.rows().await, ["settled"]);
}

/// Not only what was signed just now: nearly to its ends, which a slow machine does not reach.
pub(super) async fn the_window_is_as_wide_as_its_tolerance<P: Place>() {
    let place = P::fresh().await;
    for at in [SystemTime::now() - (TOLERANCE - MOMENT), SystemTime::now() + (TOLERANCE - MOMENT)] {
        assert_eq!(deliver(&place, &endpoint(), signed(at)).await.unwrap(), Seen::First(()));
        place.run(format!("DELETE FROM {}idempotency_inbox", P::SCHEMA)).await;
        place.run("DELETE FROM rows".to_owned()).await;
    }
}

/// Somebody has kept it. It leaves no mark either: the provider's own next try is taken.
pub(super) async fn an_old_webhook_has_none<P: Place>() {
    let place = P::fresh().await;
    let old = SystemTime::now() - TOLERANCE - MOMENT;
    for at in [old, SystemTime::UNIX_EPOCH] {
        let refused = deliver(&place, &endpoint(), signed(at)).await.unwrap_err();
        assert!(matches!(refused, WebhookError::TooOld { age, .. } if age > TOLERANCE), "{refused}");
    }
    assert_eq!((place.rows().await.len(), place.count("inbox").await), (0, 0));
    assert_eq!(deliver(&place, &endpoint(), signed(SystemTime::now())).await.unwrap(), Seen::First(()));
    assert_eq!(deliver(&place, &endpoint(), signed(old)).await.unwrap_err().code(), "WEBHOOK_TOO_OLD");
}

pub(super) async fn a_webhook_from_the_future_has_none<P: Place>() {
    let place = P::fresh().await;
    let at = SystemTime::now() + TOLERANCE + MOMENT;
    let refused = deliver(&place, &endpoint(), signed(at)).await.unwrap_err();
    assert_eq!((refused.code(), place.count("inbox").await), ("WEBHOOK_TOO_NEW", 0), "{refused}");
}

/// An endpoint that forgets sooner cannot be made; one that can keeps the id of the last moment it takes a delivery at,
/// were it signed by a clock as far ahead as may be.
pub(super) async fn an_id_is_kept_for_as_long_as_its_webhook_is_taken<P: Place>() {
    for keep in [Duration::ZERO, TOLERANCE, TOLERANCE * 2 - Duration::from_nanos(1)] {
        let refused = Endpoint::new("provider", TOLERANCE, keep).unwrap_err();
        assert!(matches!(refused, InvalidEndpoint::ForgetsTooSoon { .. }), "{refused}");
    }
    let place = P::fresh().await;
    let shortest = Endpoint::new("provider", TOLERANCE, TOLERANCE * 2).unwrap();
    let ahead = SystemTime::now() + TOLERANCE - MOMENT;
    assert_eq!(deliver(&place, &shortest, SignedAt::verified_elsewhere(ahead)).await.unwrap(), Seen::First(()));
    let seconds = ahead.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let kept_until = match P::SCHEMA {
        "" => format!("SELECT purge_at / 1000 FROM {}idempotency_inbox", P::SCHEMA),
        schema => format!("SELECT extract(epoch FROM purge_at)::bigint FROM {schema}idempotency_inbox"),
    };
    assert!(place.number(kept_until).await.unsigned_abs() >= seconds + TOLERANCE.as_secs());
}

/// However long it was kept by whoever sends it: where its mark may be gone, its time is over.
pub(super) async fn a_replay_after_the_clean_up_is_refused_by_its_age<P: Place>() {
    let place = P::fresh().await;
    let shortest = Endpoint::new("provider", TOLERANCE, TOLERANCE * 2).unwrap();
    assert_eq!(deliver(&place, &shortest, signed(SystemTime::now())).await.unwrap(), Seen::First(()));
    // Time goes by: what was signed just now is as old as the mark allows.
    place.run(format!("UPDATE {}idempotency_inbox SET purge_at = {}", P::SCHEMA, P::PAST)).await;
    assert_eq!(inbox::clean_once(place.store(), 100).await.unwrap(), 1);
    let replayed = signed(SystemTime::now() - TOLERANCE * 2);
    assert_eq!(deliver(&place, &shortest, replayed).await.unwrap_err().code(), "WEBHOOK_TOO_OLD");
    assert_eq!(place.rows().await, ["settled"]);
}

/// A store that learns in a transaction of the application's.
pub(super) trait Learns: Place {
    async fn evidence_in(&self, tx: &mut Tx<Self>, evidence: &Evidence) -> Result<bool, StoreError>;
}

pub(super) async fn evidence_is_kept_with_its_mark<P: Learns>() {
    let place = P::fresh().await;
    let scope = Scope::new(Tenant::new("acme").unwrap(), "pay", "order-1".parse().unwrap());
    let hash = CommandHash::from_parts(1, 1, [7; 32]).unwrap();
    let claim = NewClaim { scope: scope.clone(), hash, owner: OwnerToken::random(), lease: DAY };
    assert!(matches!(place.store().claim(&claim).await.unwrap(), Claimed::Inserted { .. }));
    let key = DownstreamKey::from_stored("charge_1".to_owned());
    let owner = Ownership { scope: scope.clone(), fence: Fence::FIRST, owner: claim.owner };
    let open = NewCall { name: "charge".to_owned(), class: CallClass::Dedupes { retention: DAY }, key: key.clone() };
    let step = Step { closed: Vec::new(), open: Some(open), resource: None, checkpoint: None, lease: DAY };
    place.store().step(&owner, &step).await.unwrap();

    let state = CallState::Applied(b"\"receipt_1\"".to_vec());
    let evidence = Evidence { key, source: "webhook evt_1".to_owned(), state };
    let place = &place;
    for (fails, kept, marks) in [(true, 0, 0), (false, 1, 1), (false, 1, 1)] {
        let evidence = &evidence;
        let learn = |mut tx: Marked<'static, P::Db>| async move {
            assert!(place.evidence_in(&mut tx, evidence).await?);
            if fails { Err("the rows cannot be written".into()) } else { Ok((tx, ())) }
        };
        let at = signed(SystemTime::now());
        let told = webhook::once(place.begin().await, &endpoint(), "evt_1", at, learn).await;
        assert_eq!(told.is_err(), fails);
        let learned = place.store().learned(&scope).await.unwrap();
        assert_eq!((learned.len(), place.count("inbox").await), (kept, marks));
    }
}
