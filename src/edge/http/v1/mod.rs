//! `/v1`: what tenants do with the keys that speak for them: events in, endpoints, deliveries.
//!
//! **What.** [`routes()`] is the map, each route with the right that it asks for (`admission.rs`). A handler decodes, makes
//! one call of the domain with the key's tenant, and encodes; forms are beside the handlers in `*_forms.rs`.
//!
//! **States.** None of its own.
//!
//! **Guarantees.**
//! - No route answers without a valid key of the right role, and a stranger, whoever he is, gets one and the same answer:
//!   `src/edge/http/tests/v1/roles.rs`.
//! - What is another tenant's looks like what never was, on every route of the document:
//!   `src/edge/http/tests/v1/isolation.rs`.
//! - The same key with the same body gets the same answer and stores nothing twice, also when both come at once:
//!   `src/edge/http/tests/v1/idempotency.rs`.
//! - A batch is stored whole or not at all, and data is kept byte for byte: `src/edge/http/tests/v1/events.rs`.
//! - Pages are complete and repeat nothing while rows come: `src/edge/http/tests/v1/pages.rs`.
//!
//! **Windows.** A caller that goes away may have had its write committed; a post with a key can be repeated, and so can
//! everything else that changes something but the making of an endpoint and the test button.
//!
//! **Not here.** Tenants and keys are made on the command line only: a key cannot make keys.

mod admission;
mod catch_up;
mod deliveries;
mod delivery_forms;
mod endpoint_forms;
mod endpoints;
mod event_forms;
mod events;
mod keyed;
mod page;
mod path;
mod test_button;
mod time;

use std::sync::Arc;

use utoipa::openapi::schema::{Object, ObjectBuilder, SchemaType, Type};
use utoipa_axum::routes;

pub(super) use admission::find_caller;
pub(super) use test_button::MOST_TESTS;

use self::admission::Surface;
use super::HttpState;
use super::openapi::Routes;
use crate::tenants::Right;
use crate::webhooks::{Egress, Transport, Vault};

/// Every route of `/v1`, but that of the leads.
pub(super) fn routes(state: &Arc<HttpState>) -> Routes {
    Surface::new(state)
        .takes(Right::Publish, routes!(events::post))
        .takes(Right::Publish, routes!(events::post_batch))
        .takes(Right::Read, routes!(events::list))
        .takes(Right::Read, routes!(events::show))
        .takes(Right::Administer, routes!(events::retry))
        .takes(Right::Administer, routes!(endpoints::create))
        .takes(Right::Read, routes!(endpoints::list))
        .takes(Right::Read, routes!(endpoints::show))
        .takes(Right::Administer, routes!(endpoints::update))
        .takes(Right::Administer, routes!(endpoints::delete))
        .takes(Right::Administer, routes!(endpoints::rotate_secret))
        .takes(Right::Administer, routes!(test_button::send))
        .takes(Right::Administer, routes!(catch_up::recover))
        .takes(Right::Administer, routes!(catch_up::replay_skipped))
        .takes(Right::Read, routes!(deliveries::list))
        .takes(Right::Read, routes!(deliveries::show))
        .takes(Right::Read, routes!(deliveries::attempts))
        .takes(Right::Administer, routes!(deliveries::resend))
        .routes()
}

/// What the addresses of endpoints work with; clones share it.
#[derive(Clone, Debug)]
pub(crate) struct WebhookTools {
    /// The judge of where webhooks may go.
    pub(crate) egress: Egress,
    /// Seals and opens the secrets of endpoints.
    pub(crate) vault: Vault,
    /// Sends tests.
    pub(crate) transport: Transport,
}

/// One of these words.
fn words(words: &[&'static str]) -> Object {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words.iter().copied())).build()
}

/// One of these words, or nothing.
fn words_or_null(words: &[&'static str]) -> Object {
    let kinds = SchemaType::from_iter([Type::String, Type::Null]);
    let words = words.iter().map(|word| Some(*word)).chain([None]);
    ObjectBuilder::new().schema_type(kinds).enum_values(Some(words)).build()
}
