//! `/v1/members` and `/v1/connect-links`: what the site's backend tells of members. They are the installation's own.

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use metrics::counter;
use serde::Serialize;
use utoipa::ToSchema;

use super::member_forms::{MemberBody, MemberForm, PutBody, RedeemBody};
use super::path::Named;
use crate::backend::{connect, members};
use crate::edge::http::HttpState;
use crate::edge::http::decode::{JsonBody, NoQuery};
use crate::edge::http::error::{Fault, Problem};
use crate::edge::http::openapi::refusals;

/// The member of the address.
pub(super) struct Uid(i64);

impl FromRequestParts<Arc<HttpState>> for Uid {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<HttpState>) -> Result<Self, Problem> {
        let Named(text) = Named::from_request_parts(parts, state).await?;
        let uid: i64 = text.parse().map_err(|_| Problem::no_such("member"))?;
        if uid > 0 {
            return Ok(Self(uid));
        }
        Err(Problem::invalid_body(vec![Fault::new("uid", "must be above 0")]))
    }
}

/// Stores a member as it is with these changes, and tells of what it reaches for the first time.
///
/// The events are part of the same transaction. The same request again changes nothing and tells nobody.
#[utoipa::path(
    put,
    path = "/v1/members/{uid}",
    operation_id = "put_member",
    tag = "members",
    params(("uid" = i64, Path, minimum = 1, description = "The member's id.")),
    request_body = MemberBody,
    responses(
        (status = 200, description = "The member as it is now.", body = PutBody),
        (status = 201, description = "The member, who is new.", body = PutBody),
        refusals::Query, refusals::Missing, refusals::Body, refusals::Conflict,
    )
)]
pub(super) async fn put(
    State(state): State<Arc<HttpState>>,
    Uid(uid): Uid,
    _: NoQuery,
    JsonBody(body): JsonBody<MemberBody>,
) -> Result<(StatusCode, Json<PutBody>), Problem> {
    let change = body.into();
    let put = state.db.write(move |tx| members::put(tx, uid, &change)).await?;
    let (status, outcome) = match (put.is_new, put.is_changed) {
        (true, _) => (StatusCode::CREATED, "new"),
        (false, true) => (StatusCode::OK, "changed"),
        (false, false) => (StatusCode::OK, "unchanged"),
    };
    counter!("pillarbox_members_total", "outcome" => outcome).increment(1);
    Ok((status, Json(put.into())))
}

/// Shows a member.
#[utoipa::path(
    get,
    path = "/v1/members/{uid}",
    operation_id = "show_member",
    tag = "members",
    params(("uid" = i64, Path, minimum = 1, description = "The member's id.")),
    responses(
        (status = 200, description = "The member.", body = MemberForm),
        refusals::Query, refusals::Missing,
    )
)]
pub(super) async fn show(
    State(state): State<Arc<HttpState>>,
    Named(uid): Named,
    _: NoQuery,
) -> Result<Json<MemberForm>, Problem> {
    let nobody = || Problem::no_such("member");
    let uid: i64 = uid.parse().map_err(|_| nobody())?;
    let found = state.db.read(move |tx| members::find(tx, uid)).await?;
    Ok(Json(found.ok_or_else(nobody)?.into()))
}

/// There is nothing to say: an empty object.
#[derive(Serialize, ToSchema)]
#[schema(as = UsedConnectLink)]
pub(super) struct UsedBody {}

/// Uses a connect link: the chat that it was made for is the member's preview from here on.
///
/// The member who has used it may repeat that. The bot asks the person to confirm; then the chat is bound.
#[utoipa::path(
    post,
    path = "/v1/connect-links/redeem",
    operation_id = "redeem_connect_link",
    tag = "members",
    request_body = RedeemBody,
    responses(
        (status = 200, description = "It is used, now or before.", body = UsedBody),
        refusals::Query, refusals::Missing, refusals::Body, refusals::Conflict, refusals::Over,
    )
)]
pub(super) async fn redeem(
    State(state): State<Arc<HttpState>>,
    _: NoQuery,
    JsonBody(body): JsonBody<RedeemBody>,
) -> Result<Json<UsedBody>, Problem> {
    state.db.write(move |tx| connect::redeem(tx, &body.token, body.uid.0)).await?;
    Ok(Json(UsedBody {}))
}
