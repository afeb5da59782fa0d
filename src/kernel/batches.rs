//! Deleting in small steps, so that whatever is pruned, a writer beside it does not notice.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::store::{Db, StoreError, Tx};

/// Rows of one delete. Measured: with this many and the pause, the p99 of a write beside it stays at 6 ms; one
/// statement for everything makes it 77 ms.
pub(crate) const BATCH: usize = 500;
/// Between two deletes, in real time: the writes that came meanwhile go first, and their checkpoints are not piled up.
const PAUSE: Duration = Duration::from_millis(20);

/// Repeats `delete`, which deletes up to so many rows and says how many it did, until fewer are left than a batch or
/// `stop` is cancelled. Returns how many rows were deleted.
///
/// # Errors
/// The store's; what was deleted before stays deleted.
pub(crate) async fn delete_in_batches<F>(db: &Db, stop: &CancellationToken, delete: F) -> Result<u64, StoreError>
where
    F: Fn(&Tx<'_>, i64) -> Result<usize, StoreError> + Clone + Send + 'static,
{
    let mut deleted = 0;
    loop {
        let delete = delete.clone();
        let batch = db.settle(move |tx| delete(tx, BATCH as i64)).await?;
        deleted += batch as u64;
        if batch < BATCH {
            return Ok(deleted);
        }
        if pause(stop).await.is_none() {
            return Ok(deleted);
        }
    }
}

/// Lets others write between two batches; `None` if `stop` was cancelled.
pub(crate) async fn pause(stop: &CancellationToken) -> Option<()> {
    stop.run_until_cancelled(tokio::time::sleep(PAUSE)).await
}

/// How long one transaction deletes rows one by one: of the order of the flush that ends it, so that whoever writes
/// meanwhile waits little longer than for another's write.
const SHARE: Duration = Duration::from_millis(1);

/// The share of time of one transaction, from its beginning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share(Instant);

impl Share {
    pub(crate) fn begin() -> Self {
        Self(Instant::now())
    }

    /// Whether others are to write now.
    pub(crate) fn is_over(self) -> bool {
        self.0.elapsed() >= SHARE
    }
}

/// The pause after it, as a multiple of what it took, and the longest: four of five writes meet no delete at all.
const REST: u32 = 4;
const LONGEST_REST: Duration = Duration::from_millis(50);

/// Deletes rows one by one, in transactions of about a millisecond, until `stop` is cancelled: for rows each of which has
/// to be asked about. `delete` says whether it deleted the row; returns how many were.
///
/// # Errors
/// The store's; what was deleted before stays deleted.
pub(crate) async fn delete_each<F>(
    db: &Db,
    stop: &CancellationToken,
    rows: Vec<i64>,
    delete: F,
) -> Result<u64, StoreError>
where
    F: Fn(&Tx<'_>, i64) -> Result<bool, StoreError> + Clone + Send + 'static,
{
    let rows = Arc::new(rows);
    let (mut from, mut deleted) = (0, 0);
    while from < rows.len() && !stop.is_cancelled() {
        let (rows, delete) = (Arc::clone(&rows), delete.clone());
        let begun = Instant::now();
        let share = move |tx: &Tx<'_>| {
            let time = Share::begin();
            let (mut done, mut deleted) = (from, 0);
            while done < rows.len() && (done == from || !time.is_over()) {
                deleted += u64::from(delete(tx, rows[done])?);
                done += 1;
            }
            Ok::<_, StoreError>((done, deleted))
        };
        let (done, count) = db.settle(share).await?;
        (from, deleted) = (done, deleted + count);
        let _ = stop.run_until_cancelled(tokio::time::sleep((begun.elapsed() * REST).min(LONGEST_REST))).await;
    }
    Ok(deleted)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tokio_util::sync::CancellationToken;

    use super::{BATCH, PAUSE, delete_each, delete_in_batches};
    use crate::kernel::clock::Clock;
    use crate::kernel::store::{Db, Role, Settings, StoreError, Tx};

    fn open(dir: &std::path::Path) -> Db {
        let settings = Settings::small();
        Db::open(dir, Role::Owner("test"), &settings, Clock::stopped_at(1), vec![]).unwrap()
    }

    fn delete(tx: &Tx<'_>, limit: i64) -> Result<usize, StoreError> {
        tx.execute("DELETE FROM numbers WHERE n IN (SELECT n FROM numbers LIMIT ?1)", [limit])
    }

    async fn fill(db: &Db, rows: usize) {
        let rows = i64::try_from(rows).unwrap();
        db.write(move |tx| -> Result<(), StoreError> {
            tx.execute("CREATE TABLE IF NOT EXISTS numbers (n INTEGER PRIMARY KEY) STRICT", [])?;
            let sql = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ?1)
                       INSERT INTO numbers SELECT n FROM c";
            tx.execute(sql, [rows]).map(|_| ())
        })
        .await
        .unwrap();
    }

    #[tokio::test]
    async fn everything_is_deleted_with_a_pause_between_the_batches() {
        let dir = tempfile::tempdir().unwrap();
        let db = open(dir.path());
        fill(&db, 2 * BATCH + 1).await;
        let began = Instant::now();
        assert_eq!(delete_in_batches(&db, &CancellationToken::new(), delete).await.unwrap(), 2 * BATCH as u64 + 1);
        assert!(began.elapsed() >= 2 * PAUSE, "{:?}", began.elapsed());
        assert_eq!(delete_in_batches(&db, &CancellationToken::new(), delete).await.unwrap(), 0);
        db.close().await;
    }

    #[tokio::test]
    async fn a_stop_ends_it_after_the_batch_in_hand() {
        let dir = tempfile::tempdir().unwrap();
        let db = open(dir.path());
        fill(&db, 3 * BATCH).await;
        let stop = CancellationToken::new();
        stop.cancel();
        assert_eq!(delete_in_batches(&db, &stop, delete).await.unwrap(), BATCH as u64);
        db.close().await;
    }

    #[tokio::test]
    async fn rows_are_deleted_one_by_one_but_those_that_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let db = open(dir.path());
        fill(&db, 300).await;
        let delete = |tx: &Tx<'_>, n: i64| Ok(n % 3 != 0 && tx.execute("DELETE FROM numbers WHERE n = ?1", [n])? == 1);
        let rows: Vec<i64> = (1..=310).collect();
        assert_eq!(delete_each(&db, &CancellationToken::new(), rows.clone(), delete).await.unwrap(), 200);
        let stop = CancellationToken::new();
        stop.cancel();
        assert_eq!(delete_each(&db, &stop, rows, |_, _| Ok(true)).await.unwrap(), 0);
        db.close().await;
    }
}
