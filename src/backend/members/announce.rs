//! Members of other programs: telling of what they have reached, as [`super::put()`] does for its own.

use tokio_util::sync::CancellationToken;

use super::announce_one;
use crate::backend::sql;
use crate::kernel::store::{Db, StoreError, Tx};

/// Members of one write: others may write in between.
const BATCH: i64 = 50;

/// Tells of every member that another program wrote and of whom something is to be told; how many that were. An idle look
/// writes nothing, and a store that takes no new work now is asked again by the next pass.
///
/// # Errors
/// The store's.
pub(crate) async fn announce_all(db: &Db, stop: &CancellationToken) -> Result<u64, StoreError> {
    let (mut announced, mut after) = (0, 0);
    while !stop.is_cancelled() && db.read(move |tx| has_unannounced(tx, after)).await? {
        let done = match db.write(move |tx| announce(tx, after, BATCH)).await {
            Ok(done) => done,
            Err(StoreError::DiskLow | StoreError::QueueFull) => break,
            Err(error) => return Err(error),
        };
        announced += done.announced;
        let Some(last) = done.last else { break };
        after = last;
    }
    if announced > 0 {
        metrics::counter!("pillarbox_members_total", "outcome" => "announced").increment(announced);
    }
    Ok(announced)
}

fn has_unannounced(tx: &Tx<'_>, after: i64) -> Result<bool, StoreError> {
    Ok(!sql::unannounced_members(tx, after, 1)?.is_empty())
}

/// What one write did.
struct Announced {
    announced: u64,
    /// The last member that was looked at.
    last: Option<i64>,
}

/// Tells of up to `limit` members behind `after`, lowest first. One of whom this cannot be recorded is left, and holds up
/// nobody.
fn announce(tx: &Tx<'_>, after: i64, limit: i64) -> Result<Announced, StoreError> {
    let mut done = Announced { announced: 0, last: None };
    for uid in sql::unannounced_members(tx, after, limit)? {
        done.last = Some(uid);
        match tx.attempt(|| StoreError::NoRow, || announce_one(tx, uid))? {
            Ok(_) => done.announced += 1,
            Err(error) => tracing::error!(member.uid = uid, %error, "what a member has reached could not be told"),
        }
    }
    Ok(done)
}
