-- What finding old rows needs. Times are unix milliseconds, UTC.

-- Housekeeping deletes the oldest finished calls.
CREATE INDEX backend_calls_finished_at ON backend_calls (finished_at) WHERE finished_at IS NOT NULL;
-- Each deleted run is looked for among the requests by its foreign key; without this the table is read once for each.
CREATE INDEX job_requests_by_run ON job_requests (run_id);
