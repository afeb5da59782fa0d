-- The schema as the migrations leave it. Written by `make bless`; nothing reads it but people.

CREATE TABLE api_keys (
  id          TEXT NOT NULL PRIMARY KEY, -- key_…
  tenant_id   TEXT NOT NULL REFERENCES tenants (id),
  role        TEXT NOT NULL CHECK (role IN ('admin', 'publish', 'read')),
  description TEXT NOT NULL DEFAULT '' CHECK (length(description) <= 200),
  hash        BLOB NOT NULL CONSTRAINT api_keys_hash UNIQUE CHECK (length(hash) = 32), -- SHA-256 of the key, which is nowhere
  last_four   TEXT NOT NULL CHECK (length(last_four) = 4),
  created_at  INTEGER NOT NULL,
  revoked_at  INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX api_keys_of_tenant ON api_keys (tenant_id, id);

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

CREATE INDEX backend_calls_due ON backend_calls (source, due_at, id) WHERE status = 'pending';

CREATE INDEX backend_calls_finished_at ON backend_calls (finished_at) WHERE finished_at IS NOT NULL;

CREATE INDEX backend_calls_sending ON backend_calls (source, locked_until) WHERE status = 'sending';

CREATE TABLE bot_bind_prompts (
  telegram_id INTEGER NOT NULL,
  magnet_uid  INTEGER NOT NULL,
  prompted_at INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL,
  answered_at INTEGER,
  outcome     TEXT CHECK (outcome IN ('asked', 'bound', 'refused', 'changed')), -- asked: a remote backend was
  PRIMARY KEY (telegram_id, magnet_uid),
  CONSTRAINT bot_bind_prompts_answered CHECK ((answered_at IS NULL) = (outcome IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX bot_bind_prompts_expires ON bot_bind_prompts (expires_at);

CREATE TABLE bot_digests_sent (
  leader_uid  INTEGER NOT NULL,
  local_date  TEXT NOT NULL CHECK (local_date GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]'),
  telegram_id INTEGER NOT NULL,
  queued_at   INTEGER NOT NULL,
  CONSTRAINT bot_digests_sent_once PRIMARY KEY (leader_uid, local_date)
) STRICT, WITHOUT ROWID;

CREATE INDEX bot_digests_sent_age ON bot_digests_sent (queued_at);

CREATE TABLE bot_event_lanes (
  due_at  INTEGER NOT NULL, -- the head's next_retry_at, or 0
  head_id INTEGER NOT NULL, -- the lowest open id
  subject TEXT NOT NULL,
  PRIMARY KEY (due_at, head_id)
) STRICT, WITHOUT ROWID;

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

CREATE INDEX bot_event_outbox_abandoned ON bot_event_outbox (id) WHERE outcome = 'abandoned';

CREATE INDEX bot_event_outbox_dead ON bot_event_outbox (id) WHERE dead_lettered_at IS NOT NULL;

CREATE UNIQUE INDEX bot_event_outbox_emitted_once ON bot_event_outbox (dedup_key) WHERE dedup_key IS NOT NULL;

CREATE INDEX bot_event_outbox_open ON bot_event_outbox (subject, id)
  WHERE processed_at IS NULL AND dead_lettered_at IS NULL;

CREATE INDEX bot_event_outbox_waiting ON bot_event_outbox (id)
  WHERE processed_at IS NULL AND dead_lettered_at IS NULL;

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

CREATE TRIGGER bot_event_outbox_deleted AFTER DELETE ON bot_event_outbox
WHEN OLD.processed_at IS NULL AND OLD.dead_lettered_at IS NULL
BEGIN
  DELETE FROM bot_event_lanes WHERE due_at = COALESCE(OLD.next_retry_at, 0) AND head_id = OLD.id;
  INSERT INTO bot_event_lanes (due_at, head_id, subject)
    SELECT COALESCE(next_retry_at, 0), id, subject FROM bot_event_outbox
    WHERE subject = OLD.subject AND processed_at IS NULL AND dead_lettered_at IS NULL ORDER BY id LIMIT 1
    ON CONFLICT (due_at, head_id) DO NOTHING;
END;

CREATE TRIGGER bot_event_outbox_id_kept BEFORE UPDATE OF id ON bot_event_outbox
WHEN NEW.id IS NOT OLD.id
BEGIN
  SELECT RAISE(ABORT, 'bot_event_outbox: the id of an event is its place in the order and cannot be changed');
END;

CREATE TRIGGER bot_event_outbox_id_taken BEFORE INSERT ON bot_event_outbox
WHEN EXISTS (SELECT 1 FROM bot_event_outbox WHERE id = NEW.id)
BEGIN
  SELECT RAISE(ABORT, 'bot_event_outbox: this id is taken; leave the id out');
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

CREATE TRIGGER bot_event_outbox_known BEFORE INSERT ON bot_event_outbox
WHEN NEW.dedup_key IS NOT NULL AND EXISTS (SELECT 1 FROM bot_event_outbox WHERE dedup_key = NEW.dedup_key)
BEGIN
  SELECT RAISE(IGNORE);
END;

CREATE TRIGGER bot_event_outbox_put_off AFTER UPDATE OF next_retry_at ON bot_event_outbox
WHEN NEW.processed_at IS NULL AND NEW.dead_lettered_at IS NULL AND NEW.next_retry_at IS NOT OLD.next_retry_at
BEGIN
  UPDATE bot_event_lanes SET due_at = COALESCE(NEW.next_retry_at, 0)
    WHERE due_at = COALESCE(OLD.next_retry_at, 0) AND head_id = NEW.id;
END;

CREATE TRIGGER bot_event_outbox_readdressed AFTER UPDATE OF magnet_uid, telegram_id ON bot_event_outbox
WHEN NEW.processed_at IS NULL AND NEW.dead_lettered_at IS NULL
BEGIN
  UPDATE bot_event_outbox SET subject = CASE
      WHEN NEW.magnet_uid IS NOT NULL THEN 'uid:' || NEW.magnet_uid
      ELSE COALESCE((SELECT 'uid:' || uid FROM members WHERE telegram_id = NEW.telegram_id), 'tg:' || NEW.telegram_id)
    END
    WHERE id = NEW.id;
END;

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

CREATE TRIGGER members_told AFTER INSERT ON bot_event_outbox
WHEN NEW.magnet_uid IS NOT NULL AND NEW.event_type IN ('wallet_connected', 'registered', 'status_nft_activated')
BEGIN
  UPDATE members SET
    wallet_connected_at = CASE WHEN NEW.event_type = 'wallet_connected' THEN COALESCE(wallet_connected_at, NEW.created_at) ELSE wallet_connected_at END,
    registered_at = CASE WHEN NEW.event_type = 'registered' THEN COALESCE(registered_at, NEW.created_at) ELSE registered_at END,
    lp1_at = CASE WHEN NEW.event_type = 'status_nft_activated' AND json_extract(NEW.payload, '$.level') = 'lp1' THEN COALESCE(lp1_at, NEW.created_at) ELSE lp1_at END,
    lp2_at = CASE WHEN NEW.event_type = 'status_nft_activated' AND json_extract(NEW.payload, '$.level') = 'lp2' THEN COALESCE(lp2_at, NEW.created_at) ELSE lp2_at END
  WHERE uid = NEW.magnet_uid;
END;

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

CREATE TABLE bot_reminders_sent (
  telegram_id  INTEGER NOT NULL,
  reminder_key TEXT NOT NULL CHECK (reminder_key GLOB 'stage_[1-8]'),
  queued_at    INTEGER NOT NULL,
  CONSTRAINT bot_reminders_sent_once PRIMARY KEY (telegram_id, reminder_key)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER bot_reminders_sent_marks AFTER INSERT ON bot_reminders_sent
BEGIN
  UPDATE bot_users SET reminded_stage = MAX(reminded_stage, CAST(substr(NEW.reminder_key, 7) AS INTEGER))
  WHERE telegram_id = NEW.telegram_id;
END;

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
, structure_uid INTEGER GENERATED ALWAYS AS (COALESCE(magnet_parent_uid, leader_uid)) VIRTUAL, reminded_stage INTEGER NOT NULL DEFAULT 0 CHECK (reminded_stage BETWEEN 0 AND 9), help_requested_at INTEGER, help_told_at INTEGER, leader_name TEXT, puzzled_at INTEGER) STRICT;

CREATE INDEX bot_users_asking ON bot_users (structure_uid, help_requested_at) WHERE help_requested = 1;

CREATE INDEX bot_users_by_leader ON bot_users (leader_uid, stage) WHERE leader_uid IS NOT NULL;

CREATE INDEX bot_users_by_member ON bot_users (magnet_uid) WHERE magnet_uid IS NOT NULL;

CREATE INDEX bot_users_by_structure ON bot_users (structure_uid, created_at) WHERE structure_uid IS NOT NULL;

CREATE INDEX bot_users_to_remind ON bot_users (stage, last_activity_at)
  WHERE reminded_stage < stage AND optin_urgent = 1 AND reachable = 'ok' AND last_activity_at IS NOT NULL;

CREATE INDEX bot_users_warm ON bot_users (structure_uid, last_activity_at) WHERE stage BETWEEN 5 AND 7;

CREATE TABLE broadcast_recipients (
  broadcast_id        INTEGER NOT NULL REFERENCES broadcasts (id),
  telegram_id         INTEGER NOT NULL,
  lang                TEXT NOT NULL CHECK (lang IN ('ru', 'en')),
  -- queued: its message is in the send queue, and nowhere else is it decided what becomes of it.
  status              TEXT NOT NULL
                      CHECK (status IN ('pending', 'queued', 'sent', 'undeliverable', 'unknown', 'skipped')),
  code                TEXT CHECK (length(code) <= 64), -- why not: blocked, opted_out, no_text, or the send's code
  message_id          INTEGER, -- of telegram_messages, while queued
  telegram_message_id INTEGER,
  finished_at         INTEGER,
  CONSTRAINT broadcast_recipients_once PRIMARY KEY (broadcast_id, telegram_id),
  CONSTRAINT broadcast_recipients_queued CHECK ((status = 'queued') = (message_id IS NOT NULL)),
  CONSTRAINT broadcast_recipients_finished CHECK ((status IN ('pending', 'queued')) = (finished_at IS NULL)),
  CONSTRAINT broadcast_recipients_explained CHECK (code IS NOT NULL OR status IN ('pending', 'queued', 'sent'))
) STRICT, WITHOUT ROWID;

CREATE INDEX broadcast_recipients_pending ON broadcast_recipients (broadcast_id, telegram_id) WHERE status = 'pending';

CREATE INDEX broadcast_recipients_waiting ON broadcast_recipients (broadcast_id, telegram_id) WHERE status = 'queued';

CREATE TABLE broadcasts (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  name            TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 200),
  state           TEXT NOT NULL DEFAULT 'draft'
                  CHECK (state IN ('draft', 'scheduled', 'running', 'paused', 'done', 'cancelled')),
  text_ru         TEXT CHECK (length(text_ru) BETWEEN 1 AND 16384),
  text_en         TEXT CHECK (length(text_en) BETWEEN 1 AND 16384),
  button_ru       TEXT CHECK (length(button_ru) BETWEEN 1 AND 64),
  button_en       TEXT CHECK (length(button_en) BETWEEN 1 AND 64),
  button_url      TEXT CHECK (length(button_url) BETWEEN 1 AND 2048),
  -- The audience; NULL asks for nothing.
  stage_min       INTEGER CHECK (stage_min BETWEEN 1 AND 9),
  stage_max       INTEGER CHECK (stage_max BETWEEN 1 AND 9),
  lang            TEXT CHECK (lang IN ('ru', 'en')),
  leader_uid      INTEGER,
  active_within_s INTEGER CHECK (active_within_s > 0),
  has_nft         INTEGER CHECK (has_nft IN (0, 1)),
  per_second      INTEGER NOT NULL CHECK (per_second BETWEEN 1 AND 1000),
  -- Minutes of the day in quiet_zone; from may be behind to, over midnight.
  quiet_from      INTEGER CHECK (quiet_from BETWEEN 0 AND 1439),
  quiet_to        INTEGER CHECK (quiet_to BETWEEN 0 AND 1439),
  quiet_zone      TEXT,
  scheduled_at    INTEGER,
  started_at      INTEGER, -- who came later is no recipient
  freeze_after    INTEGER, -- recipients up to this telegram_id are frozen
  frozen_at       INTEGER,
  paced_until     INTEGER, -- the due time of the newest queued message
  pause_code      TEXT CHECK (length(pause_code) <= 64), -- 'manual', or the failure that paused it
  recent          TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(recent)), -- codes of the last 50 sends, '' for arrived
  finished_at     INTEGER,
  created_at      INTEGER NOT NULL,
  -- The recipients by status, kept by whatever changes one.
  total           INTEGER NOT NULL DEFAULT 0,
  queued          INTEGER NOT NULL DEFAULT 0,
  sent            INTEGER NOT NULL DEFAULT 0,
  undeliverable   INTEGER NOT NULL DEFAULT 0,
  unknown         INTEGER NOT NULL DEFAULT 0,
  skipped         INTEGER NOT NULL DEFAULT 0,
  CONSTRAINT broadcasts_say_something CHECK (text_ru IS NOT NULL OR text_en IS NOT NULL),
  CONSTRAINT broadcasts_buttons_are_whole CHECK (button_url IS NOT NULL OR (button_ru IS NULL AND button_en IS NULL)),
  CONSTRAINT broadcasts_stages_in_order CHECK (stage_min IS NULL OR stage_max IS NULL OR stage_min <= stage_max),
  CONSTRAINT broadcasts_quiet_is_whole
    CHECK ((quiet_from IS NULL) = (quiet_to IS NULL) AND (quiet_from IS NULL) = (quiet_zone IS NULL)),
  CONSTRAINT broadcasts_scheduled CHECK (state <> 'scheduled' OR scheduled_at IS NOT NULL),
  CONSTRAINT broadcasts_started CHECK (started_at IS NOT NULL OR state IN ('draft', 'scheduled', 'cancelled')),
  CONSTRAINT broadcasts_paused CHECK ((state = 'paused') = (pause_code IS NOT NULL)),
  CONSTRAINT broadcasts_finished CHECK ((state IN ('done', 'cancelled')) = (finished_at IS NOT NULL)),
  CONSTRAINT broadcasts_counted CHECK (queued >= 0 AND sent + undeliverable + unknown + skipped + queued <= total)
) STRICT;

CREATE INDEX broadcasts_finished_at ON broadcasts (finished_at) WHERE finished_at IS NOT NULL;

CREATE INDEX broadcasts_open ON broadcasts (id) WHERE state IN ('scheduled', 'running') OR queued > 0;

CREATE TABLE broker_lead_events (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  lead_id    TEXT NOT NULL REFERENCES broker_leads (id) ON DELETE CASCADE,
  request_id TEXT,
  created_at INTEGER NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)),
  event_type TEXT NOT NULL CHECK (event_type IN ('created', 'notification_sent', 'notification_failed', 'notification_retry_requested')),
  payload    TEXT NOT NULL DEFAULT '{}'
             CHECK (length(CAST(payload AS BLOB)) <= 4096)
             CHECK (CASE WHEN json_valid(payload) THEN json_type(payload) = 'object' ELSE 0 END)
) STRICT;

