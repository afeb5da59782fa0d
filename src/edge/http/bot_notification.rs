//! `POST /bot/notification`: what a member finds in the web cabinet when the bot could not reach them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::HttpState;
use super::bot_events::MemberUid;
use super::decode::{JsonBody, NoQuery, check_text};
use super::error::{Fault, Problem};
use crate::backend;
use crate::kernel::contract::WebNotification;

/// Characters. A text of Telegram has 4096 at most, and this is such a text.
const LONGEST_BODY: usize = 4096;
const LONGEST_TITLE: usize = 200;
const LONGEST_KIND: usize = 64;
const LONGEST_KEY: usize = 200;

/// The notification on the wire.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NotificationBody {
    magnet_uid: MemberUid,
    kind: String,
    title: String,
    body: String,
    #[serde(default)]
    dedup_key: Option<String>,
}

/// Stores it, once per dedup key; 201 either way.
pub(super) async fn store(
    State(state): State<Arc<HttpState>>,
    _: NoQuery,
    JsonBody(body): JsonBody<NotificationBody>,
) -> Result<(StatusCode, Json<Map<String, Value>>), Problem> {
    let notification = body.check()?;
    state.db.write(move |tx| backend::store_notification(tx, &notification)).await?;
    Ok((StatusCode::CREATED, Json(Map::new())))
}

impl NotificationBody {
    fn check(self) -> Result<WebNotification, Problem> {
        let key = self.dedup_key.as_deref().map_or(Ok(()), |key| check_text(key, LONGEST_KEY, &[]));
        let checks = [
            ("kind", check_text(&self.kind, LONGEST_KIND, &[])),
            ("title", check_text(&self.title, LONGEST_TITLE, &[])),
            ("body", check_text(&self.body, LONGEST_BODY, &['\n', '\r', '\t'])),
            ("dedupKey", key),
        ];
        let faults: Vec<_> =
            checks.into_iter().filter_map(|(field, check)| check.err().map(|why| Fault::new(field, why))).collect();
        if !faults.is_empty() {
            return Err(Problem::invalid_body(faults));
        }
        Ok(WebNotification {
            magnet_uid: self.magnet_uid.0,
            kind: self.kind,
            title: self.title,
            body: self.body,
            dedup_key: self.dedup_key,
        })
    }
}
