//! `GET /openapi.json`: what this server answers, written by the handlers themselves.
//!
//! **What.** Every handler carries `#[utoipa::path]`, and `routes!` makes one declaration both its route and its entry in
//! the document, so that neither can be there without the other. A handler names what it answers when it succeeds;
//! what it may refuse comes in the families of [`refusals`]. Forms are described where they are read and written; the
//! domain knows nothing of this.
//!
//! **States.** None: the document is written once, when the routes are put together.
//!
//! **Guarantees.**
//! - There is no route without its entry, and no two entries share an operation id:
//!   `src/edge/http/tests/openapi.rs`.
//! - What is answered is what the document says. Every answer that any test of this edge gets is held to it:
//!   `src/edge/http/tests/conformance.rs`. A generator of requests does the same from outside (`make test-clients`).
//!
//! **Windows.** None: nothing is stored.
//!
//! **Not here.** `/dev/*`, which only tests call, and the methods that an address refuses.

pub(super) mod refusals;

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use utoipa::Modify;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder};
use utoipa_axum::router::OpenApiRouter;

use super::HttpState;

/// Routes of this edge that are documented by being declared.
pub(super) type Routes = OpenApiRouter<Arc<HttpState>>;

/// What is the same for every address.
const ABOUT: &str = "\
Everything that this server answers over HTTP. An address that is not here answers 404, and a method that an address \
does not take 405 with `Allow`; `HEAD` is answered where `GET` is. Every answer carries `X-Request-Id`, which names the \
request in the log. A parameter that an operation does not know is refused with 400 where it could seem to do something.";

/// What the document says before there is any route.
pub(super) fn begin() -> Routes {
    let info = InfoBuilder::new()
        .title("Pillarbox")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(ABOUT))
        .license(Some(LicenseBuilder::new().name("MIT").identifier(Some("MIT")).build()))
        .build();
    let mut document = OpenApiBuilder::new().info(info).build();
    Secrets.modify(&mut document);
    refusals::Shared.modify(&mut document);
    OpenApiRouter::with_openapi(document)
}

/// How callers say who they are. A handler names one of these in `security(…)`.
struct Secrets;

impl Modify for Secrets {
    fn modify(&self, document: &mut OpenApi) {
        let bearer = |description: &str| {
            SecurityScheme::Http(
                HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(description)).build(),
            )
        };
        let api_key = ApiKeyValue::with_description("apikey", "The same key, where the clients of Supabase put it.");
        let telegram_secret = ApiKeyValue::with_description(
            "X-Telegram-Bot-Api-Secret-Token",
            "`telegram.webhook_secret`, which Telegram was given with the webhook.",
        );
        let schemes = [
            ("bot_secret", bearer("`bot.backend_secret`, which the backend and the bot share.")),
            ("service_key", bearer("`leads.service_role_key`, for whoever tells the broker of leads.")),
            ("service_apikey", SecurityScheme::ApiKey(ApiKey::Header(api_key))),
            ("telegram_secret", SecurityScheme::ApiKey(ApiKey::Header(telegram_secret))),
            ("api_key", bearer("A key of a tenant, as `pillarbox keys create` shows it once.")),
        ];
        let components = document.components.get_or_insert_default();
        components.security_schemes.extend(schemes.map(|(name, scheme)| (name.to_owned(), scheme.into())));
    }
}

/// The document as it is served.
pub(super) fn write(document: &OpenApi) -> Bytes {
    let mut document = serde_json::to_value(document).expect("a document is made of texts and numbers");
    document["components"]["headers"] = json!({"RequestId": {
        "description": "Names this request in the log. It is the caller's own if that is 1 to 64 letters, digits, `.`, `_` or `-`.",
        "required": true,
        "schema": {"type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[A-Za-z0-9._-]+$"},
    }});
    for path in members(&mut document["paths"]) {
        for operation in members(path) {
            members(&mut operation["responses"]).for_each(name_the_request);
            let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
            parameters.into_iter().flatten().for_each(be_there_or_not);
            let bodies = operation.pointer_mut("/requestBody/content");
            bodies.into_iter().flat_map(members).for_each(be_no_null);
        }
    }
    members(&mut document["components"]["responses"]).for_each(name_the_request);
    document.to_string().into()
}

/// Every answer carries the request's id, so no handler says so.
fn name_the_request(response: &mut Value) {
    if response.get("$ref").is_none() {
        response["headers"]["X-Request-Id"] = json!({"$ref": "#/components/headers/RequestId"});
    }
}

/// An address and a header have no null: a parameter that may be missing is just not there.
fn be_there_or_not(parameter: &mut Value) {
    if let Some(kind) = parameter.pointer_mut("/schema/type")
        && let Some(kinds) = kind.as_array()
        && let Some(real) = kinds.iter().find(|kind| **kind != "null")
    {
        *kind = real.clone();
    }
}

/// A body that may be missing is not there; `null` is another body.
fn be_no_null(media: &mut Value) {
    let Some(forms) = media.pointer_mut("/schema/oneOf").and_then(Value::as_array_mut) else { return };
    forms.retain(|form| form["type"] != "null");
    if let [form] = forms.as_slice() {
        media["schema"] = form.clone();
    }
}

fn members(value: &mut Value) -> impl Iterator<Item = &mut Value> {
    value.as_object_mut().into_iter().flat_map(|members| members.values_mut())
}

/// Tells what this server answers, as OpenAPI 3.1.
#[utoipa::path(
    get,
    path = "/openapi.json",
    operation_id = "openapi",
    tag = "monitoring",
    responses((status = 200, description = "The document.", body = Value), refusals::Any)
)]
pub(super) async fn show(State(state): State<Arc<HttpState>>) -> Response {
    let text = state.document.get().cloned().unwrap_or_default();
    ([(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-cache")], text).into_response()
}