CREATE UNIQUE INDEX broker_lead_events_created_once ON broker_lead_events (lead_id) WHERE event_type = 'created';

CREATE INDEX broker_lead_events_of_lead ON broker_lead_events (lead_id, id);

CREATE TRIGGER sync_broker_lead_preparation INSTEAD OF INSERT ON broker_lead_preparation_due
BEGIN
  UPDATE broker_leads
  SET (journey_type, journey_stage, journey_scenario_slug, remaining_questions, preparation, preparation_completed) = (
    SELECT journey_type, journey_stage, scenario_slug, remaining_questions,
      -- A merge patch drops what is null (RFC 7396).
      json_patch('{}', json_object(
        'journey_type', journey_type, 'journey_stage', journey_stage, 'scenario_slug', scenario_slug,
        'remaining_questions', remaining_questions,
        'completed_checks', json('[' || NULLIF(substr(
          COALESCE(',"' || check_1 || '"', '') || COALESCE(',"' || check_2 || '"', '')
          || COALESCE(',"' || check_3 || '"', '') || COALESCE(',"' || check_4 || '"', ''), 2), '') || ']'))),
      '[' || substr(
        CASE WHEN check_1 IS NULL THEN '' ELSE ',' || json_quote(label_1) END
        || CASE WHEN check_2 IS NULL THEN '' ELSE ',' || json_quote(label_2) END
        || CASE WHEN check_3 IS NULL THEN '' ELSE ',' || json_quote(label_3) END
        || CASE WHEN check_4 IS NULL THEN '' ELSE ',' || json_quote(label_4) END, 2) || ']'
    FROM (
      SELECT journey_type, journey_stage, remaining_questions,
        CASE WHEN scenario_slug IN (
          'otkazali-v-ipoteke', 'ipoteka-s-plohoy-kreditnoy-istoriey', 'ipoteka-bez-oficialnogo-dohoda',
          'ipoteka-bez-pervonachalnogo-vznosa') THEN scenario_slug END AS scenario_slug,
        CASE WHEN own_1 IS NOT NULL THEN check_1 END AS check_1,
        CASE WHEN own_2 IS NOT own_1 AND own_2 IS NOT NULL THEN check_2 END AS check_2,
        CASE WHEN own_3 IS NOT own_1 AND own_3 IS NOT own_2 AND own_3 IS NOT NULL THEN check_3 END AS check_3,
        CASE WHEN own_4 IS NOT own_1 AND own_4 IS NOT own_2 AND own_4 IS NOT own_3 AND own_4 IS NOT NULL
          THEN check_4 END AS check_4,
        COALESCE(label_1, own_1) AS label_1, COALESCE(label_2, own_2) AS label_2,
        COALESCE(label_3, own_3) AS label_3, COALESCE(label_4, own_4) AS label_4
      FROM (
        SELECT
          max(CASE name WHEN 'journey_type' THEN text END) AS journey_type,
          max(CASE name WHEN 'journey_stage' THEN text END) AS journey_stage,
          max(CASE name WHEN 'scenario_slug' THEN text END) AS scenario_slug,
          max(CASE name WHEN 'remaining_questions' THEN text END) AS remaining_questions,
          max(CASE name WHEN 'check_1' THEN text END) AS check_1, max(CASE name WHEN 'check_1' THEN own END) AS own_1,
          max(CASE name WHEN 'check_2' THEN text END) AS check_2, max(CASE name WHEN 'check_2' THEN own END) AS own_2,
          max(CASE name WHEN 'check_3' THEN text END) AS check_3, max(CASE name WHEN 'check_3' THEN own END) AS own_3,
          max(CASE name WHEN 'check_4' THEN text END) AS check_4, max(CASE name WHEN 'check_4' THEN own END) AS own_4,
          max(CASE name WHEN 'label_1' THEN text END) AS label_1, max(CASE name WHEN 'label_2' THEN text END) AS label_2,
          max(CASE name WHEN 'label_3' THEN text END) AS label_3, max(CASE name WHEN 'label_4' THEN text END) AS label_4
        FROM (
          SELECT name, NULLIF(CASE WHEN length(text) <= most THEN text
                                   ELSE rtrim(substr(text, 1, most), ' ' || char(10)) END, '') AS text,
            CASE text WHEN 'diagnosis' THEN 'Диагностика' WHEN 'finances' THEN 'Финансы'
              WHEN 'documents' THEN 'Документы' WHEN 'next_step' THEN 'Следующий шаг' END AS own
          FROM (
            SELECT name, most, CASE WHEN is_plain THEN trim(text) ELSE trim(replace(
              replace(replace(replace(replace(replace(text, ' ', char(1, 2)), char(2, 1), ''), char(1, 2), ' '),
              ' ' || char(3), char(3)), char(3) || ' ', char(3)), char(3), char(10)), ' ' || char(10)) END AS text
            FROM (
              SELECT name, most, is_plain, CASE WHEN is_plain THEN text ELSE
                replace(replace(replace(replace(replace(replace(replace(replace(replace(text,
                  char(9), ' '), char(11), ' '), char(12), ' '), char(133), ' '), char(160), ' '), char(8232), ' '),
                  char(8233), ' '), char(8239), ' '), char(12288), ' ') END AS text
              FROM (
                SELECT name, most, is_plain, CASE WHEN is_plain THEN text ELSE
                  replace(replace(replace(replace(replace(replace(text, char(1), ''), char(2), ''), char(3), ''),
                    char(13, 10), char(10)), char(13), char(10)),
                    char(10), CASE WHEN name = 'remaining_questions' THEN char(3) ELSE ' ' END) END AS text
                FROM (
                  SELECT name, most, text, text NOT GLOB '*[^ -~Ё-ё«»–—]*' AND NOT instr(text, '  ') AS is_plain
                  FROM (
                    SELECT column1 AS name, column3 AS most, json_extract(NEW.sent, column2) AS text
                    FROM (VALUES
                      ('journey_type', '$.journey_type', 160), ('journey_stage', '$.journey_stage', 200),
                      ('scenario_slug', '$.scenario_slug', 80), ('remaining_questions', '$.remaining_questions', 700),
                      ('check_1', '$.completed_checks[0]', 80), ('label_1', '$.completed_labels[0]', 180),
                      ('check_2', '$.completed_checks[1]', 80), ('label_2', '$.completed_labels[1]', 180),
                      ('check_3', '$.completed_checks[2]', 80), ('label_3', '$.completed_labels[2]', 180),
                      ('check_4', '$.completed_checks[3]', 80), ('label_4', '$.completed_labels[3]', 180))
                    WHERE json_type(NEW.sent, column2) = 'text'
                    LIMIT 12
                  ) AS found
                  LIMIT 12
                ) AS looked_at
              ) AS broken
            ) AS spaced
            LIMIT 12
          ) AS clean
          LIMIT 12
        ) AS cut
      ) AS side_by_side
    ) AS known
  )
  WHERE rowid = NEW.lead;
