//! `GET /bot/leader/resolve` and `GET /bot/user/state`: what a bot asks about members.

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use utoipa::ToSchema;

use super::HttpState;
use super::chat_id;
use super::decode::parameters;
use super::error::{Fault, Problem};
use super::openapi::refusals;
use crate::backend::members;
use crate::kernel::contract::{Leader, MemberState};

/// A member as whoever follows their link sees them.
#[derive(ToSchema)]
#[schema(as = Leader)]
#[expect(dead_code, reason = "describes what the contract's own type writes")]
pub(super) struct LeaderForm {
    /// The member's id.
    uid: i64,
    /// The code of the link.
    link: String,
    /// How the member is called.
    #[schema(required)]
    name: Option<String>,
}

/// What a member has done.
#[derive(ToSchema)]
#[schema(as = MemberState, rename_all = "camelCase")]
#[expect(dead_code, reason = "describes what the contract's own type writes")]
pub(super) struct MemberStateForm {
    /// Whether the registration is confirmed.
    is_registration_confirmed: bool,
    /// Whether the first level of the status NFT is active.
    lp1: bool,
    /// Whether the second level is.
    lp2: bool,
    /// The address of the wallet.
    #[schema(required)]
    addr: Option<String>,
    /// Until when the member is active.
    #[schema(required, format = DateTime)]
    time_active: Option<String>,
    /// The code of the member's own link.
    #[schema(required)]
    own_link: Option<String>,
}

/// The code of a link.
pub(super) struct Code(String);

impl FromRequestParts<Arc<HttpState>> for Code {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<HttpState>) -> Result<Self, Problem> {
        let [code] = parameters(&parts.uri, ["code"])?;
        code.map(Self).ok_or_else(|| Problem::bad_query(Fault::new("code", "is missing")))
    }
}

/// Finds the member whose link has this code.
#[utoipa::path(
    get,
    path = "/bot/leader/resolve",
    operation_id = "resolve_leader",
    tag = "bot",
    security(("bot_secret" = [])),
    params(("code" = String, Query, description = "The code, as it stands in a link that starts the bot.")),
    responses(
        (status = 200, description = "The member.", body = LeaderForm),
        refusals::Any, refusals::Secret, refusals::Query, refusals::Missing,
    )
)]
pub(super) async fn resolve(State(state): State<Arc<HttpState>>, Code(code): Code) -> Result<Json<Leader>, Problem> {
    let found = state.db.read(move |tx| members::find_by_link(tx, &code)).await?;
    found.map(Json).ok_or_else(|| Problem::no_such("link"))
}

/// The chat that is asked about.
pub(super) struct Chat(i64);

impl FromRequestParts<Arc<HttpState>> for Chat {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<HttpState>) -> Result<Self, Problem> {
        let [id] = parameters(&parts.uri, ["telegramId"])?;
        let id = id.and_then(|text| chat_id::parse(&text)).map(Self);
        id.ok_or_else(|| Problem::bad_query(Fault::new("telegramId", "must be a text of digits")))
    }
}

/// Tells what the member whom this chat is bound to has done. A chat that has only opened the site is bound to nobody.
#[utoipa::path(
    get,
    path = "/bot/user/state",
    operation_id = "show_member_state",
    tag = "bot",
    security(("bot_secret" = [])),
    params(("telegramId" = String, Query, pattern = "^([1-8][0-9]{18}|[1-9][0-9]{0,17})$", description = "The chat.")),
    responses(
        (status = 200, description = "What the member has done.", body = MemberStateForm),
        refusals::Any, refusals::Secret, refusals::Query, refusals::Missing,
    )
)]
pub(super) async fn state(State(state): State<Arc<HttpState>>, Chat(chat): Chat) -> Result<Json<MemberState>, Problem> {
    let found = state.db.read(move |tx| members::state_of(tx, chat)).await?;
    found.map(Json).ok_or_else(|| Problem::no_such("member"))
}
