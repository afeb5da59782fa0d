//! What went wrong with endpoints and deliveries, as the client is told.

use axum::http::StatusCode;

use super::{Fault, Problem};
use crate::webhooks::Error;

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let why = error.to_string();
        match error {
            Error::NotFound => Self::no_such("endpoint or delivery"),
            Error::TooManyEndpoints => Self::new(StatusCode::CONFLICT, "endpoint_limit", why),
            Error::EndpointDisabled => Self::new(StatusCode::CONFLICT, "endpoint_disabled", why),
            Error::Invalid { field, what } => Self::invalid_body(vec![Fault::new(field, what)]),
            Error::Url(rule) => {
                let detail = "no webhook may go to this URL; the fault names the rule that it breaks";
                let fault = Fault::new("url", format!("{}: {rule}", rule.code()));
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_url", detail).at(vec![fault])
            }
            Error::Store(error) => error.into(),
            Error::Vault(error) => {
                tracing::error!(%error, "a secret of an endpoint cannot be sealed or opened");
                Self::secrets_unavailable()
            }
            error => {
                tracing::error!(%error, "a request to the webhooks failed in a way that was not foreseen");
                Self::internal()
            }
        }
    }
}
