//! `/livez`: the process answers. `/readyz`: it can do its work, with the reason when it cannot.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tokio::sync::Mutex;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::error::ProblemBody;
use super::openapi::{Routes, refusals};
use super::{HttpState, metrics, openapi};
use crate::kernel::store::Db;

/// A store that takes longer for one commit is not ready.
const STORE_ANSWERS_WITHIN: Duration = Duration::from_secs(2);
/// Anybody may ask, and every look at the store is a commit: so many asks share one.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(250);

/// Something else than the store that has to be in order, or of which a person should know.
#[derive(Clone)]
pub(crate) struct ReadyCheck {
    name: &'static str,
    look: Arc<Look>,
}

type Look = dyn Fn() -> CheckBody + Send + Sync;

impl ReadyCheck {
    /// `look` answers at once from what is known; its reason is shown to anybody, so it names no secret and no person.
    pub(crate) fn new(name: &'static str, look: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self { name, look: Arc::new(move || look().into()) }
    }

    /// The same for what a person should put right although the work can be done: it is shown, and nothing is unready.
    pub(crate) fn advice(name: &'static str, look: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
        Self { name, look: Arc::new(move || CheckBody { ok: true, detail: look() }) }
    }
}

/// The last look at the store.
#[derive(Debug, Default)]
pub(super) struct StoreProbe(Mutex<Option<(Instant, Result<(), String>)>>);

impl StoreProbe {
    async fn look(&self, db: &Db) -> Result<(), String> {
        let mut last = self.0.lock().await;
        if let Some((at, found)) = &*last
            && at.elapsed() < LOOK_AGAIN_AFTER
        {
            return found.clone();
        }
        let found = match tokio::time::timeout(STORE_ANSWERS_WITHIN, db.probe()).await {
            Ok(done) => done.map_err(|error| error.to_string()),
            Err(_) => Err("the store does not answer in time".to_owned()),
        };
        *last = Some((Instant::now(), found.clone()));
        found
    }
}

/// That the process answers.
#[derive(Serialize, ToSchema)]
#[schema(as = Alive)]
struct LiveBody {
    /// `ok`.
    status: &'static str,
}

/// Whether the work can be done.
#[derive(Serialize, ToSchema)]
#[schema(as = Readiness)]
struct ReadyBody {
    /// `ok` or `failing`.
    status: &'static str,
    /// By name.
    checks: BTreeMap<&'static str, CheckBody>,
}

/// One thing that has to be in order.
#[derive(Serialize, ToSchema)]
#[schema(as = ReadinessCheck)]
struct CheckBody {
    /// Whether it is.
    ok: bool,
    /// Why not, or what a person should know all the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    detail: Option<String>,
}

impl From<Result<(), String>> for CheckBody {
    fn from(found: Result<(), String>) -> Self {
        Self { ok: found.is_ok(), detail: found.err() }
    }
}

/// What machines ask for, without a secret.
pub(super) fn routes() -> Routes {
    OpenApiRouter::default()
        .routes(routes!(livez))
        .routes(routes!(readyz))
        .routes(routes!(metrics::show))
        .routes(routes!(openapi::show))
}

/// Says that the process answers, without a look at anything.
#[utoipa::path(
    get,
    path = "/livez",
    operation_id = "livez",
    tag = "monitoring",
    responses((status = 200, description = "It does.", body = LiveBody), refusals::Any)
)]
pub(super) async fn livez() -> Response {
    ([(CACHE_CONTROL, "no-store")], Json(LiveBody { status: "ok" })).into_response()
}

/// Says whether the process can do its work.
#[utoipa::path(
    get,
    path = "/readyz",
    operation_id = "readyz",
    tag = "monitoring",
    responses(
        (status = 200, description = "It can.", body = ReadyBody),
        refusals::Any,
        (
            status = 503, description = "It cannot, and which check says so; or the answer took too long.",
            content((ReadyBody = "application/json"), (ProblemBody = "application/problem+json"))
        ),
    )
)]
pub(super) async fn readyz(State(state): State<Arc<HttpState>>) -> Response {
    let mut checks: BTreeMap<_, _> = state.checks.iter().map(|check| (check.name, (check.look)())).collect();
    checks.insert("store", state.store_probe.look(&state.db).await.into());
    let (status, word) = match checks.values().all(|check| check.ok) {
        true => (StatusCode::OK, "ok"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "failing"),
    };
    (status, [(CACHE_CONTROL, "no-store")], Json(ReadyBody { status: word, checks })).into_response()
}
