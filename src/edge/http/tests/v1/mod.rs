//! `/v1` as tenants meet it.

mod bad_input;
mod events;
mod idempotency;
mod roles;

use serde_json::{Value, json};

use super::{Answer, TestServer};
use crate::kernel::store::{StoreError, Tx};
use crate::kernel::tenant::TenantId;
use crate::tenants::{Role, create_key, create_tenant};

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
