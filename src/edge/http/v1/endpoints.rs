//! `/v1/endpoints`: where a tenant wants its events.

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterIn};

use super::WebhookTools;
use super::admission::Owner;
use super::endpoint_forms::{
    EndpointBody, EndpointChangesBody, MadeEndpointBody, NewEndpointBody, RotatedBody, RotationBody,
};
use super::page::{self, List, PageBody};
use super::path::Named;
use crate::edge::http::HttpState;
use crate::edge::http::decode::{JsonBody, JsonOrNothing, NoQuery, parameters};
use crate::edge::http::error::Problem;
use crate::edge::http::openapi::refusals;
use crate::kernel::store::Tx;
use crate::webhooks::{self, EndpointChanges, NewEndpoint, Rotation};

/// Makes an endpoint, with its secret, which is shown here and never again.
#[utoipa::path(
    post,
    path = "/v1/endpoints",
    operation_id = "create_endpoint",
    tag = "endpoints",
    request_body = NewEndpointBody,
    responses(
        (status = 201, description = "It is there, and active.", body = MadeEndpointBody),
        refusals::Query, refusals::Body, refusals::Conflict,
    )
)]
pub(super) async fn create(
    State(state): State<Arc<HttpState>>,
    Owner(tenant): Owner,
    _: NoQuery,
    JsonBody(body): JsonBody<NewEndpointBody>,
) -> Result<(StatusCode, Json<MadeEndpointBody>), Problem> {
    let (new, tools) = (NewEndpoint::from(body), state.webhooks.clone());
    look_up(&tools, Some(&new.url)).await?;
    let made = state.db.write(move |tx| webhooks::create(tx, &tenant, &new, &tools.vault, &tools.egress));
    let (endpoint, secret) = made.await?;
    Ok((StatusCode::CREATED, Json(MadeEndpointBody::new(endpoint, &secret))))
}

/// Which page of endpoints is listed.
pub(super) struct Listed {
    after: Option<i64>,
    limit: usize,
}

impl FromRequestParts<Arc<HttpState>> for Listed {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<HttpState>) -> Result<Self, Problem> {
        let [limit, after] = parameters(&parts.uri, ["limit", "after"])?;
        let after = page::after(after.as_deref(), |cursor| List::Endpoints.place(cursor))?;
        Ok(Self { after, limit: page::limit(limit.as_deref())? })
    }
}

impl IntoParams for Listed {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        page::parameters([])
    }
}

/// Lists endpoints, in the order in which they were made.
#[utoipa::path(
    get,
    path = "/v1/endpoints",
    operation_id = "list_endpoints",
    tag = "endpoints",
    params(Listed),
    responses((status = 200, description = "A page.", body = PageBody<EndpointBody>), refusals::Query)
)]
pub(super) async fn list(
    State(state): State<Arc<HttpState>>,
    Owner(tenant): Owner,
    Listed { after, limit }: Listed,
) -> Result<Json<PageBody<EndpointBody>>, Problem> {
    let page = state.db.read(move |tx| webhooks::endpoints(tx, &tenant, after, limit)).await?;
    Ok(Json(PageBody::of(List::Endpoints, page)))
}

/// Shows an endpoint.
#[utoipa::path(
    get,
    path = "/v1/endpoints/{endpoint_id}",
    operation_id = "show_endpoint",
    tag = "endpoints",
    params(("endpoint_id" = String, Path)),
    responses((status = 200, description = "The endpoint.", body = EndpointBody), refusals::Query, refusals::Missing)
)]
pub(super) async fn show(
    State(state): State<Arc<HttpState>>,
    Owner(tenant): Owner,
    Named(id): Named,
    _: NoQuery,
) -> Result<Json<EndpointBody>, Problem> {
    let endpoint = state.db.read(move |tx| webhooks::find_endpoint(tx, &tenant, &id)).await?;
    Ok(Json(endpoint.into()))
}

/// Changes an endpoint.
///
/// One that is disabled and set to `active` or `paused` begins anew; what was skipped meanwhile stays so until it is
/// replayed.
#[utoipa::path(
    patch,
    path = "/v1/endpoints/{endpoint_id}",
    operation_id = "update_endpoint",
    tag = "endpoints",
    params(("endpoint_id" = String, Path)),
    request_body = EndpointChangesBody,
    responses(
        (status = 200, description = "The endpoint as it is now.", body = EndpointBody),
        refusals::Query, refusals::Missing, refusals::Body,
    )
)]
pub(super) async fn update(
    State(state): State<Arc<HttpState>>,
    Owner(tenant): Owner,
    Named(id): Named,
    _: NoQuery,
    JsonBody(body): JsonBody<EndpointChangesBody>,
) -> Result<Json<EndpointBody>, Problem> {
    let (changes, tools) = (EndpointChanges::from(body), state.webhooks.clone());
    look_up(&tools, changes.url.as_deref()).await?;
    let is_relief = changes.is_relief();
    let change = move |tx: &Tx<'_>| webhooks::update(tx, &tenant, &id, &changes, &tools.egress);
    // Whoever stops a flood that has filled the disk is not sent away because the disk is full.
    let changed = if is_relief { state.db.settle(change).await } else { state.db.write(change).await };
    Ok(Json(changed?.into()))
}

/// Removes an endpoint with its deliveries.
#[utoipa::path(
    delete,
    path = "/v1/endpoints/{endpoint_id}",
    operation_id = "delete_endpoint",
    tag = "endpoints",
    params(("endpoint_id" = String, Path)),
    responses((status = 204, description = "It is gone."), refusals::Query, refusals::Missing)
)]
pub(super) async fn delete(
    State(state): State<Arc<HttpState>>,
    Owner(tenant): Owner,
    Named(id): Named,
    _: NoQuery,
) -> Result<StatusCode, Problem> {
    state.db.settle(move |tx| webhooks::delete(tx, &tenant, &id)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Looks where a name leads now, so that a wrong one is told here and not by its first failure.
async fn look_up(tools: &WebhookTools, url: Option<&str>) -> Result<(), Problem> {
    match url {
        Some(url) => Ok(tools.transport.check_url(url).await.map_err(webhooks::Error::from)?),
        None => Ok(()),
    }
}

/// Replaces an endpoint's secret. The new one is shown here and never again; the old one signs too for the overlap.
#[utoipa::path(
    post,
    path = "/v1/endpoints/{endpoint_id}/rotate-secret",
    operation_id = "rotate_endpoint_secret",
    tag = "endpoints",
    params(("endpoint_id" = String, Path)),
    request_body = Option<RotationBody>,
    responses(
        (status = 200, description = "The new secret.", body = RotatedBody),
        refusals::Query, refusals::Missing, refusals::Body,
    )
)]
pub(super) async fn rotate_secret(
    State(state): State<Arc<HttpState>>,
    Owner(tenant): Owner,
    Named(id): Named,
    _: NoQuery,
    JsonOrNothing(body): JsonOrNothing<RotationBody>,
) -> Result<Json<RotatedBody>, Problem> {
    let (rotation, tools) = (Rotation::from(body), state.webhooks.clone());
    let rotated = state.db.write(move |tx| webhooks::rotate_secret(tx, &tenant, &id, &rotation, &tools.vault));
    Ok(Json(rotated.await?.into()))
}
