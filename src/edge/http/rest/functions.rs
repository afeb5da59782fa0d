//! The functions of the contract: their parameters, and what a call of each does.
//!
//! Claiming and asking for a retry begin work, so they are refused while the disk is low or the queue full: nothing is
//! lost, and the lead waits. Completing ends work that has happened in the world: refused, a delivered notification would
//! stay `sending` and be sent again after 15 minutes. So it is settled, like an acknowledgement.

use std::sync::Arc;

use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use super::arguments::Arguments;
use super::refusal::Refusal;
use crate::edge::http::HttpState;
use crate::edge::http::finish::see_through;
use crate::leads::{self, Ending, ErrorCode, NotificationStatus, RetryReason, SummaryError};

/// One function that can be called.
#[derive(Debug)]
pub(super) struct Function {
    name: &'static str,
    required: &'static [&'static str],
    optional: &'static [&'static str],
    /// Changes nothing, so that `GET` may call it.
    is_stable: bool,
    read: fn(&Arguments) -> Result<Call, Refusal>,
}

/// A client library leaves out what is `undefined`, so the error of a success, and the fence, may be missing.
const FUNCTIONS: [Function; 4] = [
    Function {
        name: "broker_lead_notification_summary",
        required: &["p_lead_id"],
        optional: &[],
        is_stable: true,
        read: |arguments| Ok(Call::Summary { lead: lead(arguments)? }),
    },
    Function {
        name: "claim_broker_lead_notification",
        required: &["p_lead_id", "p_request_id"],
        optional: &[],
        is_stable: false,
        read: |arguments| Ok(Call::Claim { lead: lead(arguments)?, request: arguments.text("p_request_id")? }),
    },
    Function {
        name: "complete_broker_lead_notification",
        required: &["p_lead_id", "p_request_id", "p_success"],
        optional: &["p_error", "p_attempt_count"],
        is_stable: false,
        read: |arguments| {
            Ok(Call::Complete {
                lead: lead(arguments)?,
                request: arguments.text("p_request_id")?,
                ending: ending(arguments)?,
                attempt: arguments.integer("p_attempt_count")?,
            })
        },
    },
    Function {
        name: "request_broker_lead_notification_retry",
        required: &["p_lead_id", "p_request_id", "p_reason_code"],
        optional: &[],
        is_stable: false,
        read: |arguments| {
            let reason = arguments.text("p_reason_code")?;
            let reason = reason.as_deref().and_then(|code| RetryReason::parse(code).ok());
            Ok(Call::Retry {
                lead: lead(arguments)?,
                request: arguments.text("p_request_id")?,
                reason: reason.ok_or_else(|| Refusal::raised("unknown_retry_reason"))?,
            })
        },
    },
];

/// The names of all of them.
#[cfg(test)]
pub(in crate::edge::http) fn function_names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|function| function.name)
}

/// No lead has the empty id, so null finds none, as in SQL.
fn lead(arguments: &Arguments) -> Result<String, Refusal> {
    Ok(arguments.uuid("p_lead_id")?.unwrap_or_default())
}

/// Only `true` is a success. A code of another form is replaced rather than refused: the attempt has ended all the same.
fn ending(arguments: &Arguments) -> Result<Ending, Refusal> {
    let code = arguments.text("p_error")?;
    Ok(match arguments.boolean("p_success")? {
        Some(true) => Ending::Sent,
        Some(false) | None => Ending::Failed(ErrorCode::from_caller(code.as_deref())),
    })
}

impl Function {
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        FUNCTIONS.iter().find(|function| function.name == name)
    }

    /// The function of this name that takes arguments of these names.
    pub(super) fn find(name: &str, arguments: &Arguments, is_post: bool) -> Result<&'static Self, Refusal> {
        let (found, names) = (Self::named(name), arguments.names());
        match found {
            Some(function) if function.takes(&names) => Ok(function),
            _ => {
                let known = found.map(|function| [function.required, function.optional].concat());
                Err(Refusal::no_function(name, &names, is_post, known.as_deref()))
            }
        }
    }

    fn takes(&self, names: &[&str]) -> bool {
        let is_known = |name: &&str| self.required.contains(name) || self.optional.contains(name);
        names.iter().all(is_known) && self.required.iter().all(|name| names.contains(name))
    }

    pub(super) fn is_stable(&self) -> bool {
        self.is_stable
    }

    /// The call that these arguments make.
    pub(super) fn bind(&self, arguments: &Arguments) -> Result<Call, Refusal> {
        (self.read)(arguments)
    }
}

