//! Providers that promise less: one that charges again and can be asked, and one that cannot even be asked.

use std::time::{Duration, SystemTime};

use idem_core::operator::Resolution;
use idem_core::{IdempotencyKey, IdempotentCommand, Scope, Tenant};

use super::Error;
use super::client::{Client, UNKNOWN, UNRESOLVED, payment};
use super::report::Scene;
use super::stage::{Shop, Stage};
use crate::api::provider::{Notice, SECRET};
use crate::payment::CreatePayment;
use crate::provider::{Charge, Fault, Kind, Trouble};
use crate::setup::Setup;

/// "I do not know it" is no proof before the quiescence is over: here the request arrives right after it was said.
pub(super) async fn overtaken_question(stage: &Stage) -> Result<Scene, Error> {
    let setup = Setup { time_out: Duration::from_millis(500), ..brisk(Kind::QueryOnly) };
    let shop = stage.shop("overtaken", &setup).await?;
    let Shop { client, .. } = &shop;
    let got = vec![fail(client, "overtaken", Fault::Overtaken).await?, client.settled("overtaken").await?];
    let what = "can only be asked: it arrives after \"I do not know it\"";
    let scene = client.scene("overtaken", what, got, vec![UNKNOWN, "201 replayed"], 1).await?;
    shop.close().await;
    Ok(scene)
}

/// After the quiescence it is proof: the charge never came, and is made.
pub(super) async fn lost_request(stage: &Stage) -> Result<Scene, Error> {
    let setup = Setup { quiescence: Duration::from_secs(1), ..brisk(Kind::QueryOnly) };
    let shop = stage.shop("never", &setup).await?;
    let Shop { client, .. } = &shop;
    let got = vec![fail(client, "never", Fault::LostRequest).await?, client.settled("never").await?];
    let what = "can only be asked: it never arrived, made again after the quiescence";
    let scene = client.scene("never", what, got, vec![UNKNOWN, "201"], 1).await?;
    shop.close().await;
    Ok(scene)
}

/// Questions get no answer either; the provider speaks by itself.
pub(super) async fn webhook(stage: &Stage) -> Result<Scene, Error> {
    let shop = stage.shop("webhook", &brisk(Kind::QueryOnly)).await?;
    let Shop { client, .. } = &shop;
    client.put("/provider/silence", &true).await?;
    let mut got = vec![fail(client, "webhook", Fault::LostAnswer).await?];
    let made = client.charges("webhook").await?.pop().ok_or("nothing was charged")?;
    let notice = Notice { event: "evt_1".to_owned(), key: made.key.clone(), charge: Charge::from(made) };
    // The event is known again by its id; what is said of nobody is not, and may come to be known.
    let stray = Notice { key: "charge_of_nobody".to_owned(), ..notice.clone() };
    let (now, yesterday) = (SystemTime::now(), SystemTime::now() - Duration::from_secs(24 * 60 * 60));
    got.push(format!("a stranger's webhook: {}", client.notify("guessed", now, &notice).await?));
    got.push(format!("yesterday's, kept and sent again: {}", client.notify(SECRET, yesterday, &notice).await?));
    for _ in 0..2 {
        got.push(format!("about a charge that nobody knows: {}", client.notify(SECRET, now, &stray).await?));
    }
    for _ in 0..2 {
        got.push(format!("the provider's webhook: {}", client.notify(SECRET, now, &notice).await?));
    }
    let booked = client.paid("webhook").await?.booked;
    got.push(format!("{} in the ledger", booked.as_deref().unwrap_or("nothing")));
    got.push(client.pay("acme", "webhook", payment("webhook", "10.00")).await?);
    let expected = vec![
        UNKNOWN,
        "a stranger's webhook: 401",
        "yesterday's, kept and sent again: 400",
        "about a charge that nobody knows: 404",
        "about a charge that nobody knows: 404",
        "the provider's webhook: 204",
        "the provider's webhook: 204",
        "10.00 in the ledger",
        "201 replayed",
    ];
    let scene = client.scene("webhook", "nobody knows; a webhook tells", got, expected, 1).await?;
    shop.close().await;
    Ok(scene)
}

/// Nobody can be asked. A person looks at the provider's statement, and says what it shows.
pub(super) async fn operator(stage: &Stage) -> Result<Scene, Error> {
    let shop = stage.shop("statement", &brisk(Kind::Neither)).await?;
    let Shop { client, service } = &shop;
    let mut got = vec![fail(client, "statement", Fault::LostAnswer).await?, client.settled("statement").await?];
    let made = client.charges("statement").await?.pop().ok_or("nothing was charged")?;
    let scope = Scope::new(Tenant::new("acme")?, CreatePayment::OPERATION, "statement".parse::<IdempotencyKey>()?);
    let charged = Resolution::resume().applied("charge", &Charge::from(made))?;
    service.app().idem.engine().resolve(&scope, &charged, "ada", "on the provider's statement").await?;
    got.push("ada: it was charged".to_owned());
    got.push(client.settled("statement").await?);
    let expected = vec![UNKNOWN, UNRESOLVED, "ada: it was charged", "201"];
    let what = "neither dedupes nor can be asked: a person resolves it";
    let scene = client.scene("statement", what, got, expected, 1).await?;
    shop.close().await;
    Ok(scene)
}

async fn fail(client: &Client, scene: &str, fault: Fault) -> Result<String, Error> {
    client.next_charge(Trouble::of(fault)).await?;
    client.pay("acme", scene, payment(scene, "10.00")).await
}

/// Recovery that can be watched.
fn brisk(provider: Kind) -> Setup {
    let moment = Duration::from_millis(50);
    Setup { provider, grace: moment, look_every: moment, backoff: moment, ..Setup::default() }
}
