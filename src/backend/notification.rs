//! What a member finds in the web cabinet when the bot could not reach them.

use super::sql;
use crate::kernel::contract::WebNotification;
use crate::kernel::store::{StoreError, Tx};

/// Stores it, once per cause.
///
/// # Errors
/// The store's.
pub(crate) fn store_notification(tx: &Tx<'_>, notification: &WebNotification) -> Result<(), StoreError> {
    sql::insert_notification(tx, notification)
}
