//! How webhooks are, for metrics and alerts. Counts stop at [`COUNT_CAP`], and what the rest costs grows with the number
//! of endpoints and not with what waits or was delivered.

use serde::Serialize;

use super::delivery::{Waiting, waiting};
use super::{Error, sql};
use crate::kernel::store::Tx;

/// Counts stop here, and then mean "that many or more": nobody acts on the difference.
pub(crate) const COUNT_CAP: i64 = 10_000;

/// How webhooks are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Health {
    /// Deliveries that wait, those of paused endpoints too.
    pub(crate) pending: i64,
    /// Deliveries that are being sent.
    pub(crate) sending: i64,
    /// For how long the first delivery has been due at an endpoint without a rate at which nothing fails; `None` if none is.
    pub(crate) overdue_ms: Option<i64>,
    /// Endpoints that get something.
    pub(crate) active: i64,
    /// Endpoints that wait.
    pub(crate) paused: i64,
    /// Endpoints that get nothing.
    pub(crate) disabled: i64,
    /// Endpoints, not disabled, whose last attempt failed.
    pub(crate) failing: i64,
}

/// How webhooks are now.
///
/// # Errors
/// The store's.
pub(crate) fn health(tx: &Tx<'_>) -> Result<Health, Error> {
    // What a rate holds back, or a receiver that does not answer, is no delay of ours.
    let is_free = |one: &&Waiting| one.rate_per_second.is_none() && !one.is_failing;
    let first = waiting(tx)?.iter().filter(is_free).map(|one| one.due_at).min();
    let mut health = sql::health::endpoints(tx)?;
    health.overdue_ms = first.map(|at| tx.now().saturating_sub(at)).filter(|age| *age >= 0);
    health.pending = sql::health::pending(tx, COUNT_CAP)?;
    health.sending = sql::health::sending(tx, COUNT_CAP)?;
    Ok(health)
}
