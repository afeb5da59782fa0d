//! The Standard Webhooks signature, checked by our own hand.
//!
//! The dispatcher signs with the `standardwebhooks` crate; a witness that used the same crate would share its faults. This
//! one also takes bodies that are not UTF-8, and goes by the clock of `dev`, which may be days ahead.

use axum::http::HeaderMap;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::kernel::clock::UnixMs;

/// Seconds between the timestamp and now, either way, as every reference library has it; exactly this much still passes.
const TOLERANCE_S: i64 = 300;

/// A receiver's secret.
pub(super) struct Key(Vec<u8>);

impl Key {
    /// Reads `whsec_<base64>`; the prefix may be missing, an empty key is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let key = STANDARD.decode(text.strip_prefix("whsec_").unwrap_or(text)).ok()?;
        (!key.is_empty()).then_some(Self(key))
    }
}

/// What a request says of itself, with all three headers present.
pub(super) struct Signed<'a> {
    id: &'a str,
    timestamp: &'a str,
    signatures: &'a str,
    body: &'a [u8],
}

impl<'a> Signed<'a> {
    pub(super) fn read(headers: &'a HeaderMap, body: &'a [u8]) -> Option<Self> {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let signatures = text("webhook-signature")?;
        Some(Self { id: text("webhook-id")?, timestamp: text("webhook-timestamp")?, signatures, body })
    }

    /// Whether one of the signatures is by this key, and the timestamp is about now.
    pub(super) fn fits(&self, key: &Key, now: UnixMs) -> bool {
        let Ok(at_s) = self.timestamp.parse::<i64>() else { return false };
        let off_s = now.div_euclid(1000).saturating_sub(at_s).saturating_abs();
        off_s <= TOLERANCE_S && self.signatures.split(' ').any(|signature| self.is_signed(key, signature))
    }

    fn is_signed(&self, key: &Key, signature: &str) -> bool {
        // Other versions (`v1a`) may stand beside ours; they are not errors.
        let Some(tag) = signature.strip_prefix("v1,").and_then(|text| STANDARD.decode(text).ok()) else { return false };
        let mut mac = Hmac::<Sha256>::new_from_slice(&key.0).expect("HMAC takes keys of any length");
        for part in [self.id.as_bytes(), b".", self.timestamp.as_bytes(), b".", self.body] {
            mac.update(part);
        }
        mac.verify_slice(&tag).is_ok()
    }
}
