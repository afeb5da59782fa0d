//! `/v1/deliveries`: each event on its way to each endpoint, with its attempts.

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterIn};

use super::admission::Owner;
use super::delivery_forms::{AttemptBody, DeliveryBody, delivery_status};
use super::page::{self, List, PageBody, one_of};
use super::path::Named;
use super::time;
use crate::edge::http::HttpState;
use crate::edge::http::decode::{NoQuery, parameters};
use crate::edge::http::error::Problem;
use crate::edge::http::openapi::refusals;
use crate::webhooks;
use crate::webhooks::delivery::DeliveryStatus;
use crate::webhooks::inspect::{self, DeliveryFilter};

/// Which deliveries are listed.
pub(super) struct Listed {
    filter: DeliveryFilter,
    after: Option<i64>,
    limit: usize,
}

impl FromRequestParts<Arc<HttpState>> for Listed {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<HttpState>) -> Result<Self, Problem> {
        let known = ["endpoint_id", "status", "event_type", "since", "until", "limit", "after"];
        let [endpoint_id, status, event_type, since, until, limit, after] = parameters(&parts.uri, known)?;
        let words = DeliveryStatus::ALL.map(|status| (status.as_str(), status));
        let filter = DeliveryFilter {
            endpoint_id,
            status: one_of("status", status.as_deref(), &words)?,
            event_type,
            since: time::parameter("since", since.as_deref())?,
            until: time::parameter("until", until.as_deref())?,
        };
        let after = page::after(after.as_deref(), |cursor| List::Deliveries.place(cursor))?;
        Ok(Self { filter, after, limit: page::limit(limit.as_deref())? })
    }
}

impl IntoParams for Listed {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        page::parameters([
            page::parameter("endpoint_id", "Only those to this endpoint.", page::text()),
            page::parameter("status", "Only those that stand there.", delivery_status()),
            page::parameter("event_type", "Only those of events of exactly this type.", page::text()),
            page::parameter("since", "Only those that were made then or later.", time::form()),
            page::parameter("until", "Only those that were made before then.", time::form()),
        ])
    }
}

/// Lists deliveries, the newest first.
///
/// A page looks at a bounded number of deliveries, so with a filter that few of them pass it may be short, even empty,
/// and have a next one all the same.
#[utoipa::path(
    get,
    path = "/v1/deliveries",
    operation_id = "list_deliveries",
    tag = "deliveries",
    params(Listed),
    responses(
        (status = 200, description = "A page.", body = PageBody<DeliveryBody>),
        refusals::Query, refusals::Missing,
    )
)]
pub(super) async fn list(
    State(state): State<Arc<HttpState>>,
    Owner(tenant): Owner,
    Listed { filter, after, limit }: Listed,
) -> Result<Json<PageBody<DeliveryBody>>, Problem> {
    let page = state.db.read(move |tx| inspect::deliveries(tx, &tenant, &filter, after, limit)).await?;
    Ok(Json(PageBody::of(List::Deliveries, page)))
}

/// Shows a delivery.
#[utoipa::path(
    get,
    path = "/v1/deliveries/{delivery_id}",
    operation_id = "show_delivery",
    tag = "deliveries",
    params(("delivery_id" = String, Path)),
    responses((status = 200, description = "The delivery.", body = DeliveryBody), refusals::Query, refusals::Missing)
)]
pub(super) async fn show(
    State(state): State<Arc<HttpState>>,
    Owner(tenant): Owner,
    Named(id): Named,
    _: NoQuery,
) -> Result<Json<DeliveryBody>, Problem> {
    let delivery = state.db.read(move |tx| inspect::delivery(tx, &tenant, &id)).await?;
    Ok(Json(delivery.into()))
}

/// Which page of attempts is listed.
pub(super) struct Journal {
    after: Option<i64>,
    limit: usize,
}

impl FromRequestParts<Arc<HttpState>> for Journal {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<HttpState>) -> Result<Self, Problem> {
        let [limit, after] = parameters(&parts.uri, ["limit", "after"])?;
        let after = page::after(after.as_deref(), |cursor| List::Attempts.place(cursor))?;
        Ok(Self { after, limit: page::limit(limit.as_deref())? })
    }
}

impl IntoParams for Journal {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        page::parameters([])
    }
}

/// Lists the attempts of a delivery, in their order.
#[utoipa::path(
    get,
    path = "/v1/deliveries/{delivery_id}/attempts",
    operation_id = "list_delivery_attempts",
    tag = "deliveries",
    params(("delivery_id" = String, Path), Journal),
    responses(
        (status = 200, description = "A page.", body = PageBody<AttemptBody>),
        refusals::Query, refusals::Missing,
    )
)]
pub(super) async fn attempts(
    State(state): State<Arc<HttpState>>,
    Owner(tenant): Owner,
    Named(id): Named,
    Journal { after, limit }: Journal,
) -> Result<Json<PageBody<AttemptBody>>, Problem> {
    let page = state.db.read(move |tx| inspect::attempts(tx, &tenant, &id, after, limit)).await?;
    Ok(Json(PageBody::of(List::Attempts, page)))
}

/// Has a delivery attempted once more, whatever became of it, beside its schedule.
#[utoipa::path(
    post,
    path = "/v1/deliveries/{delivery_id}/resend",
    operation_id = "resend_delivery",
    tag = "deliveries",
    params(("delivery_id" = String, Path)),
    responses(
        (status = 202, description = "It will be; the delivery as it stands.", body = DeliveryBody),
        refusals::Query, refusals::Missing, refusals::Conflict,
    )
)]
pub(super) async fn resend(
    State(state): State<Arc<HttpState>>,
    Owner(tenant): Owner,
    Named(id): Named,
    _: NoQuery,
) -> Result<(StatusCode, Json<DeliveryBody>), Problem> {
    let asked = state.db.write(move |tx| {
        webhooks::resend(tx, &tenant, &id)?;
        inspect::delivery(tx, &tenant, &id)
    });
    Ok((StatusCode::ACCEPTED, Json(asked.await?.into())))
}
