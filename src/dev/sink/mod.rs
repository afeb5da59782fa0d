//! The webhook sink: receivers with a name, which are told how to answer, write down what came and check its signature.
//!
//! **What.** `PUT /dev/sink/{name}` programs a receiver, any other method than PUT and DELETE on it is received,
//! `GET /dev/sink/{name}/requests` lists what came; `DELETE` of the list empties it, of the receiver forgets it whole.
//! A receiver that was never programmed answers 200 and has no secret.
//!
//! **Guarantees.** What was answered is in the log before the answer leaves; a delay comes after the log.
//!
//! **Windows.** As the fake's. **Not here.** Bounded memory, TLS.

pub(in crate::dev) mod receive;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::{FromRequestParts, Path as UrlPath, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::routing::{get, put};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::journal::Journal;
use super::problem::{JsonBody, Problem, QueryOf};
use super::signature::Key;
use super::{Error, create_dir};
use crate::kernel::clock::Clock;

const LONGEST_PAGE: usize = 1000;

/// The sink; clones share it.
#[derive(Clone)]
pub(crate) struct Sink(Arc<Inner>);

struct Inner {
    clock: Clock,
    kept: Mutex<Kept>,
}

struct Kept {
    receivers: HashMap<String, Receiver>,
    journal: Journal,
}

#[derive(Default)]
struct Receiver {
    program: Program,
    requests: Vec<Arc<Received>>,
    /// How many came since the receiver was made, so that an ordinal is never given twice.
    came: u64,
}

/// How a receiver answers.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Program {
    status: u16,
    /// Real time.
    delay_ms: u64,
    headers: BTreeMap<String, String>,
    /// A string is sent as text, anything else as JSON.
    body: Option<Value>,
    /// `whsec_…`; with it, requests are verified.
    secret: Option<String>,
}

impl Default for Program {
    fn default() -> Self {
        Self { status: 200, delay_ms: 0, headers: BTreeMap::new(), body: None, secret: None }
    }
}

/// One request that came.
#[derive(Serialize, Deserialize)]
struct Received {
    ordinal: u64,
    method: String,
    /// What came after the `?`.
    query: Option<String>,
    headers: BTreeMap<String, String>,
    /// The text, if it is UTF-8; else `body_base64` has the bytes.
    body: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body_base64: Option<String>,
    received_at: String,
    /// Whether the signature fits; null without a secret.
    verified: Option<bool>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
enum Entry {
    Programmed { name: String, program: Program },
    Received { name: String, request: Arc<Received> },
    Cleared { name: String },
    Forgotten { name: String },
}

impl Sink {
    /// Continues the sink whose log is in `dir`, or begins one.
    ///
    /// # Errors
    /// See [`super::fake_router`].
    pub(crate) fn open(dir: &Path, clock: Clock) -> Result<Self, Error> {
        create_dir(dir)?;
        let mut receivers = HashMap::new();
        let journal = Journal::open(dir.join("sink.ndjson"), |entry| apply(&mut receivers, entry))?;
        Ok(Self(Arc::new(Inner { clock, kept: Mutex::new(Kept { receivers, journal }) })))
    }

    /// `/dev/sink/*`.
    pub(crate) fn router(&self) -> Router {
        Router::new()
            .route("/dev/sink/{name}", put(program).delete(forget).fallback(receive::receive))
            .route("/dev/sink/{name}/requests", get(requests).delete(clear))
            .method_not_allowed_fallback(Problem::wrong_method)
            .with_state(self.clone())
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // The log is written before the memory changes, so a panic between leaves nothing half done.
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn commit(&mut self, entry: Entry) -> Result<(), Problem> {
        self.journal.append(&entry).map_err(|error| Problem::not_written(&error))?;
        apply(&mut self.receivers, entry);
        Ok(())
    }
}

fn apply(receivers: &mut HashMap<String, Receiver>, entry: Entry) {
    match entry {
        Entry::Programmed { name, program } => receivers.entry(name).or_default().program = program,
        Entry::Received { name, request } => {
            let receiver = receivers.entry(name).or_default();
            receiver.came = request.ordinal;
            receiver.requests.push(request);
        }
        Entry::Cleared { name } => receivers.entry(name).or_default().requests.clear(),
        Entry::Forgotten { name } => {
            receivers.remove(&name);
        }
    }
}

async fn program(
    State(sink): State<Sink>,
    Name(name): Name,
    JsonBody(program): JsonBody<Program>,
) -> Result<StatusCode, Problem> {
    program.check()?;
    sink.kept().commit(Entry::Programmed { name, program })?;
    Ok(StatusCode::NO_CONTENT)
}

async fn forget(State(sink): State<Sink>, Name(name): Name) -> Result<StatusCode, Problem> {
    sink.kept().commit(Entry::Forgotten { name })?;
    Ok(StatusCode::NO_CONTENT)
}

async fn clear(State(sink): State<Sink>, Name(name): Name) -> Result<StatusCode, Problem> {
    sink.kept().commit(Entry::Cleared { name })?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// The ordinal of the last request that was seen.
    #[serde(default)]
    after: u64,
    limit: Option<usize>,
}

async fn requests(
    State(sink): State<Sink>,
    Name(name): Name,
    QueryOf(wanted): QueryOf<Wanted>,
) -> Result<Json<Value>, Problem> {
    let limit = wanted.limit.unwrap_or(LONGEST_PAGE);
    if !(1..=LONGEST_PAGE).contains(&limit) {
        return Err(Problem::unreadable(format!("limit: must be between 1 and {LONGEST_PAGE}")));
    }
    let kept = sink.kept();
    let came = kept.receivers.get(&name).map_or(&[][..], |receiver| &receiver.requests);
    let start = came.partition_point(|request| request.ordinal <= wanted.after);
    let page: Vec<_> = came[start..].iter().take(limit).cloned().collect();
    drop(kept);
    Ok(Json(json!({"requests": page.iter().map(|request| json!(**request)).collect::<Vec<_>>()})))
}

/// The receiver's name out of the path.
struct Name(String);

impl<S: Send + Sync> FromRequestParts<S> for Name {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let wrong = || Problem::invalid("name: must be 1 to 64 of letters, digits, '-', '_' and '.'");
        let UrlPath(name) = UrlPath::<String>::from_request_parts(parts, state).await.map_err(|_| wrong())?;
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if plain && (1..=64).contains(&name.len()) { Ok(Self(name)) } else { Err(wrong()) }
    }
}

impl Program {
    fn check(&self) -> Result<(), Problem> {
        if !(200..=599).contains(&self.status) {
            return Err(Problem::invalid("status: must be between 200 and 599"));
        }
        for (name, value) in &self.headers {
            if HeaderName::try_from(name).is_err() || HeaderValue::try_from(value).is_err() {
                return Err(Problem::invalid(format!("headers: {name:?} is not a header")));
            }
        }
        match self.secret.as_deref().map(Key::parse) {
            Some(None) => Err(Problem::invalid("secret: must be whsec_ and base64")),
            _ => Ok(()),
        }
    }
}
