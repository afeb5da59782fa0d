//! `/v1` as tenants meet it.

mod bad_input;
mod deliveries;
mod endpoints;
mod events;
mod idempotency;
mod isolation;
mod members;
mod pages;
mod roles;
mod test_button;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{Answer, Setup, TestServer};
use crate::kernel::store::{StoreError, Tx};
use crate::kernel::tenant::TenantId;
use crate::outbox::Relay;
use crate::tenants::{Role, create_key, create_tenant};
use crate::webhooks::Fanout;

pub(super) const JSON: (&str, &[u8]) = ("Content-Type", b"application/json");

impl TestServer {
    /// A new key of that tenant, which is made if need be.
    pub(super) async fn key(&self, tenant: &str, role: Role) -> String {
        let tenant = TenantId::parse(tenant).unwrap();
        let make = move |tx: &Tx<'_>| {
            let _ = create_tenant(tx, &tenant);
            create_key(tx, &tenant, role, "").map(|key| key.token.expose().to_owned())
        };
        self.db.write(make).await.unwrap()
    }

    /// A request with this key and, if there is one, this body.
    pub(super) async fn ask(&self, key: &str, method: &str, path: &str, body: Option<&Value>) -> Answer {
        let text = body.map(Value::to_string);
        let bytes = text.as_deref().map(str::as_bytes);
        self.ask_bytes(key, (method, path), &[], bytes).await
    }

    /// The same with a body as it is written, and further headers.
    pub(super) async fn ask_bytes(
        &self,
        key: &str,
        (method, path): (&str, &str),
        more: &[(&str, &[u8])],
        body: Option<&[u8]>,
    ) -> Answer {
        let auth = format!("Bearer {key}");
        let mut headers = vec![("Authorization", auth.as_bytes())];
        headers.extend(body.map(|_| JSON));
        headers.extend(more);
        self.send(method, path, &headers, body.unwrap_or_default()).await
    }

    /// The texts of one column.
    pub(super) async fn column(&self, sql: &'static str) -> Vec<String> {
        let read: Result<_, StoreError> = self.db.read(move |tx| tx.query_all(sql, [], |row| row.get(0))).await;
        read.unwrap()
    }
}

/// An event that is taken.
pub(super) fn event() -> Value {
    json!({"type": "order.paid", "version": 1, "aggregate": {"type": "order", "id": "17"}, "data": {"amount": 5}})
}

/// The same with another value of a field.
pub(super) fn event_with(field: &str, value: Value) -> Value {
    let mut body = event();
    body[field] = value;
    body
}

/// A server with tenants who have one of everything.
pub(super) struct World {
    pub(super) server: TestServer,
}

/// One of everything: a key that may do all, and an id by the name of each parameter.
pub(super) struct Furnished {
    pub(super) key: String,
    pub(super) ids: BTreeMap<&'static str, String>,
}

impl World {
    pub(super) async fn start() -> Self {
        Self { server: TestServer::with(Setup::default()).await }
    }

    /// Hands what was posted to the endpoints.
    pub(super) async fn relay(&self) {
        let relay = Relay::new(self.server.db.clone(), vec![Box::new(Fanout::default())]);
        relay.run_once(&CancellationToken::new()).await.unwrap();
    }

    /// An endpoint of whoever has this key.
    pub(super) async fn endpoint(&self, key: &str) -> String {
        let body = json!({"url": "https://hooks.example.com/"});
        let made = self.server.ask(key, "POST", "/v1/endpoints", Some(&body)).await;
        assert_eq!(made.status, 201, "{made:?}");
        made.json()["id"].as_str().unwrap().to_owned()
    }

    /// Posts an event and returns its id.
    pub(super) async fn post(&self, key: &str) -> String {
        let posted = self.server.ask(key, "POST", "/v1/events", Some(&event())).await;
        assert_eq!(posted.status, 202, "{posted:?}");
        posted.json()["event_id"].as_str().unwrap().to_owned()
    }

    /// What a list holds, page by page.
    pub(super) async fn list(&self, key: &str, path: &str, limit: usize) -> Vec<Value> {
        let (mut all, mut after) = (vec![], String::new());
        loop {
            let mark = if path.contains('?') { '&' } else { '?' };
            let page = self.server.ask(key, "GET", &format!("{path}{mark}limit={limit}{after}"), None).await;
            assert_eq!(page.status, 200, "{page:?}");
            let page = page.json();
            all.extend(page["items"].as_array().unwrap().iter().cloned());
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return all,
            }
        }
    }

    /// A tenant with a failed event's worth of everything.
    pub(super) async fn furnish(&self, tenant: &str) -> Furnished {
        let key = self.server.key(tenant, Role::Admin).await;
        let endpoint = self.endpoint(&key).await;
        let event = self.post(&key).await;
        self.relay().await;
        let deliveries = self.list(&key, "/v1/deliveries", 50).await;
        assert_eq!(deliveries.len(), 1);
        let delivery = deliveries[0]["id"].as_str().unwrap().to_owned();
        Furnished {
            key,
            ids: BTreeMap::from([("endpoint_id", endpoint), ("event_id", event), ("delivery_id", delivery)]),
        }
    }

    /// Everything that a request could change.
    pub(super) async fn everything(&self) -> Vec<String> {
        let sql = "
            SELECT 'event ' || event_id || attempts || COALESCE(next_attempt_at, '') || COALESCE(failed_at, '') FROM outbox_events
            UNION ALL SELECT 'endpoint ' || endpoint_id || url || description || status || updated_at || COALESCE(deleted_at, '')
                      FROM webhook_endpoints
            UNION ALL SELECT 'secret ' || id || COALESCE(valid_until, '') FROM webhook_secrets
            UNION ALL SELECT 'delivery ' || id || status || attempts || COALESCE(resend_requested_at, '') FROM webhook_deliveries
            UNION ALL SELECT 'test ' || id FROM webhook_tests ORDER BY 1";
        self.server.column(sql).await
    }
}
