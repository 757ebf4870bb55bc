//! Every kind of second request, over real HTTP, and what it got.

use std::fmt;
use std::process::ExitCode;
use std::time::Duration;

use comfy_table::{ContentArrangement, Table, presets};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::provider::{Fault, Trouble};
use crate::service::Service;

type Error = Box<dyn std::error::Error>;

/// Runs the demo on a service of its own, which leaves nothing behind.
///
/// # Errors
/// Whatever keeps a request from being sent; what a request got is in the report.
pub async fn run() -> Result<Report, Error> {
    let folder = tempfile::tempdir()?;
    let report = play(Service::start(FREE_PORT.into(), folder.path()).await?).await?;
    folder.close()?;
    Ok(report)
}

/// Sends every kind of second request, and ends the service.
async fn play(service: Service) -> Result<Report, Error> {
    let client = Client { http: reqwest::Client::new(), service };
    let scenes = vec![
        client.replay().await?,
        client.other_spelling().await?,
        client.absent_default().await?,
        client.other_amount().await?,
        client.third_decimal().await?,
        client.fractional_number().await?,
        client.malformed_then_right().await?,
        client.another_tenant().await?,
        client.concurrent_pair().await?,
        client.hang_up().await?,
        client.lost_answer().await?,
        client.unreachable_provider().await?,
        client.declined().await?,
    ];
    client.service.stop(Duration::from_secs(5)).await;
    Ok(Report { scenes })
}

/// What every kind of second request got.
#[derive(Debug)]
pub struct Report {
    scenes: Vec<Scene>,
}

impl Report {
    /// Whether each got what it should.
    pub fn is_right(&self) -> bool {
        self.scenes.iter().all(Scene::is_right)
    }

    /// What a program that shows the report ends with.
    pub fn exit_code(&self) -> ExitCode {
        if self.is_right() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = Table::new();
        table.load_style(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_header(["second request", "what each got", "charges", ""]);
        for scene in &self.scenes {
            let verdict = match scene.is_right() {
                true => "right".to_owned(),
                false => format!("WRONG, expected:\n{}\n{} charges", scene.expected.join("\n"), scene.expected_charges),
            };
            table.add_row([scene.what, &scene.got.join("\n"), &scene.charges.to_string(), &verdict]);
        }
        let kinds = self.scenes.len();
        match self.scenes.iter().filter(|scene| !scene.is_right()).count() {
            0 => write!(f, "{table}\n{kinds} kinds of second request, each got what it should."),
            wrong => {
                write!(f, "{table}\n{wrong} of {kinds} kinds of second request got something else than they should.")
            }
        }
    }
}

/// One kind of second request: what each of its requests got, and what the provider charged for all of them.
#[derive(Debug)]
struct Scene {
    what: &'static str,
    got: Vec<String>,
    expected: Vec<&'static str>,
    charges: usize,
    expected_charges: usize,
}

impl Scene {
    fn is_right(&self) -> bool {
        self.got == self.expected && self.charges == self.expected_charges
    }
}

struct Client {
    http: reqwest::Client,
    service: Service,
}

/// Whichever port is free.
const FREE_PORT: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

/// How long the slow charges take: long enough that a second request certainly comes in between.
const SLOW: u64 = 400;

const MISMATCH: &str = "409 IDEMPOTENCY_KEY_REUSED_WITH_DIFFERENT_REQUEST";
const IN_PROGRESS: &str = "409 IDEMPOTENCY_REQUEST_IN_PROGRESS";
const RETRY_LATER: &str = "503 IDEMPOTENCY_RETRY_LATER";

/// Every scene has a name, which is its idempotency key and, so that its charges can be counted, its account.
impl Client {
    async fn replay(&self) -> Result<Scene, Error> {
        let got = self.pay_each("replay", [payment("replay", "10.00"), payment("replay", "10.00")]).await?;
        self.scene("replay", "the same command again", got, vec!["201", "201 replayed"], 1).await
    }

    async fn other_spelling(&self) -> Result<Scene, Error> {
        let other = r#" { "merchant_reference" : "order-1041",
            "currency":"eur", "amount": 10, "account_id":"spelling" } "#;
        let got = self.pay_each("spelling", [payment("spelling", "10.00"), other.to_owned()]).await?;
        self.scene("spelling", "members in another order, blanks, eur, 10", got, vec!["201", "201 replayed"], 1).await
    }

