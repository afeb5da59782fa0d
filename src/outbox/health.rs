//! How the relay is, for probes, metrics and alerts. What it costs does not grow with what was published: counts stop at
//! [`COUNT_CAP`], and ages look at the first few hundred rows of a partial index.

use serde::Serialize;

use super::sql;
use crate::kernel::store::{StoreError, Tx};

/// Counts stop here, and then mean "that many or more": nobody acts on the difference.
pub(crate) const COUNT_CAP: i64 = 10_000;

/// Fresh events, and refused ones, that are looked at for the oldest. Rows are nearly in the order in which they came, and
/// refused ones are no older than the three hours of their attempts, but those that a person has reopened.
const LOOKED_AT: i64 = 256;

/// The events of all tenants that are not published.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Health {
    /// Not accepted by every consumer yet; [`COUNT_CAP`] means that many or more.
    pub(crate) pending: i64,
    /// Of those, the ones that a consumer has refused or was not asked for; counted as far.
    pub(crate) refused: i64,
    /// How long ago the oldest of the pending ones was stored: of the first few hundred that are due, fresh and refused. One
    /// that a person has reopened counts from when it was first stored, which may be days, and may be missed behind others.
    pub(crate) oldest_pending_age_ms: Option<i64>,
    /// Given up, until a person retries them; counted as far.
    pub(crate) failed: i64,
}

/// How the relay is now.
///
/// # Errors
/// The store's.
pub(crate) fn health(tx: &Tx<'_>) -> Result<Health, StoreError> {
    let (pending, refused, failed) = sql::health::counts(tx, COUNT_CAP)?;
    let oldest = sql::health::oldest_pending(tx, LOOKED_AT)?;
    let oldest_pending_age_ms = oldest.map(|at| tx.now().saturating_sub(at).max(0));
    Ok(Health { pending, refused, oldest_pending_age_ms, failed })
}
