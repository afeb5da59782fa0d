//! The Standard Webhooks signature, checked by our own hand: for the sink, for `webhooks listen` and `webhooks verify`.
//!
//! The dispatcher signs with the `standardwebhooks` crate; a witness that used the same crate would share its faults. This
//! one also takes bodies that are not UTF-8, goes by the clock of `dev`, which may be days ahead, and says what is wrong.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::kernel::clock::UnixMs;

/// Seconds between the timestamp and now, either way, as every reference library has it; exactly this much still passes.
pub(crate) const TOLERANCE_S: u64 = 300;

/// A receiver's secret.
pub(crate) struct Key(Vec<u8>);

impl Key {
    /// Reads `whsec_<base64>`; the prefix may be missing, an empty key is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let key = STANDARD.decode(text.strip_prefix("whsec_").unwrap_or(text)).ok()?;
        (!key.is_empty()).then_some(Self(key))
    }
}

/// Why a request is not believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    #[error("the header {0} is missing")]
    Missing(&'static str),
    #[error("webhook-timestamp is not a whole number of seconds")]
    NoTime,
    #[error("webhook-signature has no signature of version v1")]
    NoVersion,
    #[error("no signature fits: it was made with another secret, or of other bytes, id or timestamp than these")]
    Unfit,
    #[error("a signature fits, but it was made {age_s} s ago, and {tolerance_s} s are tolerated")]
    Old { age_s: u64, tolerance_s: u64 },
    #[error("a signature fits, but it was made {ahead_s} s in the future, and {tolerance_s} s are tolerated")]
    Ahead { ahead_s: u64, tolerance_s: u64 },
}

/// What a request says of itself.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Signed<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) timestamp: Option<&'a str>,
    pub(crate) signatures: Option<&'a str>,
}

/// When a request is looked at, and how old it may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now: UnixMs,
    pub(crate) tolerance_s: u64,
}

impl Moment {
    /// This instant, with the tolerance of the reference libraries.
    pub(crate) fn usual(now: UnixMs) -> Self {
        Self { now, tolerance_s: TOLERANCE_S }
    }
}

impl Signed<'_> {
    /// Whether one of the signatures is of this body by this key, and the timestamp is about now. The age is looked at
    /// last, so that it is named only when nothing else is wrong.
    ///
    /// # Errors
    /// [`Fault`], the first that is found.
    pub(crate) fn check(&self, key: &Key, body: &[u8], at: Moment) -> Result<(), Fault> {
        let id = self.id.ok_or(Fault::Missing("webhook-id"))?;
        let timestamp = self.timestamp.ok_or(Fault::Missing("webhook-timestamp"))?;
        let signatures = self.signatures.ok_or(Fault::Missing("webhook-signature"))?;
        let signed_s: i64 = timestamp.parse().map_err(|_| Fault::NoTime)?;
        // Other versions (`v1a`) may stand beside ours; they are not errors.
        let mut ours = signatures.split(' ').filter_map(|signature| signature.strip_prefix("v1,")).peekable();
        if ours.peek().is_none() {
            return Err(Fault::NoVersion);
        }
        if !ours.any(|signature| is_by(key, [id, timestamp], body, signature)) {
            return Err(Fault::Unfit);
        }
        let now_s = at.now.div_euclid(1000);
        let (off_s, tolerance_s) = (now_s.abs_diff(signed_s), at.tolerance_s);
        match (off_s > tolerance_s, signed_s > now_s) {
            (false, _) => Ok(()),
            (true, false) => Err(Fault::Old { age_s: off_s, tolerance_s }),
            (true, true) => Err(Fault::Ahead { ahead_s: off_s, tolerance_s }),
        }
    }
}

/// Whether `signature` is that of these three parts.
fn is_by(key: &Key, [id, timestamp]: [&str; 2], body: &[u8], signature: &str) -> bool {
    let Ok(tag) = STANDARD.decode(signature) else { return false };
    let mut mac = Hmac::<Sha256>::new_from_slice(&key.0).expect("HMAC takes keys of any length");
    for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
        mac.update(part);
    }
    mac.verify_slice(&tag).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    const SIGNED: Signed<'_> = Signed { id: Some(ID), timestamp: Some("1614265330"), signatures: Some(SIGNATURE) };

    fn checked(signed: Signed<'_>, now_s: i64) -> Result<(), Fault> {
        let key = Key::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        signed.check(&key, BODY, Moment::usual(now_s * 1000))
    }

    #[test]
    fn every_fault_is_named_and_the_age_comes_last() {
        assert_eq!(checked(SIGNED, 1_614_265_330), Ok(()));
        assert_eq!(checked(SIGNED, 1_614_265_630), Ok(()));
        assert_eq!(checked(SIGNED, 1_614_265_631), Err(Fault::Old { age_s: 301, tolerance_s: 300 }));
        assert_eq!(checked(SIGNED, 1_614_265_029), Err(Fault::Ahead { ahead_s: 301, tolerance_s: 300 }));
        let late = 1_700_000_000;
        assert_eq!(checked(Signed { id: None, ..SIGNED }, late), Err(Fault::Missing("webhook-id")));
        assert_eq!(checked(Signed { timestamp: None, ..SIGNED }, late), Err(Fault::Missing("webhook-timestamp")));
        assert_eq!(checked(Signed { signatures: None, ..SIGNED }, late), Err(Fault::Missing("webhook-signature")));
        assert_eq!(checked(Signed { timestamp: Some("1e9"), ..SIGNED }, late), Err(Fault::NoTime));
        assert_eq!(checked(Signed { signatures: Some("v1a,AAAA"), ..SIGNED }, late), Err(Fault::NoVersion));
        assert_eq!(checked(Signed { signatures: Some("v1,AAAA v1,???"), ..SIGNED }, late), Err(Fault::Unfit));
        assert_eq!(checked(Signed { id: Some("msg"), ..SIGNED }, late), Err(Fault::Unfit));
    }
}
