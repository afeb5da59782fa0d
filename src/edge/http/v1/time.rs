//! Times as they travel: RFC 3339.

use serde::Deserialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::{KnownFormat, Object, ObjectBuilder, SchemaFormat, Type};

use crate::edge::http::error::{Fault, Problem};
use crate::kernel::clock::{UnixMs, parse_rfc3339};

const WHY: &str = "must be a time like 2027-01-15T08:00:00Z (RFC 3339)";

/// An instant of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[schema(value_type = String, format = DateTime)]
#[serde(try_from = "String")]
pub(super) struct Instant(pub(super) UnixMs);

impl TryFrom<String> for Instant {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        parse_rfc3339(&text).map(Self).ok_or(WHY)
    }
}

/// An instant of a query.
pub(super) fn parameter(name: &str, text: Option<&str>) -> Result<Option<UnixMs>, Problem> {
    let parse = |text| parse_rfc3339(text).ok_or_else(|| Problem::bad_query(Fault::new(name, WHY)));
    text.map(parse).transpose()
}

/// The form of an instant of a query, for the document.
pub(super) fn form() -> Object {
    let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
    ObjectBuilder::new().schema_type(Type::String).format(Some(format)).build()
}
