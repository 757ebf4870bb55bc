//! The names of what goes wrong.

use std::time::Duration;

use idem_sqlx::inbox::{Consumer, OnceError};
use idem_sqlx::outbox::{AppendError, ByHandError, PublishError};
use idem_sqlx::webhook::{Endpoint, Secret, WebhookError};

#[test]
fn the_documentation_has_every_code() {
    let page = include_str!("../../../docs/consumers.md");
    let moment = Duration::from_secs(1);
    let secret = Secret::new("whsec_1").unwrap();
    let codes = [
        Consumer::new("").unwrap_err().code(),
        AppendError::OtherEvent(String::new()).code(),
        PublishError::retry("").code(),
        PublishError::refused("").code(),
        ByHandError::Unexplained("").code(),
        ByHandError::NotDead(String::new()).code(),
        OnceError::Work("".into()).code(),
        OnceError::Unknown(idem_sqlx::Error::Closed).code(),
        WebhookError::TooOld { age: moment, tolerance: moment }.code(),
        WebhookError::TooNew { ahead: moment, tolerance: moment }.code(),
        Endpoint::new("provider", moment, moment).unwrap_err().code(),
        Secret::new("").unwrap_err().code(),
        secret.verify("", b"").unwrap_err().code(),
        secret.verify("t=1", b"").unwrap_err().code(),
    ];
    for code in codes {
        assert!(page.contains(&format!("`{code}`")), "{code} is not in the page");
    }
}