END;

CREATE VIEW broker_lead_preparation_due AS SELECT rowid AS lead, '{}' AS sent FROM broker_leads WHERE 0;

CREATE TABLE broker_lead_rate_limits (
  fingerprint      TEXT NOT NULL,
  window_start     INTEGER NOT NULL,
  attempt_count    INTEGER NOT NULL,
  first_attempt_at INTEGER NOT NULL,
  last_attempt_at  INTEGER NOT NULL,
  PRIMARY KEY (window_start, fingerprint)
) STRICT, WITHOUT ROWID;

CREATE TABLE broker_leads (
  -- identity
  id         TEXT PRIMARY KEY NOT NULL DEFAULT (
               lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-'
                     || substr('89AB', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))))
               -- Over the RPC surface and on the command line a lead is found by this text.
               CHECK (length(id) = 36 AND length(CAST(id AS BLOB)) = 36 AND id NOT GLOB '*[^0-9a-f-]*'),
  request_id TEXT CHECK (length(request_id) BETWEEN 1 AND 80),
  created_at INTEGER NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER))
             CHECK (created_at BETWEEN 0 AND 253402300799999),
  updated_at INTEGER NOT NULL DEFAULT (CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)),
  -- When the lead's `created` event and its domain event were recorded; NULL for a row of another program until the sweep.
  announced_at INTEGER,

  -- CRM
  status            TEXT NOT NULL DEFAULT 'new' CHECK (status IN ('new', 'in_progress', 'closed', 'lost', 'archived', 'cancelled')),
  source            TEXT NOT NULL DEFAULT 'site',
  source_page       TEXT,
  client_name       TEXT,
  phone             TEXT NOT NULL,
  phone_normalized  TEXT,
  city              TEXT,
  preferred_contact TEXT,
  contact_time      TEXT,
  comment           TEXT,

  -- mortgage
  scenario               TEXT,
  mortgage_goal          TEXT,
  object_type            TEXT,
  property_type          TEXT,
  object_price_text      TEXT,
  down_payment_text      TEXT,
  income_type            TEXT,
  bank_history           TEXT,
  property_price         INTEGER,
  down_payment           INTEGER,
  monthly_income         INTEGER,
  has_matkapital         INTEGER NOT NULL DEFAULT 0 CHECK (has_matkapital IN (0, 1)),
  has_bad_credit_history INTEGER NOT NULL DEFAULT 0 CHECK (has_bad_credit_history IN (0, 1)),
  has_previous_rejection INTEGER NOT NULL DEFAULT 0 CHECK (has_previous_rejection IN (0, 1)),

  -- consent
  consent_accepted      INTEGER NOT NULL DEFAULT 0 CHECK (consent_accepted IN (0, 1)),
  personal_data_consent INTEGER NOT NULL DEFAULT 0 CHECK (personal_data_consent IN (0, 1)),

  -- context
  schema_version     INTEGER NOT NULL DEFAULT 1,
  form_version       TEXT,
  submitted_at       INTEGER,
  form_fill_ms       INTEGER,
  page_url           TEXT,
  page_title         TEXT,
  referrer           TEXT,
  user_agent         TEXT,
  utm_source         TEXT,
  utm_medium         TEXT,
  utm_campaign       TEXT,
  utm_content        TEXT,
  utm_term           TEXT,
  tracking           TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(tracking)),
  qualification      TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(qualification)),
  spam_check         TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(spam_check)),
  raw_payload        TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(raw_payload)),
  technical_priority TEXT,
  delivery_channel   TEXT,

  -- notification: pending → sending → sent | failed, failed → pending by a person, disabled → pending by a person
  notification_status                    TEXT NOT NULL DEFAULT 'pending'
                                         CHECK (notification_status IN ('disabled', 'pending', 'sending', 'sent', 'failed')),
  notification_attempt_count             INTEGER NOT NULL DEFAULT 0 CHECK (notification_attempt_count BETWEEN 0 AND 1000000),
  -- Claims of our own worker since the insertion or the last manual retry; at most three.
  notification_cycle_claims              INTEGER NOT NULL DEFAULT 0 CHECK (notification_cycle_claims BETWEEN 0 AND 1000000),
  notification_attempted_at              INTEGER,
  notification_sent_at                   INTEGER,
  notification_last_error                TEXT CHECK (length(notification_last_error) <= 300),
  notification_manual_retry_count        INTEGER NOT NULL DEFAULT 0 CHECK (notification_manual_retry_count BETWEEN 0 AND 1000000),
  notification_manual_retry_requested_at INTEGER,
  notification_manual_retry_reason_code  TEXT CHECK (length(notification_manual_retry_reason_code) <= 100),

  -- preparation: kept by the triggers below
  journey_type          TEXT,
  journey_stage         TEXT,
  journey_scenario_slug TEXT,
  remaining_questions   TEXT,
  preparation           TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(preparation)),
  preparation_completed TEXT NOT NULL DEFAULT '[]'
                        CHECK (CASE WHEN json_valid(preparation_completed)
                                    THEN json_type(preparation_completed) = 'array' ELSE 0 END),

  CONSTRAINT broker_leads_sent_when_sent CHECK (notification_sent_at IS NULL OR notification_status = 'sent')
) STRICT;

