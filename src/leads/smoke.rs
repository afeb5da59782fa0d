//! What `pillarbox leads smoke` needs to know of leads: what it says to the chat, and what the schema is made of.

use super::sql;
use crate::kernel::store::{StoreError, Tx};

/// What the chat of leads is told by the test.
pub(crate) const TEST_MESSAGE: &str = "Проверка Pillarbox: в этот чат будут приходить заявки с сайта. \
    Это тестовое сообщение, отвечать на него не нужно.\n\
    Pillarbox test: leads from the site will arrive in this chat. No reply is needed.";

/// A part of the schema, as the file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// What it is called.
    pub(crate) name: String,
    /// How it was made.
    pub(crate) sql: String,
}

/// What the file's schema has of leads. Another program may have changed it, for SQLite lets anybody.
///
/// # Errors
/// The store's.
pub(crate) fn parts(tx: &Tx<'_>) -> Result<Vec<Part>, StoreError> {
    sql::parts::parts(tx)
}
