//! Endpoints as they travel.

use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, SchemaType, Type};

use crate::edge::http::decode::Whole;
use crate::kernel::clock::rfc3339;
use crate::kernel::secret::Secret;
use crate::webhooks::{DisabledReason, Endpoint, EndpointChanges, EndpointStatus, NewEndpoint, Rotated, Rotation};

/// Where a tenant wants its events.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = NewEndpoint)]
#[serde(deny_unknown_fields)]
pub(super) struct NewEndpointBody {
    /// An https address that leads to the public internet, without user name, password and fragment.
    #[schema(format = Uri, min_length = 1, max_length = 2048)]
    url: String,
    /// What a person calls it.
    #[serde(default)]
    #[schema(max_length = 500, pattern = r"^[^\x00]*$")]
    description: Option<String>,
    /// The types that it gets, each as it is or with `.*` for all that begin so; null for all.
    #[serde(default)]
    #[schema(schema_with = subscribed)]
    event_types: Option<Vec<String>>,
    /// How many deliveries it gets in a second at most; null for no limit.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 1000, value_type = Option<i64>)]
    rate_per_second: Option<Whole>,
    /// A secret that is in use elsewhere: `whsec_`, which may be missing, and the base64 of 24 to 64 bytes. A new one is
    /// made without it.
    #[serde(default)]
    #[schema(value_type = Option<String>, pattern = r"^(whsec_)?([A-Za-z0-9+/]{4}){8,20}(([A-Za-z0-9+/]{4})?([A-Za-z0-9+/][AQgw]==)?|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)$")]
    secret: Option<SecretText>,
}