CREATE INDEX broker_leads_by_age ON broker_leads (created_at, id);

CREATE INDEX broker_leads_disabled ON broker_leads (created_at, id) WHERE notification_status = 'disabled';

CREATE INDEX broker_leads_failed ON broker_leads (created_at, id) WHERE notification_status = 'failed';

CREATE INDEX broker_leads_pending ON broker_leads (created_at, id) WHERE notification_status = 'pending';

CREATE UNIQUE INDEX broker_leads_requested_once ON broker_leads (request_id) WHERE request_id IS NOT NULL;

CREATE INDEX broker_leads_sending ON broker_leads (notification_attempted_at, id) WHERE notification_status = 'sending';

CREATE INDEX broker_leads_sent ON broker_leads (created_at, id) WHERE notification_status = 'sent';

CREATE INDEX broker_leads_unannounced ON broker_leads (created_at, id) WHERE announced_at IS NULL;

CREATE TRIGGER broker_leads_deleted AFTER DELETE ON broker_leads
BEGIN
  DELETE FROM broker_lead_events WHERE lead_id = OLD.id;
END;

CREATE TRIGGER broker_leads_id_kept BEFORE UPDATE OF id, request_id ON broker_leads
WHEN NEW.id IS NOT OLD.id
  OR (NEW.request_id IS NOT OLD.request_id AND NEW.request_id IS NOT NULL
      AND EXISTS (SELECT 1 FROM broker_leads WHERE request_id = NEW.request_id))
