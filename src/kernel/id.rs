//! Ids that sort by the time they were made (UUIDv7, RFC 9562), and ids that nobody can guess (UUIDv4).

use std::sync::LazyLock;

use rand::RngCore;
use uuid::timestamp::context::ContextV7;
use uuid::{Builder, Timestamp, Uuid};

use super::clock::UnixMs;

/// Counts within a millisecond, so that ids made one after the other also sort so.
static CONTEXT: LazyLock<std::sync::Mutex<ContextV7>> = LazyLock::new(|| std::sync::Mutex::new(ContextV7::new()));

/// A new UUIDv7 at `now`.
pub fn uuid_v7(now: UnixMs) -> String {
    let seconds = now.div_euclid(1000).unsigned_abs();
    let nanos = u32::try_from(now.rem_euclid(1000)).unwrap_or(0) * 1_000_000;
    let context = CONTEXT.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    Uuid::new_v7(Timestamp::from_unix(&*context, seconds, nanos)).to_string()
}

/// A new UUIDv4: 122 random bits, so that knowing it is a proof of having been told.
pub fn uuid_v4() -> String {
    let mut bytes = [0_u8; 16];
    rand::rng().fill_bytes(&mut bytes);
    Builder::from_random_bytes(bytes).into_uuid().to_string()
}
