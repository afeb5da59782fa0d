//! `Idempotency-Key`: what a post is known again by, and the reading of the body that it covers.
//!
//! The key stands for the path and the raw body: a repeat is the same bytes, not the same meaning, so that nobody has to
//! decide which differences of two bodies count.

use axum::extract::Request;
use axum::http::HeaderMap;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::edge::http::HttpState;
use crate::edge::http::decode::{parse, read_json};
use crate::edge::http::error::{Fault, Problem};
use crate::outbox::IdempotencyKey;

/// The header's name, as it is told.
const HEADER: &str = "Idempotency-Key";
/// Characters of a key, as the schema has it.
const LONGEST: usize = 255;

/// A body and the key that it came with.
pub(super) struct Keyed<T> {
    pub(super) form: T,
    pub(super) key: Option<IdempotencyKey>,
}

/// Reads a body of at most `limit` bytes.
pub(super) async fn read_keyed<T: DeserializeOwned>(
    request: Request,
    state: &HttpState,
    limit: usize,
) -> Result<Keyed<T>, Problem> {
    let key = find_key(request.headers())?;
    let path = request.uri().path().to_owned();
    let text = read_json(request, limit, state.limits.body).await?;
    let key = key.map(|key| IdempotencyKey { key, body_hash: hash(&path, &text) });
    Ok(Keyed { form: parse(&text)?, key })
}

/// A path has no line break, so where it ends is not in doubt.
fn hash(path: &str, body: &str) -> [u8; 32] {
    Sha256::new().chain_update(path).chain_update("\n").chain_update(body).finalize().into()
}

fn find_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let mut values = headers.get_all(HEADER).iter();
    let (first, second) = (values.next(), values.next());
    let Some(value) = first else { return Ok(None) };
    let bytes = value.as_bytes();
    let is_fit = (1..=LONGEST).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic) && second.is_none();
    match value.to_str() {
        Ok(key) if is_fit => Ok(Some(key.to_owned())),
        _ => {
            let why = format!("must be given once, with 1 to {LONGEST} visible ASCII characters");
            Err(Problem::bad_header(Fault::new(HEADER, why)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::hash;

    #[test]
    fn a_body_under_another_path_is_another_one() {
        assert_ne!(hash("/v1/events", "{}"), hash("/v1/events/batch", "{}"));
        assert_ne!(hash("/v1/events", "{}"), hash("/v1/events", "{} "));
        assert_eq!(hash("/v1/events", "{}"), hash("/v1/events", "{}"));
    }
}
