-- The rest of the bot: updates as they come in, members and their connect links, the funnel's people, texts,
-- reminders, digests, broadcasts. Times are unix milliseconds, UTC. Triggers use nothing that SQLite 3.40 lacks.

-- ---------------------------------------------------------------------------------------------------------------
-- The inbox. An update is stored before Telegram is told that we have it, and handled in one transaction.
-- pending -> handled | dead; dead -> pending by a person. There is no lease: one process handles updates (the process
-- lock), it remembers what it has in hand, and the transaction that handles one is fenced by `attempts`.
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
-- The head of a chat, for the triggers below.
CREATE INDEX telegram_updates_open ON telegram_updates (chat_id, id) WHERE status = 'pending';
-- What a person looks at and replays.
CREATE INDEX telegram_updates_dead ON telegram_updates (id) WHERE status = 'dead';
-- Housekeeping deletes the oldest handled ones.
CREATE INDEX telegram_updates_handled ON telegram_updates (finished_at) WHERE status = 'handled';

-- One row for each chat with pending updates: its oldest one, which alone may be handled next, and when.
CREATE TABLE telegram_update_lanes (
  chat_id INTEGER PRIMARY KEY,
  head_id INTEGER NOT NULL,
  due_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX telegram_update_lanes_due ON telegram_update_lanes (due_at, head_id);

CREATE TRIGGER telegram_updates_queued AFTER INSERT ON telegram_updates WHEN NEW.status = 'pending'
BEGIN
  INSERT INTO telegram_update_lanes (chat_id, head_id, due_at) VALUES (NEW.chat_id, NEW.id, NEW.due_at)
  ON CONFLICT (chat_id) DO UPDATE SET head_id = excluded.head_id, due_at = excluded.due_at
  WHERE excluded.head_id < telegram_update_lanes.head_id;
END;
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

-- Where the reading of a bot's updates stands; written with the updates themselves.
CREATE TABLE telegram_intake (
  bot_id      INTEGER PRIMARY KEY,
  next_offset INTEGER, -- what the next getUpdates confirms everything below of
  stored_at   INTEGER, -- of the newest update; an offset older than six days is left out
  webhook_url TEXT     -- the one that we set last: only that, or the configured one, is ever taken away
) STRICT;

-- ---------------------------------------------------------------------------------------------------------------
-- A reply may change a message instead of adding one.
ALTER TABLE telegram_messages ADD COLUMN edit_message_id INTEGER CHECK (edit_message_id > 0);

-- ---------------------------------------------------------------------------------------------------------------
-- Members: when each thing was first so, and told. Set once, never cleared: a field that is emptied and filled again
-- is no second event. What another program wrote has no mark yet, and is told of as soon as it is seen.
ALTER TABLE members ADD COLUMN preview_at INTEGER;
ALTER TABLE members ADD COLUMN wallet_connected_at INTEGER;
ALTER TABLE members ADD COLUMN registered_at INTEGER;
ALTER TABLE members ADD COLUMN lp1_at INTEGER;
ALTER TABLE members ADD COLUMN lp2_at INTEGER;
ALTER TABLE members ADD COLUMN updated_at INTEGER;
-- Those who are here already were told of by whoever put them here.
UPDATE members SET
  updated_at = CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER),
  wallet_connected_at = CASE WHEN addr IS NOT NULL AND addr <> '' THEN CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) END,
  registered_at = CASE registration_confirmed WHEN 1 THEN CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) END,
  lp1_at = CASE lp1 WHEN 1 THEN CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) END,
  lp2_at = CASE lp2 WHEN 1 THEN CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER) END;
-- Members of other programs that have not been told of.
CREATE INDEX members_unannounced ON members (uid)
  WHERE (addr IS NOT NULL AND addr <> '' AND wallet_connected_at IS NULL)
     OR (registration_confirmed = 1 AND registered_at IS NULL)
     OR (lp1 = 1 AND lp1_at IS NULL) OR (lp2 = 1 AND lp2_at IS NULL);

-- Whose preview a chat is: a redeemed link takes it from everybody else.
CREATE INDEX members_preview ON members (preview_telegram_id) WHERE preview_telegram_id IS NOT NULL;

-- Whoever emits such an event by hand has told of it: the member's own change is then no second one.
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

-- The site is opened with such a token, and its backend tells whose session that was.
CREATE TABLE telegram_connect_links (
  token       TEXT PRIMARY KEY CHECK (length(token) = 36),
  telegram_id INTEGER NOT NULL,
  created_at  INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL,
  used_at     INTEGER,
  used_by_uid INTEGER,
  CONSTRAINT telegram_connect_links_used CHECK ((used_at IS NULL) = (used_by_uid IS NULL))
) STRICT, WITHOUT ROWID;
-- The one that is handed out again while it is young.
CREATE INDEX telegram_connect_links_unused ON telegram_connect_links (telegram_id, expires_at) WHERE used_at IS NULL;
-- Housekeeping deletes the oldest.
CREATE INDEX telegram_connect_links_expires ON telegram_connect_links (expires_at);

