//! Every statement on `job_runs` and `job_requests`; nobody else touches these tables.

use rusqlite::{Row, named_params};

use super::RunRow;
use super::requests::Request;
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

/// Ends every run that is not.
pub(super) fn end_running(tx: &Tx<'_>, outcome: &str, error: &str) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE job_runs SET finished_at = :now, outcome = :outcome, error = :error WHERE outcome = 'running'",
        named_params! { ":now": tx.now(), ":outcome": outcome, ":error": error },
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

/// The oldest requests that wait.
pub(super) fn waiting_requests(tx: &Tx<'_>, limit: i64) -> Result<Vec<Request>, StoreError> {
    tx.query_all(
        "SELECT id, job FROM job_requests INDEXED BY job_requests_waiting WHERE taken_at IS NULL
         ORDER BY id LIMIT :limit",
        named_params! { ":limit": limit },
        request,
    )
}

/// Requests that were taken and have no run.
pub(super) fn unanswered_requests(tx: &Tx<'_>) -> Result<Vec<Request>, StoreError> {
    tx.query_all(
        "SELECT id, job FROM job_requests INDEXED BY job_requests_by_run
         WHERE run_id IS NULL AND taken_at IS NOT NULL ORDER BY id",
        [],
        request,
    )
}

/// Takes a request, unless it is taken; how many that were.
pub(super) fn take_request(tx: &Tx<'_>, id: i64) -> Result<usize, StoreError> {
    tx.execute(
        "UPDATE job_requests SET taken_at = :now WHERE id = :id AND taken_at IS NULL",
        named_params! { ":now": tx.now(), ":id": id },
    )
}

/// Ties a request that was taken to the run that answers it.
pub(super) fn tie_request(tx: &Tx<'_>, id: i64, run_id: i64) -> Result<(), StoreError> {
    tx.execute(
        "UPDATE job_requests SET run_id = :run_id WHERE id = :id",
        named_params! { ":run_id": run_id, ":id": id },
    )?;
    Ok(())
}

/// Deletes up to `limit` requests that were taken before `cutoff`; how many.
pub(super) fn delete_requests(tx: &Tx<'_>, cutoff: UnixMs, limit: i64) -> Result<usize, StoreError> {
    tx.execute(
        "DELETE FROM job_requests WHERE id IN (
           SELECT id FROM job_requests WHERE taken_at < :cutoff ORDER BY id LIMIT :limit)",
        named_params! { ":cutoff": cutoff, ":limit": limit },
    )
}

/// Deletes up to `limit` runs that ended before `cutoff`; how many. Each job's last one stays: it is what is listed.
pub(super) fn delete_runs(tx: &Tx<'_>, cutoff: UnixMs, limit: i64) -> Result<usize, StoreError> {
    tx.execute(
        "DELETE FROM job_runs WHERE id IN (
           SELECT id FROM job_runs AS run
           WHERE finished_at < :cutoff AND EXISTS (
             SELECT 1 FROM job_runs AS later INDEXED BY job_runs_by_job WHERE later.job = run.job AND later.id > run.id)
           ORDER BY id LIMIT :limit)",
        named_params! { ":cutoff": cutoff, ":limit": limit },
    )
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

fn request(row: &Row<'_>) -> rusqlite::Result<Request> {
    Ok(Request { id: row.get("id")?, job: row.get("job")? })
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
