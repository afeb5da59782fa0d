//! Statements on the texts that take the place of shipped ones.

use rusqlite::{Row, named_params};

use super::lang::Lang;
use super::overrides::Override;
use crate::kernel::store::{StoreError, Tx, lossy_text};

/// The text that takes the place of this block's.
pub(super) fn find_body(tx: &Tx<'_>, key: &str, lang: Lang) -> Result<Option<String>, StoreError> {
    let sql = "SELECT body FROM content_blocks WHERE key = :key AND lang = :lang";
    let body =
        tx.query_opt(sql, named_params! { ":key": key, ":lang": lang.as_str() }, |row| lossy_text(row, "body"))?;
    Ok(body.flatten())
}

/// Every override, by key.
pub(super) fn all(tx: &Tx<'_>) -> Result<Vec<Override>, StoreError> {
    let sql = "SELECT key, lang, body, updated_at FROM content_blocks ORDER BY key, lang";
    Ok(tx.query_all(sql, [], override_of)?.into_iter().flatten().collect())
}

/// This text takes the place of the block's from now on.
pub(super) fn put(tx: &Tx<'_>, key: &str, lang: Lang, body: &str) -> Result<(), StoreError> {
    let sql = "
        INSERT INTO content_blocks (key, lang, body, updated_at) VALUES (:key, :lang, :body, :now)
        ON CONFLICT (key, lang) DO UPDATE SET body = excluded.body, updated_at = excluded.updated_at";
    tx.execute(sql, named_params! { ":key": key, ":lang": lang.as_str(), ":body": body, ":now": tx.now() }).map(|_| ())
}

/// The shipped text is back; how many rows went.
pub(super) fn delete(tx: &Tx<'_>, key: &str, lang: Lang) -> Result<usize, StoreError> {
    let sql = "DELETE FROM content_blocks WHERE key = :key AND lang = :lang";
    tx.execute(sql, named_params! { ":key": key, ":lang": lang.as_str() })
}

/// `None` for a language that this version does not have.
fn override_of(row: &Row<'_>) -> rusqlite::Result<Option<Override>> {
    let lang: String = row.get("lang")?;
    let Some(lang) = Lang::parse(&lang) else { return Ok(None) };
    Ok(Some(Override {
        key: lossy_text(row, "key")?.unwrap_or_default(),
        lang,
        body: lossy_text(row, "body")?.unwrap_or_default(),
        updated_at: row.get("updated_at")?,
    }))
}
