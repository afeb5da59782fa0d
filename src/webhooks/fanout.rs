//! The consumer that turns an event into deliveries: one for each endpoint of its tenant that wants it, and the body
//! that all of them send, written once and never again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::endpoint::{EndpointStatus, Subscription};
use super::{DELIVERIES, sql};
use crate::kernel::clock::rfc3339;
use crate::kernel::store::{StoreError, Tx};
use crate::kernel::tenant::TenantId;
use crate::outbox::consumer::{Consumer, Inside, Refusal, Shape, StoredEvent};

/// What a receiver can be expected to take for an id.
const LONGEST_ID: usize = 128;
/// Tenants whose endpoints are remembered; past that many they are read again.
const MOST_KNOWN: usize = 10_000;
/// The code for an event whose id cannot be a `webhook-id`.
const UNFIT_ID: &str = "unfit_event_id";

/// An endpoint, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listener {
    pub(super) endpoint: i64,
    pub(super) status: EndpointStatus,
    pub(super) subscription: Subscription,
}

/// The consumer `webhooks`. It remembers the endpoints of tenants for as long as the file says that none has changed.
#[derive(Debug, Default)]
pub(crate) struct Fanout {
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    version: Option<i64>,
    of_tenant: HashMap<TenantId, Arc<[Listener]>>,
}

impl Fanout {
    /// The endpoints of a tenant as they are in this transaction.
    fn listeners(&self, tx: &Tx<'_>, tenant: &TenantId) -> Result<Arc<[Listener]>, StoreError> {
        let version = sql::endpoints::audience_version(tx)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.version != Some(version) || known.of_tenant.len() >= MOST_KNOWN {
            *known = Known { version: Some(version), of_tenant: HashMap::new() };
        }
        if let Some(listeners) = known.of_tenant.get(tenant) {
            return Ok(Arc::clone(listeners));
        }
        // Told once for as long as no endpoint changes. The events of the others do not wait for somebody to mend it.
        let unread =
            |endpoint| tracing::error!(endpoint.row = endpoint, "an endpoint gets no events: its row cannot be read");
        let found = sql::endpoints::audience(tx, tenant)?.into_iter();
        let listeners: Arc<[Listener]> = found.filter_map(|one| one.map_err(unread).ok()).collect();
        known.of_tenant.insert(tenant.clone(), Arc::clone(&listeners));
        Ok(listeners)
    }
}

impl Consumer for Fanout {
    fn name(&self) -> &'static str {
        "webhooks"
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Inside(self)
    }
}

impl Inside for Fanout {
    fn accept(&self, tx: &Tx<'_>, event: &StoredEvent) -> Result<(), Refusal> {
        let listeners = self.listeners(tx, &event.tenant)?;
        let mut wanting = listeners.iter().filter(|one| one.subscription.wants(&event.event_type)).peekable();
        if wanting.peek().is_none() {
            return Ok(());
        }
        if !is_fit(&event.event_id) {
            return Err(Refusal::Code(UNFIT_ID));
        }
        sql::fanout::insert_message(tx, event, &body(event))?;
        for listener in wanting {
            match listener.status {
                EndpointStatus::Active => {
                    sql::fanout::insert_pending(tx, event.row, listener.endpoint)?;
                    tx.wake(DELIVERIES);
                }
                EndpointStatus::Paused => sql::fanout::insert_pending(tx, event.row, listener.endpoint)?,
                EndpointStatus::Disabled => sql::fanout::insert_skipped(tx, event.row, listener.endpoint)?,
            }
        }
        Ok(())
    }
}

/// Whether a delivery of the event in that row of the outbox waits or is being sent: it is not pruned then.
///
/// # Errors
/// The store's.
pub(crate) fn is_unfinished(tx: &Tx<'_>, event: i64) -> Result<bool, StoreError> {
    sql::fanout::is_unfinished(tx, event)
}

/// Whether an event's id can be a header's value and a part of what is signed, where a dot ends it.
fn is_fit(event_id: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_graphic() && byte != b'.';
    (1..=LONGEST_ID).contains(&event_id.len()) && event_id.bytes().all(is_fit)
}

/// What is signed and sent. The event's data is the text that came, byte for byte: whoever would take it apart and put
/// it together again would change numbers that do not fit his own.
pub(super) fn body(event: &StoredEvent) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    format!(
        r#"{{"id":{},"type":{},"version":{},"tenant":{},"aggregate":{{"type":{},"id":{}}},"timestamp":{},"data":{}}}"#,
        quoted(&event.event_id),
        quoted(&event.event_type),
        event.version,
        quoted(event.tenant.as_str()),
        quoted(&event.aggregate_type),
        quoted(&event.aggregate_id),
        quoted(&rfc3339(event.occurred_at)),
        event.payload,
    )
}

#[cfg(test)]
mod tests {
    use super::{body, is_fit};
    use crate::kernel::tenant::TenantId;
    use crate::outbox::consumer::StoredEvent;

    #[test]
    fn the_body_has_its_fields_in_order_and_the_data_byte_for_byte() {
        let data = "{ \"b\":0.10,\"a\":1e400,\n \"\\u2028\":\"\\/ \u{2028} 😀\" }";
        let event = StoredEvent {
            row: 1,
            tenant: TenantId::installation(),
            event_id: "0190".into(),
            event_type: "order.paid".into(),
            version: 2,
            aggregate_type: "order".into(),
            aggregate_id: "a\"b\\\n".into(),
            occurred_at: 1_700_000_000_000,
            payload: data.into(),
            attempts: 0,
        };
        let head = r#"{"id":"0190","type":"order.paid","version":2,"tenant":"default","#;
        let middle = r#""aggregate":{"type":"order","id":"a\"b\\\n"},"timestamp":"2023-11-14T22:13:20.000Z","data":"#;
        assert_eq!(body(&event), format!("{head}{middle}{data}}}"));
    }

    #[test]
    fn an_id_is_fit_if_it_can_be_sent_and_signed() {
        for id in ["0190c5f0-7b1e-7000-8000-000000000001", "a", "x_y:z", &"a".repeat(128)] {
            assert!(is_fit(id), "{id}");
        }
        for id in ["", "a.b", "a b", "a\nb", "ä", "a\u{7f}", &"a".repeat(129)] {
            assert!(!is_fit(id), "{id:?}");
        }
    }
}