BEGIN
  SELECT RAISE(ABORT, 'broker_leads: the id of a lead is kept, and a request_id is given once');
END;

CREATE TRIGGER broker_leads_preparation_inserted AFTER INSERT ON broker_leads
-- The intake's own rows come announced as they are created, and with the preparation that would come out here.
WHEN (NEW.announced_at IS NOT NEW.created_at OR NEW.preparation = '{}')
  AND (json_type(NEW.raw_payload, '$.preparation') IS NOT NULL
    OR COALESCE(NEW.journey_type, NEW.journey_stage, NEW.journey_scenario_slug, NEW.remaining_questions) IS NOT NULL
    OR NEW.preparation <> '{}' OR NEW.preparation_completed <> '[]')
BEGIN
  INSERT INTO broker_lead_preparation_due (lead, sent)
  VALUES (NEW.rowid, replace(replace(NEW.raw_payload -> '$.preparation', '\\', '\u005c'), '\u0000', ''));
END;

CREATE TRIGGER broker_leads_preparation_updated AFTER UPDATE OF raw_payload ON broker_leads
BEGIN
  INSERT INTO broker_lead_preparation_due (lead, sent)
  VALUES (NEW.rowid, replace(replace(NEW.raw_payload -> '$.preparation', '\\', '\u005c'), '\u0000', ''));
END;

CREATE TRIGGER broker_leads_taken BEFORE INSERT ON broker_leads
WHEN EXISTS (SELECT 1 FROM broker_leads WHERE id = NEW.id)
  OR (NEW.request_id IS NOT NULL AND EXISTS (SELECT 1 FROM broker_leads WHERE request_id = NEW.request_id))
BEGIN
  SELECT RAISE(ABORT, 'broker_leads: this id or request_id is taken');
END;

CREATE TRIGGER broker_leads_updated AFTER UPDATE OF
  request_id, created_at, status, source, source_page, client_name, phone, phone_normalized, city, preferred_contact,
  contact_time, comment, scenario, mortgage_goal, object_type, property_type, object_price_text, down_payment_text,
  income_type, bank_history, property_price, down_payment, monthly_income, has_matkapital, has_bad_credit_history,
  has_previous_rejection, consent_accepted, personal_data_consent, schema_version, form_version, submitted_at,
  form_fill_ms, page_url, page_title, referrer, user_agent, utm_source, utm_medium, utm_campaign, utm_content, utm_term,
  tracking, qualification, spam_check, raw_payload, technical_priority, delivery_channel, notification_status,
  notification_attempt_count, notification_attempted_at, notification_sent_at, notification_last_error,
  notification_manual_retry_count, notification_manual_retry_requested_at, notification_manual_retry_reason_code
ON broker_leads
WHEN NEW.updated_at IS OLD.updated_at
BEGIN
  UPDATE broker_leads
    SET updated_at = MAX(NEW.updated_at, CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER))
    WHERE id = NEW.id;
END;

CREATE TABLE content_blocks (
  key        TEXT NOT NULL CHECK (length(key) BETWEEN 1 AND 64),
  lang       TEXT NOT NULL CHECK (lang IN ('ru', 'en')),
  body       TEXT NOT NULL CHECK (length(body) BETWEEN 1 AND 16384),
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (key, lang)
) STRICT, WITHOUT ROWID;

CREATE TABLE event_types (
  tenant_id     TEXT NOT NULL REFERENCES tenants (id),
  type          TEXT NOT NULL CHECK (length(type) BETWEEN 1 AND 128 AND type NOT GLOB '*[^a-z0-9_.]*'),
  registered_at INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, type)
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency_keys (
  tenant_id  TEXT NOT NULL,
  key        TEXT NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
  body_hash  BLOB NOT NULL CHECK (length(body_hash) = 32), -- SHA-256 of the path and the raw body
  event_ids  TEXT NOT NULL CHECK (json_valid(event_ids)),
  created_at INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_keys_created_at ON idempotency_keys (created_at);

CREATE TABLE job_requests (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  job          TEXT NOT NULL,
  requested_at INTEGER NOT NULL,
  run_id       INTEGER REFERENCES job_runs (id) ON DELETE SET NULL,
  taken_at     INTEGER,
  CONSTRAINT job_requests_taken CHECK (run_id IS NULL OR taken_at IS NOT NULL)
) STRICT;

CREATE INDEX job_requests_by_run ON job_requests (run_id);

CREATE INDEX job_requests_waiting ON job_requests (id) WHERE taken_at IS NULL;

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

CREATE INDEX job_runs_by_job ON job_runs (job, id);

CREATE INDEX job_runs_running ON job_runs (id) WHERE outcome = 'running';

CREATE TABLE member_imports (
  digest      TEXT PRIMARY KEY CHECK (length(digest) = 64), -- SHA-256 of the whole file
  lines_done  INTEGER NOT NULL DEFAULT 0 CHECK (lines_done >= 0),
  stored      INTEGER NOT NULL DEFAULT 0,
  unchanged   INTEGER NOT NULL DEFAULT 0,
  bad         INTEGER NOT NULL DEFAULT 0,
  started_at  INTEGER NOT NULL,
  finished_at INTEGER
) STRICT, WITHOUT ROWID;

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
, preview_at INTEGER, wallet_connected_at INTEGER, registered_at INTEGER, lp1_at INTEGER, lp2_at INTEGER, updated_at INTEGER) STRICT;

CREATE INDEX members_preview ON members (preview_telegram_id) WHERE preview_telegram_id IS NOT NULL;

CREATE INDEX members_unannounced ON members (uid)
  WHERE (addr IS NOT NULL AND addr <> '' AND wallet_connected_at IS NULL)
     OR (registration_confirmed = 1 AND registered_at IS NULL)
     OR (lp1 = 1 AND lp1_at IS NULL) OR (lp2 = 1 AND lp2_at IS NULL);

CREATE TRIGGER members_bound AFTER UPDATE OF telegram_id ON members
WHEN NEW.telegram_id IS NOT NULL AND NEW.telegram_id IS NOT OLD.telegram_id
BEGIN
  UPDATE bot_event_outbox SET subject = 'uid:' || NEW.uid
    WHERE subject = 'tg:' || NEW.telegram_id AND processed_at IS NULL AND dead_lettered_at IS NULL;
END;

CREATE TRIGGER members_bound_at_insert AFTER INSERT ON members
WHEN NEW.telegram_id IS NOT NULL
BEGIN
  UPDATE bot_event_outbox SET subject = 'uid:' || NEW.uid
    WHERE subject = 'tg:' || NEW.telegram_id AND processed_at IS NULL AND dead_lettered_at IS NULL;
