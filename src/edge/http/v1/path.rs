//! The id in an address. Whatever is no id names nothing, so it is answered what an unknown one is.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;

use crate::edge::http::HttpState;
use crate::edge::http::error::Problem;

/// The last parameter of the path; a text that is not UTF-8 is empty, which no id is.
pub(super) struct Named(pub(super) String);

impl FromRequestParts<Arc<HttpState>> for Named {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<HttpState>) -> Result<Self, Problem> {
        let named = Path::<String>::from_request_parts(parts, state).await;
        Ok(Self(named.map_or_else(|_| String::new(), |Path(text)| text)))
    }
}
