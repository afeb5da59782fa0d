-- Telegram's send queue: the messages, the head of each lane of each chat, and the pauses that Telegram asked for.
-- Times are unix milliseconds, UTC. Triggers use nothing that SQLite 3.40 lacks.

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
  finished_at INTEGER,
  CONSTRAINT telegram_messages_finished
    CHECK ((status IN ('pending', 'sending')) = (finished_at IS NULL)),
  CONSTRAINT telegram_messages_leased
    CHECK ((status = 'sending') = (locked_until IS NOT NULL) AND (status = 'sending') = (lease_boot IS NOT NULL)),
  CONSTRAINT telegram_messages_identified
    CHECK (telegram_message_id IS NULL OR status = 'sent'),
  CONSTRAINT telegram_messages_explained
    CHECK (error_code IS NOT NULL OR status NOT IN ('undeliverable', 'unknown', 'skipped'))
) STRICT;

-- The head of a lane of a chat, for the triggers below.
CREATE INDEX telegram_messages_open ON telegram_messages (chat_id, lane, id) WHERE status IN ('pending', 'sending');
-- What was in flight when the process ended.
CREATE INDEX telegram_messages_sending ON telegram_messages (id) WHERE status = 'sending';
-- `messages list --status` and the counts per status; with history on purpose, since history is what is listed.
CREATE INDEX telegram_messages_by_status ON telegram_messages (status, id);
-- Housekeeping deletes the oldest finished ones.
CREATE INDEX telegram_messages_finished_at ON telegram_messages (finished_at) WHERE finished_at IS NOT NULL;

-- One row for each lane of each chat in which something is open: its oldest message, which alone may be sent next.
-- A claim reads heads only, so it costs the same with a million messages behind them. While the head is in flight
-- the lane has no due time.
CREATE TABLE telegram_chat_lanes (
  chat_id INTEGER NOT NULL,
  lane TEXT NOT NULL CHECK (lane IN ('interactive', 'transactional', 'bulk')),
  head_id INTEGER NOT NULL,
  due_at INTEGER,
  PRIMARY KEY (chat_id, lane)
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX telegram_chat_lanes_due ON telegram_chat_lanes (lane, due_at, head_id) WHERE due_at IS NOT NULL;

CREATE TRIGGER telegram_messages_queued AFTER INSERT ON telegram_messages
WHEN NEW.status IN ('pending', 'sending')
BEGIN
  INSERT INTO telegram_chat_lanes (chat_id, lane, head_id, due_at)
  VALUES (NEW.chat_id, NEW.lane, NEW.id, CASE NEW.status WHEN 'pending' THEN NEW.due_at END)
  ON CONFLICT (chat_id, lane) DO UPDATE SET head_id = excluded.head_id, due_at = excluded.due_at
  WHERE excluded.head_id < telegram_chat_lanes.head_id;
END;

-- One trigger for both lanes of a message that moves: the order in which two would run is not defined, and a head
-- may not stand in two lanes even for a moment.
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

-- No send to this chat before the instant; chat 0 stands for all. Stored so that a restart keeps the promise.
CREATE TABLE telegram_pauses (
  chat_id INTEGER PRIMARY KEY,
  paused_until INTEGER NOT NULL
) STRICT;
