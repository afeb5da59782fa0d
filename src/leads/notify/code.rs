//! What is stored of a call that did not bring a notification: the contract's short codes.

use crate::chat::{FailureCode, Outcome};
use crate::leads::ErrorCode;

/// The code of an outcome that is not a delivery.
pub(super) fn code_of(outcome: &Outcome) -> ErrorCode {
    let code = match outcome {
        Outcome::Refused { code, .. } | Outcome::Unknown { code } => *code,
        Outcome::Delivered { .. } => return ErrorCode::NOTIFICATION_FAILED,
    };
    match (code, code.http_status()) {
        (FailureCode::Timeout, _) => ErrorCode::TELEGRAM_TIMEOUT,
        (FailureCode::Connect, _) => ErrorCode::TELEGRAM_UNREACHABLE,
        (_, Some(status)) => ErrorCode::telegram_http(status),
        _ => ErrorCode::NOTIFICATION_FAILED,
    }
}
