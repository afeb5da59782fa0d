//! The leads in numbers, and how their queue is. What an operator asks for looks at the newest leads only; what is
//! asked for all the time looks at no more of a status than a few hundred, or counts within its partial index.

use rusqlite::{Row, named_params};

use crate::kernel::clock::{UnixMs, rfc3339};
use crate::kernel::store::{StoreError, Tx, lossy_text};
use crate::leads::NotificationStatus;
use crate::leads::inspect::Day;

/// The most leads that are counted for an operator: a second's work.
pub(crate) const MOST: i64 = 100_000;

/// A source or a priority is a few words; of a program that writes more there, the beginning counts.
macro_rules! grouped {
    ($column:literal) => {
        concat!(
            "SELECT name, count(*) AS n
             FROM (SELECT COALESCE(substr(",
            $column,
            ", 1, 100), '') AS name
                   FROM broker_leads INDEXED BY broker_leads_by_age ORDER BY created_at DESC, id DESC LIMIT :most)
             GROUP BY name ORDER BY n DESC, name LIMIT 20"
        )
    };
}

pub(crate) const BY_NOTIFICATION_STATUS: &str = grouped!("notification_status");
pub(crate) const BY_STATUS: &str = grouped!("status");
pub(crate) const BY_PRIORITY: &str = grouped!("technical_priority");
pub(crate) const BY_SOURCE: &str = grouped!("source");

/// How many of the newest leads have which value, the most frequent first.
pub(crate) fn grouped(tx: &Tx<'_>, statement: &str) -> Result<Vec<(String, i64)>, StoreError> {
    tx.query_all(statement, named_params! { ":most": MOST }, |row| {
        Ok((lossy_text(row, "name")?.unwrap_or_default(), row.get("n")?))
    })
}

/// How many leads there are, counted no further than [`MOST`].
pub(crate) fn looked_at(tx: &Tx<'_>) -> Result<i64, StoreError> {
    let sql = "SELECT count(*) AS n FROM (SELECT 1 FROM broker_leads LIMIT :most)";
    tx.query_one(sql, named_params! { ":most": MOST }, |row| row.get("n"))
}

/// The newest leads by day.
pub(crate) fn by_day(tx: &Tx<'_>) -> Result<Vec<Day>, StoreError> {
    let sql = "
        SELECT created_at / 86400000 AS day, count(*) AS received,
               count(*) FILTER (WHERE notification_status = 'sent') AS sent,
               count(*) FILTER (WHERE notification_status = 'failed') AS failed
        FROM (SELECT created_at, notification_status FROM broker_leads INDEXED BY broker_leads_by_age
              ORDER BY created_at DESC, id DESC LIMIT :most)
        GROUP BY day ORDER BY day DESC LIMIT 30";
    tx.query_all(sql, named_params! { ":most": MOST }, |row| {
        let begins: UnixMs = row.get::<_, i64>("day")?.saturating_mul(86_400_000);
        Ok(Day {
            day: rfc3339(begins).chars().take(10).collect(),
            received: row.get("received")?,
            sent: row.get("sent")?,
            failed: row.get("failed")?,
        })
    })
}

/// How many leads of a status there are, counted no further than `:cap`, and since when the longest of the first
/// `:looked_at` has been in it.
macro_rules! queue {
    ($which:literal, $order:literal, $since:literal) => {
        concat!(
            "SELECT (SELECT count(*) FROM (SELECT 1 FROM broker_leads INDEXED BY ",
            $which,
            " LIMIT :cap)) AS n,
                    (SELECT min(since) FROM (SELECT ",
            $since,
            " AS since FROM broker_leads INDEXED BY ",
            $which,
            " ORDER BY ",
            $order,
            " LIMIT :looked_at)) AS since"
        )
    };
}

/// In the order of [`NotificationStatus::ALL`].
pub(super) const QUEUES: [&str; 5] = [
    queue!(
        "broker_leads_pending WHERE notification_status = 'pending'",
        "created_at, id",
        "max(created_at, COALESCE(notification_manual_retry_requested_at, created_at))"
    ),
    queue!(
        "broker_leads_sending WHERE notification_status = 'sending'",
        "notification_attempted_at, id",
        "COALESCE(notification_attempted_at, created_at)"
    ),
    queue!("broker_leads_sent WHERE notification_status = 'sent'", "created_at, id", "created_at"),
    queue!(
        "broker_leads_failed WHERE notification_status = 'failed'",
        "created_at, id",
        "COALESCE(notification_attempted_at, created_at)"
    ),
    queue!("broker_leads_disabled WHERE notification_status = 'disabled'", "created_at, id", "created_at"),
];

/// How many leads have this status, no more than `cap`, and since when the oldest has.
pub(crate) fn queue(
    tx: &Tx<'_>,
    status: NotificationStatus,
    cap: i64,
    looked_at: i64,
) -> Result<(i64, Option<UnixMs>), StoreError> {
    let both = |row: &Row<'_>| Ok((row.get("n")?, row.get("since")?));
    let params = named_params! { ":cap": cap, ":looked_at": looked_at };
    let at = NotificationStatus::ALL.into_iter().position(|one| one == status).unwrap_or_default();
    tx.query_one(QUEUES[at], params, both)
}

pub(super) const STALE: &str = "
    SELECT count(*) AS n FROM (
        SELECT 1 FROM broker_leads INDEXED BY broker_leads_sending
        WHERE notification_status = 'sending'
          AND (COALESCE(notification_attempted_at, 0) < :before OR notification_attempted_at > :after) LIMIT :cap)";

/// Leads that are `sending` since before or after those instants, or nobody knows since when; counted no further than
/// `cap`.
pub(crate) fn stale(tx: &Tx<'_>, before: UnixMs, after: UnixMs, cap: i64) -> Result<i64, StoreError> {
    tx.query_one(STALE, named_params! { ":before": before, ":after": after, ":cap": cap }, |row| row.get("n"))
}
