//! Statements of digests.

use rusqlite::named_params;

use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

/// The statement behind [`next_leader`]; a test looks at its plan. One seek each: DISTINCT would go through everybody.
pub(crate) const NEXT_LEADER: &str = "
    SELECT MIN(leader_uid) AS leader_uid FROM bot_users INDEXED BY bot_users_by_leader WHERE leader_uid > :after";

/// The next member who has brought anybody.
pub(super) fn next_leader(tx: &Tx<'_>, after: i64) -> Result<Option<i64>, StoreError> {
    tx.query_one(NEXT_LEADER, named_params! { ":after": after }, |row| row.get("leader_uid"))
}

/// Whether a leader's digest of this date is queued.
pub(super) fn is_sent(tx: &Tx<'_>, leader_uid: i64, date: &str) -> Result<bool, StoreError> {
    let sql =
        "SELECT EXISTS (SELECT 1 FROM bot_digests_sent WHERE leader_uid = :leader AND local_date = :date) AS is_sent";
    tx.query_one(sql, named_params! { ":leader": leader_uid, ":date": date }, |row| row.get("is_sent"))
}

/// Notes that a leader's digest of this date is queued; false if it was already.
pub(super) fn insert_once(tx: &Tx<'_>, leader_uid: i64, date: &str, telegram_id: i64) -> Result<bool, StoreError> {
    let sql = "
        INSERT INTO bot_digests_sent (leader_uid, local_date, telegram_id, queued_at)
        VALUES (:leader, :date, :telegram_id, :now)
        ON CONFLICT (leader_uid, local_date) DO NOTHING";
    let params = named_params! { ":leader": leader_uid, ":date": date, ":telegram_id": telegram_id, ":now": tx.now() };
    Ok(tx.execute(sql, params)? > 0)
}

/// Deletes up to so many digests from before an instant; how many.
pub(super) fn delete_older(tx: &Tx<'_>, cutoff: UnixMs, limit: i64) -> Result<usize, StoreError> {
    let sql = "
        DELETE FROM bot_digests_sent WHERE (leader_uid, local_date) IN (
          SELECT leader_uid, local_date FROM bot_digests_sent INDEXED BY bot_digests_sent_age
          WHERE queued_at < :cutoff ORDER BY queued_at LIMIT :limit)";
    tx.execute(sql, named_params! { ":cutoff": cutoff, ":limit": limit })
}
