-- The store's own row, the backend's bot event outbox, the bot's ledger and users, domain events, job runs.
--
-- The schema is a public contract: another program may insert into bot_event_outbox and outbox_events in its own
-- transaction. Defaults, checks and triggers make such rows valid, with nothing newer than SQLite 3.40. Times are
-- INTEGER unix milliseconds, UTC.

-- One row that readiness writes, to see that the store can.
CREATE TABLE store_probe (
  id        INTEGER PRIMARY KEY CHECK (id = 1),
  probed_at INTEGER NOT NULL
) STRICT;
INSERT INTO store_probe (id, probed_at) VALUES (1, 0);

-- ---------------------------------------------------------------------------------------------------------------
-- The backend's members. A binding ties a Telegram chat to a member; a preview is no binding.
CREATE TABLE members (
  uid                    INTEGER PRIMARY KEY,
  link                   TEXT UNIQUE,
  name                   TEXT,
  telegram_id            INTEGER UNIQUE,
  preview_telegram_id    INTEGER,
  parent_uid             INTEGER,
  addr                   TEXT,
  lp1                    INTEGER NOT NULL DEFAULT 0 CHECK (lp1 IN (0, 1)),
  lp2                    INTEGER NOT NULL DEFAULT 0 CHECK (lp2 IN (0, 1)),
  time_active            INTEGER,
  registration_confirmed INTEGER NOT NULL DEFAULT 0 CHECK (registration_confirmed IN (0, 1))
) STRICT;

-- What a member is told in the web cabinet when the bot cannot reach them.
CREATE TABLE web_notifications (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  magnet_uid INTEGER NOT NULL,
  kind       TEXT NOT NULL,
  title      TEXT NOT NULL,
  body       TEXT NOT NULL,
  -- Once per event: the idempotency of the fallback.
  dedup_key  TEXT,
  created_at INTEGER NOT NULL,
  CONSTRAINT web_notifications_once UNIQUE (dedup_key)
) STRICT;

-- ---------------------------------------------------------------------------------------------------------------
-- Events from the backend to the bot. open: not processed, not dead · processed: handled · abandoned · dead.
CREATE TABLE bot_event_outbox (
  -- An id that JavaScript can say, and a time that RFC 3339 can say: one row that a client cannot take would keep everybody's page from it.
  id               INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id BETWEEN 1 AND 9007199254740991),
  event_type       TEXT NOT NULL CHECK (length(event_type) BETWEEN 1 AND 64),
  telegram_id      INTEGER,
  magnet_uid       INTEGER,
  -- At most 16 KiB, as over HTTP: one larger than a page's reader takes would keep its page from being fetched.
  payload          TEXT CHECK (length(CAST(payload AS BLOB)) <= 16384)
                        CHECK (payload IS NULL OR CASE WHEN json_valid(payload) THEN json_type(payload) = 'object' ELSE 0 END),
  created_at       INTEGER NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER))
                   CHECK (created_at BETWEEN 0 AND 253402300799999),
  processed_at     INTEGER,
  attempts         INTEGER NOT NULL DEFAULT 0 CHECK (attempts BETWEEN 0 AND 1000000),
  claimed_at       INTEGER,
  locked_until     INTEGER,
  last_error       TEXT CHECK (length(last_error) <= 300),
  last_attempt_at  INTEGER,
  next_retry_at    INTEGER,
  -- Whose order the event is in: 'uid:N' if the member is known, also through the binding, else 'tg:N'. Set below.
  subject          TEXT,
  outcome          TEXT CHECK (outcome IN ('handled', 'abandoned')),
  dead_lettered_at INTEGER,
  lease_boot       TEXT,
  dedup_key        TEXT CHECK (length(dedup_key) BETWEEN 1 AND 200),
  CONSTRAINT bot_event_outbox_has_subject CHECK (telegram_id IS NOT NULL OR magnet_uid IS NOT NULL),
  CONSTRAINT bot_event_outbox_outcome_when_processed CHECK ((processed_at IS NULL) = (outcome IS NULL)),
  CONSTRAINT bot_event_outbox_dead_is_not_processed CHECK (dead_lettered_at IS NULL OR processed_at IS NULL),
  CONSTRAINT bot_event_outbox_lease_is_whole CHECK ((locked_until IS NULL) = (lease_boot IS NULL))
) STRICT;

