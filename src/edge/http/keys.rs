//! The keys of `/rest` and `/v1/leads`: who is calling, from `Authorization: Bearer` or `apikey`, as Supabase has them.
//!
//! Every known key is compared with every presented one, in constant time, so that an answer's time tells nothing either.

use std::sync::Once;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;

use super::bearer;
use crate::kernel::secret::Secret;

/// The header that Supabase's gateway asks for; its clients send the same key in both.
const API_KEY: &str = "apikey";

/// Who is calling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// May call everything.
    Service,
    /// Is known, and may call nothing.
    Anon,
}

/// Why nobody knows who is calling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stranger {
    /// No service key is configured, so nobody can be right.
    Closed,
    NoKey,
    WrongKey,
}

/// The keys that are known here.
pub(super) struct Keys {
    service: Option<Secret>,
    anon: Option<Secret>,
    told: Once,
}

impl Keys {
    pub(super) fn new(service: Option<Secret>, anon: Option<Secret>) -> Self {
        Self { service, anon, told: Once::new() }
    }

    /// The role of whoever sent these headers.
    pub(super) fn role(&self, headers: &HeaderMap) -> Result<Role, Stranger> {
        let Some(service) = &self.service else {
            self.told.call_once(|| {
                tracing::warn!(
                    "leads.service_role_key is not set; /rest answers 503, and so does /v1/leads without an API key"
                )
            });
            return Err(Stranger::Closed);
        };
        let Some(key) = presented(headers)? else { return Err(Stranger::NoKey) };
        let is_service = service.matches(key);
        let is_anon = self.anon.as_ref().is_some_and(|anon| anon.matches(key));
        match (is_service, is_anon) {
            (true, _) => Ok(Role::Service),
            (false, true) => Ok(Role::Anon),
            (false, false) => Err(Stranger::WrongKey),
        }
    }
}

/// The bearer token if there is one, else the API key. Two of a kind are no answer to the question who is asking.
fn presented(headers: &HeaderMap) -> Result<Option<&[u8]>, Stranger> {
    if headers.get_all(AUTHORIZATION).iter().count() > 1 || headers.get_all(API_KEY).iter().count() > 1 {
        return Err(Stranger::WrongKey);
    }
    let api_key = || headers.get(API_KEY).map(|key| key.as_bytes());
    Ok(bearer::find_token(headers).or_else(api_key))
}
