//! Signatures of the common kind, `t=1700000000,v1=5257a8…`: [`Secret`].

use std::fmt;
use std::time::{Duration, SystemTime};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::webhook::SignedAt;

/// What an endpoint shares with its provider: HMAC-SHA-256 over the moment, a full stop and the body, in hexadecimal.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// The secret as the provider shows it.
    ///
    /// # Errors
    /// [`EmptySecret`]: a variable that nobody has set is a secret that everybody knows.
    pub fn new(secret: impl AsRef<[u8]>) -> Result<Self, EmptySecret> {
        let secret = secret.as_ref();
        match secret.trim_ascii() {
            [] => Err(EmptySecret),
            _ => Ok(Self(secret.to_owned())),
        }
    }

    /// Verifies that who knows the secret signed these bytes of a body; when, is for [`once`](crate::webhook::once) to
    /// judge. A header may have several signatures `v1`, while a secret is changed: one must be right. Others than `v1` are
    /// passed over.
    ///
    /// ```
    /// use idem_sqlx::webhook::{Secret, SignatureError};
    ///
    /// let secret = Secret::new("whsec_1")?;
    /// let header = secret.sign(std::time::SystemTime::now(), b"{}");
    /// assert!(secret.verify(&header, b"{}").is_ok());
    /// assert_eq!(secret.verify(&header, b"{ }"), Err(SignatureError::Wrong));
    /// # Ok::<(), idem_sqlx::webhook::EmptySecret>(())
    /// ```
    ///
    /// # Errors
    /// [`SignatureError`]; answer 400.
    pub fn verify(&self, header: &str, body: &[u8]) -> Result<SignedAt, SignatureError> {
        let mut at = None;
        let mut signatures = Vec::new();
        for part in header.split(',') {
            match part.trim().split_once('=') {
                // One moment only: of two, the wrong one could be signed.
                Some(("t", text)) if at.is_none() => at = Some(text),
                Some(("v1", signature)) => signatures.push(signature),
                Some((name, _)) if name != "t" => {}
                _ => return Err(SignatureError::Malformed),
            }
        }
        let text = at.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit())).ok_or(SignatureError::Malformed)?;
        let seconds = text.parse().map_err(|_| SignatureError::Malformed)?;
        let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).ok_or(SignatureError::Malformed)?;
        let signatures: Vec<_> =
            signatures.into_iter().filter_map(unhex).filter(|bytes| bytes.len() == LENGTH).collect();
        if signatures.is_empty() {
            return Err(SignatureError::Wrong);
        }
        // Once, however many signatures a stranger sends.
        let mac = self.mac(text, body);
        // In a time that tells nothing of how much of it is right.
        match signatures.iter().any(|signature| mac.clone().verify_slice(signature).is_ok()) {
            true => Ok(SignedAt(at)),
            false => Err(SignatureError::Wrong),
        }
    }

    /// The header of a body signed at that moment, in whole seconds: for tests, and for webhooks of one's own.
    #[must_use]
    pub fn sign(&self, at: SystemTime, body: &[u8]) -> String {
        let seconds = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs().to_string();
        let signature = self.mac(&seconds, body).finalize().into_bytes();
        let signature: String = signature.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("t={seconds},v1={signature}")
    }

    fn mac(&self, at: &str, body: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes a key of any length");
        mac.update(at.as_bytes());
        mac.update(b".");
        mac.update(body);
        mac
    }
}

/// Without the secret.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Secret").finish_non_exhaustive()
    }
}

/// A secret that is none: empty, or white space alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the secret of the webhooks is empty")]
pub struct EmptySecret;

impl EmptySecret {
    /// A stable name for logs and alerts.
    #[must_use]
    pub fn code(self) -> &'static str {
        "WEBHOOK_SECRET_EMPTY"
    }
}

/// Why a signature is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// The header does not read, or lacks its moment.
    #[error("the signature header does not read")]
    Malformed,
    /// Somebody else signed it, or it was changed.
    #[error("no signature of the header is right")]
    Wrong,
}

impl SignatureError {
    /// A stable name for logs and alerts.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Malformed => "WEBHOOK_SIGNATURE_MALFORMED",
            Self::Wrong => "WEBHOOK_SIGNATURE_WRONG",
        }
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pairs = text.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => u8::try_from(digit(*high)? * 16 + digit(*low)?).ok(),
        _ => None,
    });
    pairs.collect()
}

/// Of a signature, in bytes.
const LENGTH: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: &str = "t=1700000000";

    fn secret() -> Secret {
        Secret::new("whsec_test").unwrap()
    }

    /// Anybody can sign with it.
    #[test]
    fn a_secret_that_is_none_is_refused() {
        for empty in ["", " ", "\n", "\t\r\n "] {
            assert_eq!(Secret::new(empty).unwrap_err(), EmptySecret, "{empty:?}");
        }
        assert!(Secret::new(" s ").is_ok() && Secret::new([0]).is_ok());
    }

    /// As another program computes it: `printf '1700000000.{"id":"evt_1"}' | openssl dgst -sha256 -hmac whsec_test`.
    #[test]
    fn a_signature_is_the_one_that_others_compute() {
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let header = secret().sign(at, br#"{"id":"evt_1"}"#);
        assert_eq!(header, format!("{MOMENT},v1={EVT_1}"));
        assert_eq!(secret().verify(&header, br#"{"id":"evt_1"}"#), Ok(SignedAt(at)));
    }

    #[test]
    fn what_was_changed_is_refused() {
        let body = br#"{"id":"evt_1"}"#;
        let wrong = Err(SignatureError::Wrong);
        assert_eq!(secret().verify(&format!("t=1700000001,v1={EVT_1}"), body), wrong);
        assert_eq!(secret().verify(&format!("{MOMENT},v1={EVT_1}"), br#"{"id":"evt_2"}"#), wrong);
        assert_eq!(Secret::new("whsec_other").unwrap().verify(&format!("{MOMENT},v1={EVT_1}"), body), wrong);
        for cut in ["", "00", &EVT_1[..62], "zz"] {
            assert_eq!(secret().verify(&format!("{MOMENT},v1={cut}"), body), wrong, "{cut}");
        }
        assert_eq!(secret().verify(&format!("{MOMENT},v0={EVT_1}"), body), wrong);
        assert_eq!(secret().verify(MOMENT, body), wrong);
    }

    #[test]
    fn one_right_signature_of_several_is_enough() {
        let header = format!("{MOMENT}, v1={}, v0=x, v1={EVT_1}", "00".repeat(32));
        assert!(secret().verify(&header, br#"{"id":"evt_1"}"#).is_ok());
    }

    #[test]
    fn a_header_that_does_not_read_is_refused() {
        for header in
            ["", "t=", "t=1x,v1=00", "t=-1,v1=00", "v1=00", "t=1,t=2,v1=00", "t=1;v1=00", "t=99999999999999999999"]
        {
            assert_eq!(secret().verify(header, b"{}"), Err(SignatureError::Malformed), "{header}");
        }
        assert!(!format!("{:?}", secret()).contains("whsec"));
    }

    const EVT_1: &str = "c89214b5b5da833daed6f0b8c5bb6bd58cea9022bd80ccc78230f3942d632925";
}