-- A re-sync cannot emit twice: the idempotency of emitting. Most events have no key, and cost nothing here.
CREATE UNIQUE INDEX bot_event_outbox_emitted_once ON bot_event_outbox (dedup_key) WHERE dedup_key IS NOT NULL;
-- The open events of a subject, in their order.
CREATE INDEX bot_event_outbox_open ON bot_event_outbox (subject, id)
  WHERE processed_at IS NULL AND dead_lettered_at IS NULL;
-- The oldest open event, and the list of them.
CREATE INDEX bot_event_outbox_waiting ON bot_event_outbox (id)
  WHERE processed_at IS NULL AND dead_lettered_at IS NULL;
-- What was given up, for the one who looks.
CREATE INDEX bot_event_outbox_dead ON bot_event_outbox (id) WHERE dead_lettered_at IS NOT NULL;
CREATE INDEX bot_event_outbox_abandoned ON bot_event_outbox (id) WHERE outcome = 'abandoned';

-- One row per subject with open events: its head and when that is due. Kept by the triggers below, so that taking a
-- page costs the same with a million events behind one waiting head. A lease is on the events; the head's counts.
-- A lane is found by its head, never by its subject: so lanes lie in the order in which they are taken, and a change
-- touches a page or two of them, where a key by subject would touch another page for every subject.
CREATE TABLE bot_event_lanes (
  due_at  INTEGER NOT NULL, -- the head's next_retry_at, or 0
  head_id INTEGER NOT NULL, -- the lowest open id
  subject TEXT NOT NULL,
  PRIMARY KEY (due_at, head_id)
) STRICT, WITHOUT ROWID;

-- REPLACE would remove a row without telling anybody (its delete fires no trigger): an event of a known key is left out
-- whatever the verb, which is what a dedup key means, and an id is given once.
CREATE TRIGGER bot_event_outbox_known BEFORE INSERT ON bot_event_outbox
WHEN NEW.dedup_key IS NOT NULL AND EXISTS (SELECT 1 FROM bot_event_outbox WHERE dedup_key = NEW.dedup_key)
BEGIN
  SELECT RAISE(IGNORE);
END;
CREATE TRIGGER bot_event_outbox_id_taken BEFORE INSERT ON bot_event_outbox
WHEN EXISTS (SELECT 1 FROM bot_event_outbox WHERE id = NEW.id)
BEGIN
  SELECT RAISE(ABORT, 'bot_event_outbox: this id is taken; leave the id out');
END;
CREATE TRIGGER bot_event_outbox_id_kept BEFORE UPDATE OF id ON bot_event_outbox
WHEN NEW.id IS NOT OLD.id
BEGIN
  SELECT RAISE(ABORT, 'bot_event_outbox: the id of an event is its place in the order and cannot be changed');
END;

CREATE TRIGGER bot_event_outbox_inserted AFTER INSERT ON bot_event_outbox
WHEN NEW.processed_at IS NULL AND NEW.dead_lettered_at IS NULL
BEGIN
  -- Whatever the inserting program wrote there; our own statement writes it right, which saves the second write.
  UPDATE bot_event_outbox SET subject = CASE
      WHEN NEW.magnet_uid IS NOT NULL THEN 'uid:' || NEW.magnet_uid
      ELSE COALESCE((SELECT 'uid:' || uid FROM members WHERE telegram_id = NEW.telegram_id), 'tg:' || NEW.telegram_id)
    END
    WHERE id = NEW.id AND subject IS NOT CASE
      WHEN NEW.magnet_uid IS NOT NULL THEN 'uid:' || NEW.magnet_uid
      ELSE COALESCE((SELECT 'uid:' || uid FROM members WHERE telegram_id = NEW.telegram_id), 'tg:' || NEW.telegram_id)
    END;
  -- A new event is behind its subject's head, unless it was inserted with an id of its own.
  DELETE FROM bot_event_lanes WHERE (due_at, head_id) = (
    SELECT COALESCE(later.next_retry_at, 0), later.id FROM bot_event_outbox AS it
    JOIN bot_event_outbox AS later ON later.subject = it.subject
      AND later.processed_at IS NULL AND later.dead_lettered_at IS NULL AND later.id > it.id
    WHERE it.id = NEW.id ORDER BY later.id LIMIT 1);
  INSERT INTO bot_event_lanes (due_at, head_id, subject)
    SELECT COALESCE(it.next_retry_at, 0), it.id, it.subject FROM bot_event_outbox AS it
    WHERE it.id = NEW.id AND NOT EXISTS (
      SELECT 1 FROM bot_event_outbox AS earlier WHERE earlier.subject = it.subject
        AND earlier.processed_at IS NULL AND earlier.dead_lettered_at IS NULL AND earlier.id < it.id)
    -- A subject that had to be put right above has brought its lane along.
    ON CONFLICT (due_at, head_id) DO NOTHING;
