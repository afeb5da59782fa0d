//! `/v1`: what tenants do with the keys that speak for them: events in, endpoints, deliveries.
//!
//! **What.** [`routes()`] is the map, each route with the right that it asks for (`admission.rs`). A handler decodes, makes
//! one call of the domain with the key's tenant, and encodes; forms are beside the handlers in `*_forms.rs`.
//!
//! **States.** None of its own.
//!
//! **Guarantees.**
//! - No route answers without a valid key of the right role, and a stranger, whoever he is, gets one and the same answer:
//!   `src/edge/http/tests/v1/roles.rs::every_role_may_call_what_the_table_says_and_nothing_else`,
//!   `src/edge/http/tests/v1/roles.rs::strangers_get_one_and_the_same_answer`.
//! - What is another tenant's looks like what never was, on every route of the document:
//!   `src/edge/http/tests/v1/isolation.rs::what_is_anothers_looks_like_what_never_was`.
//! - The same key with the same body gets the same answer and stores nothing twice, also when both come at once:
//!   `src/edge/http/tests/v1/idempotency.rs::of_many_posts_at_once_under_one_key_one_is_stored`.
//! - Members are the installation's: only its own `admin` keys may call their routes, and every other key gets 403:
//!   `src/edge/http/tests/v1/members.rs::members_are_the_installations`.
//! - A batch is stored whole or not at all: `src/edge/http/tests/v1/events.rs::a_batch_is_stored_whole_or_not_at_all`.
//! - Data is kept and shown byte for byte: `src/edge/http/tests/v1/events.rs::data_is_kept_and_shown_byte_for_byte`.
//! - Pages are complete and repeat nothing while rows come:
//!   `src/edge/http/tests/v1/pages.rs::lists_are_complete_and_repeat_nothing_while_rows_come`.
//! - Bad input is a 4xx problem that names the field, never a 500: `src/edge/http/tests/v1/bad_input.rs`, and beside
//!   every form its own test.
//!
//! **Windows.**
//! - A caller that goes away may have had its write committed. A post with a key can be repeated
//!   (`src/edge/http/tests/v1/idempotency.rs::the_same_post_gets_the_same_answer_and_another_is_refused`), and so can
//!   everything else that changes something but the making of an endpoint, which is in the list then, and the test button.
//! - A call that queues deliveries again may be cut off between two batches; the next goes on with the rest
//!   (`src/edge/http/tests/v1/deliveries.rs::a_call_that_cannot_queue_all_says_so_and_the_next_goes_on`).
//! - A test that was sent is recorded although its caller is gone
//!   (`src/edge/http/tests/v1/test_button.rs::a_test_is_recorded_although_its_caller_went_away`); not if the process ends
//!   in between.
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
mod member_forms;
mod members;
mod page;
mod path;
mod test_button;
mod time;

use std::sync::Arc;

use utoipa::openapi::schema::{Object, ObjectBuilder, SchemaType, Type};
use utoipa_axum::routes;

pub(super) use admission::find_caller;
pub(crate) use delivery_forms::DeliveryBody;
pub(crate) use endpoint_forms::EndpointBody;
pub(crate) use member_forms::{FIELDS, MemberForm, read_member};
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
        .takes_of_installation(routes!(members::put, members::show))
        .takes_of_installation(routes!(members::redeem))
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
