//! Hot leads: who asked for help, and who is on the way and was here lately.

use super::numbers::{Numbers, PER_PAGE};
use super::sql::{self, Partner};
use super::{Error, partners};
use crate::kernel::store::{StoreError, Tx};
use crate::onboarding::dialog::Reply;
use crate::onboarding::screens::View;
use crate::onboarding::screens::menu::{HOT, NOBODY_HOT};

/// How long somebody on the way counts as being here.
const LATELY_MS: i64 = 48 * 60 * 60 * 1_000;

pub(super) fn show(tx: &Tx<'_>, reply: &Reply<'_>, uid: i64, page: i64) -> Result<(), Error> {
    let asking = sql::count_asking(tx, uid)?;
    let total = asking + sql::count_warm(tx, uid, since(tx))?;
    if total == 0 {
        return reply.show(&NOBODY_HOT, &View::default());
    }
    let numbers = Numbers::of(total, page);
    let mut items = Vec::new();
    for partner in leads(tx, uid, asking, numbers)? {
        let block = if partner.is_asking { "hot_asks_item" } else { "hot_item" };
        items.push(partners::item(tx, reply, block, &partner)?);
    }
    reply.show(&HOT, &partners::list(numbers, items))
}

fn since(tx: &Tx<'_>) -> i64 {
    tx.now() - LATELY_MS
}

/// A page of both together: first those who ask, then the others.
fn leads(tx: &Tx<'_>, uid: i64, asking: i64, numbers: Numbers) -> Result<Vec<Partner>, StoreError> {
    let before = numbers.before();
    let mut leads = if before < asking { sql::asking(tx, uid, PER_PAGE, before)? } else { Vec::new() };
    let rest = PER_PAGE - i64::try_from(leads.len()).unwrap_or(PER_PAGE);
    if rest > 0 {
        leads.extend(sql::warm(tx, uid, since(tx), (rest, (before - asking).max(0)))?);
    }
    Ok(leads)
}