END;

CREATE TRIGGER members_deleted AFTER DELETE ON members
WHEN OLD.telegram_id IS NOT NULL
BEGIN
  UPDATE bot_event_outbox SET subject = 'tg:' || OLD.telegram_id
    WHERE subject = 'uid:' || OLD.uid AND magnet_uid IS NULL AND telegram_id = OLD.telegram_id
      AND processed_at IS NULL AND dead_lettered_at IS NULL;
END;

CREATE TRIGGER members_unbound AFTER UPDATE OF telegram_id ON members
WHEN OLD.telegram_id IS NOT NULL AND NEW.telegram_id IS NOT OLD.telegram_id
BEGIN
  UPDATE bot_event_outbox SET subject = 'tg:' || OLD.telegram_id
    WHERE subject = 'uid:' || OLD.uid AND magnet_uid IS NULL AND telegram_id = OLD.telegram_id
      AND processed_at IS NULL AND dead_lettered_at IS NULL;
END;

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
  failed_at       INTEGER, acceptances TEXT NOT NULL DEFAULT '{}'
  CHECK (CASE WHEN json_valid(acceptances) THEN json_type(acceptances) = 'object' ELSE 0 END),
  CONSTRAINT outbox_events_once UNIQUE (tenant_id, event_id),
  CONSTRAINT outbox_events_failed_is_not_published CHECK (published_at IS NULL OR failed_at IS NULL)
) STRICT;

CREATE INDEX outbox_events_due ON outbox_events (next_attempt_at, id) WHERE published_at IS NULL AND failed_at IS NULL;

CREATE INDEX outbox_events_failed ON outbox_events (tenant_id, event_id) WHERE failed_at IS NOT NULL;

CREATE TABLE store_probe (
  id        INTEGER PRIMARY KEY CHECK (id = 1),
  probed_at INTEGER NOT NULL
) STRICT;

CREATE TABLE telegram_chat_lanes (
  chat_id INTEGER NOT NULL,
  lane TEXT NOT NULL CHECK (lane IN ('interactive', 'transactional', 'bulk')),
  head_id INTEGER NOT NULL,
  due_at INTEGER,
  PRIMARY KEY (chat_id, lane)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX telegram_chat_lanes_due ON telegram_chat_lanes (lane, due_at, head_id) WHERE due_at IS NOT NULL;

CREATE TABLE telegram_connect_links (
  token       TEXT PRIMARY KEY CHECK (length(token) = 36),
  telegram_id INTEGER NOT NULL,
  created_at  INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL,
  used_at     INTEGER,
  used_by_uid INTEGER,
  CONSTRAINT telegram_connect_links_used CHECK ((used_at IS NULL) = (used_by_uid IS NULL))
) STRICT, WITHOUT ROWID;

CREATE INDEX telegram_connect_links_expires ON telegram_connect_links (expires_at);

CREATE INDEX telegram_connect_links_unused ON telegram_connect_links (telegram_id, expires_at) WHERE used_at IS NULL;

CREATE TABLE telegram_intake (
  bot_id      INTEGER PRIMARY KEY,
  next_offset INTEGER, -- what the next getUpdates confirms everything below of
  stored_at   INTEGER, -- of the newest update; an offset older than six days is left out
  webhook_url TEXT     -- the one that we set last: only that, or the configured one, is ever taken away
) STRICT;

CREATE TABLE telegram_messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  chat_id INTEGER NOT NULL CHECK (chat_id <> 0), -- negative for groups; 0 stands for all chats in telegram_pauses
  kind TEXT NOT NULL CHECK (kind IN ('reply', 'bind_prompt', 'event', 'help', 'communication', 'alert',
                                     'reminder', 'digest', 'broadcast', 'broadcast_test')),
  lane TEXT NOT NULL CHECK (lane IN ('interactive', 'transactional', 'bulk')),
  text TEXT NOT NULL, -- as it is sent
  format TEXT NOT NULL CHECK (format IN ('html', 'plain')), -- plain also after Telegram refused the markup
  keyboard TEXT CHECK (keyboard IS NULL OR json_valid(keyboard)), -- rows of {"text", "data" or "url"}
  fallback TEXT CHECK (fallback IS NULL OR json_valid(fallback)), -- what is done instead, if it cannot be delivered
  -- The uniqueness is the idempotency: whoever queues the same message again finds this one.
  dedup_key TEXT NOT NULL CONSTRAINT telegram_messages_once UNIQUE,
  status TEXT NOT NULL DEFAULT 'pending'
    CHECK (status IN ('pending', 'sending', 'sent', 'undeliverable', 'unknown', 'cancelled', 'skipped')),
  attempts INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0), -- counts claims and is their fence; never reset
  unknown_count INTEGER NOT NULL DEFAULT 0 CHECK (unknown_count BETWEEN 0 AND attempts), -- attempts that may have delivered it
  retried_by_hand INTEGER NOT NULL DEFAULT 0 CHECK (retried_by_hand >= 0),
  due_at INTEGER NOT NULL,
  waiting_since INTEGER NOT NULL, -- giving up counts from here: creation, a later due time, or a retry by hand
  locked_until INTEGER,
  lease_boot TEXT,
  telegram_message_id INTEGER,
  error_code TEXT, -- of the last attempt that failed, or why it was not made
  fell_back_at INTEGER, -- the fallback runs once
  created_at INTEGER NOT NULL,
  finished_at INTEGER, edit_message_id INTEGER CHECK (edit_message_id > 0),
  CONSTRAINT telegram_messages_finished
    CHECK ((status IN ('pending', 'sending')) = (finished_at IS NULL)),
  CONSTRAINT telegram_messages_leased
    CHECK ((status = 'sending') = (locked_until IS NOT NULL) AND (status = 'sending') = (lease_boot IS NOT NULL)),
  CONSTRAINT telegram_messages_identified
    CHECK (telegram_message_id IS NULL OR status = 'sent'),
  CONSTRAINT telegram_messages_explained
    CHECK (error_code IS NOT NULL OR status NOT IN ('undeliverable', 'unknown', 'skipped'))
) STRICT;

CREATE INDEX telegram_messages_by_status ON telegram_messages (status, id);

CREATE INDEX telegram_messages_finished_at ON telegram_messages (finished_at) WHERE finished_at IS NOT NULL;

CREATE INDEX telegram_messages_open ON telegram_messages (chat_id, lane, id) WHERE status IN ('pending', 'sending');

CREATE INDEX telegram_messages_sending ON telegram_messages (id) WHERE status = 'sending';

