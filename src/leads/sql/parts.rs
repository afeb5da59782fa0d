//! What the file's schema has of leads, as SQLite keeps it.

use crate::kernel::store::{StoreError, Tx, lossy_text};
use crate::leads::smoke::Part;

/// The tables, indexes, views and triggers of leads, by name.
pub(crate) fn parts(tx: &Tx<'_>) -> Result<Vec<Part>, StoreError> {
    let sql = "
        SELECT name, sql FROM sqlite_schema
        WHERE tbl_name IN ('broker_leads', 'broker_lead_events', 'broker_lead_rate_limits', 'broker_lead_preparation_due')
          AND sql IS NOT NULL
        ORDER BY name";
    tx.query_all(sql, [], |row| {
        let text = |column| Ok::<_, rusqlite::Error>(lossy_text(row, column)?.unwrap_or_default());
        Ok(Part { name: text("name")?, sql: text("sql")? })
    })
}
