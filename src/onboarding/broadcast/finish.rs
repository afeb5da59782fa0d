//! The end of a broadcast, told once, in the transaction that brings it about.

use super::sql::{self, Broadcast};
use super::state::State;
use crate::kernel::events::{BroadcastOutcome, Event, FinishedBroadcast};
use crate::kernel::store::{StoreError, Tx};

/// Ends a running broadcast of which nobody is left, and tells of a cancelled one when nothing of it is in the queue any
/// more. To be called by whatever made the queue of a broadcast shorter, or cancelled it, and by nobody else: that happens
/// once, so no mark is needed. Whether it was over.
pub(super) fn finish_if_over(tx: &Tx<'_>, id: i64) -> Result<bool, StoreError> {
    let Some(broadcast) = sql::find(tx, id)? else { return Ok(false) };
    if broadcast.counts.queued > 0 {
        return Ok(false);
    }
    let outcome = match broadcast.state {
        State::Running if broadcast.frozen_at.is_some() && broadcast.counts.pending() == 0 => BroadcastOutcome::Done,
        State::Cancelled => BroadcastOutcome::Cancelled,
        _ => return Ok(false),
    };
    if outcome == BroadcastOutcome::Done {
        sql::finish(tx, id)?;
    }
    tx.publish(&Event::BroadcastFinished(finished(&broadcast, outcome)))?;
    tracing::info!(broadcast.id = id, outcome = outcome.as_str(), "a broadcast is over");
    Ok(true)
}

fn finished(broadcast: &Broadcast, outcome: BroadcastOutcome) -> FinishedBroadcast {
    let counts = broadcast.counts;
    FinishedBroadcast {
        id: broadcast.id,
        outcome,
        total: counts.total,
        sent: counts.sent,
        undeliverable: counts.undeliverable,
        unknown: counts.unknown,
        skipped: counts.skipped,
    }
}
