//! `POST /bot/telegram/*`: the way of a chat to the site, and of a member back to the chat.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::HttpState;
use super::bot_event_forms::MemberUid;
use super::chat_id::{ChatText, ChatTextOrNumber};
use super::decode::{JsonBody, NoQuery};
use super::error::Problem;
use super::openapi::refusals;
use crate::backend::{self, connect};
use crate::kernel::contract::{Bound, ConnectLink};

/// A chat that confirms that it is a member's.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = NewBinding)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct BindBody {
    telegram_id: ChatTextOrNumber,
    magnet_uid: MemberUid,
}

/// A member and the chat that is bound.
#[derive(Serialize, ToSchema)]
#[schema(as = Binding)]
#[serde(rename_all = "camelCase")]
pub(super) struct BindingBody {
    /// The member.
    #[schema(minimum = 1)]
    uid: i64,
    /// The chat.
    telegram_id: ChatText,
}

/// Binds a chat to the member whose link it has opened.
///
/// It can be repeated. A member whose preview is another chat by now, a chat or a member that is bound elsewhere: 409.
#[utoipa::path(
    post,
    path = "/bot/telegram/bind",
    operation_id = "bind_chat",
    tag = "bot",
    security(("bot_secret" = [])),
    request_body = BindBody,
    responses(
        (status = 200, description = "It is bound, now or before.", body = BindingBody),
        refusals::Any, refusals::Secret, refusals::Body, refusals::Conflict,
    )
)]
pub(super) async fn bind(
    State(state): State<Arc<HttpState>>,
    _: NoQuery,
    JsonBody(body): JsonBody<BindBody>,
) -> Result<Json<BindingBody>, Problem> {
    let (chat, uid) = (body.telegram_id.0, body.magnet_uid.0);
    match state.db.write(move |tx| backend::bind(tx, chat, uid)).await? {
        Bound::Now | Bound::Before => Ok(Json(BindingBody { uid, telegram_id: ChatText(chat) })),
        Bound::Refused => Err(Problem::not_previewed()),
    }
}

/// A chat that wants to go to the site.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = NewConnectLink)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NewLinkBody {
    telegram_id: ChatTextOrNumber,
}

/// The way to the site for one chat.
#[derive(ToSchema)]
#[schema(as = ConnectLink, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what the contract's own type writes")]
pub(super) struct LinkForm {
    /// The site's address with the token in it.
    #[schema(format = Uri)]
    url: String,
    /// The token, which is used once.
    #[schema(format = Uuid)]
    token: String,
    /// When the token is over.
    #[schema(format = DateTime)]
    expires_at: String,
}

/// Hands out the way to the site for a chat: the one that is unused and young, else a new one.
#[utoipa::path(
    post,
    path = "/bot/telegram/connect-link",
    operation_id = "make_connect_link",
    tag = "bot",
    security(("bot_secret" = [])),
    request_body = NewLinkBody,
    responses(
        (status = 200, description = "The link.", body = LinkForm),
        refusals::Any, refusals::Secret, refusals::Body,
    )
)]
pub(super) async fn connect_link(
    State(state): State<Arc<HttpState>>,
    _: NoQuery,
    JsonBody(body): JsonBody<NewLinkBody>,
) -> Result<Json<ConnectLink>, Problem> {
    let site = state.site_url.clone().ok_or_else(Problem::no_site_url)?;
    let chat = body.telegram_id.0;
    Ok(Json(state.db.write(move |tx| connect::mint(tx, chat, &site)).await?))
}
