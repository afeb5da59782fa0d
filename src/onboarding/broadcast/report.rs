//! What people see of broadcasts: the list, and each recipient of one.

use super::sql;
pub(crate) use super::sql::recipients::Recipient;
use super::{Broadcast, Error};
use crate::kernel::store::Tx;

/// Rows of one page.
pub(crate) const PAGE: i64 = 500;

/// Broadcasts behind an id, by id.
///
/// # Errors
/// The store's.
pub(crate) fn list(tx: &Tx<'_>, after: i64, limit: i64) -> Result<Vec<Broadcast>, Error> {
    Ok(sql::list(tx, after, limit.clamp(1, PAGE))?)
}

/// One broadcast.
///
/// # Errors
/// [`Error::NotFound`]; the store's.
pub(crate) fn load(tx: &Tx<'_>, id: i64) -> Result<Broadcast, Error> {
    sql::find(tx, id)?.ok_or(Error::NotFound(id))
}

/// Recipients behind a chat, by chat.
///
/// # Errors
/// The store's.
pub(crate) fn recipients(tx: &Tx<'_>, id: i64, after: i64) -> Result<Vec<Recipient>, Error> {
    Ok(sql::recipients::page(tx, id, after, PAGE)?)
}
