//! Every statement on `outbox_events`, `idempotency_keys` and `event_types`, by what it is for; nobody else has any.

pub(super) mod health;
pub(super) mod keys;
pub(super) mod lists;
pub(super) mod prune;
pub(super) mod record;
pub(super) mod registry;
pub(super) mod relay;
pub(super) mod retry;

/// The repeated statements, each with the index that it relies on; a test looks at their plans.
#[cfg(test)]
pub(super) fn plans() -> Vec<(&'static str, &'static str)> {
    vec![
        (relay::FRESH, "outbox_events_due (next_attempt_at=? AND id>?)"),
        (relay::RETRIES_THEN, "outbox_events_due (next_attempt_at=? AND id>?)"),
        (relay::RETRIES_LATER, "outbox_events_due (next_attempt_at>? AND next_attempt_at<?)"),
        (relay::ONE, "outbox_events USING INTEGER PRIMARY KEY (rowid=?)"),
        (relay::NEXT_DUE, "outbox_events_due (next_attempt_at>?)"),
        (lists::BY_ID, "sqlite_autoindex_outbox_events_1 (tenant_id=? AND event_id<?)"),
        (lists::FAILED, "outbox_events_failed (tenant_id=? AND event_id<?)"),
        (lists::FRESH, "outbox_events_due (next_attempt_at=? AND id>?)"),
        (lists::REFUSED_THEN, "outbox_events_due (next_attempt_at=? AND id>?)"),
        (lists::REFUSED_LATER, "outbox_events_due (next_attempt_at>?)"),
        (lists::FIND, "sqlite_autoindex_outbox_events_1 (tenant_id=? AND event_id=?)"),
        (health::PENDING, "INDEX outbox_events_due"),
        (health::REFUSED, "INDEX outbox_events_due (next_attempt_at>?)"),
        (health::FAILED, "INDEX outbox_events_failed"),
        (health::OLDEST, "outbox_events_due (next_attempt_at>?)"),
        (prune::PAGE, "outbox_events USING INTEGER PRIMARY KEY (rowid>?)"),
        (prune::DELETE_KEYS, "idempotency_keys_created_at (created_at<?)"),
    ]
}
