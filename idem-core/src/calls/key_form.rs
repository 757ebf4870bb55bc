//! What the downstream keys of a call look like: [`KeyForm`].

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use crate::calls::{DownstreamKey, resource_id};
use crate::key::Scope;

/// How the downstream keys of a call are written. Each is derived from (namespace, tenant, operation, key, call), whatever
/// its form, and the same in every attempt.
///
/// It must not change while records live, as the namespace must not: a call that is announced keeps its key, but one whose
/// record was lost in a failover would get another, which its provider takes for another payment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyForm(Option<Text>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Text {
    length: usize,
    alphabet: String,
}

impl KeyForm {
    /// `charge_` and 26 characters of `a-z2-7`, with the call's name: what a call has unless said otherwise.
    #[must_use]
    pub fn named() -> Self {
        Self(None)
    }

    /// Exactly so many characters of an alphabet, for a payment rail with a field of its own: its order is part of the form.
    /// Without the call's name.
    ///
    /// ```
    /// use idem_core::{CallClass, CallSpec, KeyForm};
    ///
    /// let end_to_end = KeyForm::text(35, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    /// let bank = CallSpec::from(CallClass::Neither).key_form(end_to_end);
    /// # let _ = bank;
    /// ```
    ///
    /// The engine is not built with a form whose keys could meet by chance (less than 80 bits: 25 digits, or 16 characters
    /// of 36), are longer than 64 characters or than the hash behind them (224 bits), or whose alphabet has a character
    /// twice, or one that is not visible ASCII.
    #[must_use]
    pub fn text(length: usize, alphabet: impl Into<String>) -> Self {
        Self(Some(Text { length, alphabet: alphabet.into() }))
    }

    /// What is wrong with it, if anything is.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let Text { length, alphabet } = self.0.as_ref()?;
        let distinct: BTreeSet<_> = alphabet.bytes().collect();
        let is_plain = alphabet.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_plain || distinct.len() != alphabet.len() || alphabet.len() < 2 {
            return Some("its alphabet needs two or more characters of visible ASCII, each once");
        }
        let bits = (*length as f64) * (alphabet.len() as f64).log2();
        match bits {
            _ if *length > LONGEST => Some("its keys are longer than 64 characters"),
            bits if bits < LEAST_BITS => Some("its keys have less than 80 bits, and could meet by chance"),
            bits if bits > MOST_BITS => Some("its keys have more than 224 bits, which is more than there is to tell"),
            _ => None,
        }
    }

    /// The key for one call of one scope.
    #[must_use]
    pub(crate) fn key(&self, namespace: &str, scope: &Scope, call: &str) -> DownstreamKey {
        let Some(Text { length, alphabet }) = &self.0 else {
            return DownstreamKey(format!("{call}_{}", resource_id(namespace, scope)));
        };
        let mut sha = Sha256::new();
        for part in
            ["idem/call-key/1", namespace, scope.tenant().as_str(), scope.operation(), scope.key().as_str(), call]
        {
            sha.update((part.len() as u64).to_be_bytes());
            sha.update(part);
        }
        let mut number: [u8; 32] = sha.finalize().into();
        let alphabet = alphabet.as_bytes();
        // The hash as a number, written in the alphabet, lowest place first.
        let text = (0..*length).map(|_| char::from(alphabet[divide(&mut number, alphabet.len())]));
        DownstreamKey(text.collect())
    }
}

/// Divides a number, highest byte first; what is left over.
fn divide(number: &mut [u8; 32], by: usize) -> usize {
    let mut rest = 0;
    for byte in number {
        let value = rest * 256 + usize::from(*byte);
        *byte = u8::try_from(value / by).expect("the rest is less than the divisor");
        rest = value % by;
    }
    rest
}

const LONGEST: usize = 64;
const LEAST_BITS: f64 = 80.0;
/// Of 256: the last character is as evenly spread as the first, but for one part in four thousand millions.
const MOST_BITS: f64 = 224.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Tenant;

    const ALNUM: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    fn scope(tenant: &str, key: &str) -> Scope {
        Scope::new(Tenant::new(tenant).unwrap(), "pay", key.parse().unwrap())
    }

    #[test]
    fn a_form_that_keeps_keys_apart_is_taken_and_no_other() {
        let fault = |length, alphabet: &str| KeyForm::text(length, alphabet).fault().is_some();
        assert!(KeyForm::named().fault().is_none());
        for (length, alphabet) in [(35, ALNUM), (16, ALNUM), (25, "0123456789"), (64, "0123456789"), (64, "ab")] {
            // Sixty-four of two are too few.
            assert_eq!(fault(length, alphabet), alphabet == "ab", "{length} of {alphabet}");
        }
        for (length, alphabet) in [(15, ALNUM), (24, "0123456789"), (65, "0123456789"), (44, ALNUM), (0, ALNUM)] {
            assert!(fault(length, alphabet), "{length} of {alphabet}");
        }
        for alphabet in ["", "a", "abcdefghija", "abc def", "abcdé", "abc\n"] {
            assert!(fault(40, alphabet), "{alphabet:?}");
        }
    }

    /// Providers know yesterday's calls by their keys: these never change.
    #[test]
    fn keys_are_as_they_ever_were() {
        let key = |form: KeyForm| form.key("shop", &scope("acme", "order-1"), "charge").as_str().to_owned();
        assert_eq!(key(KeyForm::named()), NAMED);
        assert_eq!(key(KeyForm::text(35, ALNUM)), OF_36);
        assert_eq!(key(KeyForm::text(30, "0123456789")), DIGITS);
    }

    #[test]
    fn each_part_makes_another_key() {
        let form = KeyForm::text(20, ALNUM);
        let keys: BTreeSet<_> = [
            form.key("shop", &scope("acme", "order-1"), "charge"),
            form.key("shop", &scope("acme", "order-1"), "mail"),
            form.key("shop", &scope("acme", "order-2"), "charge"),
            form.key("shop", &scope("acm", "order-1"), "charge"),
            form.key("shop2", &scope("acme", "order-1"), "charge"),
            // Borders of the parts count.
            form.key("shopa", &scope("cme", "order-1"), "charge"),
        ]
        .iter()
        .map(|key| key.as_str().to_owned())
        .collect();
        assert_eq!(keys.len(), 6);
        assert!(keys.iter().all(|key| key.len() == 20 && key.bytes().all(|byte| ALNUM.as_bytes().contains(&byte))));
    }

    /// A thousand keys use each character at each place about as often.
    #[test]
    fn characters_are_spread_evenly() {
        let form = KeyForm::text(35, ALNUM);
        let mut counts = [[0_u32; 128]; 35];
        for number in 0..3600 {
            let key = form.key("shop", &scope("acme", &format!("order-{number}")), "charge");
            for (place, byte) in key.as_str().bytes().enumerate() {
                counts[place][usize::from(byte)] += 1;
            }
        }
        for count in counts.iter().flat_map(|place| ALNUM.bytes().map(|byte| place[usize::from(byte)])) {
            assert!((50..=150).contains(&count), "{count} of about 100");
        }
    }

    const NAMED: &str = "charge_v76mvzvalmugip7ym6ulbdluu4";
    const OF_36: &str = "Q643TV4TYAO8WJTCOI88Z8SFALRTCZ8NS42";
    const DIGITS: &str = "056359919460997250887822915512";
}
