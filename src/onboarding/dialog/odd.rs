//! What the bot has no answer to: it says so, and not at every word.

use super::{Reply, sql};
use crate::kernel::store::Tx;
use crate::onboarding::Error;
use crate::onboarding::screens::View;
use crate::onboarding::screens::steps::{NOT_UNDERSTOOD, STALE};
use crate::onboarding::sql::Person;

/// Who sends ten stickers is told once.
const PAUSE_MS: i64 = 60_000;

/// A button that leads nowhere any more. The message that it is on stays as it is.
pub(super) fn stale(reply: &Reply<'_>) -> Result<(), Error> {
    reply.stand_apart();
    reply.show(&STALE, &View::default())
}

/// A text, a thing or a command that means nothing here.
pub(super) fn not_understood(tx: &Tx<'_>, reply: &Reply<'_>, person: &Person) -> Result<(), Error> {
    // An instant that is yet to come was noted by a clock that has been set back since.
    let is_told = person.puzzled_at.is_some_and(|at| at <= tx.now() && tx.now() - at < PAUSE_MS);
    if is_told {
        return Ok(());
    }
    sql::mark_puzzled(tx, person.telegram_id)?;
    reply.show(&NOT_UNDERSTOOD, &View::default())
}
