//! Statements that hold the lanes against the events they are made from.

use crate::kernel::store::{StoreError, Tx};

/// A lane that is no open event's, or not of the first of its subject.
macro_rules! stray {
    ($verb:literal, $rest:literal) => {
        concat!(
            $verb,
            " FROM bot_event_lanes AS lane WHERE NOT EXISTS (
               SELECT 1 FROM bot_event_outbox AS head
               WHERE head.id = lane.head_id AND head.subject = lane.subject
                 AND COALESCE(head.next_retry_at, 0) = lane.due_at
                 AND head.processed_at IS NULL AND head.dead_lettered_at IS NULL
                 AND NOT EXISTS (
                   SELECT 1 FROM bot_event_outbox AS earlier
                   WHERE earlier.subject = head.subject AND earlier.id < head.id
                     AND earlier.processed_at IS NULL AND earlier.dead_lettered_at IS NULL))",
            $rest
        )
    };
}

/// The first open event of a subject, without its lane.
macro_rules! missing {
    ($verb:literal, $rest:literal) => {
        concat!(
            $verb,
            " FROM bot_event_outbox AS head INDEXED BY bot_event_outbox_open
             WHERE head.processed_at IS NULL AND head.dead_lettered_at IS NULL
               AND NOT EXISTS (
                 SELECT 1 FROM bot_event_outbox AS earlier
                 WHERE earlier.subject = head.subject AND earlier.id < head.id
                   AND earlier.processed_at IS NULL AND earlier.dead_lettered_at IS NULL)
               AND NOT EXISTS (
                 SELECT 1 FROM bot_event_lanes AS lane
                 WHERE lane.due_at = COALESCE(head.next_retry_at, 0) AND lane.head_id = head.id)",
            $rest
        )
    };
}

/// Whether there is a lane without its event.
pub(crate) fn has_stray_lane(tx: &Tx<'_>) -> Result<bool, StoreError> {
    Ok(tx.query_opt(stray!("SELECT 1", " LIMIT 1"), [], |_| Ok(()))?.is_some())
}

/// Whether there is a first event without its lane.
pub(crate) fn has_missing_lane(tx: &Tx<'_>) -> Result<bool, StoreError> {
    Ok(tx.query_opt(missing!("SELECT 1", " LIMIT 1"), [], |_| Ok(()))?.is_some())
}

/// Removes lanes without their events; how many.
pub(crate) fn remove_stray_lanes(tx: &Tx<'_>) -> Result<usize, StoreError> {
    tx.execute(stray!("DELETE", ""), [])
}

/// Adds the lanes that are missing; how many.
pub(crate) fn add_missing_lanes(tx: &Tx<'_>) -> Result<usize, StoreError> {
    tx.execute(
        missing!(
            "INSERT INTO bot_event_lanes (due_at, head_id, subject)
             SELECT COALESCE(head.next_retry_at, 0), head.id, head.subject",
            ""
        ),
        [],
    )
}
