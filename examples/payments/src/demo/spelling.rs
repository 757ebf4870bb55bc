//! One command, however it is spelled.

use serde_json::{Value, json};

use super::Error;
use super::client::{Client, MISMATCH, payment};
use super::report::Scene;

pub(super) async fn replay(client: &Client) -> Result<Scene, Error> {
    let got = client.pay_each("replay", [payment("replay", "10.00"), payment("replay", "10.00")]).await?;
    client.scene("replay", "the same command again", got, vec!["201", "201 replayed"], 1).await
}

pub(super) async fn other_spelling(client: &Client) -> Result<Scene, Error> {
    let other = r#" { "merchant_reference" : "order-1041",
        "currency":"eur", "amount": 10, "account_id":"spelling" } "#;
    let got = client.pay_each("spelling", [payment("spelling", "10.00"), other.to_owned()]).await?;
    client.scene("spelling", "members in another order, blanks, eur, 10", got, vec!["201", "201 replayed"], 1).await
}

pub(super) async fn absent_default(client: &Client) -> Result<Scene, Error> {
    let with = |channel: Value| {
        let mut body: Value = serde_json::from_str(&payment("default", "10.00")).unwrap_or_default();
        body["channel"] = channel;
        body.to_string()
    };
    let bodies = [payment("default", "10.00"), with(Value::Null), with(json!("web")), with(json!("mobile"))];
    let got = client.pay_each("default", bodies).await?;
    let expected = vec!["201", "201 replayed", "201 replayed", MISMATCH];
    client.scene("default", "channel absent, null, web; then mobile", got, expected, 1).await
}
