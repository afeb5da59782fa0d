//! Endpoints as they travel.

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use crate::edge::http::decode::Whole;
use crate::kernel::clock::rfc3339;
use crate::kernel::secret::Secret;
use crate::webhooks::{DisabledReason, Endpoint, EndpointChanges, EndpointStatus, NewEndpoint, Rotation};

/// Where a tenant wants its events.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = NewEndpoint)]
#[serde(deny_unknown_fields)]
pub(super) struct NewEndpointBody {
    /// An https address that leads to the public internet, without user name, password and fragment.
    #[schema(format = Uri, max_length = 2048)]
    url: String,
    /// What a person calls it.
    #[serde(default)]
    #[schema(max_length = 500)]
    description: Option<String>,
    /// The types that it gets, each as it is or with `.*` for all that begin so; null for all.
    #[serde(default)]
    event_types: Option<Vec<String>>,
    /// How many deliveries it gets in a second at most; null for no limit.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 1000, value_type = Option<i64>)]
    rate_per_second: Option<Whole>,
    /// A secret that is in use elsewhere: `whsec_` and the base64 of 24 to 64 bytes. A new one is made without it.
    #[serde(default)]
    #[schema(value_type = Option<String>, pattern = "^whsec_[A-Za-z0-9+/]+=*$")]
    secret: Option<SecretText>,
}

/// What of an endpoint is to be another. What is not there stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = EndpointChanges)]
#[serde(deny_unknown_fields)]
pub(super) struct EndpointChangesBody {
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, format = Uri, max_length = 2048)]
    url: Option<String>,
    #[serde(default, deserialize_with = "present")]
    #[schema(max_length = 500)]
    description: Option<Option<String>>,
    /// Null for all types.
    #[serde(default, deserialize_with = "present")]
    event_types: Option<Option<Vec<String>>>,
    /// Null for no limit.
    #[serde(default, deserialize_with = "present")]
    #[schema(minimum = 1, maximum = 1000, value_type = Option<i64>)]
    rate_per_second: Option<Option<Whole>>,
    /// `active` lets deliveries go, `paused` has them wait.
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false)]
    status: Option<WantedStatus>,
}

/// A field that is there, whatever it says: null is a value of its own.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// What a person may set.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum WantedStatus {
    Active,
    Paused,
}

/// How a secret is to be replaced.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = SecretRotation)]
#[serde(deny_unknown_fields)]
pub(super) struct RotationBody {
    /// For how long the old one signs too, in seconds; a day if nothing is said.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 604800, value_type = Option<i64>)]
    overlap_seconds: Option<Whole>,
    /// A secret that is in use elsewhere; a new one is made without it.
    #[serde(default)]
    #[schema(value_type = Option<String>, pattern = "^whsec_[A-Za-z0-9+/]+=*$")]
    secret: Option<SecretText>,
}

/// A secret as it came. It is not shown in logs.
#[derive(Debug, Deserialize)]
#[serde(from = "String")]
struct SecretText(Secret);

impl From<String> for SecretText {
    fn from(text: String) -> Self {
        Self(Secret::new(text))
    }
}
