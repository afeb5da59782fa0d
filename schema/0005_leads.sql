-- Broker leads: what a form on a site posted, what happened to its notification, and the limit on posting.
--
-- broker_leads is open to other programs: a row that one inserts in its own transaction is completed by defaults, cleaned
-- by the triggers below, gets its `created` event from a sweep and is notified like any other. Times are unix
-- milliseconds, UTC. Flags are 0 or 1.

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

-- A form that posts twice makes one lead: the idempotency of the intake.
CREATE UNIQUE INDEX broker_leads_requested_once ON broker_leads (request_id) WHERE request_id IS NOT NULL;
-- The list, newest first, and what is older than it may be kept.
CREATE INDEX broker_leads_by_age ON broker_leads (created_at, id);
-- What the worker takes next, oldest first; a claim that was never completed, oldest first. The others count and list.
CREATE INDEX broker_leads_pending ON broker_leads (created_at, id) WHERE notification_status = 'pending';
CREATE INDEX broker_leads_sending ON broker_leads (notification_attempted_at, id) WHERE notification_status = 'sending';
CREATE INDEX broker_leads_failed ON broker_leads (created_at, id) WHERE notification_status = 'failed';
CREATE INDEX broker_leads_disabled ON broker_leads (created_at, id) WHERE notification_status = 'disabled';
CREATE INDEX broker_leads_sent ON broker_leads (created_at, id) WHERE notification_status = 'sent';
-- Rows of other programs that the sweep has not seen yet.
CREATE INDEX broker_leads_unannounced ON broker_leads (created_at, id) WHERE announced_at IS NULL;

-- What happened to a lead. Payloads hold codes and counters, never what the person wrote, a secret or a chat id.
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
CREATE INDEX broker_lead_events_of_lead ON broker_lead_events (lead_id, id);
-- A lead is created once, whoever says so.
CREATE UNIQUE INDEX broker_lead_events_created_once ON broker_lead_events (lead_id) WHERE event_type = 'created';

-- Requests per visitor and UTC hour. The fingerprint is a digest: neither address nor phone is stored here. The hour leads
-- the key: the rows of this hour lie together, and those of hours that are over are found without another index.
CREATE TABLE broker_lead_rate_limits (
  fingerprint      TEXT NOT NULL,
  window_start     INTEGER NOT NULL,
  attempt_count    INTEGER NOT NULL,
  first_attempt_at INTEGER NOT NULL,
  last_attempt_at  INTEGER NOT NULL,
  PRIMARY KEY (window_start, fingerprint)
) STRICT, WITHOUT ROWID;

-- ---------------------------------------------------------------------------------------------------------------
-- REPLACE would remove a lead and its events without telling anybody: an id and a request id are given once.
CREATE TRIGGER broker_leads_taken BEFORE INSERT ON broker_leads
WHEN EXISTS (SELECT 1 FROM broker_leads WHERE id = NEW.id)
  OR (NEW.request_id IS NOT NULL AND EXISTS (SELECT 1 FROM broker_leads WHERE request_id = NEW.request_id))
BEGIN
  SELECT RAISE(ABORT, 'broker_leads: this id or request_id is taken');
END;
CREATE TRIGGER broker_leads_id_kept BEFORE UPDATE OF id, request_id ON broker_leads
WHEN NEW.id IS NOT OLD.id
  OR (NEW.request_id IS NOT OLD.request_id AND NEW.request_id IS NOT NULL
      AND EXISTS (SELECT 1 FROM broker_leads WHERE request_id = NEW.request_id))
BEGIN
  SELECT RAISE(ABORT, 'broker_leads: the id of a lead is kept, and a request_id is given once');
END;

-- For programs that change a row and do not say when; our own statements do. Never backwards, and not for what the
-- triggers below derive.
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

-- sync_broker_lead_preparation. Whatever a program sent, or wrote there itself, the preparation columns hold only what
-- passes here: JSON strings of `raw_payload.preparation`, without NUL, white space collapsed, cut; of the checks and
-- scenarios only known ones, and no label whose check is not known. A row without any of that costs nothing.
--
-- SQLite's text functions end at a NUL, so its escape is taken out of the JSON before that is read; `\\` is written as
-- `\u005c` first, after which `\u0000` is always the escape.
CREATE VIEW broker_lead_preparation_due AS SELECT rowid AS lead, '{}' AS sent FROM broker_leads WHERE 0;
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
-- The body of both, once. Read it from the inside: `found` are the strings that are looked for; `looked_at` knows which
-- have only plain letters, signs and single spaces, and so need nothing of the next three; `broken` has their line breaks
-- as spaces, or kept ones as char(3); `spaced` has other white space as spaces; `clean` has runs of spaces collapsed, by
-- putting the pair char(1), char(2) for each and taking out every char(2), char(1); `cut` is within its length, beside
-- our own label of a known check; `side_by_side` has them in one row; `known` drops what is not known or comes twice.
--
-- The one writer runs this for each lead with a preparation, so it is written to be cheap: a sixth of what the same
-- costs with GROUP BY, whose sorters and temporary tables are dear, and with all replaces for every string. A LIMIT keeps
-- SQLite from writing an expression out at each of its uses. SQLite 3.40 can read it as long as its parts lie in one
-- another no deeper than now: its parser's stack has 100 places.
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
