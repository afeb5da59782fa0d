//! `GET /auth/check-account-by-telegram/{id}`: whether a chat is a member's. Behind the secret of `/bot`.

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::middleware::from_fn_with_state;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::decode::NoQuery;
use super::error::Problem;
use super::openapi::{Routes, refusals};
use super::{HttpState, bearer, chat_id};
use crate::backend::members;
use crate::kernel::contract::Account;

/// The one address.
pub(super) fn routes(state: &Arc<HttpState>) -> Routes {
    OpenApiRouter::default().routes(routes!(check)).route_layer(from_fn_with_state(Arc::clone(state), bearer::require))
}

/// Which member a chat is bound to.
#[derive(ToSchema)]
#[schema(as = Account)]
#[expect(dead_code, reason = "describes what the contract's own type writes")]
struct AccountForm {
    /// Whether there is one.
    exists: bool,
    /// Its id; null without one.
    #[schema(required, minimum = 1)]
    uid: Option<i64>,
}

/// The chat of the address. What is no chat's id names nothing.
pub(super) struct Chat(i64);

impl FromRequestParts<Arc<HttpState>> for Chat {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<HttpState>) -> Result<Self, Problem> {
        let named = Path::<String>::from_request_parts(parts, state).await;
        let id = named.ok().and_then(|Path(text)| chat_id::parse(&text));
        id.map(Self).ok_or_else(|| Problem::no_such("chat"))
    }
}

/// Tells whether this chat is bound to a member, and to whom. A chat that has only opened the site is not.
#[utoipa::path(
    get,
    path = "/auth/check-account-by-telegram/{telegram_id}",
    operation_id = "check_account_by_telegram",
    tag = "auth",
    security(("bot_secret" = [])),
    params(("telegram_id" = String, Path, description = "The chat.")),
    responses(
        (status = 200, description = "The member, if there is one.", body = AccountForm),
        refusals::Any, refusals::Secret, refusals::Query, refusals::Missing,
    )
)]
pub(super) async fn check(
    State(state): State<Arc<HttpState>>,
    Chat(chat): Chat,
    _: NoQuery,
) -> Result<Json<Account>, Problem> {
    let uid = state.db.read(move |tx| members::find_by_chat(tx, chat)).await?;
    Ok(Json(Account { exists: uid.is_some(), uid }))
}
