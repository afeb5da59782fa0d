//! Having dead updates handled again, once what killed them is mended.

use serde::Serialize;

use super::args::ReplayArgs;
use crate::chat::inbox;
use crate::edge::cli::Exit;
use crate::edge::cli::print::Printer;
use crate::kernel::store::{Db, StoreError};

/// Updates that one transaction changes: others may write in between.
const BATCH: i64 = 200;

/// What became of one id.
#[derive(Serialize)]
struct Answer {
    id: i64,
    replayed: bool,
}

/// Replays those named, or all.
///
/// # Errors
/// The store's, or stdout's.
pub(super) async fn replay(db: &Db, args: ReplayArgs) -> anyhow::Result<Exit> {
    let mut printer = Printer::stdout(args.printed);
    let mut ids = args.ids;
    ids.sort_unstable();
    ids.dedup();
    let mut all = true;
    let mut after = 0;
    loop {
        if args.all_dead {
            ids = db.read(move |tx| inbox::dead_after(tx, after, BATCH)).await?;
        }
        let Some(&last) = ids.last() else { break };
        after = last;
        let batch = std::mem::take(&mut ids);
        for (id, replayed) in replay_batch(db, batch).await? {
            all &= replayed;
            let what = if replayed { "is handled again" } else { "is not dead: nothing changed" };
            printer.one(&Answer { id, replayed }, &format!("{id} {what}"))?;
        }
    }
    Ok(if all { Exit::Ok } else { Exit::Failure })
}

async fn replay_batch(db: &Db, ids: Vec<i64>) -> Result<Vec<(i64, bool)>, StoreError> {
    db.write(move |tx| ids.into_iter().map(|id| Ok((id, inbox::replay(tx, id)?))).collect()).await
}