/// A function with its arguments.
#[derive(Debug)]
pub(super) enum Call {
    Summary { lead: String },
    Claim { lead: String, request: Option<String> },
    Complete { lead: String, request: Option<String>, ending: Ending, attempt: Option<i64> },
    Retry { lead: String, request: Option<String>, reason: RetryReason },
}

/// What a function answered, as JSON.
pub(super) enum Answer {
    Scalar(String),
    Row(String),
}

/// What came of a claim.
#[derive(Serialize, ToSchema)]
#[schema(as = LeadClaim)]
pub(super) struct ClaimRow {
    /// Whether the caller has it.
    claimed: bool,
    /// The lead's status, or `missing`.
    #[schema(schema_with = statuses)]
    current_status: &'static str,
    /// Claims so far; the caller's own is the last of them.
    #[schema(minimum = 0)]
    attempt_count: i64,
}

/// What came of asking for a retry.
#[derive(Serialize, ToSchema)]
#[schema(as = LeadRetry)]
pub(super) struct RetryRow {
    /// Whether the lead waits again because of it.
    retry_requested: bool,
    /// The lead's status, or `missing`.
    #[schema(schema_with = statuses)]
    current_status: &'static str,
    /// Retries that people asked for so far.
    #[schema(minimum = 0)]
    retry_count: i64,
}

fn statuses() -> Object {
    let words = NotificationStatus::ALL.map(NotificationStatus::as_str).into_iter().chain(["missing"]);
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).build()
}

impl Call {
    pub(super) async fn run(self, state: &Arc<HttpState>) -> Result<Answer, Refusal> {
        let db = state.db.clone();
        match self {
            Self::Summary { lead } => {
                let text = db.read(move |tx| leads::summary(tx, &lead)).await?;
                Ok(Answer::scalar(&text))
            }
            Self::Claim { lead, request } => {
                let hands = state.hands.clone();
                let claim = db.write(move |tx| leads::claim(tx, &lead, request.as_deref(), &hands)).await?;
                let leads::Claim { claimed, current_status, attempt_count } = claim;
                Ok(Answer::row(&ClaimRow { claimed, current_status, attempt_count }))
            }
            Self::Complete { lead, request, ending, attempt } => {
                let completing = async move {
                    db.settle(move |tx| leads::complete(tx, &lead, request.as_deref(), &ending, attempt)).await
                };
                let completed = see_through(state.limits.request, completing).await.ok_or_else(Refusal::unavailable)?;
                Ok(Answer::scalar(completed?.as_str()))
            }
            Self::Retry { lead, request, reason } => {
                let retry = db.write(move |tx| leads::request_retry(tx, &lead, request.as_deref(), reason)).await?;
                let leads::Retry { retry_requested, current_status, retry_count } = retry;
                Ok(Answer::row(&RetryRow { retry_requested, current_status, retry_count }))
            }
        }
    }
}

impl Answer {
    fn scalar(text: &str) -> Self {
        Self::Scalar(serde_json::Value::from(text).to_string())
    }

    fn row(row: &impl Serialize) -> Self {
        Self::Row(serde_json::to_string(row).expect("a row is made of words and numbers"))
    }

    /// A row is a list of one, unless the one is wanted; a scalar is itself.
    pub(super) fn json(&self, as_one: bool) -> String {
        match self {
            Self::Row(row) if !as_one => format!("[{row}]"),
            Self::Row(row) => row.clone(),
            Self::Scalar(scalar) => scalar.clone(),
        }
    }
}

impl From<SummaryError> for Refusal {
    fn from(error: SummaryError) -> Self {
        match error {
            SummaryError::NotFound => Self::raised("broker_lead_not_found"),
            SummaryError::Empty => Self::raised("notification_summary_empty"),
            SummaryError::Store(error) => error.into(),
        }
    }
}
