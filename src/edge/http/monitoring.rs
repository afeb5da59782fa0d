//! `/livez`: the process answers. `/readyz`: it can do its work, with the reason when it cannot.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;
use tokio::sync::Mutex;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::openapi::Routes;
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

#[derive(Serialize)]
struct ReadyBody {
    status: &'static str,
    checks: BTreeMap<&'static str, CheckBody>,
}

#[derive(Serialize)]
struct CheckBody {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
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
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics::show))
        .routes(routes!(openapi::show))
}

/// `GET /livez`: without a look at anything.
pub(super) async fn livez() -> Response {
    ([(CACHE_CONTROL, "no-store")], Json(serde_json::json!({"status": "ok"}))).into_response()
}

/// `GET /readyz`: 200, or 503 when any check fails.
pub(super) async fn readyz(State(state): State<Arc<HttpState>>) -> Response {
    let mut checks: BTreeMap<_, _> = state.checks.iter().map(|check| (check.name, (check.look)())).collect();
    checks.insert("store", state.store_probe.look(&state.db).await.into());
    let (status, word) = match checks.values().all(|check| check.ok) {
        true => (StatusCode::OK, "ok"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "failing"),
    };
    (status, [(CACHE_CONTROL, "no-store")], Json(ReadyBody { status: word, checks })).into_response()
}
