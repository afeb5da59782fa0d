//! Text that another program wrote. SQLite takes any bytes for text; Rust does not.

use rusqlite::types::ValueRef;
use rusqlite::{Row, RowIndex};

/// A column's text with whatever is not UTF-8 in it replaced; `None` for NULL. For every text that a co-writer may have
/// written in another encoding: one row that cannot be read would stop everybody's page, or every send.
///
/// # Errors
/// [`rusqlite::Error::InvalidColumnName`] for a column that the statement does not have.
pub fn lossy_text(row: &Row<'_>, column: impl RowIndex) -> rusqlite::Result<Option<String>> {
    Ok(match row.get_ref(column)? {
        ValueRef::Text(text) => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    })
}
