//! What an operation may refuse, in families: a handler names those that what it reads and asks for can end in.
//!
//! Each status is described once, under the document's shared responses. All of these are `application/problem+json`;
//! `/leads` and `/rest` answer in shapes of their own and describe them beside those.

use std::collections::BTreeMap;

use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{Content, OpenApi, Ref, RefOr};
use utoipa::{IntoResponses, Modify, PartialSchema, ToSchema};

use crate::edge::http::error::ProblemBody;

/// Status, name among the shared responses, description, and whether it says when to come back.
const PROBLEMS: [(u16, &str, &str, bool); 13] = [
    (400, "BadRequest", "A parameter or the framing of the body is wrong, or the body is not JSON at all.", false),
    (401, "Unauthorized", "The right secret is missing. The same for every wrong guess.", false),
    (403, "Forbidden", "The key is known, and may not do this.", false),
    (404, "NotFound", "There is no such thing, or it is somebody else's.", false),
    (408, "RequestTimeout", "The body did not arrive in time.", false),
    (409, "Conflict", "It cannot be done as things are.", false),
    (410, "Gone", "It was used or is over.", false),
    (413, "ContentTooLarge", "The body is larger than what is read.", false),
    (415, "UnsupportedMediaType", "The body is not announced as JSON.", false),
    (422, "UnprocessableContent", "The body is JSON of another form; `errors` names the fields.", false),
    (429, "TooManyRequests", "Too often; later it may be taken.", true),
    (500, "InternalError", "Something went wrong here; the log has it under the request's id.", false),
    (
        503,
        "Unavailable",
        "The store cannot be used now, or this address is closed because its secret is not set.",
        true,
    ),
];

/// Puts the responses that handlers refer to into the document, with their form.
pub(super) struct Shared;

impl Modify for Shared {
    fn modify(&self, document: &mut OpenApi) {
        let mut schemas = vec![(ProblemBody::name().into_owned(), ProblemBody::schema())];
        ProblemBody::schemas(&mut schemas);
        let components = document.components.get_or_insert_default();
        components.schemas.extend(schemas);
        for (status, name, description, tells_when) in PROBLEMS {
            components.responses.insert(name.to_owned(), problem(status, description, tells_when).into());
        }
    }
}

fn problem(status: u16, description: &str, tells_when: bool) -> Response {
    let form = Ref::from_schema_name(ProblemBody::name());
    let mut response =
        ResponseBuilder::new().description(description).content("application/problem+json", Content::new(Some(form)));
    if tells_when {
        response = response.header("Retry-After", retry_after());
    }
    if status == 401 {
        let challenge = HeaderBuilder::new().description(Some("`Bearer`")).build();
        response = response.header("WWW-Authenticate", challenge);
    }
    response.build()
}

/// The header that says when to come back.
pub(in crate::edge::http) fn retry_after() -> utoipa::openapi::Header {
    let seconds = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).build();
    HeaderBuilder::new().description(Some("Seconds to wait, where that is known.")).schema(Some(seconds)).build()
}

/// Declares families: a name, the statuses that it stands for.
macro_rules! families {
    ($($(#[$meta:meta])* $name:ident = $statuses:expr;)+) => {$(
        $(#[$meta])*
        pub(in crate::edge::http) struct $name;

        impl IntoResponses for $name {
            fn responses() -> BTreeMap<String, RefOr<Response>> {
                shared(&$statuses)
            }
        }
    )+};
}

families! {
    /// Everything that is answered at all may end in these.
    Any = [500, 503];
    /// The address wants a secret.
    Secret = [401, 503];
    /// The address wants a key, and not every key may do everything.
    Key = [401, 403, 503];
    /// The address reads parameters, or takes none.
    Query = [400];
    /// The address reads a JSON body.
    Body = [400, 408, 413, 415, 422];
    /// The address names something that may not be there.
    Missing = [404];
    /// The address takes what can be used once, and for a time.
    Over = [410];
    /// Not everybody can be served at the same time.
    TooMany = [429];
    /// What is asked for may not be possible as things are.
    Conflict = [409];
}

fn shared(statuses: &[u16]) -> BTreeMap<String, RefOr<Response>> {
    let named = PROBLEMS.iter().filter(|(status, ..)| statuses.contains(status));
    debug_assert_eq!(named.clone().count(), statuses.len(), "a status without a problem: {statuses:?}");
    named.map(|(status, name, ..)| (status.to_string(), Ref::from_response_name(*name).into())).collect()
}
