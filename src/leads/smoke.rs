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

impl Part {
    /// Whether the file has it. A table may have more columns than ours, which another program has added.
    pub(crate) fn is_among(&self, there: &[Self]) -> bool {
        there.iter().any(|part| part.name == self.name && (part.sql == self.sql || self.has_grown_to(&part.sql)))
    }

    /// SQLite writes an added column behind the others, and before what is said of the whole table.
    fn has_grown_to(&self, sql: &str) -> bool {
        let same = |pairs: &mut dyn Iterator<Item = (u8, u8)>| pairs.take_while(|(one, other)| one == other).count();
        let before = same(&mut self.sql.bytes().zip(sql.bytes()));
        let behind = same(&mut self.sql.bytes().rev().zip(sql.bytes().rev()));
        self.sql.starts_with("CREATE TABLE") && sql.len() > self.sql.len() && before + behind >= self.sql.len()
    }
}

/// What the file's schema has of leads. Another program may have changed it, for SQLite lets anybody.
///
/// # Errors
/// The store's.
pub(crate) fn parts(tx: &Tx<'_>) -> Result<Vec<Part>, StoreError> {
    sql::parts::parts(tx)
}