END;

CREATE TRIGGER bot_event_outbox_closed AFTER UPDATE OF processed_at, dead_lettered_at ON bot_event_outbox
WHEN OLD.processed_at IS NULL AND OLD.dead_lettered_at IS NULL
 AND (NEW.processed_at IS NOT NULL OR NEW.dead_lettered_at IS NOT NULL)
BEGIN
  DELETE FROM bot_event_lanes WHERE due_at = COALESCE(OLD.next_retry_at, 0) AND head_id = OLD.id;
  -- The next one is the head now; it has been all along if what was closed was none.
  INSERT INTO bot_event_lanes (due_at, head_id, subject)
    SELECT COALESCE(next_retry_at, 0), id, subject FROM bot_event_outbox
    WHERE subject = OLD.subject AND processed_at IS NULL AND dead_lettered_at IS NULL ORDER BY id LIMIT 1
    ON CONFLICT (due_at, head_id) DO NOTHING;
END;

CREATE TRIGGER bot_event_outbox_reopened AFTER UPDATE OF processed_at, dead_lettered_at ON bot_event_outbox
WHEN (OLD.processed_at IS NOT NULL OR OLD.dead_lettered_at IS NOT NULL)
 AND NEW.processed_at IS NULL AND NEW.dead_lettered_at IS NULL
BEGIN
  DELETE FROM bot_event_lanes WHERE (due_at, head_id) = (
    SELECT COALESCE(next_retry_at, 0), id FROM bot_event_outbox
    WHERE subject = NEW.subject AND processed_at IS NULL AND dead_lettered_at IS NULL AND id > NEW.id
    ORDER BY id LIMIT 1);
  INSERT INTO bot_event_lanes (due_at, head_id, subject)
    SELECT COALESCE(NEW.next_retry_at, 0), NEW.id, NEW.subject WHERE NOT EXISTS (
      SELECT 1 FROM bot_event_outbox
      WHERE subject = NEW.subject AND processed_at IS NULL AND dead_lettered_at IS NULL AND id < NEW.id)
    ON CONFLICT (due_at, head_id) DO NOTHING;
END;

CREATE TRIGGER bot_event_outbox_put_off AFTER UPDATE OF next_retry_at ON bot_event_outbox
WHEN NEW.processed_at IS NULL AND NEW.dead_lettered_at IS NULL AND NEW.next_retry_at IS NOT OLD.next_retry_at
BEGIN
  UPDATE bot_event_lanes SET due_at = COALESCE(NEW.next_retry_at, 0)
    WHERE due_at = COALESCE(OLD.next_retry_at, 0) AND head_id = NEW.id;
END;

CREATE TRIGGER bot_event_outbox_deleted AFTER DELETE ON bot_event_outbox
WHEN OLD.processed_at IS NULL AND OLD.dead_lettered_at IS NULL
BEGIN
  DELETE FROM bot_event_lanes WHERE due_at = COALESCE(OLD.next_retry_at, 0) AND head_id = OLD.id;
  INSERT INTO bot_event_lanes (due_at, head_id, subject)
    SELECT COALESCE(next_retry_at, 0), id, subject FROM bot_event_outbox
    WHERE subject = OLD.subject AND processed_at IS NULL AND dead_lettered_at IS NULL ORDER BY id LIMIT 1
    ON CONFLICT (due_at, head_id) DO NOTHING;
END;

-- An open event moves to another subject: it leaves one lane, which may get another head, and may be the head of the
-- other. Its due time may change by the same statement, and the trigger for that may have run already.
CREATE TRIGGER bot_event_outbox_rekeyed AFTER UPDATE OF subject ON bot_event_outbox
WHEN OLD.subject IS NOT NULL AND NEW.subject IS NOT OLD.subject
 AND OLD.processed_at IS NULL AND OLD.dead_lettered_at IS NULL
 AND NEW.processed_at IS NULL AND NEW.dead_lettered_at IS NULL
