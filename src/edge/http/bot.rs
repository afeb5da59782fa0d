//! The addresses of the contract between a backend and the bot: all behind its secret.

use std::sync::Arc;

use axum::middleware::from_fn_with_state;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::openapi::Routes;
use super::{HttpState, bearer, bot_bind, bot_events, bot_lookups, bot_notification};

/// Everything under `/bot`.
pub(super) fn routes(state: &Arc<HttpState>) -> Routes {
    let fetched = OpenApiRouter::default()
        .routes(routes!(bot_events::pending))
        .routes(routes!(bot_events::ack))
        .route_layer(from_fn_with_state(Arc::clone(state), bot_events::refuse_while_consumed_here));
    OpenApiRouter::default()
        .routes(routes!(bot_events::emit))
        .routes(routes!(bot_notification::store))
        .routes(routes!(bot_lookups::resolve))
        .routes(routes!(bot_lookups::state))
        .routes(routes!(bot_bind::bind))
        .routes(routes!(bot_bind::connect_link))
        .merge(fetched)
        .route_layer(from_fn_with_state(Arc::clone(state), bearer::require))
}
