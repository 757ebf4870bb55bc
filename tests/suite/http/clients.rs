//! The client of `docs/clients.md`, run against a service that makes it hard.

use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use idem_axum::{Failure, MemoryStore, Reply};

use crate::http::bench::{Effects, Server, idem, pay as service, payment};
use crate::http::command::Pay;

// On the page as it stands here.
async fn pay(client: &reqwest::Client, url: &str, key: &str, payment: &serde_json::Value) -> Option<reqwest::Response> {
    for _ in 0..8 {
        let sent = client.post(url).header("idempotency-key", key).json(payment).send().await;
        let seconds = match sent {
            // Nobody knows whether it arrived: the same key, after a pause.
            Err(_) => 1,
            Ok(answer) => {
                let told = answer.headers().get("retry-after").and_then(|wait| wait.to_str().ok()?.parse().ok());
                let kept = answer.headers().contains_key("idempotency-replayed");
                match (told, answer.status().as_u16()) {
                    // Only where waiting helps is it told how long.
                    (Some(seconds), _) => seconds,
                    // Of somebody in between, or of work that may run again: the last word only if it was kept.
                    (None, 408 | 425 | 429 | 500..) if !kept => 1,
                    _ => return Some(answer),
                }
            }
        };
        tokio::time::sleep(std::time::Duration::from_secs(seconds)).await;
    }
    None // not known yet: keep the key, and go on with it later
}

#[tokio::test]
async fn the_client_of_the_page_gets_its_answer_through_a_lost_one_a_failure_and_a_bad_gateway() {
    let (arrived, effects) = (Effects::default(), Effects::default());
    let (arriving, happening) = (arrived.clone(), effects.clone());
    let unkind = from_fn(move |request, next: Next| {
        arriving.happen();
        let nth = arriving.count();
        async move {
            let answer = next.run(request).await;
            assert!(nth != 1, "the connection of the first request breaks after the work");
            if nth == 2 { axum::response::IntoResponse::into_response(StatusCode::BAD_GATEWAY) } else { answer }
        }
    });
    let work = move |_, _| {
        happening.happen();
        let run = happening.count();
        async move { if run == 1 { Err(Failure::retryable("away")) } else { Ok(Reply::status(201).body("paid")) } }
    };
    let server = Server::start(service(idem(MemoryStore::new()).build().unwrap(), work).layer(unkind)).await;
    let url = format!("http://{}/pay", server.address);
    let answer = pay(&reqwest::Client::new(), &url, "k", &payment()).await.unwrap();
    assert_eq!((answer.status().as_u16(), effects.count(), arrived.count()), (201, 2, 3));
    assert_eq!(answer.bytes().await.unwrap(), "paid");
}

/// The page's loop around curl, against a service that makes it hard in the same way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_loop_of_the_page_gets_its_answer_and_keeps_a_refusal() {
    let page = include_str!("../../../docs/clients.md");
    let (_, rest) = page.split_once("```sh\n").unwrap();
    let (script, _) = rest.split_once("```").unwrap();
    let sample = r#"{"account_id":"acc_1","amount":"10.00","currency":"EUR","merchant_reference":"order-1041"}"#;
    for (account, status, runs) in [("acc_1", 201, 2), ("poor", 402, 1)] {
        let (arrived, effects) = (Effects::default(), Effects::default());
        let (arriving, happening) = (arrived.clone(), effects.clone());
        let unkind = from_fn(move |request, next: Next| {
            arriving.happen();
            let first = arriving.count() == 1;
            async move {
                let answer = next.run(request).await;
                assert!(!first, "the connection of the first request breaks after the work");
                answer
            }
        });
        let work = move |payment: Pay, _| {
            happening.happen();
            let run = happening.count();
            async move {
                match payment.account.as_str() {
                    "poor" => Ok(Reply::status(402).body("declined")),
                    _ if run == 1 => Err(Failure::retryable("away")),
                    _ => Ok(Reply::status(201).body("paid")),
                }
            }
        };
        let server = Server::start(service(idem(MemoryStore::new()).build().unwrap(), work).layer(unkind)).await;
        let payment = serde_json::json!({ "account": account, "cents": 1000 }).to_string();
        let script = script.replace("https://api.example.com/payments", &format!("http://{}/pay", server.address));
        let script = script.replace(sample, &payment);
        assert!(script.contains(account), "the page's payment is another: {script}");
        let directory = tempfile::tempdir().unwrap();
        let mut shell = std::process::Command::new("bash");
        shell.args(["-uc", &format!("{script}\necho \" $status\"")]).current_dir(&directory);
        let ran = tokio::task::spawn_blocking(move || shell.output()).await.unwrap().unwrap();
        let told = String::from_utf8(ran.stdout).unwrap();
        let expected = if status == 201 { "paid 201\n" } else { "declined 402\n" };
        assert_eq!((told.as_str(), effects.count()), (expected, runs), "{}", String::from_utf8_lossy(&ran.stderr));
    }
}

