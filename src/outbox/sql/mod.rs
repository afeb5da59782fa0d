//! Every statement on `outbox_events`, `idempotency_keys` and `event_types`, by what it is for; nobody else has any.

pub(super) mod keys;
pub(super) mod lists;
pub(super) mod record;
pub(super) mod registry;