    async fn absent_default(&self) -> Result<Scene, Error> {
        let with = |channel: Value| {
            let mut body: Value = serde_json::from_str(&payment("default", "10.00")).unwrap_or_default();
            body["channel"] = channel;
            body.to_string()
        };
        let bodies = [payment("default", "10.00"), with(Value::Null), with(json!("web")), with(json!("mobile"))];
        let got = self.pay_each("default", bodies).await?;
        let expected = vec!["201", "201 replayed", "201 replayed", MISMATCH];
        self.scene("default", "channel absent, null, web; then mobile", got, expected, 1).await
    }

    async fn other_amount(&self) -> Result<Scene, Error> {
        let got = self.pay_each("amount", [payment("amount", "10.00"), payment("amount", "99.00")]).await?;
        self.scene("amount", "another amount under the key", got, vec!["201", MISMATCH], 1).await
    }

    async fn third_decimal(&self) -> Result<Scene, Error> {
        let got = self.pay_each("third", [payment("third", "10.00"), payment("third", "10.005")]).await?;
        self.scene("third", "10.005 after 10.00: nothing is rounded", got, vec!["201", MISMATCH], 1).await
    }

    async fn fractional_number(&self) -> Result<Scene, Error> {
        let number = payment("fraction", "10.25").replace("\"10.25\"", "10.25");
        let got = self.pay_each("fraction", [number, payment("fraction", "10.25")]).await?;
        let expected = vec!["422 IDEMPOTENCY_REQUEST_INVALID", "201"];
        self.scene("fraction", "10.25 as a JSON number, then as text", got, expected, 1).await
    }

    async fn malformed_then_right(&self) -> Result<Scene, Error> {
        let broken = r#"{"account_id":"#.to_owned();
        let got = self.pay_each("malformed", [broken, payment("malformed", "10.00")]).await?;
        let expected = vec!["400 IDEMPOTENCY_REQUEST_INVALID", "201"];
        self.scene("malformed", "broken JSON, then the right body", got, expected, 1).await
    }

    async fn another_tenant(&self) -> Result<Scene, Error> {
        let body = || payment("tenant", "10.00");
        let got = vec![self.pay("acme", "tenant", body()).await?, self.pay("globex", "tenant", body()).await?];
        self.scene("tenant", "another tenant, the same key", got, vec!["201", "201"], 2).await
    }

    async fn concurrent_pair(&self) -> Result<Scene, Error> {
        self.next_charge(SLOW, None);
        let first = self.pay("acme", "pair", payment("pair", "10.00"));
        let second = async {
            self.charge_is_under_way().await;
            self.pay("acme", "pair", payment("pair", "10.00")).await
        };
        let (first, second) = tokio::join!(first, second);
        let got = vec![first?, second?, self.pay("acme", "pair", payment("pair", "10.00")).await?];
        self.scene("pair", "two at once, then a third", got, vec!["201", IN_PROGRESS, "201 replayed"], 1).await
    }

