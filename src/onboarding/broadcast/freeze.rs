//! Writing the recipients down, a range of people at a time.

use super::sql::audience::Range;
use super::sql::{self, Broadcast};
use crate::kernel::store::{StoreError, Tx};
use crate::onboarding::content::Lang;

/// People of one write, whether they are in the audience or not: about 15 ms of the writer.
const RANGE: i64 = 2_000;

/// Freezes the next range; how many recipients it had.
pub(super) fn freeze_some(tx: &Tx<'_>, broadcast: &Broadcast, default_lang: Lang) -> Result<u64, StoreError> {
    let after = broadcast.freeze_after.unwrap_or(i64::MIN);
    let upto = sql::audience::last_of_range(tx, after, RANGE)?;
    let range = Range { after, upto: upto.unwrap_or(i64::MAX), default_lang };
    let skipped = sql::audience::freeze(tx, broadcast, range)?;
    let total = i64::try_from(skipped.len()).unwrap_or(i64::MAX);
    let skipped = i64::try_from(skipped.into_iter().filter(|is_skipped| *is_skipped).count()).unwrap_or(i64::MAX);
    sql::note_frozen(tx, broadcast.id, sql::Frozen { upto, total, skipped })?;
    Ok(total.unsigned_abs())
}
