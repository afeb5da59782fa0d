-- What the bot has a remote backend do: rows of the transaction that wants it, sent afterwards, at least once.
-- Times are unix milliseconds, UTC.

CREATE TABLE backend_calls (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  -- The backend's name in the ledger: what was meant for one backend is never sent to another.
  source       TEXT NOT NULL,
  -- 'bind' is reserved here, since a CHECK cannot be widened without copying the table.
  kind         TEXT NOT NULL CHECK (kind IN ('notification', 'bind')),
  -- As it is sent; a notification carries its dedup key in it.
  body         TEXT NOT NULL CHECK (CASE WHEN json_valid(body) THEN json_type(body) = 'object' ELSE 0 END),
  -- The uniqueness is the idempotency on this side; on the other side it is the same key.
  dedup_key    TEXT NOT NULL CONSTRAINT backend_calls_once UNIQUE,
  status       TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'sending', 'done', 'failed')),
  attempts     INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0), -- counts claims and is their fence
  due_at       INTEGER NOT NULL,
  locked_until INTEGER,
  lease_boot   TEXT,
  error_code   TEXT, -- of the last attempt that failed
  created_at   INTEGER NOT NULL,
  finished_at  INTEGER,
  CONSTRAINT backend_calls_finished CHECK ((status IN ('done', 'failed')) = (finished_at IS NOT NULL)),
  CONSTRAINT backend_calls_leased
    CHECK ((status = 'sending') = (locked_until IS NOT NULL) AND (status = 'sending') = (lease_boot IS NOT NULL)),
  CONSTRAINT backend_calls_explained CHECK (error_code IS NOT NULL OR status <> 'failed')
) STRICT;

-- The next call of a backend.
CREATE INDEX backend_calls_due ON backend_calls (source, due_at, id) WHERE status = 'pending';
-- What was under way when its sender was lost.
CREATE INDEX backend_calls_sending ON backend_calls (source, locked_until) WHERE status = 'sending';
