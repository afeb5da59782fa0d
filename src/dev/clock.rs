//! The clock of `dev`: the system's, plus an offset that only grows and is kept in the data directory.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::State;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::problem::{JsonBody, Problem};
use super::{Error, create_dir, write_atomically};
use crate::kernel::clock::{Clock, rfc3339};

/// The furthest jump: ten years. Enough for every retention, and no sum of a few leaves the calendar.
const LONGEST_ADVANCE_S: f64 = 10.0 * 366.0 * 86_400.0;

#[derive(Serialize, Deserialize)]
struct Saved {
    offset_ms: i64,
}

/// The clock that `dir` was left with: the system clock plus the sum of all advances so far.
///
/// # Errors
/// When `dir` cannot be created or its `clock.json` cannot be read.
pub(crate) fn open_clock(dir: &Path) -> Result<Clock, Error> {
    create_dir(dir)?;
    let path = file(dir);
    let saved = match std::fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|source| Error::Journal { path, line: 1, source })?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Saved { offset_ms: 0 },
        Err(source) => return Err(Error::File { path, source }),
    };
    Ok(Clock::system_ahead_by(saved.offset_ms))
}

/// `GET /dev/clock` and `POST /dev/clock/advance`, which moves `clock` and keeps its offset in `dir`.
pub(crate) fn router(clock: Clock, dir: &Path) -> Router {
    let hand = Hand { clock, file: file(dir), turning: Arc::default() };
    Router::new()
        .route("/dev/clock", get(show))
        .route("/dev/clock/advance", post(advance))
        .method_not_allowed_fallback(Problem::wrong_method)
        .with_state(hand)
}

fn file(dir: &Path) -> PathBuf {
    dir.join("clock.json")
}

#[derive(Clone)]
struct Hand {
    clock: Clock,
    file: PathBuf,
    /// Two advances at once must both be in the file.
    turning: Arc<Mutex<()>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Advance {
    seconds: f64,
}

async fn show(State(hand): State<Hand>) -> Json<Value> {
    Json(json!({"now": rfc3339(hand.clock.now())}))
}

async fn advance(State(hand): State<Hand>, JsonBody(by): JsonBody<Advance>) -> Result<Json<Value>, Problem> {
    if !(0.0..=LONGEST_ADVANCE_S).contains(&by.seconds) {
        return Err(Problem::invalid("seconds: must be between 0 and ten years; the clock only goes forward"));
    }
    hand.turn(Duration::from_secs_f64(by.seconds)).map_err(|error| Problem::not_written(&error))?;
    Ok(show(State(hand)).await)
}

impl Hand {
    /// The file first: after a kill between the two, the clock has not gone back.
    fn turn(&self, by: Duration) -> Result<(), Error> {
        let _turn = self.turning.lock().unwrap_or_else(PoisonError::into_inner);
        let by_ms = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        let saved = Saved { offset_ms: self.clock.offset_ms().saturating_add(by_ms) };
        let text = serde_json::to_vec(&saved).expect("a number is JSON");
        write_atomically(&self.file, &text)?;
        self.clock.advance(by);
        Ok(())
    }
}