BEGIN
  DELETE FROM bot_event_lanes
    WHERE due_at IN (COALESCE(OLD.next_retry_at, 0), COALESCE(NEW.next_retry_at, 0)) AND head_id = OLD.id;
  INSERT INTO bot_event_lanes (due_at, head_id, subject)
    SELECT COALESCE(next_retry_at, 0), id, subject FROM bot_event_outbox
    WHERE subject = OLD.subject AND processed_at IS NULL AND dead_lettered_at IS NULL ORDER BY id LIMIT 1
    ON CONFLICT (due_at, head_id) DO NOTHING;
  DELETE FROM bot_event_lanes WHERE (due_at, head_id) = (
    SELECT COALESCE(next_retry_at, 0), id FROM bot_event_outbox
    WHERE subject = NEW.subject AND processed_at IS NULL AND dead_lettered_at IS NULL AND id > NEW.id
    ORDER BY id LIMIT 1);
  INSERT INTO bot_event_lanes (due_at, head_id, subject)
    SELECT COALESCE(NEW.next_retry_at, 0), NEW.id, NEW.subject WHERE NOT EXISTS (
      SELECT 1 FROM bot_event_outbox
      WHERE subject = NEW.subject AND processed_at IS NULL AND dead_lettered_at IS NULL AND id < NEW.id)
    ON CONFLICT (due_at, head_id) DO NOTHING;
END;

-- Somebody repairs whose event it is: its order follows.
CREATE TRIGGER bot_event_outbox_readdressed AFTER UPDATE OF magnet_uid, telegram_id ON bot_event_outbox
WHEN NEW.processed_at IS NULL AND NEW.dead_lettered_at IS NULL
BEGIN
  UPDATE bot_event_outbox SET subject = CASE
      WHEN NEW.magnet_uid IS NOT NULL THEN 'uid:' || NEW.magnet_uid
      ELSE COALESCE((SELECT 'uid:' || uid FROM members WHERE telegram_id = NEW.telegram_id), 'tg:' || NEW.telegram_id)
    END
    WHERE id = NEW.id;
END;

-- Whatever writes a binding, the open events of the chat join those of the member, in the same transaction.
CREATE TRIGGER members_bound_at_insert AFTER INSERT ON members
WHEN NEW.telegram_id IS NOT NULL
BEGIN
  UPDATE bot_event_outbox SET subject = 'uid:' || NEW.uid
    WHERE subject = 'tg:' || NEW.telegram_id AND processed_at IS NULL AND dead_lettered_at IS NULL;
END;
CREATE TRIGGER members_bound AFTER UPDATE OF telegram_id ON members
WHEN NEW.telegram_id IS NOT NULL AND NEW.telegram_id IS NOT OLD.telegram_id
BEGIN
  UPDATE bot_event_outbox SET subject = 'uid:' || NEW.uid
    WHERE subject = 'tg:' || NEW.telegram_id AND processed_at IS NULL AND dead_lettered_at IS NULL;
END;

-- A chat that is tied no more is on its own again, until it is tied to another member.
CREATE TRIGGER members_unbound AFTER UPDATE OF telegram_id ON members
WHEN OLD.telegram_id IS NOT NULL AND NEW.telegram_id IS NOT OLD.telegram_id
BEGIN
  UPDATE bot_event_outbox SET subject = 'tg:' || OLD.telegram_id
    WHERE subject = 'uid:' || OLD.uid AND magnet_uid IS NULL AND telegram_id = OLD.telegram_id
      AND processed_at IS NULL AND dead_lettered_at IS NULL;
END;
CREATE TRIGGER members_deleted AFTER DELETE ON members
WHEN OLD.telegram_id IS NOT NULL
BEGIN
  UPDATE bot_event_outbox SET subject = 'tg:' || OLD.telegram_id
    WHERE subject = 'uid:' || OLD.uid AND magnet_uid IS NULL AND telegram_id = OLD.telegram_id
      AND processed_at IS NULL AND dead_lettered_at IS NULL;
END;

