//! Leads of other programs: recording that they have arrived, as the intake does for its own.

use super::{LEADS, NotificationStatus, sql};
use crate::config::Delivery;
use crate::kernel::events::Event;
use crate::kernel::store::{StoreError, Tx};

/// Records up to `limit` leads that came without their event, the oldest first; how many. Each gets its `created` event,
/// unless the other program wrote one, and the domain event; with nobody to send, nobody is to be told of it. A lead of
/// which this cannot be recorded is left for the next time.
///
/// # Errors
/// The store's.
pub(crate) fn announce(tx: &Tx<'_>, delivery: Delivery, limit: i64) -> Result<usize, StoreError> {
    let mut announced = 0;
    for standing in sql::claim::unannounced(tx, limit)? {
        let row = standing.row;
        let lead = standing.lead.clone();
        let record = || {
            sql::claim::insert_event(tx, row, "created", &serde_json::json!({}))?;
            tx.publish(&Event::LeadReceived(standing.lead))?;
            sql::claim::mark_announced(tx, row)?;
            match (standing.status, delivery) {
                // One that a person has asked for waits for whoever sends next.
                (NotificationStatus::Pending, Delivery::Off) if standing.retries == 0 => {
                    sql::claim::mark_disabled(tx, row)?;
                }
                (NotificationStatus::Pending, _) => tx.wake(LEADS),
                _ => {}
            }
            Ok(())
        };
        match tx.attempt(|| StoreError::NoRow, record)? {
            Ok(()) => announced += 1,
            Err(error) => tracing::error!(lead.id = lead.id, %error, "a lead's arrival could not be recorded"),
        }
    }
    Ok(announced)
}
