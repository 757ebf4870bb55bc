//! Two calls in one command.

use serde_json::json;

use super::Error;
use super::client::{Client, FAILED};
use super::report::Scene;
use crate::provider::{Fault, Trouble};

/// The answer to the second call is lost. The retry makes that one again, under its key; the first one's outcome is
/// stored, and it is not sent to the provider a second time.
pub(super) async fn second_call_unknown(client: &Client) -> Result<Scene, Error> {
    let body = json!({
        "from_account_id": "transfer/from", "to_account_id": "transfer/to", "amount": "10.00", "currency": "EUR",
    });
    client.next_charge(Trouble { after: 1, ..Trouble::of(Fault::LostAnswer) }).await?;
    let first = client.post("/transfers", "acme", "transfer", body.to_string()).await?;
    let mut got = vec![first, client.settled_at("/transfers", "transfer", body.to_string()).await?];
    for made in client.charges("transfer").await? {
        let (call, _) = made.key.split_once('_').unwrap_or_default();
        got.push(format!("{call}: sent {}", if made.asked == 1 { "once" } else { "twice" }));
    }
    let expected = vec![FAILED, "201", "debit: sent once", "credit: sent twice"];
    client.scene("transfer", "two calls, and the second one's answer was lost", got, expected, 2).await
}