-- ---------------------------------------------------------------------------------------------------------------
-- The bot's ledger: an event is in it if and only if its effects are in the file. The key is the idempotency.
CREATE TABLE bot_processed_events (
  source           TEXT NOT NULL,
  outbox_event_id  INTEGER NOT NULL,
  -- The same id with another time is another event: an alarm, not a duplicate.
  event_created_at INTEGER NOT NULL,
  processed_at     INTEGER NOT NULL,
  acked_at         INTEGER,
  CONSTRAINT bot_processed_events_once PRIMARY KEY (source, outbox_event_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX bot_processed_events_age ON bot_processed_events (processed_at);
CREATE INDEX bot_processed_events_unacked ON bot_processed_events (source, outbox_event_id) WHERE acked_at IS NULL;

-- What the bot knows of a person.
CREATE TABLE bot_users (
  telegram_id       INTEGER PRIMARY KEY,
  magnet_uid        INTEGER,
  -- First touch: whoever brought the person. Never overwritten.
  leader_uid        INTEGER,
  magnet_parent_uid INTEGER,
  username          TEXT,
  first_name        TEXT,
  lang              TEXT CHECK (lang IN ('ru', 'en')),
  stage             INTEGER NOT NULL DEFAULT 1 CHECK (stage BETWEEN 1 AND 9),
  stage_since       INTEGER NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)),
  optin_urgent      INTEGER NOT NULL DEFAULT 1 CHECK (optin_urgent IN (0, 1)),
  optin_digest      INTEGER NOT NULL DEFAULT 1 CHECK (optin_digest IN (0, 1)),
  optin_broadcast   INTEGER NOT NULL DEFAULT 1 CHECK (optin_broadcast IN (0, 1)),
  help_requested    INTEGER NOT NULL DEFAULT 0 CHECK (help_requested IN (0, 1)),
  last_activity_at  INTEGER,
  reachable         TEXT NOT NULL DEFAULT 'ok' CHECK (reachable IN ('ok', 'blocked', 'deactivated', 'never_started')),
  reachable_since   INTEGER,
  created_at        INTEGER NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER))
) STRICT;
CREATE INDEX bot_users_by_member ON bot_users (magnet_uid) WHERE magnet_uid IS NOT NULL;

-- ---------------------------------------------------------------------------------------------------------------
-- Domain events, recorded by the transaction that published them; relayed to every consumer.
CREATE TABLE outbox_events (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id       TEXT NOT NULL DEFAULT 'default',
  event_id        TEXT NOT NULL,
  type            TEXT NOT NULL CHECK (length(type) BETWEEN 1 AND 128 AND type NOT GLOB '*[^a-z0-9_.]*'),
  schema_version  INTEGER NOT NULL DEFAULT 1 CHECK (schema_version >= 1),
  aggregate_type  TEXT NOT NULL,
  aggregate_id    TEXT NOT NULL,
  occurred_at     INTEGER NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)),
  payload         TEXT NOT NULL CHECK (length(payload) <= 65536 AND CASE WHEN json_valid(payload) THEN json_type(payload) = 'object' ELSE 0 END),
  created_at      INTEGER NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)),
  attempts        INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0),
  next_attempt_at INTEGER,
  last_error      TEXT CHECK (length(last_error) <= 500),
  published_at    INTEGER,
  failed_at       INTEGER,
  CONSTRAINT outbox_events_once UNIQUE (tenant_id, event_id),
  CONSTRAINT outbox_events_failed_is_not_published CHECK (published_at IS NULL OR failed_at IS NULL)
) STRICT;
CREATE INDEX outbox_events_unpublished ON outbox_events (id) WHERE published_at IS NULL AND failed_at IS NULL;

-- ---------------------------------------------------------------------------------------------------------------
-- What jobs did: runs that were scheduled, asked for, failed or overdue. Wakes and empty sweeps only count in metrics.
CREATE TABLE job_runs (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  job           TEXT NOT NULL,
  -- One run per instant of the schedule, also across restarts.
  scheduled_for INTEGER,
  started_at    INTEGER NOT NULL,
  finished_at   INTEGER,
  outcome       TEXT NOT NULL CHECK (outcome IN ('running', 'ok', 'failed', 'skipped', 'interrupted')),
  counts        TEXT CHECK (counts IS NULL OR json_valid(counts)),
  error         TEXT,
  CONSTRAINT job_runs_once_per_instant UNIQUE (job, scheduled_for),
  CONSTRAINT job_runs_finished CHECK ((finished_at IS NULL) = (outcome = 'running'))
) STRICT;
CREATE INDEX job_runs_running ON job_runs (id) WHERE outcome = 'running';
CREATE INDEX job_runs_by_job ON job_runs (job, id);

-- Runs asked for by a command beside the server.
CREATE TABLE job_requests (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  job          TEXT NOT NULL,
  requested_at INTEGER NOT NULL,
  run_id       INTEGER REFERENCES job_runs (id) ON DELETE SET NULL,
  taken_at     INTEGER,
  CONSTRAINT job_requests_taken CHECK (run_id IS NULL OR taken_at IS NOT NULL)
) STRICT;
CREATE INDEX job_requests_waiting ON job_requests (id) WHERE taken_at IS NULL;
