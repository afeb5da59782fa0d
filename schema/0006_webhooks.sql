-- Tenants with their keys, the relay of domain events, and webhooks. Times are unix milliseconds, UTC.

-- Whose events, endpoints and keys. `default` is the installation itself, whose the other subsystems' events are.
CREATE TABLE tenants (
  id         TEXT NOT NULL PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 64 AND id NOT GLOB '*[^a-z0-9_-]*'),
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO tenants (id, created_at) VALUES ('default', CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER));

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

-- Types that tenants may use while `events.strict_types` is on.
CREATE TABLE event_types (
  tenant_id     TEXT NOT NULL REFERENCES tenants (id),
  type          TEXT NOT NULL CHECK (length(type) BETWEEN 1 AND 128 AND type NOT GLOB '*[^a-z0-9_.]*'),
  registered_at INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, type)
) STRICT, WITHOUT ROWID;

-- What was answered under a key, for a day.
CREATE TABLE idempotency_keys (
  tenant_id  TEXT NOT NULL,
  key        TEXT NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
  body_hash  BLOB NOT NULL CHECK (length(body_hash) = 32), -- SHA-256 of the path and the raw body
  event_ids  TEXT NOT NULL CHECK (json_valid(event_ids)),
  created_at INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_keys_created_at ON idempotency_keys (created_at);

-- Which consumers have accepted, and when: {"webhooks": 1700000000000}.
ALTER TABLE outbox_events ADD COLUMN acceptances TEXT NOT NULL DEFAULT '{}'
  CHECK (CASE WHEN json_valid(acceptances) THEN json_type(acceptances) = 'object' ELSE 0 END);

-- The relay reads what never failed by id (next_attempt_at is NULL), and what did by its due time.
DROP INDEX outbox_events_unpublished;
CREATE INDEX outbox_events_due ON outbox_events (next_attempt_at, id) WHERE published_at IS NULL AND failed_at IS NULL;
CREATE INDEX outbox_events_failed ON outbox_events (tenant_id, event_id) WHERE failed_at IS NOT NULL;

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

CREATE INDEX webhook_endpoints_of_tenant ON webhook_endpoints (tenant_id, id) WHERE deleted_at IS NULL;
CREATE INDEX webhook_endpoints_disabled ON webhook_endpoints (id) WHERE status = 'disabled' AND deleted_at IS NULL;
CREATE INDEX webhook_endpoints_deleted ON webhook_endpoints (id) WHERE deleted_at IS NOT NULL;

-- By which the fan-out knows that what it remembers of the endpoints still holds. A random number and not a counter: one
-- that was counted in a transaction that was rolled back would come again for something else.
CREATE TABLE webhook_audience (
  id      INTEGER PRIMARY KEY CHECK (id = 1),
  version INTEGER NOT NULL
) STRICT;

INSERT INTO webhook_audience (id, version) VALUES (1, random());

CREATE TRIGGER webhook_audience_grows AFTER INSERT ON webhook_endpoints
BEGIN
  UPDATE webhook_audience SET version = random() WHERE id = 1;
END;

CREATE TRIGGER webhook_audience_changes AFTER UPDATE OF tenant_id, event_types, status, deleted_at ON webhook_endpoints
BEGIN
  UPDATE webhook_audience SET version = random() WHERE id = 1;
END;

CREATE TRIGGER webhook_audience_shrinks AFTER DELETE ON webhook_endpoints
BEGIN
  UPDATE webhook_audience SET version = random() WHERE id = 1;
END;

CREATE TABLE webhook_secrets (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  endpoint    INTEGER NOT NULL REFERENCES webhook_endpoints (id) ON DELETE CASCADE,
  sealed      BLOB NOT NULL, -- nonce and XChaCha20-Poly1305 ciphertext; the key is a file of the data directory
  last_four   TEXT NOT NULL CHECK (length(last_four) = 4),
  created_at  INTEGER NOT NULL,
  valid_until INTEGER -- NULL: the current one
) STRICT;

CREATE INDEX webhook_secrets_of_endpoint ON webhook_secrets (endpoint, id);
CREATE INDEX webhook_secrets_expiring ON webhook_secrets (valid_until) WHERE valid_until IS NOT NULL;
-- The uniqueness is the rule: an endpoint has one current secret.
CREATE UNIQUE INDEX webhook_secrets_current ON webhook_secrets (endpoint) WHERE valid_until IS NULL;

-- The frozen body of an event that has an endpoint to go to; these bytes are signed and sent at every attempt.
CREATE TABLE webhook_messages (
  id         INTEGER PRIMARY KEY, -- that of its row in outbox_events, which is never used twice
  tenant_id  TEXT NOT NULL,
  event_id   TEXT NOT NULL,
  type       TEXT NOT NULL,
  body       BLOB NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

-- Longer lists of words are compared one by one here: SQLite makes a table of an IN list with more than two at every
-- statement, which took two thirds of the time that a delivery spends in this file.
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
CREATE INDEX webhook_deliveries_sending ON webhook_deliveries (locked_until) WHERE status = 'sending';
CREATE INDEX webhook_deliveries_resend ON webhook_deliveries (endpoint, resend_requested_at, id)
  WHERE resend_requested_at IS NOT NULL AND status <> 'sending';
CREATE INDEX webhook_deliveries_undelivered ON webhook_deliveries (endpoint, status, id)
  WHERE status = 'failed' OR status = 'cancelled' OR status = 'skipped';

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

-- Attempts of the test button, which have no delivery.
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

CREATE INDEX webhook_tests_of_endpoint ON webhook_tests (endpoint, id);
CREATE INDEX webhook_tests_by_age ON webhook_tests (started_at);
