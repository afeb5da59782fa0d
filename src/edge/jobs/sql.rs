//! Every statement on `job_runs` and `job_requests`; nobody else touches these tables.

use rusqlite::{Row, named_params};

use super::RunRow;
use crate::kernel::clock::{UnixMs, rfc3339};
use crate::kernel::store::{StoreError, Tx};

/// Begins a recorded run; `None` if the run of that instant is in the table already.
pub(super) fn begin(tx: &Tx<'_>, job: &str, scheduled_for: Option<UnixMs>) -> Result<Option<i64>, StoreError> {
    tx.query_opt(
        "INSERT INTO job_runs (job, scheduled_for, started_at, outcome) VALUES (:job, :scheduled_for, :now, 'running')
         ON CONFLICT (job, scheduled_for) DO NOTHING
         RETURNING id",
        named_params! { ":job": job, ":scheduled_for": scheduled_for, ":now": tx.now() },
        |row| row.get("id"),
    )
}

/// Ends a run.
pub(super) fn end(
    tx: &Tx<'_>,
    id: i64,
    outcome: &str,
    counts: Option<&str>,
    error: Option<&str>,
) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE job_runs SET finished_at = :now, outcome = :outcome, counts = :counts, error = :error WHERE id = :id",
        named_params! { ":now": tx.now(), ":outcome": outcome, ":counts": counts, ":error": error, ":id": id },
    )?;
    Ok(())
}

/// Marks runs that an earlier process did not end.
pub(super) fn interrupt_running(tx: &Tx<'_>) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE job_runs SET finished_at = :now, outcome = 'interrupted' WHERE outcome = 'running'",
        named_params! { ":now": tx.now() },
    )?;
    Ok(())
}

/// The last recorded run of one job.
pub(super) fn find_last(tx: &Tx<'_>, job: &str) -> Result<Option<RunRow>, StoreError> {
    tx.query_opt(
        "SELECT id, job, scheduled_for, started_at, finished_at, outcome, counts, error
         FROM job_runs INDEXED BY job_runs_by_job WHERE job = :job ORDER BY id DESC LIMIT 1",
        named_params! { ":job": job },
        run_row,
    )
}

/// Leaves a request; its id.
pub(super) fn insert_request(tx: &Tx<'_>, job: &str) -> Result<i64, StoreError> {
    tx.execute(
        "INSERT INTO job_requests (job, requested_at) VALUES (:job, :now)",
        named_params! { ":job": job, ":now": tx.now() },
    )?;
    Ok(tx.last_insert_id())
}

/// Whether a request waits.
pub(super) fn has_request(tx: &Tx<'_>) -> Result<bool, StoreError> {
    tx.query_one(
        "SELECT EXISTS (SELECT 1 FROM job_requests INDEXED BY job_requests_waiting WHERE taken_at IS NULL) AS waits",
        [],
        |row| row.get("waits"),
    )
}

/// Takes the oldest request that waits: its id and the job's name.
pub(super) fn take_request(tx: &Tx<'_>) -> Result<Option<(i64, String)>, StoreError> {
    tx.query_opt(
        "UPDATE job_requests SET taken_at = :now
         WHERE id = (SELECT id FROM job_requests WHERE taken_at IS NULL ORDER BY id LIMIT 1)
         RETURNING id, job",
        named_params! { ":now": tx.now() },
        |row| Ok((row.get("id")?, row.get("job")?)),
    )
}

/// Ties a request to the run that answered it.
pub(super) fn answer_request(tx: &Tx<'_>, id: i64, run_id: i64) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE job_requests SET run_id = :run_id WHERE id = :id",
        named_params! { ":run_id": run_id, ":id": id },
    )?;
    Ok(())
}

/// The finished run that answered a request.
pub(super) fn find_requested_run(tx: &Tx<'_>, request_id: i64) -> Result<Option<RunRow>, StoreError> {
    tx.query_opt(
        "SELECT run.id, run.job, scheduled_for, started_at, finished_at, outcome, counts, error
         FROM job_requests AS request
         JOIN job_runs AS run ON run.id = request.run_id
         WHERE request.id = :id AND run.finished_at IS NOT NULL",
        named_params! { ":id": request_id },
        run_row,
    )
}

fn run_row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    let counts: Option<String> = row.get("counts")?;
    Ok(RunRow {
        id: row.get("id")?,
        job: row.get("job")?,
        scheduled_for: row.get::<_, Option<UnixMs>>("scheduled_for")?.map(rfc3339),
        started_at: rfc3339(row.get("started_at")?),
        finished_at: row.get::<_, Option<UnixMs>>("finished_at")?.map(rfc3339),
        outcome: row.get("outcome")?,
        counts: counts.and_then(|text| serde_json::from_str(&text).ok()),
        error: row.get("error")?,
    })
}
