//! A client of one service, over HTTP.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use idem_sqlx::webhook::Secret;
use serde::Serialize;
use serde_json::{Value, json};

use super::Error;
use super::report::Scene;
use crate::api::provider::{Notice, SIGNATURE};
use crate::ledger::Payment;
use crate::office::Heard;
use crate::provider::{Made, Trouble};

pub(super) struct Client {
    http: reqwest::Client,
    address: SocketAddr,
}

pub(super) const MISMATCH: &str = "409 IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_REQUEST";
pub(super) const IN_PROGRESS: &str = "409 IDEMPOTENCY_REQUEST_IN_PROGRESS";
pub(super) const FAILED: &str = "503 IDEMPOTENCY_WORK_FAILED";
pub(super) const UNKNOWN: &str = "503 IDEMPOTENCY_OUTCOME_UNKNOWN";
pub(super) const UNRESOLVED: &str = "409 IDEMPOTENCY_OUTCOME_UNRESOLVED";

/// Every scene has a name, which is its idempotency key and, so that its charges can be counted, its account.
impl Client {
    pub(super) fn of(address: SocketAddr) -> Self {
        Self { http: reqwest::Client::new(), address }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a payment, and tells in short what it got: `201`, `201 replayed`, `409 IDEMPOTENCY_…`.
    pub(super) async fn pay(&self, merchant: &str, key: &str, body: String) -> Result<String, Error> {
        self.post("/payments", merchant, key, body).await
    }

    /// Sends one payment after the other under a key.
    pub(super) async fn pay_each<const N: usize>(&self, key: &str, bodies: [String; N]) -> Result<Vec<String>, Error> {
        let mut got = Vec::new();
        for body in bodies {
            got.push(self.pay("acme", key, body).await?);
        }
        Ok(got)
    }

    pub(super) async fn post(&self, path: &str, merchant: &str, key: &str, body: String) -> Result<String, Error> {
        let request = self.http.post(self.url(path)).bearer_auth(format!("{merchant}-test-key"));
        let request = request.header("idempotency-key", key).header("content-type", "application/json");
        let response = request.body(body).send().await?;
        let status = response.status().as_u16();
        let replayed = response.headers().contains_key("idempotency-replayed");
        let body: Value = response.json().await?;
        Ok(match (body["code"].as_str(), replayed) {
            (Some(code), _) => format!("{status} {code}"),
            (None, true) => format!("{status} replayed"),
            (None, false) => status.to_string(),
        })
    }

    /// Does what a client does that is told to wait or to try again: sends the same payment until it is settled.
    pub(super) async fn settled(&self, scene: &str) -> Result<String, Error> {
        self.settled_at("/payments", scene, payment(scene, "10.00")).await
    }

    pub(super) async fn settled_at(&self, path: &str, key: &str, body: String) -> Result<String, Error> {
        for _ in 0..PATIENCE {
            let got = self.post(path, "acme", key, body.clone()).await?;
            if !COME_AGAIN.contains(&got.as_str()) {
                return Ok(got);
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(format!("the request under the key {key} was never settled").into())
    }

    /// Looks at what became of the scene's payment, without sending it again, until it is paid.
    pub(super) async fn paid(&self, scene: &str) -> Result<Payment, Error> {
        for _ in 0..PATIENCE {
            let request = self.http.get(self.url("/payments")).bearer_auth("acme-test-key");
            let payments: Vec<Payment> = request.send().await?.error_for_status()?.json().await?;
            let paid = payments.into_iter().find(|payment| payment.account_id == scene && payment.state == "paid");
            if let Some(payment) = paid {
                return Ok(payment);
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(format!("the payment of the account {scene} was never paid").into())
    }

    /// Waits until others are done with what they were told of a payment, and looks at what that came to.
    pub(super) async fn heard(&self, payment: &str) -> Result<Heard, Error> {
        for _ in 0..PATIENCE {
            let request = self.http.get(self.url(&format!("/payments/{payment}/events")));
            let heard: Heard = request.send().await?.error_for_status()?.json().await?;
            if heard.deliveries >= 3 {
                return Ok(heard);
            }
            tokio::time::sleep(PAUSE).await;
        }
        Err(format!("nobody has heard of the payment {payment}").into())
    }

    /// A charge to come meets this.
    pub(super) async fn next_charge(&self, trouble: Trouble) -> Result<(), Error> {
        self.put("/provider/next", &trouble).await
    }

    /// Waits until the slow charge has begun: what comes next comes into the middle of it.
    pub(super) async fn charge_is_under_way(&self) -> Result<(), Error> {
        while self.http.get(self.url("/provider/next")).send().await?.error_for_status()?.json().await? {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    pub(super) async fn put(&self, path: &str, body: &impl Serialize) -> Result<(), Error> {
        self.http.put(self.url(path)).json(body).send().await?.error_for_status()?;
        Ok(())
    }

    /// Sends what the provider sends of itself; the answer's status.
    pub(super) async fn notify(&self, secret: &str, signed_at: SystemTime, notice: &Notice) -> Result<String, Error> {
        let body = serde_json::to_vec(notice)?;
        let signature = Secret::new(secret)?.sign(signed_at, &body);
        let request = self.http.post(self.url("/provider/webhook")).header(SIGNATURE, signature).body(body);
        Ok(request.send().await?.status().as_u16().to_string())
    }

    /// What the provider has charged in a scene: to the account of its name, or to one below it.
    pub(super) async fn charges(&self, scene: &str) -> Result<Vec<Made>, Error> {
        let charges = self.http.get(self.url("/provider/charges")).send().await?.error_for_status()?;
        let mut charges: Vec<Made> = charges.json().await?;
        charges.retain(|made| made.account == scene || made.account.starts_with(&format!("{scene}/")));
        Ok(charges)
    }

    /// What a scene came to.
    pub(super) async fn scene(
        &self,
        scene: &str,
        what: &'static str,
        got: Vec<String>,
        expected: Vec<&'static str>,
        expected_charges: usize,
    ) -> Result<Scene, Error> {
        let charges = self.charges(scene).await?.len();
        Ok(Scene { what, got, expected, charges, expected_charges })
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// A payment of that amount, as a client writes it.
pub(super) fn payment(account: &str, amount: &str) -> String {
    json!({ "account_id": account, "amount": amount, "currency": "EUR", "merchant_reference": "order-1041" })
        .to_string()
}

/// What a client is told that may send the same request again.
const COME_AGAIN: [&str; 5] =
    [IN_PROGRESS, FAILED, UNKNOWN, "503 IDEMPOTENCY_RETRY_LATER", "409 IDEMPOTENCY_OUTCOME_UNKNOWN"];

/// Half a minute, for a machine that is busy with other things.
const PATIENCE: u32 = 600;

const PAUSE: Duration = Duration::from_millis(50);
