//! Ids of deliveries as they are shown. There is no column for them: millions of rows and an index would carry it, and
//! nobody looks one up but by hand. The id is a UUIDv7 (RFC 9562) of when the delivery was made, with its row where
//! others have random bits; both are compared when it is looked up.

use uuid::{Builder, Uuid};

use crate::kernel::clock::UnixMs;

const PREFIX: &str = "dlv_";

/// The id of the delivery in that row, which was made then.
pub(super) fn delivery_id(row: i64, created_at: UnixMs) -> String {
    let mut bytes = [0; 10];
    // Two bits of the row's first byte become the UUID's variant. No row has them: that many are never made.
    bytes[2..].copy_from_slice(&row.to_be_bytes());
    let uuid = Builder::from_unix_timestamp_millis(millis(created_at), &bytes).into_uuid();
    format!("{PREFIX}{}", uuid.hyphenated())
}

/// The row and the milliseconds that an id names; `None` if it is none. Only the form in which ids are shown is one.
pub(super) fn parse_delivery_id(text: &str) -> Option<(i64, UnixMs)> {
    let uuid = Uuid::try_parse(text.strip_prefix(PREFIX)?).ok()?;
    let bytes = uuid.into_bytes();
    let mut at = [0; 8];
    at[2..].copy_from_slice(&bytes[..6]);
    let mut row = [0; 8];
    row.copy_from_slice(&bytes[8..]);
    row[0] &= 0x3f;
    let (row, created_at) = (i64::from_be_bytes(row), i64::from_be_bytes(at));
    (delivery_id(row, created_at) == text).then_some((row, created_at))
}

/// Whether the delivery that was made then has an id with these milliseconds.
pub(super) fn is_made_at(created_at: UnixMs, in_id: UnixMs) -> bool {
    i64::try_from(millis(created_at)) == Ok(in_id)
}

/// What fits into the 48 bits that a UUIDv7 has for it.
fn millis(at: UnixMs) -> u64 {
    at.max(0).unsigned_abs() & 0xffff_ffff_ffff
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{delivery_id, is_made_at, parse_delivery_id};

    proptest! {
        #[test]
        fn an_id_says_which_row_it_is_and_when_it_was_made(row in 1_i64..1 << 61, at in 0_i64..1 << 48) {
            let id = delivery_id(row, at);
            prop_assert_eq!(parse_delivery_id(&id), Some((row, at)));
            let uuid = uuid::Uuid::parse_str(&id[4..]).unwrap();
            prop_assert_eq!((uuid.get_version_num(), uuid.get_variant()), (7, uuid::Variant::RFC4122));
        }

        #[test]
        fn nothing_else_is_one(text in "(dlv_)?[0-9a-f-]{30,40}|.*") {
            if let Some((row, at)) = parse_delivery_id(&text) {
                prop_assert_eq!(delivery_id(row, at), text);
            }
        }
    }

    #[test]
    fn another_spelling_is_no_id() {
        let id = delivery_id(7, 1_700_000_000_000);
        assert_eq!(id, "dlv_018bcfe5-6800-7000-8000-000000000007");
        assert_eq!(parse_delivery_id(&id.to_uppercase().replace("DLV", "dlv")), None);
        assert_eq!(parse_delivery_id(&id.replace('-', "")), None);
        assert_eq!(parse_delivery_id(&id[4..]), None);
        // Another version, or bits where none are set.
        assert_eq!(parse_delivery_id(&id.replace("-7000-", "-4000-")), None);
        assert_eq!(parse_delivery_id(&id.replace("-7000-", "-7001-")), None);
        assert!(is_made_at(1_700_000_000_000, 1_700_000_000_000) && !is_made_at(1_700_000_000_001, 1_700_000_000_000));
        assert!(is_made_at(-5, 0), "a clock before 1970 makes ids of 1970");
    }
}
