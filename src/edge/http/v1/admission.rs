//! Who may call an address of `/v1`: every route is added through [`Surface::takes`], which asks for the right that it
//! needs, so that a route without one cannot be written; the document says the same of it without a handler's help.

use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::CACHE_CONTROL;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use utoipa::IntoResponses;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::SecurityRequirement;
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use crate::edge::http::HttpState;
use crate::edge::http::bearer;
use crate::edge::http::error::Problem;
use crate::edge::http::openapi::{Routes, refusals};
use crate::kernel::tenant::TenantId;
use crate::tenants::{Caller, Right, authenticate};

/// The routes of `/v1` as they come together.
pub(super) struct Surface {
    state: Arc<HttpState>,
    routes: Routes,
}

impl Surface {
    pub(super) fn new(state: &Arc<HttpState>) -> Self {
        Self { state: Arc::clone(state), routes: OpenApiRouter::default() }
    }

    /// Adds a route that only keys with this right are let through to.
    pub(super) fn takes(self, right: Right, route: UtoipaMethodRouter<Arc<HttpState>>) -> Self {
        self.guarded(Gate { right, tenants: Tenants::All }, route)
    }

    /// Adds a route to what is the installation's own, and no other tenant's: only its administrators are let through.
    pub(super) fn takes_of_installation(self, route: UtoipaMethodRouter<Arc<HttpState>>) -> Self {
        self.guarded(Gate { right: Right::Administer, tenants: Tenants::Installation }, route)
    }

    fn guarded(self, gate: Gate, route: UtoipaMethodRouter<Arc<HttpState>>) -> Self {
        let Self { state, routes } = self;
        let (schemas, mut paths, methods) = route;
        paths.paths.values_mut().flat_map(operations).for_each(|operation| describe(operation, gate));
        let guard = from_fn_with_state((Arc::clone(&state), gate), admit);
        Self { routes: routes.routes((schemas, paths, methods.route_layer(guard))), state }
    }

    pub(super) fn routes(self) -> Routes {
        self.routes
    }
}

/// Who is let through to a route.
#[derive(Clone, Copy, Debug)]
struct Gate {
    right: Right,
    tenants: Tenants,
}

/// Whose keys are let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tenants {
    All,
    /// Those of the tenant `default` only.
    Installation,
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, put, post, delete, patch, .. } = item;
    [get, put, post, delete, patch].into_iter().flatten()
}

/// Says who may call it, and what whoever calls anything may be answered.
fn describe(operation: &mut Operation, gate: Gate) {
    operation.security.get_or_insert_default().push(SecurityRequirement::new::<_, [&str; 0], &str>("api_key", []));
    let roles = match gate.right {
        _ if gate.tenants == Tenants::Installation => {
            "Only keys of the tenant `default` and of the role `admin` may call this."
        }
        Right::Read => "Keys of the roles `admin` and `read` may call this.",
        Right::Publish => "Keys of the roles `admin` and `publish` may call this.",
        Right::Administer => "Only keys of the role `admin` may call this.",
    };
    let told = operation.description.take().map_or_else(String::new, |told| format!("{told}\n\n"));
    operation.description = Some(format!("{told}{roles}"));
    operation.responses.responses.extend(refusals::Key::responses());
    operation.responses.responses.extend(refusals::Any::responses());
}

/// Lets a valid key with the right pass, and tells the handler whose it is. Nothing else of the request is looked at
/// before.
async fn admit(
    State((state, gate)): State<(Arc<HttpState>, Gate)>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let caller = find_caller(&state, request.headers()).await?.ok_or_else(Problem::unknown_key)?;
    let is_of_others = gate.tenants == Tenants::Installation && !caller.tenant.is_installation();
    if is_of_others || !caller.role.has(gate.right) {
        return Err(Problem::forbidden());
    }
    request.extensions_mut().insert(Owner(caller.tenant));
    let mut response = next.run(request).await.into_response();
    // What a tenant is told is nobody else's, and a secret is told once.
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Whom the request's key speaks for; `None` without a valid one.
pub(in crate::edge::http) async fn find_caller(
    state: &HttpState,
    headers: &HeaderMap,
) -> Result<Option<Caller>, Problem> {
    let Some(token) = bearer::find_token(headers) else { return Ok(None) };
    let token = token.to_vec();
    Ok(state.db.read(move |tx| authenticate(tx, &token)).await?)
}

/// Whose key the request came with: the only tenant that a handler can name.
#[derive(Clone, Debug)]
pub(super) struct Owner(pub(super) TenantId);

impl FromRequestParts<Arc<HttpState>> for Owner {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<HttpState>) -> Result<Self, Problem> {
        parts.extensions.get().cloned().ok_or_else(|| {
            tracing::error!("a route of /v1 was reached without a key; this is a fault of pillarbox");
            Problem::internal()
        })
    }
}
