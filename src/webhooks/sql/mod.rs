//! Every statement on the tables of webhooks, by what it is for.

pub(super) mod claim;
pub(super) mod endpoints;
pub(super) mod fanout;
pub(super) mod finish;
pub(super) mod health;
pub(super) mod keep;
pub(super) mod lists;
pub(super) mod probe;
pub(super) mod recover;
pub(super) mod secrets;
pub(super) mod sweep;

use rusqlite::Row;
use rusqlite::types::FromSqlError;

use super::Error;

/// A text of a column that must name one of the values that there are.
fn parsed<T>(row: &Row<'_>, column: &'static str, parse: impl FnOnce(&str) -> Option<T>) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    parse(&text).ok_or_else(|| FromSqlError::Other(Box::new(Error::UnknownText { column })).into())
}

/// The same for a column that may be empty.
fn parsed_opt<T>(
    row: &Row<'_>,
    column: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(column)?;
    let Some(text) = text else { return Ok(None) };
    let found = parse(&text).ok_or_else(|| FromSqlError::Other(Box::new(Error::UnknownText { column })))?;
    Ok(Some(found))
}

/// Rows as a statement takes them: a JSON array, for `json_each`.
fn listed(rows: &[i64]) -> String {
    serde_json::Value::from(rows).to_string()
}
