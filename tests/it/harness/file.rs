//! The database as another program sees it: read beside the server, written in transactions of its own.

use std::path::Path;
use std::time::Duration;

use rusqlite::types::FromSql;
use rusqlite::{Connection, OpenFlags, Params, Row};

/// A connection that only reads.
pub(crate) fn reader(data: &Path) -> Connection {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(data.join("pillarbox.db"), flags).expect("the file can be read");
    conn.busy_timeout(Duration::from_secs(20)).expect("a time-out can be set");
    conn
}

/// A connection that writes as any other program may.
pub(crate) fn writer(data: &Path) -> Connection {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(data.join("pillarbox.db"), flags).expect("the file can be written");
    conn.busy_timeout(Duration::from_secs(20)).expect("a time-out can be set");
    conn.execute_batch("PRAGMA foreign_keys = ON; PRAGMA synchronous = NORMAL;").expect("pragmas can be set");
    conn
}

/// The one value of the one row.
pub(crate) fn value<T: FromSql>(conn: &Connection, sql: &str, params: impl Params) -> T {
    conn.query_row(sql, params, |row| row.get(0)).unwrap_or_else(|error| panic!("{error}: {sql}"))
}

/// The first column of every row.
pub(crate) fn column<T: FromSql>(conn: &Connection, sql: &str, params: impl Params) -> Vec<T> {
    rows(conn, sql, params, |row| row.get(0))
}

/// Every row.
pub(crate) fn rows<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Vec<T> {
    let mut statement = conn.prepare_cached(sql).unwrap_or_else(|error| panic!("{error}: {sql}"));
    let found = statement.query_map(params, read).unwrap_or_else(|error| panic!("{error}: {sql}"));
    found.collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{error}: {sql}"))
}

/// A witness in the file itself: a row for every ledger mark, in the order in which they were made, with how many
/// earlier events of the same subject were open at that moment. It is written by the transaction that makes the mark,
/// and goes with it when that is taken back.
const WITNESS: &str = "
    CREATE TABLE IF NOT EXISTS witness (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      event_id INTEGER NOT NULL,
      subject TEXT,
      earlier_open INTEGER NOT NULL
    ) STRICT;
    CREATE TRIGGER IF NOT EXISTS witness_marks AFTER INSERT ON bot_processed_events
    BEGIN
      INSERT INTO witness (event_id, subject, earlier_open)
      SELECT e.id, e.subject, (
          SELECT count(*) FROM bot_event_outbox AS earlier
          WHERE earlier.subject = e.subject AND earlier.id < e.id
            AND earlier.processed_at IS NULL AND earlier.dead_lettered_at IS NULL)
      FROM bot_event_outbox AS e WHERE e.id = NEW.outbox_event_id;
    END;";

/// Puts the witness in place.
pub(crate) fn call_witness(conn: &Connection) {
    conn.execute_batch(WITNESS).expect("a program may have tables and triggers of its own");
}

/// What the witness has to say against the order: `(event, subject, earlier open events)`.
pub(crate) fn disorder(conn: &Connection) -> Vec<(i64, String, i64)> {
    let sql = "SELECT event_id, subject, earlier_open FROM witness WHERE earlier_open > 0 ORDER BY seq";
    rows(conn, sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
}

/// A member of the backend, bound to a chat, and the person the bot knows in it.
pub(crate) fn add_person(conn: &Connection, uid: i64, telegram_id: i64) {
    conn.execute("INSERT INTO members (uid, telegram_id) VALUES (?1, ?2)", [uid, telegram_id]).expect("a member");
    add_chat(conn, Some(uid), telegram_id);
}

/// A person the bot knows, perhaps as a member.
pub(crate) fn add_chat(conn: &Connection, uid: Option<i64>, telegram_id: i64) {
    let sql = "INSERT INTO bot_users (telegram_id, magnet_uid, lang, stage) VALUES (?1, ?2, 'en', 1)";
    conn.execute(sql, (telegram_id, uid)).expect("a person");
}