-- How far the import of a file has come, so that it goes on where it was cut off; written with the members themselves.
CREATE TABLE member_imports (
  digest      TEXT PRIMARY KEY CHECK (length(digest) = 64), -- SHA-256 of the whole file
  lines_done  INTEGER NOT NULL DEFAULT 0 CHECK (lines_done >= 0),
  stored      INTEGER NOT NULL DEFAULT 0,
  unchanged   INTEGER NOT NULL DEFAULT 0,
  bad         INTEGER NOT NULL DEFAULT 0,
  started_at  INTEGER NOT NULL,
  finished_at INTEGER
) STRICT, WITHOUT ROWID;

-- ---------------------------------------------------------------------------------------------------------------
-- People of the bot.
-- Whose structure a person is in: help, partners and hot leads go by it; metrics and digest go by leader_uid.
ALTER TABLE bot_users ADD COLUMN structure_uid INTEGER GENERATED ALWAYS AS (COALESCE(magnet_parent_uid, leader_uid)) VIRTUAL;
-- The highest stage with a row in bot_reminders_sent; kept by the trigger below.
ALTER TABLE bot_users ADD COLUMN reminded_stage INTEGER NOT NULL DEFAULT 0 CHECK (reminded_stage BETWEEN 0 AND 9);
ALTER TABLE bot_users ADD COLUMN help_requested_at INTEGER; -- of the request that is open
ALTER TABLE bot_users ADD COLUMN help_told_at INTEGER;      -- the leader was written to last
-- What whoever brought them was called when their link was followed: only the backend knows, and it is asked once.
ALTER TABLE bot_users ADD COLUMN leader_name TEXT;
ALTER TABLE bot_users ADD COLUMN puzzled_at INTEGER;        -- was last told that we do not understand

-- A leader's metrics, and the leaders themselves, one seek each.
CREATE INDEX bot_users_by_leader ON bot_users (leader_uid, stage) WHERE leader_uid IS NOT NULL;
-- A leader's partners, newest first.
CREATE INDEX bot_users_by_structure ON bot_users (structure_uid, created_at) WHERE structure_uid IS NOT NULL;
-- Hot leads: who asked for help, and who is on the way and was here lately.
CREATE INDEX bot_users_asking ON bot_users (structure_uid, help_requested_at) WHERE help_requested = 1;
CREATE INDEX bot_users_warm ON bot_users (structure_uid, last_activity_at) WHERE stage BETWEEN 5 AND 7;
-- Who has not been reminded at their stage, longest silent first. Those who were leave it, so that a sweep costs what
-- is due and not who is there.
CREATE INDEX bot_users_to_remind ON bot_users (stage, last_activity_at)
  WHERE reminded_stage < stage AND optin_urgent = 1 AND reachable = 'ok' AND last_activity_at IS NOT NULL;

-- Where a bind prompt stands. The button in the chat lives as long as the chat does; the prompt 24 hours.
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

-- Texts that take the place of the shipped ones.
CREATE TABLE content_blocks (
  key        TEXT NOT NULL CHECK (length(key) BETWEEN 1 AND 64),
  lang       TEXT NOT NULL CHECK (lang IN ('ru', 'en')),
  body       TEXT NOT NULL CHECK (length(body) BETWEEN 1 AND 16384),
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (key, lang)
) STRICT, WITHOUT ROWID;

-- ---------------------------------------------------------------------------------------------------------------
-- Reminders: the row and the queued message are one transaction. The key is the idempotency.
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

-- Digests: the same by the leader's local date. The key is the idempotency.
CREATE TABLE bot_digests_sent (
  leader_uid  INTEGER NOT NULL,
  local_date  TEXT NOT NULL CHECK (local_date GLOB '[0-9][0-9][0-9][0-9]-[01][0-9]-[0-3][0-9]'),
  telegram_id INTEGER NOT NULL,
  queued_at   INTEGER NOT NULL,
  CONSTRAINT bot_digests_sent_once PRIMARY KEY (leader_uid, local_date)
) STRICT, WITHOUT ROWID;
-- Housekeeping deletes the oldest.
CREATE INDEX bot_digests_sent_age ON bot_digests_sent (queued_at);

-- ---------------------------------------------------------------------------------------------------------------
-- Broadcasts: draft -> scheduled -> running <-> paused -> done | cancelled.
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
-- What the sweep looks at: also one that was paused or cancelled while messages of it were queued.
CREATE INDEX broadcasts_open ON broadcasts (id) WHERE state IN ('scheduled', 'running') OR queued > 0;
-- Housekeeping deletes the oldest finished ones.
CREATE INDEX broadcasts_finished_at ON broadcasts (finished_at) WHERE finished_at IS NOT NULL;

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
-- Who is fed to the send queue next.
CREATE INDEX broadcast_recipients_pending ON broadcast_recipients (broadcast_id, telegram_id) WHERE status = 'pending';
-- Whose message is taken back by a pause.
CREATE INDEX broadcast_recipients_waiting ON broadcast_recipients (broadcast_id, telegram_id) WHERE status = 'queued';