/// What the page's client gets of a payment that stands behind `layer` in the first try, how often the work ran, and how
/// often the client came.
async fn got<F>(work: fn() -> F, layer: Option<(u16, When)>) -> (u16, usize, usize)
where
    F: Future<Output = Result<Reply, Failure>> + Send + 'static,
{
    let (arrived, effects) = (Effects::default(), Effects::default());
    let (arriving, happening) = (arrived.clone(), effects.clone());
    let between = from_fn(move |request, next: Next| {
        arriving.happen();
        let layer = layer.filter(|_| arriving.count() == 1);
        async move {
            match layer {
                None => next.run(request).await,
                Some((status, When::Before)) => answer_of_its_own(status),
                Some((status, When::After)) => {
                    next.run(request).await;
                    answer_of_its_own(status)
                }
            }
        }
    });
    let counted = move |_, _| {
        happening.happen();
        work()
    };
    let server = Server::start(service(idem(MemoryStore::new()).build().unwrap(), counted).layer(between)).await;
    let url = format!("http://{}/pay", server.address);
    let answer = pay(&reqwest::Client::new(), &url, "k", &payment()).await.unwrap();
    (answer.status().as_u16(), effects.count(), arrived.count())
}

#[derive(Clone, Copy)]
enum When {
    Before,
    After,
}

fn answer_of_its_own(status: u16) -> axum::response::Response {
    axum::response::IntoResponse::into_response(StatusCode::from_u16(status).unwrap())
}

async fn paid() -> Result<Reply, Failure> {
    Ok(Reply::status(201))
}

#[tokio::test]
async fn a_layers_500_over_a_payment_that_happened_is_not_taken_for_its_end() {
    assert_eq!(got(paid, Some((500, When::After))).await, (201, 1, 2));
}

#[tokio::test]
async fn a_503_and_a_429_from_in_between_that_say_no_time_are_asked_again_with_the_key() {
    for status in [503, 429] {
        assert_eq!(got(paid, Some((status, When::Before))).await, (201, 1, 2), "{status}");
    }
}

#[tokio::test]
async fn a_refusal_and_a_500_that_was_kept_are_the_last_word() {
    assert_eq!(got(|| async { Ok(Reply::status(402)) }, None).await, (402, 1, 1));
    // The first time nothing tells that it is kept; the second time it comes again, marked.
    assert_eq!(got(|| async { Err(Failure::replayable(Reply::status(500))) }, None).await, (500, 1, 2));
}

#[test]
fn the_page_shows_this_client() {
    let (_, here) = include_str!("clients.rs").split_once("stands here.\n").unwrap();
    let function = here.split_once("\n}\n").unwrap().0;
    assert!(include_str!("../../../docs/clients.md").contains(function), "docs/clients.md differs:\n{function}");
}