CREATE TRIGGER telegram_messages_changed AFTER UPDATE OF status, due_at, chat_id, lane ON telegram_messages
WHEN OLD.status IN ('pending', 'sending') OR NEW.status IN ('pending', 'sending')
BEGIN
  DELETE FROM telegram_chat_lanes WHERE chat_id = OLD.chat_id AND lane = OLD.lane;
  DELETE FROM telegram_chat_lanes WHERE chat_id = NEW.chat_id AND lane = NEW.lane;
  INSERT INTO telegram_chat_lanes (chat_id, lane, head_id, due_at)
  SELECT chat_id, lane, id, CASE status WHEN 'pending' THEN due_at END FROM telegram_messages
  WHERE chat_id = NEW.chat_id AND lane = NEW.lane AND status IN ('pending', 'sending')
  ORDER BY id LIMIT 1;
  INSERT INTO telegram_chat_lanes (chat_id, lane, head_id, due_at)
  SELECT chat_id, lane, id, CASE status WHEN 'pending' THEN due_at END FROM telegram_messages
  WHERE chat_id = OLD.chat_id AND lane = OLD.lane AND status IN ('pending', 'sending')
    AND (OLD.chat_id <> NEW.chat_id OR OLD.lane <> NEW.lane)
  ORDER BY id LIMIT 1;
END;

CREATE TRIGGER telegram_messages_deleted AFTER DELETE ON telegram_messages
WHEN OLD.status IN ('pending', 'sending')
BEGIN
  DELETE FROM telegram_chat_lanes WHERE chat_id = OLD.chat_id AND lane = OLD.lane;
  INSERT INTO telegram_chat_lanes (chat_id, lane, head_id, due_at)
  SELECT chat_id, lane, id, CASE status WHEN 'pending' THEN due_at END FROM telegram_messages
  WHERE chat_id = OLD.chat_id AND lane = OLD.lane AND status IN ('pending', 'sending')
  ORDER BY id LIMIT 1;
END;

CREATE TRIGGER telegram_messages_queued AFTER INSERT ON telegram_messages
WHEN NEW.status IN ('pending', 'sending')
BEGIN
  INSERT INTO telegram_chat_lanes (chat_id, lane, head_id, due_at)
  VALUES (NEW.chat_id, NEW.lane, NEW.id, CASE NEW.status WHEN 'pending' THEN NEW.due_at END)
  ON CONFLICT (chat_id, lane) DO UPDATE SET head_id = excluded.head_id, due_at = excluded.due_at
  WHERE excluded.head_id < telegram_chat_lanes.head_id;
END;

CREATE TABLE telegram_pauses (
  chat_id INTEGER PRIMARY KEY,
  paused_until INTEGER NOT NULL
) STRICT;

CREATE TABLE telegram_update_lanes (
  chat_id INTEGER PRIMARY KEY,
  head_id INTEGER NOT NULL,
  due_at  INTEGER NOT NULL
) STRICT;

CREATE INDEX telegram_update_lanes_due ON telegram_update_lanes (due_at, head_id);

CREATE TABLE telegram_updates (
  id          INTEGER PRIMARY KEY AUTOINCREMENT, -- the order of arrival; update_id begins anew after a silent week
  bot_id      INTEGER NOT NULL, -- the number before the token's colon: another bot counts its updates by itself
  update_id   INTEGER NOT NULL,
  chat_id     INTEGER NOT NULL, -- whose order it is in; 0 for an update of no chat
  kind        TEXT NOT NULL CHECK (length(kind) BETWEEN 1 AND 64), -- its field's name in the Bot API
  -- As it came, until it is handled: then only its number is needed, to know it again. Not held to be JSON here: one
  -- update that the file refused would be delivered again for ever, and keep the others from coming.
  raw         TEXT,
  status      TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'handled', 'dead')),
  attempts    INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0), -- that ended, of whatever kind: the fence; never reset
  failures    INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0), -- that count; ten are death, a replay begins anew
  replays     INTEGER NOT NULL DEFAULT 0 CHECK (replays >= 0),
  due_at      INTEGER NOT NULL,
  error_code  TEXT CHECK (length(error_code) <= 64), -- of the last attempt that failed
  received_at INTEGER NOT NULL,
  finished_at INTEGER,
  -- The uniqueness is the idempotency: Telegram delivers again what it did not hear us acknowledge.
  CONSTRAINT telegram_updates_once UNIQUE (bot_id, update_id),
  CONSTRAINT telegram_updates_finished CHECK ((status = 'pending') = (finished_at IS NULL)),
  CONSTRAINT telegram_updates_kept_while_needed CHECK ((status = 'handled') = (raw IS NULL)),
  CONSTRAINT telegram_updates_explained CHECK (status <> 'dead' OR error_code IS NOT NULL)
) STRICT;

CREATE INDEX telegram_updates_dead ON telegram_updates (id) WHERE status = 'dead';

CREATE INDEX telegram_updates_handled ON telegram_updates (finished_at) WHERE status = 'handled';

CREATE INDEX telegram_updates_open ON telegram_updates (chat_id, id) WHERE status = 'pending';

CREATE TRIGGER telegram_updates_changed AFTER UPDATE OF status, due_at ON telegram_updates
WHEN OLD.status = 'pending' OR NEW.status = 'pending'
BEGIN
  DELETE FROM telegram_update_lanes WHERE chat_id = NEW.chat_id;
  INSERT INTO telegram_update_lanes (chat_id, head_id, due_at)
  SELECT chat_id, id, due_at FROM telegram_updates
  WHERE chat_id = NEW.chat_id AND status = 'pending' ORDER BY id LIMIT 1;
END;

CREATE TRIGGER telegram_updates_deleted AFTER DELETE ON telegram_updates WHEN OLD.status = 'pending'
BEGIN
  DELETE FROM telegram_update_lanes WHERE chat_id = OLD.chat_id;
  INSERT INTO telegram_update_lanes (chat_id, head_id, due_at)
  SELECT chat_id, id, due_at FROM telegram_updates
  WHERE chat_id = OLD.chat_id AND status = 'pending' ORDER BY id LIMIT 1;
END;

CREATE TRIGGER telegram_updates_queued AFTER INSERT ON telegram_updates WHEN NEW.status = 'pending'
BEGIN
  INSERT INTO telegram_update_lanes (chat_id, head_id, due_at) VALUES (NEW.chat_id, NEW.id, NEW.due_at)
  ON CONFLICT (chat_id) DO UPDATE SET head_id = excluded.head_id, due_at = excluded.due_at
  WHERE excluded.head_id < telegram_update_lanes.head_id;
END;

CREATE TABLE tenants (
  id         TEXT NOT NULL PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 64 AND id NOT GLOB '*[^a-z0-9_-]*'),
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

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

