//! What a person may do about events: have them handed over again.

use super::Error;
use super::inspect::Cursor;
use crate::kernel::store::Tx;
use crate::kernel::tenant::TenantId;

/// What a request for a retry did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retried {
    /// It was given up, and is due now, with all its attempts before it.
    Reopened,
    /// It waits for its next attempt, which is due now; its attempts count on.
    Hastened,
}

/// Has an event handed over now to the consumers that have not accepted it.
///
/// # Errors
/// [`Error::NotFound`], [`Error::AlreadyPublished`], the store's.
pub(crate) fn retry(tx: &Tx<'_>, tenant: &TenantId, event_id: &str) -> Result<Retried, Error> {
    let _ = (tx, tenant, event_id);
    Err(Error::NotFound)
}

/// Which failed events, a batch at a time.
#[derive(Clone, Debug)]
pub(crate) struct FailedOnes {
    /// Only those of exactly this type.
    pub(crate) event_type: Option<String>,
    /// Behind this one; where the batch before ended.
    pub(crate) after: Option<Cursor>,
    /// How many are looked at.
    pub(crate) limit: i64,
}

/// What a batch of retries did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    /// How many events were opened again.
    pub(crate) retried: usize,
    /// Where the next batch begins; `None` at the end.
    pub(crate) next: Option<Cursor>,
}

/// Retries a tenant's failed events, a batch at a time.
///
/// # Errors
/// [`Error::Invalid`] for a cursor of another list; the store's.
pub(crate) fn retry_failed(tx: &Tx<'_>, tenant: &TenantId, which: &FailedOnes) -> Result<Batch, Error> {
    let _ = (tx, tenant, which);
    Ok(Batch { retried: 0, next: None })
}
