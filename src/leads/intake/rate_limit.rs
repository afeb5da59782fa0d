//! How often one visitor may post in an hour. Who that is, the table knows only as a digest: neither address nor phone.

use sha2::{Digest, Sha256};

use super::Visitor;
use crate::kernel::clock::UnixMs;

const HOUR_MS: i64 = 3_600_000;

/// A visitor with one number: the digest of address, browser and the number's last four digits, in hex.
pub(super) fn fingerprint(visitor: &Visitor, phone: &str) -> String {
    let end = visitor.user_agent.char_indices().nth(300).map_or(visitor.user_agent.len(), |(at, _)| at);
    // Only digits: every byte is a character.
    let last = &phone[phone.len().saturating_sub(4)..];
    let digest = Sha256::new()
        .chain_update(visitor.ip.to_canonical().to_string())
        .chain_update("|")
        .chain_update(&visitor.user_agent[..end])
        .chain_update("|")
        .chain_update(last)
        .finalize();
    let mut hex = String::with_capacity(2 * digest.len());
    for byte in digest {
        hex.extend([byte >> 4, byte & 15].map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])));
    }
    hex
}

/// The start of the UTC hour.
pub(super) fn window_of(now: UnixMs) -> UnixMs {
    now - now.rem_euclid(HOUR_MS)
}

/// Seconds until the UTC hour is over, at least one.
pub(super) fn seconds_left(now: UnixMs) -> i64 {
    (HOUR_MS - now.rem_euclid(HOUR_MS) + 999) / 1000
}

#[cfg(test)]
mod tests {
    use super::{fingerprint, seconds_left, window_of};
    use crate::leads::intake::Visitor;

    #[test]
    fn a_fingerprint_tells_visitors_apart_by_address_browser_and_the_end_of_the_number() {
        let visitor = |ip: &str, user_agent: &str| Visitor { ip: ip.parse().unwrap(), user_agent: user_agent.into() };
        let one = fingerprint(&visitor("192.0.2.1", "Browser"), "79991234567");
        // printf '192.0.2.1|Browser|4567' | sha256sum
        assert_eq!(one, "c9dd9c0aa023bf1c109ff7369b6ec0cbeb98cc5a6642e985f8cb56eca649219d");
        assert_eq!(one, fingerprint(&visitor("::ffff:192.0.2.1", "Browser"), "4567"));
        assert_ne!(one, fingerprint(&visitor("192.0.2.2", "Browser"), "79991234567"));
        assert_ne!(one, fingerprint(&visitor("192.0.2.1", "Browser 2"), "79991234567"));
        assert_ne!(one, fingerprint(&visitor("192.0.2.1", "Browser"), "79991234568"));
        let long = |tail: &str| fingerprint(&visitor("192.0.2.1", &format!("{}{tail}", "Ж".repeat(300))), "");
        assert_eq!(long("a"), long("b"), "the first 300 characters count");
    }

    #[test]
    fn the_window_is_the_utc_hour() {
        assert_eq!([0, 3_599_999, 3_600_000, -1].map(window_of), [0, 0, 3_600_000, -3_600_000]);
        assert_eq!([0, 1, 3_599_001, 3_599_999].map(seconds_left), [3600, 3600, 1, 1]);
    }
}
