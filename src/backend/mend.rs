//! Puts lanes right that somebody has taken out of step by hand. The triggers keep them, whatever is done to events; but
//! a lane is a row like any other, and without one its subject would not be served again.

use super::{BOT_EVENTS, sql};
use crate::kernel::store::{Db, StoreError};

/// What a pass mended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mended {
    pub(crate) removed: u64,
    pub(crate) added: u64,
}

/// Looks through all lanes and open events by reading, and mends what is out of step in one short write.
///
/// # Errors
/// The store's.
pub(crate) async fn run_once(db: &Db) -> Result<Mended, StoreError> {
    let is_wrong = db.read(|tx| Ok::<_, StoreError>(sql::has_stray_lane(tx)? || sql::has_missing_lane(tx)?)).await?;
    if !is_wrong {
        return Ok(Mended::default());
    }
    let mended = db
        .settle(|tx| {
            tx.wake(BOT_EVENTS);
            Ok::<_, StoreError>(Mended {
                removed: sql::remove_stray_lanes(tx)? as u64,
                added: sql::add_missing_lanes(tx)? as u64,
            })
        })
        .await?;
    tracing::warn!(
        removed = mended.removed,
        added = mended.added,
        "lanes of bot events were out of step and were mended; something writes bot_event_lanes"
    );
    Ok(mended)
}
