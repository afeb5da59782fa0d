//! The functions as operations of the document. Each is the same [`call`], which finds the function by the address; what
//! differs is what may be sent and what is answered.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::call;
use super::functions::{ClaimRow, RetryRow};
use super::refusal::{Body, CallRefusals, ReadRefusals, Refusal};
use crate::edge::http::HttpState;
use crate::leads::RetryReason;

type Answered = Result<Response, Refusal>;

/// Which lead.
#[derive(ToSchema, IntoParams)]
#[schema(as = LeadSummaryArguments)]
#[into_params(parameter_in = Query)]
#[expect(dead_code, reason = "describes arguments that are found by name")]
struct SummaryArguments {
    /// The lead's own id.
    p_lead_id: Uuid,
}

/// Which lead: both must be its own, and null is the request id of a lead without one.
#[derive(ToSchema)]
#[schema(as = LeadClaimArguments)]
#[expect(dead_code, reason = "describes arguments that are found by name")]
struct ClaimArguments {
    p_lead_id: Uuid,
    #[schema(required, pattern = r"^[^\x00]*$")]
    p_request_id: Option<String>,
}

/// Which lead, and what came of its notification.
#[derive(ToSchema)]
#[schema(as = LeadCompleteArguments)]
#[expect(dead_code, reason = "describes arguments that are found by name")]
struct CompleteArguments {
    p_lead_id: Uuid,
    #[schema(required, pattern = r"^[^\x00]*$")]
    p_request_id: Option<String>,
    /// Only `true` is a success.
    #[schema(required)]
    p_success: Option<bool>,
    /// A code of a failure, `[a-z0-9_]`; another text is kept as `notification_failed`.
    #[schema(pattern = r"^[^\x00]*$")]
    p_error: Option<String>,
    /// The attempt that the claim answered; without it any attempt is completed.
    p_attempt_count: Option<i32>,
}

/// Which lead, and why it may be told of again.
#[derive(ToSchema)]
#[schema(as = LeadRetryArguments)]
#[expect(dead_code, reason = "describes arguments that are found by name")]
struct RetryArguments {
    p_lead_id: Uuid,
    #[schema(required, pattern = r"^[^\x00]*$")]
    p_request_id: Option<String>,
    #[schema(schema_with = reasons)]
    p_reason_code: String,
}

fn reasons() -> Object {
    let codes = RetryReason::ALL.map(RetryReason::as_str);
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(codes)).build()
}

/// Writes the text that the broker is told of a lead; it changes nothing.
#[utoipa::path(
    get,
    path = "/rest/v1/rpc/broker_lead_notification_summary",
    operation_id = "read_lead_summary",
    tag = "rest",
    security(("service_key" = []), ("service_apikey" = [])),
    params(SummaryArguments, ("Accept-Profile" = Option<String>, Header, pattern = "^public$")),
    responses(
        (
            status = 200, description = "The text.",
            content(
                (String = "application/json"),
                (String = "application/vnd.pgrst.array+json"),
                (String = "application/vnd.pgrst.object+json")
            )
        ),
        (status = 400, description = "No such lead (`P0001`), or an argument of another form.", body = Body),
        ReadRefusals,
    )
)]
pub(super) async fn read_summary(state: State<Arc<HttpState>>, request: Request) -> Answered {
    call(state, request).await
}

/// Writes the text that the broker is told of a lead; it changes nothing.
#[utoipa::path(
    post,
    path = "/rest/v1/rpc/broker_lead_notification_summary",
    operation_id = "call_lead_summary",
    tag = "rest",
    security(("service_key" = []), ("service_apikey" = [])),
    params(("Content-Profile" = Option<String>, Header, pattern = "^public$")),
    request_body = SummaryArguments,
    responses(
        (
            status = 200, description = "The text.",
            content(
                (String = "application/json"),
                (String = "application/vnd.pgrst.array+json"),
                (String = "application/vnd.pgrst.object+json")
            )
        ),
        (status = 400, description = "No such lead (`P0001`), or an argument of another form.", body = Body),
        CallRefusals,
    )
)]
pub(super) async fn summary(state: State<Arc<HttpState>>, request: Request) -> Answered {
    call(state, request).await
}

/// Takes the right to tell the broker of a lead; of many callers one gets it.
#[utoipa::path(
    post,
    path = "/rest/v1/rpc/claim_broker_lead_notification",
    operation_id = "claim_lead_notification",
    tag = "rest",
    security(("service_key" = []), ("service_apikey" = [])),
    params(("Content-Profile" = Option<String>, Header, pattern = "^public$")),
    request_body = ClaimArguments,
    responses(
        (
            status = 200, description = "Whether it was got, and how the lead is.",
            content(
                (Vec<ClaimRow> = "application/json"),
                (Vec<ClaimRow> = "application/vnd.pgrst.array+json"),
                (ClaimRow = "application/vnd.pgrst.object+json")
            )
        ),
        (status = 400, description = "An argument of another form.", body = Body),
        CallRefusals,
    )
)]
pub(super) async fn claim(state: State<Arc<HttpState>>, request: Request) -> Answered {
    call(state, request).await
}

/// Says what came of a notification that was claimed.
#[utoipa::path(
    post,
    path = "/rest/v1/rpc/complete_broker_lead_notification",
    operation_id = "complete_lead_notification",
    tag = "rest",
    security(("service_key" = []), ("service_apikey" = [])),
    params(("Content-Profile" = Option<String>, Header, pattern = "^public$")),
    request_body = CompleteArguments,
    responses(
        (
            status = 200, description = "What the lead is now: `sent`, `failed` or `unchanged`.",
            content(
                (String = "application/json"),
                (String = "application/vnd.pgrst.array+json"),
                (String = "application/vnd.pgrst.object+json")
            )
        ),
        (status = 400, description = "An argument of another form.", body = Body),
        CallRefusals,
    )
)]
pub(super) async fn complete(state: State<Arc<HttpState>>, request: Request) -> Answered {
    call(state, request).await
}

/// Lets a failed notification be tried again.
#[utoipa::path(
    post,
    path = "/rest/v1/rpc/request_broker_lead_notification_retry",
    operation_id = "request_lead_notification_retry",
    tag = "rest",
    security(("service_key" = []), ("service_apikey" = [])),
    params(("Content-Profile" = Option<String>, Header, pattern = "^public$")),
    request_body = RetryArguments,
    responses(
        (
            status = 200, description = "Whether it waits again, and how the lead is.",
            content(
                (Vec<RetryRow> = "application/json"),
                (Vec<RetryRow> = "application/vnd.pgrst.array+json"),
                (RetryRow = "application/vnd.pgrst.object+json")
            )
        ),
        (status = 400, description = "An unknown reason (`P0001`), or an argument of another form.", body = Body),
        CallRefusals,
    )
)]
pub(super) async fn request_retry(state: State<Arc<HttpState>>, request: Request) -> Answered {
    call(state, request).await
}