    async fn hang_up(&self) -> Result<Scene, Error> {
        self.next_charge(SLOW, None);
        let body = payment("hang-up", "10.00");
        let request = format!(
            "POST /payments HTTP/1.1\r\nHost: demo\r\nAuthorization: Bearer acme-test-key\r\nIdempotency-Key: hang-up\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut socket = TcpStream::connect(self.service.address()).await?;
        socket.write_all(request.as_bytes()).await?;
        self.charge_is_under_way().await;
        drop(socket);
        let got = vec!["hung up".to_owned(), self.settled("hang-up").await?];
        self.scene("hang-up", "hang-up in the middle, then a retry", got, vec!["hung up", "201 replayed"], 1).await
    }

    async fn lost_answer(&self) -> Result<Scene, Error> {
        self.next_charge(0, Some(Fault::LostAnswer));
        let first = self.pay("acme", "lost", payment("lost", "10.00")).await?;
        let got = vec![first, self.settled("lost").await?];
        let expected = vec!["503 IDEMPOTENCY_WORK_FAILED", "201"];
        self.scene("lost", "charged, but the provider's answer was lost", got, expected, 1).await
    }

    async fn unreachable_provider(&self) -> Result<Scene, Error> {
        self.next_charge(0, Some(Fault::Unreachable));
        let first = self.pay("acme", "away", payment("away", "10.00")).await?;
        let got = vec![first, self.settled("away").await?];
        let expected = vec!["503 IDEMPOTENCY_WORK_FAILED", "201"];
        self.scene("away", "the provider could not be reached", got, expected, 1).await
    }

    async fn declined(&self) -> Result<Scene, Error> {
        self.next_charge(0, Some(Fault::Declined));
        let got = self.pay_each("declined", [payment("declined", "10.00"), payment("declined", "10.00")]).await?;
        self.scene("declined", "the card was declined", got, vec!["402", "402 replayed"], 0).await
    }

    async fn pay_each<const N: usize>(&self, key: &str, bodies: [String; N]) -> Result<Vec<String>, Error> {
        let mut got = Vec::new();
        for body in bodies {
            got.push(self.pay("acme", key, body).await?);
        }
        Ok(got)
    }

    /// Sends a payment, and tells in short what it got: `201`, `201 replayed`, `409 IDEMPOTENCY_…`.
    async fn pay(&self, merchant: &str, key: &str, body: String) -> Result<String, Error> {
        let url = format!("http://{}/payments", self.service.address());
        let request = self.http.post(url).bearer_auth(format!("{merchant}-test-key")).header("idempotency-key", key);
        let response = request.header("content-type", "application/json").body(body).send().await?;
        let status = response.status().as_u16();
        let replayed = response.headers().contains_key("idempotency-replayed");
        let body: Value = response.json().await?;
        Ok(match (body["code"].as_str(), replayed) {
            (Some(code), _) => format!("{status} {code}"),
            (None, true) => format!("{status} replayed"),
            (None, false) => status.to_string(),
        })
    }

    /// Does what a client does that is told to wait or to try again: sends the same request until it is settled.
    async fn settled(&self, scene: &str) -> Result<String, Error> {
        for _ in 0..100 {
            let got = self.pay("acme", scene, payment(scene, "10.00")).await?;
            if ![IN_PROGRESS, RETRY_LATER].contains(&got.as_str()) {
                return Ok(got);
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err(format!("the request under the key {scene} was never settled").into())
    }

    fn next_charge(&self, delay_ms: u64, fault: Option<Fault>) {
        self.service.app().provider.prepare(Trouble { delay_ms, fault });
    }

    /// Waits until the slow charge has begun: what comes next comes into the middle of it.
    async fn charge_is_under_way(&self) {
        while self.service.app().provider.is_prepared() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn scene(
        &self,
        scene: &str,
        what: &'static str,
        got: Vec<String>,
        expected: Vec<&'static str>,
        expected_charges: usize,
    ) -> Result<Scene, Error> {
        let charges = self.service.app().provider.charges().await?;
        let charges = charges.iter().filter(|made| made.account == scene).count();
        Ok(Scene { what, got, expected, charges, expected_charges })
    }
}

/// A payment of that amount, as a client writes it.
fn payment(account: &str, amount: &str) -> String {
    json!({ "account_id": account, "amount": amount, "currency": "EUR", "merchant_reference": "order-1041" })
        .to_string()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn scene(got: &[&str], charges: usize) -> Scene {
        let got = got.iter().map(|got| (*got).to_owned()).collect();
        Scene {
            what: "the same command again",
            got,
            expected: vec!["201", "201 replayed"],
            charges,
            expected_charges: 1,
        }
    }

    #[test]
    fn a_scene_that_got_something_else_makes_the_demo_fail() {
        let right = || scene(&["201", "201 replayed"], 1);
        let of = |scenes: Vec<Scene>| Report { scenes };
        assert!(of(vec![right(), right()]).is_right());
        for wrong in [
            scene(&["201", "201"], 1),
            scene(&["201"], 1),
            scene(&["201 replayed", "201"], 1),
            scene(&["201", "201 replayed"], 2),
            scene(&["201", "201 replayed"], 0),
        ] {
            let report = of(vec![right(), wrong, right()]);
            assert!(!report.is_right(), "{report}");
            assert!(
                report.to_string().ends_with("1 of 3 kinds of second request got something else than they should.")
            );
            assert_eq!(format!("{:?}", report.exit_code()), format!("{:?}", ExitCode::FAILURE));
        }
        assert_eq!(format!("{:?}", of(vec![right()]).exit_code()), format!("{:?}", ExitCode::SUCCESS));
        assert_ne!(format!("{:?}", ExitCode::SUCCESS), format!("{:?}", ExitCode::FAILURE));
    }

    #[tokio::test]
    async fn a_demo_frees_its_port() -> Result<(), Error> {
        let folder = tempfile::tempdir()?;
        let service = Service::start(FREE_PORT.into(), folder.path()).await?;
        let address = service.address();
        assert!(TcpListener::bind(address).is_err(), "the service listens");
        let report = play(service).await?;
        assert!(report.is_right(), "{report}");
        TcpListener::bind(address)?;
        Ok(())
    }
}
