//! How the queue of notifications is, for probes, metrics and alerts. What it costs does not grow with what was sent:
//! counts stop at [`COUNT_CAP`], and ages look at the first few hundred rows of a partial index.

use serde::Serialize;

use super::claim::not_to_be_believed;
use super::{NotificationStatus, sql};
use crate::kernel::clock::rfc3339;
use crate::kernel::store::{StoreError, Tx};

/// Counts stop here, and then mean "that many or more": nobody acts on the difference.
pub(crate) const COUNT_CAP: i64 = 10_000;
/// So many waiting leads are a backlog even if all are fresh: five minutes' work at the 20 a minute that a group takes.
const BACKLOG: i64 = 100;
/// A lead that waits longer than this is a backlog by itself: whatever disturbs a send for a moment is over by then.
const BACKLOG_AGE_MS: i64 = 15 * 60 * 1000;
/// So many failed ones are not single accidents.
const CRITICAL: i64 = 10;
/// A failed lead that nobody has looked after for a day: the person who wrote is with another broker.
const CRITICAL_AGE_MS: i64 = 24 * 60 * 60 * 1000;
/// Rows of a status that are looked at for the oldest. Past [`BACKLOG`] and [`CRITICAL`] the count alone is the alert,
/// so that nothing an alert rests on is missed.
const LOOKED_AT: i64 = 256;

/// Something that a person should look after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Alert {
    /// A claim was not completed for 15 minutes: its sender died, or does not come back.
    StaleSending,
    /// A notification has failed.
    FailedPresent,
    /// Many have, or one has for a day.
    FailedCritical,
    /// Many wait, or one has for long.
    PendingBacklog,
}

impl Alert {
    /// The alert's code.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::StaleSending => "stale_sending",
            Self::FailedPresent => "failed_present",
            Self::FailedCritical => "failed_critical",
            Self::PendingBacklog => "pending_backlog",
        }
    }
}

/// The leads of one status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Queue {
    /// How many; [`COUNT_CAP`] means that many or more.
    pub(crate) count: i64,
    /// Since when the oldest is in it: a waiting one since it came or was asked for again, one that is being sent or has
    /// failed since its last claim; `sent` and `disabled` tell when the oldest came. Of very many, the oldest of those
    /// that came first.
    pub(crate) oldest_at: Option<String>,
    /// How long ago that was.
    pub(crate) oldest_age_ms: Option<i64>,
}

/// The whole queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Health {
    /// Waiting to be claimed.
    pub(crate) pending: Queue,
    /// Claimed and not completed.
    pub(crate) sending: Queue,
    /// Told.
    pub(crate) sent: Queue,
    /// Given up, until a person asks for it.
    pub(crate) failed: Queue,
    /// Not to be told.
    pub(crate) disabled: Queue,
    /// Claimed for over 15 minutes; counted like the others.
    pub(crate) stale_sending: i64,
    /// Where counts stop.
    pub(crate) count_cap: i64,
    /// What a person should look after.
    pub(crate) alerts: Vec<Alert>,
}

impl Health {
    /// Each status with its leads, in the order in which lists show them.
    pub(crate) fn queues(&self) -> [(NotificationStatus, &Queue); 5] {
        [
            (NotificationStatus::Pending, &self.pending),
            (NotificationStatus::Sending, &self.sending),
            (NotificationStatus::Sent, &self.sent),
            (NotificationStatus::Failed, &self.failed),
            (NotificationStatus::Disabled, &self.disabled),
        ]
    }
}

/// How the queue is now.
///
/// # Errors
/// The store's.
pub(crate) fn health(tx: &Tx<'_>) -> Result<Health, StoreError> {
    let (before, after) = not_to_be_believed(tx.now());
    let mut health = Health {
        pending: queue(tx, NotificationStatus::Pending)?,
        sending: queue(tx, NotificationStatus::Sending)?,
        sent: queue(tx, NotificationStatus::Sent)?,
        failed: queue(tx, NotificationStatus::Failed)?,
        disabled: queue(tx, NotificationStatus::Disabled)?,
        stale_sending: sql::stats::stale(tx, before, after, COUNT_CAP)?,
        count_cap: COUNT_CAP,
        alerts: Vec::new(),
    };
    health.alerts = alerts(&health);
    Ok(health)
}

fn queue(tx: &Tx<'_>, status: NotificationStatus) -> Result<Queue, StoreError> {
    let (count, since) = sql::stats::queue(tx, status, COUNT_CAP, LOOKED_AT)?;
    let oldest_age_ms = since.map(|at| tx.now().saturating_sub(at).max(0));
    Ok(Queue { count, oldest_at: since.map(rfc3339), oldest_age_ms })
}

fn alerts(health: &Health) -> Vec<Alert> {
    let is_older = |queue: &Queue, than: i64| queue.oldest_age_ms.is_some_and(|age| age > than);
    let (failed, pending) = (&health.failed, &health.pending);
    let raised = [
        (Alert::StaleSending, health.stale_sending > 0),
        (Alert::FailedPresent, failed.count > 0),
        (Alert::FailedCritical, failed.count >= CRITICAL || is_older(failed, CRITICAL_AGE_MS)),
        (Alert::PendingBacklog, pending.count > BACKLOG || is_older(pending, BACKLOG_AGE_MS)),
    ];
    raised.into_iter().filter(|(_, is_raised)| *is_raised).map(|(alert, _)| alert).collect()
}
