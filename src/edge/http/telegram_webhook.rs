//! `POST /telegram/webhook`: where Telegram brings updates, if it was told to. Stored, then acknowledged.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::HttpState;
use super::decode::{NoQuery, read_json};
use super::error::Problem;
use super::openapi::{Routes, refusals};
use crate::edge::telegram::{Unwelcome, WebhookDoor};

const SECRET: &str = "X-Telegram-Bot-Api-Secret-Token";
/// The largest update that is read; the longest text makes one of some 30 KB.
const LARGEST: usize = 1 << 20;

/// It is stored. An empty object: an answer in it would be a message that nothing keeps.
#[derive(Serialize, ToSchema)]
#[schema(as = TakenUpdate)]
struct TakenBody {}

pub(super) fn routes() -> Routes {
    OpenApiRouter::default().routes(routes!(take))
}

/// Takes an update of the Bot API, as Telegram brings it. There is nothing here unless `telegram.updates` is `webhook`.
#[utoipa::path(
    post,
    path = "/telegram/webhook",
    operation_id = "take_update",
    tag = "telegram",
    security(("telegram_secret" = [])),
    request_body(content = serde_json::Value, description = "An update, as the Bot API has it."),
    responses(
        (status = 200, description = "It is stored, now or before.", body = TakenBody),
        refusals::Any, refusals::Secret, refusals::Body, refusals::Missing,
    )
)]
async fn take(State(state): State<Arc<HttpState>>, _: NoQuery, request: Request) -> Result<Json<TakenBody>, Problem> {
    let Some(door) = state.door.clone() else { return Err(Problem::nothing_here()) };
    if !is_telegram(&door, request.headers()) {
        return Err(Problem::unauthorized());
    }
    let text = read_json(request, LARGEST, state.limits.body).await?;
    match door.take(text.as_bytes()).await {
        Ok(()) => Ok(Json(TakenBody {})),
        Err(Unwelcome::Unreadable) => Err(Problem::no_update()),
        Err(Unwelcome::Store(error)) => Err(Problem::bring_it_again(error)),
    }
}

/// Two such headers are no answer to the question who brings this.
fn is_telegram(door: &WebhookDoor, headers: &HeaderMap) -> bool {
    let mut said = headers.get_all(SECRET).iter();
    matches!((said.next(), said.next()), (Some(said), None) if door.knows(said.as_bytes()))
}