CREATE TABLE webhook_attempts (
  delivery      INTEGER NOT NULL REFERENCES webhook_deliveries (id) ON DELETE CASCADE,
  number        INTEGER NOT NULL CHECK (number >= 1),
  trigger       TEXT NOT NULL CHECK (trigger IN ('schedule', 'manual')),
  started_at    INTEGER NOT NULL,
  duration_ms   INTEGER,
  http_status   INTEGER,
  error         TEXT CHECK (error = 'dns' OR error = 'blocked' OR error = 'connect' OR error = 'tls' OR error = 'timeout'
                            OR error = 'http_3xx' OR error = 'http_4xx' OR error = 'http_5xx' OR error = 'protocol'
                            OR error = 'interrupted'), -- NULL: delivered
  response_body TEXT, -- its first 4 KiB
  resolved_ip   TEXT,
  PRIMARY KEY (delivery, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE webhook_audience (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  version INTEGER NOT NULL
) STRICT;

CREATE TABLE webhook_deliveries (
  id                  INTEGER PRIMARY KEY AUTOINCREMENT,
  message             INTEGER NOT NULL REFERENCES webhook_messages (id),
  endpoint            INTEGER NOT NULL REFERENCES webhook_endpoints (id),
  status              TEXT NOT NULL CHECK (status = 'pending' OR status = 'sending' OR status = 'delivered'
                                           OR status = 'failed' OR status = 'cancelled' OR status = 'skipped'),
  attempts            INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0), -- begun; the fence of a finish
  step                INTEGER NOT NULL DEFAULT 0 CHECK (step >= 0), -- failures that the schedule has counted
  interruptions       INTEGER NOT NULL DEFAULT 0 CHECK (interruptions >= 0), -- in a row, at the end
  next_attempt_at     INTEGER,
  claimed_at          INTEGER,
  locked_until        INTEGER,
  lease_boot          TEXT,
  resend_requested_at INTEGER, -- a person wants one attempt beside the schedule
  resumes             TEXT CHECK (resumes = 'pending' OR resumes = 'delivered' OR resumes = 'failed'
                                  OR resumes = 'cancelled' OR resumes = 'skipped'), -- during that attempt: what a failure leads back to
  last_error          TEXT CHECK (length(last_error) <= 100),
  delivered_at        INTEGER,
  created_at          INTEGER NOT NULL,
  -- The uniqueness is the idempotency: an event that is handed over again finds its deliveries.
  CONSTRAINT webhook_deliveries_once UNIQUE (message, endpoint),
  CONSTRAINT webhook_deliveries_leased CHECK ((status = 'sending') = (locked_until IS NOT NULL AND lease_boot IS NOT NULL AND claimed_at IS NOT NULL)),
  CONSTRAINT webhook_deliveries_due CHECK (status <> 'pending' OR next_attempt_at IS NOT NULL),
  CONSTRAINT webhook_deliveries_delivered CHECK (status <> 'delivered' OR delivered_at IS NOT NULL),
  CONSTRAINT webhook_deliveries_resumes CHECK (resumes IS NULL OR status = 'sending')
) STRICT;

CREATE INDEX webhook_deliveries_of_endpoint ON webhook_deliveries (endpoint, id);

CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (endpoint, next_attempt_at, id) WHERE status = 'pending';

CREATE INDEX webhook_deliveries_resend ON webhook_deliveries (endpoint, resend_requested_at, id)
  WHERE resend_requested_at IS NOT NULL AND status <> 'sending';

CREATE INDEX webhook_deliveries_sending ON webhook_deliveries (locked_until) WHERE status = 'sending';

CREATE INDEX webhook_deliveries_undelivered ON webhook_deliveries (endpoint, status, id)
  WHERE status = 'failed' OR status = 'cancelled' OR status = 'skipped';

CREATE TABLE webhook_endpoints (
  id              INTEGER PRIMARY KEY AUTOINCREMENT,
  endpoint_id     TEXT NOT NULL CONSTRAINT webhook_endpoints_once UNIQUE, -- ep_…
  tenant_id       TEXT NOT NULL REFERENCES tenants (id),
  url             TEXT NOT NULL CHECK (length(url) <= 2048),
  description     TEXT NOT NULL DEFAULT '' CHECK (length(description) <= 500),
  event_types     TEXT CHECK (CASE WHEN json_valid(event_types) THEN json_type(event_types) = 'array' ELSE event_types IS NULL END), -- NULL is all
  rate_per_second INTEGER CHECK (rate_per_second BETWEEN 1 AND 1000),
  status          TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'paused', 'disabled')),
  disabled_reason TEXT CHECK (disabled_reason IN ('gone', 'failing', 'manual')),
  held_until      INTEGER, -- what the receiver asked for by Retry-After
  failing_since   INTEGER, -- the first failure since the last success
  warned_at       INTEGER, -- when somebody was told of that
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL,
  deleted_at      INTEGER, -- invisible; its rows go in batches
  CONSTRAINT webhook_endpoints_reason CHECK ((status = 'disabled') = (disabled_reason IS NOT NULL))
) STRICT;

CREATE INDEX webhook_endpoints_deleted ON webhook_endpoints (id) WHERE deleted_at IS NOT NULL;

CREATE INDEX webhook_endpoints_disabled ON webhook_endpoints (id) WHERE status = 'disabled' AND deleted_at IS NULL;

CREATE INDEX webhook_endpoints_of_tenant ON webhook_endpoints (tenant_id, id) WHERE deleted_at IS NULL;

CREATE TRIGGER webhook_audience_changes AFTER UPDATE OF tenant_id, event_types, status, deleted_at ON webhook_endpoints
BEGIN
  UPDATE webhook_audience SET version = random() WHERE id = 1;
END;

CREATE TRIGGER webhook_audience_grows AFTER INSERT ON webhook_endpoints
BEGIN
  UPDATE webhook_audience SET version = random() WHERE id = 1;
END;

CREATE TRIGGER webhook_audience_shrinks AFTER DELETE ON webhook_endpoints
BEGIN
  UPDATE webhook_audience SET version = random() WHERE id = 1;
END;

CREATE TABLE webhook_messages (
  id         INTEGER PRIMARY KEY, -- that of its row in outbox_events, which is never used twice
  tenant_id  TEXT NOT NULL,
  event_id   TEXT NOT NULL,
  type       TEXT NOT NULL,
  body       BLOB NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE webhook_secrets (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  endpoint    INTEGER NOT NULL REFERENCES webhook_endpoints (id) ON DELETE CASCADE,
  sealed      BLOB NOT NULL, -- nonce and XChaCha20-Poly1305 ciphertext; the key is a file of the data directory
  last_four   TEXT NOT NULL CHECK (length(last_four) = 4),
  created_at  INTEGER NOT NULL,
  valid_until INTEGER -- NULL: the current one
) STRICT;

CREATE UNIQUE INDEX webhook_secrets_current ON webhook_secrets (endpoint) WHERE valid_until IS NULL;

CREATE INDEX webhook_secrets_expiring ON webhook_secrets (valid_until) WHERE valid_until IS NOT NULL;

CREATE INDEX webhook_secrets_of_endpoint ON webhook_secrets (endpoint, id);

CREATE TABLE webhook_tests (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  endpoint      INTEGER NOT NULL REFERENCES webhook_endpoints (id) ON DELETE CASCADE,
  message_id    TEXT NOT NULL, -- its webhook-id
  started_at    INTEGER NOT NULL,
  duration_ms   INTEGER NOT NULL,
  http_status   INTEGER,
  error         TEXT CHECK (error IN ('dns', 'blocked', 'connect', 'tls', 'timeout', 'http_3xx', 'http_4xx', 'http_5xx', 'protocol')),
  response_body TEXT,
  resolved_ip   TEXT
) STRICT;

CREATE INDEX webhook_tests_by_age ON webhook_tests (started_at);

CREATE INDEX webhook_tests_of_endpoint ON webhook_tests (endpoint, id);
