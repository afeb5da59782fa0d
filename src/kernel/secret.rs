//! Secrets that cannot be printed by accident and are compared without telling how close a guess was.

use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// A token, key or password. `Debug` and `Display` show `***`; the memory is wiped on drop.
#[derive(Clone)]
pub struct Secret(SecretString);

impl Secret {
    /// Takes the text as it is; white space at its ends is the caller's to trim.
    pub fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }

    /// The text itself, for the one place that has to send or write it.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }

    /// Whether `guess` is this secret. Takes the same time for every guess: digests of equal length are compared,
    /// so neither the length nor the first differing byte shows.
    pub fn matches(&self, guess: &[u8]) -> bool {
        let ours = Sha256::digest(self.expose().as_bytes());
        let theirs = Sha256::digest(guess);
        ours.ct_eq(&theirs).into()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl std::fmt::Display for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}
