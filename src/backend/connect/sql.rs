//! Every statement on `telegram_connect_links`; nobody else touches this table.

use rusqlite::named_params;

use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

const UNUSED: &str = "
    SELECT token, expires_at FROM telegram_connect_links INDEXED BY telegram_connect_links_unused
    WHERE telegram_id = :chat AND used_at IS NULL AND expires_at > :now
    ORDER BY expires_at DESC LIMIT 1";

/// The chat's link that is unused and young, with its end.
pub(super) fn find_unused(tx: &Tx<'_>, chat: i64) -> Result<Option<(String, UnixMs)>, StoreError> {
    let map = |row: &rusqlite::Row<'_>| Ok((row.get("token")?, row.get("expires_at")?));
    tx.query_opt(UNUSED, named_params! { ":chat": chat, ":now": tx.now() }, map)
}

/// A new link.
pub(super) fn insert(tx: &Tx<'_>, token: &str, chat: i64, expires_at: UnixMs) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO telegram_connect_links (token, telegram_id, created_at, expires_at)
         VALUES (:token, :chat, :now, :expires_at)",
        named_params! { ":token": token, ":chat": chat, ":now": tx.now(), ":expires_at": expires_at },
    )?;
    Ok(())
}

/// Uses the token, if nobody has and it is young; whose chat it is.
pub(super) fn use_token(tx: &Tx<'_>, token: &str, uid: i64) -> Result<Option<i64>, StoreError> {
    tx.query_opt(
        "UPDATE telegram_connect_links SET used_at = :now, used_by_uid = :uid
         WHERE token = :token AND used_at IS NULL AND expires_at > :now
         RETURNING telegram_id",
        named_params! { ":now": tx.now(), ":uid": uid, ":token": token },
        |row| row.get("telegram_id"),
    )
}

/// Who has used the token, if anybody has; `None` for one that never was.
pub(super) fn find_use(tx: &Tx<'_>, token: &str) -> Result<Option<Option<i64>>, StoreError> {
    tx.query_opt(
        "SELECT used_by_uid FROM telegram_connect_links WHERE token = :token",
        named_params! { ":token": token },
        |row| row.get("used_by_uid"),
    )
}

const DELETE_EXPIRED: &str = "
    DELETE FROM telegram_connect_links WHERE token IN (
        SELECT token FROM telegram_connect_links INDEXED BY telegram_connect_links_expires
        WHERE expires_at < :cutoff ORDER BY expires_at LIMIT :limit)";

/// Links that were over before that are gone, the oldest first; how many.
pub(super) fn delete_expired(tx: &Tx<'_>, cutoff: UnixMs, limit: i64) -> Result<usize, StoreError> {
    tx.execute(DELETE_EXPIRED, named_params! { ":cutoff": cutoff, ":limit": limit })
}

#[cfg(test)]
pub(super) fn plans() -> Vec<(&'static str, &'static str, &'static [&'static str])> {
    vec![
        ("young link", UNUSED, &["telegram_connect_links_unused"]),
        ("links that are over", DELETE_EXPIRED, &["telegram_connect_links_expires"]),
    ]
}
