//! The addresses of the contract between a backend and the bot: all behind its secret.

use std::sync::Arc;

use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::openapi::Routes;
use super::{HttpState, bearer, bot_events, bot_notification};

/// Everything under `/bot`.
pub(super) fn routes(state: &Arc<HttpState>) -> Routes {
    let fetched = OpenApiRouter::default()
        .route("/bot/events/pending", get(bot_events::pending))
        .route("/bot/events/ack", post(bot_events::ack))
        .route_layer(from_fn_with_state(Arc::clone(state), bot_events::refuse_while_consumed_here));
    OpenApiRouter::default()
        .routes(routes!(bot_events::emit))
        .route("/bot/notification", post(bot_notification::store))
        .merge(fetched)
        .route_layer(from_fn_with_state(Arc::clone(state), bearer::require))
}
