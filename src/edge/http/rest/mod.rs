//! `/rest/v1/rpc/{function}`: the contract's functions as PostgREST serves them, so that its stock clients call them
//! unchanged.
//!
//! **What.** A call is judged in PostgREST's order: the key, the schema, the method, the body, the function by its name and
//! the names of its arguments, the media type, the arguments' values; then it is one call of `leads`.
//!
//! **Guarantees.**
//! - The key comes before everything, so that without the right one nobody learns whether a lead or even a function
//!   exists: `src/edge/http/tests/rest_rights.rs::who_may_not_call_learns_nothing`.
//! - Every error is `{code, message, details, hint}`: `src/edge/http/tests/rest.rs::every_refusal_has_the_four_keys`.
//! - Of many claims of one lead one wins: `src/edge/http/tests/rest.rs::of_64_claims_over_http_one_wins`.
//!
//! **Windows.** A caller that goes away may have had its claim committed: the lead is `sending` then, and may be claimed
//! again after 15 minutes. A complete can be repeated; one that is given up here still lands if the store comes back.
//!
//! **Not here.** Tables and views, and filters on what a function answers: they are refused rather than ignored, since a
//! filter that does nothing would show a loser's row to somebody who asked for winners. CORS: no browser has a key.

mod accept;
mod arguments;
mod functions;
mod operations;
mod refusal;

use std::sync::Arc;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_RANGE, CONTENT_TYPE};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouterExt};
use utoipa_axum::routes;

use self::accept::Wanted;
use self::arguments::Arguments;
#[cfg(test)]
pub(super) use self::functions::function_names;
use self::functions::{Answer, Function};
pub(super) use self::refusal::Refusal;
use super::HttpState;
use super::keys::{Role, Stranger};
use super::observe::cut_off;
use super::openapi::Routes;

/// The one schema there is, under the name that PostgREST and Supabase give it.
const SCHEMA: &str = "public";
/// What the name of a function follows.
const RPC: &str = "/rest/v1/rpc/";

/// Everything under `/rest`.
pub(super) fn routes(state: &Arc<HttpState>) -> Routes {
    OpenApiRouter::default()
        .routes(routes!(operations::read_summary, operations::summary).map(and_every_method))
        .routes(routes!(operations::claim).map(and_every_method))
        .routes(routes!(operations::complete).map(and_every_method))
        .routes(routes!(operations::request_retry).map(and_every_method))
        .route("/rest/v1/rpc/{function}", any(call_other))
        .route("/rest/{*path}", any(elsewhere))
        .route_layer(from_fn_with_state(Arc::clone(state), admit))
}

/// A method that a function does not take is refused by the function, in PostgREST's order and shape.
fn and_every_method(known: MethodRouter<Arc<HttpState>>) -> MethodRouter<Arc<HttpState>> {
    any(call).merge(known)
}

/// Lets the service role pass, whatever it asks for; nobody else.
async fn admit(State(state): State<Arc<HttpState>>, request: Request, next: Next) -> Result<Response, Refusal> {
    match state.keys.role(request.headers()) {
        // Before the time limit of every request, which would be told in another shape.
        Ok(Role::Service) => cut_off(state.limits.request.mul_f32(0.9), next.run(request)).await.map_err(Refusal::from),
        // The name is the caller's own word; whether there is such a function is not said.
        Ok(Role::Anon) => Err(Refusal::permission_denied(request.uri().path().strip_prefix(RPC))),
        Err(Stranger::Closed) => Err(Refusal::no_service_key()),
        Err(Stranger::NoKey) => Err(Refusal::no_key()),
        Err(Stranger::WrongKey) => Err(Refusal::wrong_key()),
    }
}

/// How a function may be called.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Invocation {
    /// Arguments in the query; nothing may be changed. `HEAD` too.
    Read,
    /// Arguments in the body.
    Post,
    /// `OPTIONS`: only which methods there are.
    Describe,
}

impl Invocation {
    fn of(method: &Method) -> Result<Self, Refusal> {
        match *method {
            Method::GET | Method::HEAD => Ok(Self::Read),
            Method::POST => Ok(Self::Post),
            Method::OPTIONS => Ok(Self::Describe),
            _ => Err(Refusal::wrong_method(method.as_str())),
        }
    }
}

/// Calls the function whose address this is.
async fn call(State(state): State<Arc<HttpState>>, request: Request) -> Result<Response, Refusal> {
    let name = request.uri().path().strip_prefix(RPC).unwrap_or_default().to_owned();
    call_named(&name, &state, request).await
}

/// Calls the function of any other address: one that is spelt in another way, or one that is not there.
async fn call_other(
    State(state): State<Arc<HttpState>>,
    name: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Refusal> {
    let name = name.map_or_else(|_| String::new(), |Path(name)| name);
    call_named(&name, &state, request).await
}

async fn call_named(name: &str, state: &Arc<HttpState>, request: Request) -> Result<Response, Refusal> {
    check_schema(request.method(), request.headers())?;
    let invocation = Invocation::of(request.method())?;
    if invocation == Invocation::Describe {
        return Ok(describe(name));
    }
    let wanted = Wanted::of(request.headers());
    let arguments = match invocation {
        Invocation::Post => Arguments::of_body(request, &state.limits).await?,
        Invocation::Read | Invocation::Describe => Arguments::of_query(request.uri())?,
    };
    let function = Function::find(name, &arguments, invocation == Invocation::Post)?;
    let wanted = wanted?;
    if invocation == Invocation::Read && !function.is_stable() {
        return Err(Refusal::changes_on_read());
    }
    let answer = function.bind(&arguments)?.run(state).await?;
    Ok(show(&answer, wanted))
}

/// `POST` names its schema in one header, `GET` in another; a client library sends both, always.
fn check_schema(method: &Method, headers: &HeaderMap) -> Result<(), Refusal> {
    let reads = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    let named = headers.get(if reads { "accept-profile" } else { "content-profile" });
    match named.map(|name| String::from_utf8_lossy(name.as_bytes())) {
        Some(name) if name != SCHEMA => Err(Refusal::unknown_schema(&name)),
        _ => Ok(()),
    }
}

fn describe(name: &str) -> Response {
    let reads = Function::named(name).is_some_and(Function::is_stable);
    let methods = if reads { "OPTIONS,GET,HEAD,POST" } else { "OPTIONS,POST" };
    (StatusCode::OK, [(ALLOW, methods), (CACHE_CONTROL, "no-store")]).into_response()
}

/// One row or one scalar; the range says so, as clients read it.
fn show(answer: &Answer, wanted: Wanted) -> Response {
    let headers = [(CONTENT_TYPE, wanted.content_type()), (CACHE_CONTROL, "no-store"), (CONTENT_RANGE, "0-0/*")];
    (StatusCode::OK, headers, answer.json(wanted.is_one())).into_response()
}

/// Tables, views, the description of the API: PostgREST has them, this does not.
async fn elsewhere() -> Refusal {
    Refusal::no_such_path()
}
