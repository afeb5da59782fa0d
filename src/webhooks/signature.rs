//! The signature of a webhook, by Standard Webhooks 1.0 (HMAC-SHA256, version `v1`), made by the specification's own
//! library, so that what its verifiers expect is what we send.

use standardwebhooks::Webhook;

/// Bytes that a key may have (specification, "Signature scheme").
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// A text that is no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a secret is whsec_ and 24 to 64 bytes in base64")]
pub(crate) struct NotASecret;

/// What cannot be signed: an id with a dot could be read as another id with another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message cannot be signed")]
pub(crate) struct Unsignable;

/// A signing key. It cannot be printed.
pub(crate) struct Key(Webhook);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl Key {
    /// Reads `whsec_<base64>`; the prefix may be missing, as with every reference library.
    ///
    /// # Errors
    /// It is none.
    pub(crate) fn parse(text: &str) -> Result<Self, NotASecret> {
        use base64::Engine;
        let text = text.strip_prefix("whsec_").unwrap_or(text);
        Self::from_bytes(base64::engine::general_purpose::STANDARD.decode(text).map_err(|_| NotASecret)?)
    }

    /// The key of these bytes.
    ///
    /// # Errors
    /// They are too few or too many.
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Result<Self, NotASecret> {
        if !KEY_BYTES.contains(&bytes.len()) {
            return Err(NotASecret);
        }
        Webhook::from_bytes(bytes).map(Self).map_err(|_| NotASecret)
    }

    fn sign(&self, id: &str, at_s: i64, body: &[u8]) -> Result<String, Unsignable> {
        if id.is_empty() || id.contains('.') {
            return Err(Unsignable);
        }
        self.0.sign(id, at_s, body).map_err(|_| Unsignable)
    }
}

/// The value of `webhook-signature`: one signature by each key, in their order, which is the newest first.
///
/// # Errors
/// There is no key, the id is not fit, or the body is not UTF-8.
pub(crate) fn sign(keys: &[Key], id: &str, at_s: i64, body: &[u8]) -> Result<String, Unsignable> {
    let mut list = String::new();
    for key in keys {
        if !list.is_empty() {
            list.push(' ');
        }
        list.push_str(&key.sign(id, at_s, body)?);
    }
    if list.is_empty() { Err(Unsignable) } else { Ok(list) }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Vector {
        secret: &'static str,
        id: &'static str,
        at_s: i64,
        body: &'static str,
        signature: &'static str,
    }

    /// The published vectors, from the tests of the specification's libraries.
    const VECTORS: [Vector; 2] = [
        Vector {
            secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
            at_s: 1_614_265_330,
            body: r#"{"test": 2432232314}"#,
            signature: "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        },
        Vector {
            secret: "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
            id: "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk",
            at_s: 1_649_367_553,
            body: r#"{"email":"test@example.com","username":"test_user"}"#,
            signature: "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw=",
        },
    ];

    fn key(text: &str) -> Key {
        Key::parse(text).unwrap()
    }

    #[test]
    fn the_published_vectors_are_signed() {
        for Vector { secret, id, at_s, body, signature } in VECTORS {
            for secret in [secret, secret.strip_prefix("whsec_").unwrap()] {
                assert_eq!(sign(&[key(secret)], id, at_s, body.as_bytes()).unwrap(), signature);
            }
        }
    }

    #[test]
    fn during_a_rotation_there_are_two_signatures_the_newest_first() {
        let (new, old) = (VECTORS[1].secret, VECTORS[0].secret);
        let Vector { id, at_s, body, signature, .. } = &VECTORS[0];
        let list = sign(&[key(new), key(old)], id, *at_s, body.as_bytes()).unwrap();
        let parts: Vec<&str> = list.split(' ').collect();
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0], sign(&[key(new)], id, *at_s, body.as_bytes()).unwrap());
        assert_eq!(parts[1], *signature);
    }

    #[test]
    fn an_empty_body_can_be_signed_and_other_bytes_than_text_cannot() {
        let keys = [key(VECTORS[0].secret)];
        assert!(sign(&keys, "msg_1", 1, b"").is_ok());
        assert_eq!(sign(&keys, "msg_1", 1, b"\xff"), Err(Unsignable));
        assert_eq!(sign(&keys, "msg.1", 1, b"{}"), Err(Unsignable));
        assert_eq!(sign(&[], "msg_1", 1, b"{}"), Err(Unsignable));
    }

    #[test]
    fn only_24_to_64_bytes_in_base64_are_a_secret() {
        use base64::Engine;
        let of = |bytes: usize| base64::engine::general_purpose::STANDARD.encode(vec![7; bytes]);
        for bytes in [24, 32, 64] {
            assert!(Key::parse(&format!("whsec_{}", of(bytes))).is_ok(), "{bytes}");
        }
        for text in [
            "",
            "whsec_",
            "whsec_x",
            "whsec_****",
            &of(23),
            &of(65),
            &of(32).replace('=', ""),
            "whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        ] {
            assert!(Key::parse(text).is_err(), "{text}");
        }
        assert_eq!(format!("{:?}", key(VECTORS[0].secret)), "***");
    }
}