/// What of an endpoint is to be another. What is not there stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = EndpointChanges)]
#[serde(deny_unknown_fields)]
pub(super) struct EndpointChangesBody {
    #[serde(default, deserialize_with = "present")]
    #[schema(nullable = false, format = Uri, min_length = 1, max_length = 2048)]
    url: Option<String>,
    #[serde(default, deserialize_with = "present")]
    #[schema(max_length = 500, pattern = r"^[^\x00]*$")]
    description: Option<Option<String>>,
    /// Null for all types.
    #[serde(default, deserialize_with = "present")]
    #[schema(schema_with = subscribed)]
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

/// A list of types, or null.
fn subscribed() -> Schema {
    let entry = ObjectBuilder::new().schema_type(Type::String).pattern(Some(r"^[a-z0-9_.]{1,128}(\.\*)?$"));
    let kinds = SchemaType::from_iter([Type::Array, Type::Null]);
    ArrayBuilder::new().schema_type(kinds).items(entry).min_items(Some(1)).max_items(Some(100)).build().into()
}

/// A field that is there, whatever it says: null is a value of its own.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// What a person may set. Read as a text: serde's own enums take another value for a fault of the JSON.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[schema(rename_all = "snake_case")]
#[serde(try_from = "String")]
enum WantedStatus {
    Active,
    Paused,
}

impl TryFrom<String> for WantedStatus {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        match text.as_str() {
            "active" => Ok(Self::Active),
            "paused" => Ok(Self::Paused),
            _ => Err("must be active or paused"),
        }
    }
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
    #[schema(value_type = Option<String>, pattern = r"^(whsec_)?([A-Za-z0-9+/]{4}){8,20}(([A-Za-z0-9+/]{4})?([A-Za-z0-9+/][AQgw]==)?|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)$")]
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

impl From<NewEndpointBody> for NewEndpoint {
    fn from(body: NewEndpointBody) -> Self {
        Self {
            url: body.url,
            description: body.description,
            event_types: body.event_types,
            rate_per_second: body.rate_per_second.map(|rate| rate.0),
            secret: body.secret.map(|text| text.0),
        }
    }
}

impl From<EndpointChangesBody> for EndpointChanges {
    fn from(body: EndpointChangesBody) -> Self {
        Self {
            url: body.url,
            description: body.description,
            event_types: body.event_types,
            rate_per_second: body.rate_per_second.map(|rate| rate.map(|rate| rate.0)),
            status: body.status.map(|status| match status {
                WantedStatus::Active => EndpointStatus::Active,
                WantedStatus::Paused => EndpointStatus::Paused,
            }),
        }
    }
}

impl From<RotationBody> for Rotation {
    fn from(body: RotationBody) -> Self {
        Self { overlap_seconds: body.overlap_seconds.map(|seconds| seconds.0), secret: body.secret.map(|text| text.0) }
    }
}

/// An endpoint as its tenant sees it. The command line prints the same form.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Endpoint)]
pub(crate) struct EndpointBody {
    /// Its id.
    #[schema(pattern = "^ep_[0-9a-f-]{36}$")]
    pub(crate) id: String,
    /// Where events go.
    pub(crate) url: String,
    /// What a person calls it.
    pub(crate) description: String,
    /// The types that it gets; null for all.
    #[schema(required)]
    pub(crate) event_types: Option<Vec<String>>,
    /// How many deliveries it gets in a second at most; null for no limit.
    #[schema(required, minimum = 1, maximum = 1000)]
    pub(crate) rate_per_second: Option<i64>,
    /// Whether it gets anything: what comes for a paused one waits, for a disabled one it is skipped.
    #[schema(schema_with = endpoint_status)]
    pub(crate) status: &'static str,
    /// Why it is disabled: it answered that it is gone, it failed for five days, or a person did it.
    #[schema(required, schema_with = disabled_reason)]
    pub(crate) disabled_reason: Option<&'static str>,
    /// Until when the receiver asked to be left alone.
    #[schema(required, format = DateTime)]
    pub(crate) held_until: Option<String>,
    /// Since when every attempt has failed.
    #[schema(required, format = DateTime)]
    pub(crate) failing_since: Option<String>,
    /// The end of the secret that signs.
    #[schema(min_length = 4, max_length = 4)]
    pub(crate) secret_last_four: String,
    /// When it was made.
    #[schema(format = DateTime)]
    pub(crate) created_at: String,
    /// When it was last changed.
    #[schema(format = DateTime)]
    pub(crate) updated_at: String,
}

fn endpoint_status() -> utoipa::openapi::schema::Object {
    super::words(&EndpointStatus::ALL.map(EndpointStatus::as_str))
}

fn disabled_reason() -> utoipa::openapi::schema::Object {
    super::words_or_null(
        &[DisabledReason::Gone, DisabledReason::Failing, DisabledReason::Manual].map(DisabledReason::as_str),
    )
}

impl From<Endpoint> for EndpointBody {
    fn from(endpoint: Endpoint) -> Self {
        Self {
            id: endpoint.id,
            url: endpoint.url,
            description: endpoint.description,
            event_types: endpoint.event_types,
            rate_per_second: endpoint.rate_per_second,
            status: endpoint.status.as_str(),
            disabled_reason: endpoint.disabled_reason.map(DisabledReason::as_str),
            held_until: endpoint.held_until.map(rfc3339),
            failing_since: endpoint.failing_since.map(rfc3339),
            secret_last_four: endpoint.secret_last_four,
            created_at: rfc3339(endpoint.created_at),
            updated_at: rfc3339(endpoint.updated_at),
        }
    }
}

/// An endpoint that was just made, with the secret that it signs with.
#[derive(Serialize, ToSchema)]
#[schema(as = MadeEndpoint)]
pub(super) struct MadeEndpointBody {
    #[serde(flatten)]
    endpoint: EndpointBody,
    /// What receivers verify with. It is not shown again.
    #[schema(pattern = "^whsec_[A-Za-z0-9+/]+=*$")]
    secret: String,
}

impl MadeEndpointBody {
    pub(super) fn new(endpoint: Endpoint, secret: &Secret) -> Self {
        Self { endpoint: endpoint.into(), secret: secret.expose().to_owned() }
    }
}

/// A secret that took the place of another.
#[derive(Serialize, ToSchema)]
#[schema(as = RotatedSecret)]
pub(super) struct RotatedBody {
    /// What receivers verify with from now on. It is not shown again.
    #[schema(pattern = "^whsec_[A-Za-z0-9+/]+=*$")]
    secret: String,
    /// Until when the old one signs too; null if it does not.
    #[schema(required, format = DateTime)]
    previous_valid_until: Option<String>,
}

impl From<Rotated> for RotatedBody {
    fn from(rotated: Rotated) -> Self {
        let Rotated { secret, previous_valid_until } = rotated;
        Self { secret: secret.expose().to_owned(), previous_valid_until: previous_valid_until.map(rfc3339) }
    }
}
