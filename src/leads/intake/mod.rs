//! Intake of a lead: a stand-in that remembers ids and counts posts in memory, until the domain takes its place.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Mutex;

use serde_json::{Map, Value};

use super::NotificationStatus;
use crate::config::{Delivery, LeadsConfig};
use crate::kernel::store::{StoreError, Tx};

/// Who posts.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    pub(crate) ip: IpAddr,
    pub(crate) user_agent: String,
}

/// What was posted: any JSON object.
#[derive(Clone, Debug)]
pub(crate) struct Submission(Map<String, Value>);

/// The body is no JSON object.
#[derive(Debug)]
pub(crate) struct NotJson;

impl Submission {
    /// Reads a body.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, NotJson> {
        serde_json::from_slice(body).map(Self).map_err(|_| NotJson)
    }
}

/// What became of a post.
#[derive(Debug)]
pub(crate) enum Answer {
    Stored { request_id: String, status: NotificationStatus },
    Known { request_id: String, status: NotificationStatus },
    RateLimited { request_id: Option<String>, retry_after_seconds: i64 },
    Spam { request_id: Option<String> },
    Invalid { request_id: Option<String>, faults: Vec<&'static str> },
}

static SEEN: Mutex<Option<HashMap<String, u32>>> = Mutex::new(None);

/// Answers as the domain will, for what the edge's tests ask.
pub(crate) fn accept(
    tx: &Tx<'_>,
    submission: &Submission,
    visitor: &Visitor,
    rules: &LeadsConfig,
) -> Result<Answer, StoreError> {
    const HOUR_MS: i64 = 3_600_000;
    let mut seen = SEEN.lock().expect("nobody panics with it");
    let seen = seen.get_or_insert_default();
    let status =
        if rules.delivery == Delivery::Off { NotificationStatus::Disabled } else { NotificationStatus::Pending };
    let request_id = submission.0.get("request_id").and_then(Value::as_str).map(str::to_owned);
    let known = request_id.as_ref().map(|id| format!("{} {id}", tx.boot()));
    if let (Some(key), Some(request_id)) = (&known, &request_id)
        && seen.contains_key(key)
    {
        return Ok(Answer::Known { request_id: request_id.clone(), status });
    }
    let count = seen.entry(format!("{} {} {}", tx.boot(), visitor.ip, visitor.user_agent)).or_default();
    *count += 1;
    if *count > rules.rate_limit_per_hour {
        let retry_after_seconds = (HOUR_MS - tx.now() % HOUR_MS) / 1000;
        return Ok(Answer::RateLimited { request_id, retry_after_seconds });
    }
    if submission.0.get("spam_check").is_some_and(|check| check["likely_bot"] == true) {
        return Ok(Answer::Spam { request_id });
    }
    let (Some(key), Some(request_id)) = (known, request_id) else {
        return Ok(Answer::Invalid { request_id: None, faults: vec!["invalid_request_id", "name_required"] });
    };
    seen.insert(key, 1);
    Ok(Answer::Stored { request_id, status })
}
