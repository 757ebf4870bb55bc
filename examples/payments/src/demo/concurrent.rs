//! A second request while the first one runs.

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::Error;
use super::client::{Client, IN_PROGRESS, payment};
use super::report::Scene;
use crate::provider::Trouble;

pub(super) async fn concurrent_pair(client: &Client) -> Result<Scene, Error> {
    client.next_charge(slow()).await?;
    let first = client.pay("acme", "pair", payment("pair", "10.00"));
    let second = async {
        client.charge_is_under_way().await?;
        client.pay("acme", "pair", payment("pair", "10.00")).await
    };
    let (first, second) = tokio::join!(first, second);
    let got = vec![first?, second?, client.pay("acme", "pair", payment("pair", "10.00")).await?];
    client.scene("pair", "two at once, then a third", got, vec!["201", IN_PROGRESS, "201 replayed"], 1).await
}

pub(super) async fn hang_up(client: &Client) -> Result<Scene, Error> {
    client.next_charge(slow()).await?;
    let body = payment("hang-up", "10.00");
    let request = format!(
        "POST /payments HTTP/1.1\r\nHost: demo\r\nAuthorization: Bearer acme-test-key\r\nIdempotency-Key: hang-up\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut socket = TcpStream::connect(client.address()).await?;
    socket.write_all(request.as_bytes()).await?;
    client.charge_is_under_way().await?;
    drop(socket);
    let got = vec!["hung up".to_owned(), client.settled("hang-up").await?];
    client.scene("hang-up", "hang-up in the middle, then a retry", got, vec!["hung up", "201 replayed"], 1).await
}

/// Long enough that a second request certainly comes in between.
fn slow() -> Trouble {
    Trouble { delay_ms: 400, ..Trouble::default() }
}
