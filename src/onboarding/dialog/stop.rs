//! `/stop`: nothing more that was not asked for.

use super::{Reply, sql};
use crate::kernel::store::Tx;
use crate::onboarding::Error;
use crate::onboarding::screens::View;
use crate::onboarding::screens::steps::STOPPED;
use crate::onboarding::sql::Person;

/// Opts out of all three kinds. What a person asks for is still answered.
pub(super) fn stop(tx: &Tx<'_>, reply: &Reply<'_>, person: &Person) -> Result<(), Error> {
    sql::opt_out(tx, person.telegram_id)?;
    reply.show(&STOPPED, &View::default())
}
