//! `POST /bot/notification`: what a member finds in the web cabinet when the bot could not reach them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::HttpState;
use super::bot_event_forms::MemberUid;
use super::decode::{JsonBody, NoQuery, check_text};
use super::error::{Fault, Problem};
use super::openapi::refusals;
use crate::backend;
use crate::kernel::contract::WebNotification;

/// Characters. A text of Telegram has 4096 at most, and this is such a text.
const LONGEST_BODY: usize = 4096;
const LONGEST_TITLE: usize = 200;
const LONGEST_KIND: usize = 64;
const LONGEST_KEY: usize = 200;

/// A notification for a member's web cabinet.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = NewWebNotification)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NotificationBody {
    magnet_uid: MemberUid,
    /// A short word for what it is about.
    #[schema(min_length = 1, max_length = 64, pattern = r"^[^\x00-\x1F\x7F-\x9F]+$")]
    kind: String,
    /// Its headline.
    #[schema(min_length = 1, max_length = 200, pattern = r"^[^\x00-\x1F\x7F-\x9F]+$")]
    title: String,
    /// Its text; line breaks and tabs may stand in it.
    #[schema(min_length = 1, max_length = 4096, pattern = r"^[^\x00-\x08\x0B\x0C\x0E-\x1F\x7F-\x9F]+$")]
    body: String,
    /// Names the cause; a second notification of the same cause is not stored.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 200, pattern = r"^[^\x00-\x1F\x7F-\x9F]+$")]
    dedup_key: Option<String>,
}

/// There is nothing to say: an empty object.
#[derive(Serialize, ToSchema)]
#[schema(as = StoredWebNotification)]
pub(super) struct StoredBody {}

/// Stores what a member finds in the web cabinet, once per dedup key.
#[utoipa::path(
    post,
    path = "/bot/notification",
    operation_id = "store_web_notification",
    tag = "bot",
    security(("bot_secret" = [])),
    request_body = NotificationBody,
    responses(
        (status = 201, description = "It is stored, now or before.", body = StoredBody),
        refusals::Any, refusals::Secret, refusals::Body,
    )
)]
pub(super) async fn store(
    State(state): State<Arc<HttpState>>,
    _: NoQuery,
    JsonBody(body): JsonBody<NotificationBody>,
) -> Result<(StatusCode, Json<StoredBody>), Problem> {
    let notification = body.check()?;
    state.db.write(move |tx| backend::store_notification(tx, &notification)).await?;
    Ok((StatusCode::CREATED, Json(StoredBody {})))
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
