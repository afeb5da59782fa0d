//! What an answer of the Bot API means, by its status and the beginning of its text.
//!
//! The texts are not a contract; they are compared by prefix, without regard to case, and whatever is not known falls
//! back on the status alone. The text itself goes nowhere: only a code does.

use std::borrow::Cow;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Failure;
use crate::chat::{Class, FailureCode, Reason};

/// An answer as it came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer<'a> {
    /// The HTTP status.
    pub(super) status: u16,
    /// The `Retry-After` header.
    pub(super) retry_after: Option<Duration>,
    /// The body.
    pub(super) body: &'a [u8],
}

#[derive(Deserialize)]
struct Envelope<'a> {
    ok: bool,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error_code: Option<u16>,
    #[serde(borrow)]
    description: Option<Cow<'a, str>>,
    parameters: Option<Parameters>,
}

#[derive(Clone, Copy, Default, Deserialize)]
struct Parameters {
    retry_after: Option<u64>,
    migrate_to_chat_id: Option<i64>,
}

/// A refusal, read.
struct Refusal<'a> {
    status: u16,
    text: &'a str,
    parameters: Parameters,
    retry_after: Option<Duration>,
}

/// Texts after `Forbidden: `.
const FORBIDDEN: &[(&str, FailureCode, Reason)] = &[
    ("bot was blocked by the user", FailureCode::Blocked, Reason::Blocked),
    ("user is deactivated", FailureCode::Deactivated, Reason::Deactivated),
    ("bot can't initiate conversation", FailureCode::CantInitiate, Reason::NeverStarted),
    ("bot was kicked from the", FailureCode::NotMember, Reason::Blocked),
    ("bot is not a member of the", FailureCode::NotMember, Reason::Blocked),
    ("the group chat was deleted", FailureCode::ChatDeleted, Reason::Deactivated),
];

/// Texts after `Bad Request: `.
const BAD_REQUEST: &[(&str, FailureCode, Class)] = &[
    ("chat not found", FailureCode::ChatNotFound, Class::Unreachable(Reason::NeverStarted)),
    ("private chat not found", FailureCode::ChatNotFound, Class::Unreachable(Reason::NeverStarted)),
    ("PEER_ID_INVALID", FailureCode::ChatNotFound, Class::Unreachable(Reason::NeverStarted)),
    ("USER_IS_BOT", FailureCode::IsBot, Class::Final),
    ("group chat was upgraded", FailureCode::Migrated, Class::Final), // without the new id it leads nowhere
    ("can't parse entities", FailureCode::BadMarkup, Class::BadMarkup),
    ("message is too long", FailureCode::TooLong, Class::Final),
    ("MESSAGE_TOO_LONG", FailureCode::TooLong, Class::Final),
    ("message text is empty", FailureCode::Empty, Class::Final),
    ("text must be non-empty", FailureCode::Empty, Class::Final),
    ("message is not modified", FailureCode::NotModified, Class::Final),
    ("message to edit not found", FailureCode::NoSuchMessage, Class::NoSuchMessage),
    ("message can't be edited", FailureCode::NoSuchMessage, Class::NoSuchMessage),
    ("MESSAGE_ID_INVALID", FailureCode::NoSuchMessage, Class::NoSuchMessage),
    ("BUTTON_", FailureCode::ButtonInvalid, Class::Final),
    ("inline keyboard button", FailureCode::ButtonInvalid, Class::Final),
    ("can't parse inline keyboard", FailureCode::ButtonInvalid, Class::Final),
    ("query is too old", FailureCode::QueryTooOld, Class::Final),
    ("not enough rights", FailureCode::NoRights, Class::Final),
    ("have no rights to send", FailureCode::NoRights, Class::Final),
    ("message thread not found", FailureCode::ThreadNotFound, Class::Final),
];

/// The result of an accepted call.
///
/// # Errors
/// [`Failure`] for every other answer.
pub(super) fn classify<'a>(answer: &Answer<'a>) -> Result<&'a RawValue, Failure> {
    let status = answer.status;
    let envelope: Option<Envelope<'a>> = serde_json::from_slice(answer.body).ok();
    match (status, envelope) {
        // A server, or a proxy before it, that failed may have passed the request on first.
        (500.., _) => Err(Failure::Unknown { code: FailureCode::Http(status) }),
        (200..300, Some(Envelope { ok: true, result, .. })) => Ok(result.unwrap_or(RawValue::NULL)),
        (200..500, Some(Envelope { ok: false, error_code, description, parameters, .. }))
            if status >= 400 || error_code.is_some() =>
        {
            let refusal = Refusal {
                status: error_code.unwrap_or(status),
                text: description.as_deref().unwrap_or_default(),
                parameters: parameters.unwrap_or_default(),
                retry_after: answer.retry_after,
            };
            Err(refusal.read())
        }
        // Not Telegram's own words, but a refusal: a gateway, or a wrong address.
        (400..500, _) => Err(foreign_refusal(status, answer.retry_after)),
        (200..300, _) => Err(Failure::Unknown { code: FailureCode::BrokenAnswer }),
        _ => Err(Failure::Unknown { code: FailureCode::Http(status) }),
    }
}

impl Refusal<'_> {
    fn read(&self) -> Failure {
        // Only groups move, and only to be groups.
        if let Some(chat_id) = self.parameters.migrate_to_chat_id.filter(|id| *id < 0) {
            return refused(Class::MovedTo(chat_id), FailureCode::Migrated);
        }
        match self.status {
            401 => refused(Class::Unauthorized, FailureCode::Unauthorized),
            404 if has_prefix(self.text, "Not Found: method") => refused(Class::Final, FailureCode::MethodNotFound),
            404 => refused(Class::Unauthorized, FailureCode::Unauthorized),
            409 => refused(Class::Later, FailureCode::Conflict),
            429 => refused(Class::RateLimited { retry_after: self.wait() }, FailureCode::RateLimited),
            403 => self.forbidden(),
            400 => self.bad_request(),
            status @ 500.. => Failure::Unknown { code: FailureCode::Http(status) },
            status => refused(Class::Final, FailureCode::Http(status)),
        }
    }

    fn wait(&self) -> Option<Duration> {
        self.parameters.retry_after.map(Duration::from_secs).or(self.retry_after)
    }

    fn forbidden(&self) -> Failure {
        let known = FORBIDDEN.iter().find(|(text, ..)| has_prefix(self.detail(), text));
        let (code, reason) =
            known.map_or((FailureCode::Forbidden, Reason::Blocked), |&(_, code, reason)| (code, reason));
        refused(Class::Unreachable(reason), code)
    }

    fn bad_request(&self) -> Failure {
        let known = BAD_REQUEST.iter().find(|(text, ..)| has_prefix(self.detail(), text));
        let (code, class) = known.map_or((FailureCode::Http(400), Class::Final), |&(_, code, class)| (code, class));
        refused(class, code)
    }

    /// The text without its first words, which repeat the status.
    fn detail(&self) -> &str {
        ["Forbidden: ", "Bad Request: "]
            .into_iter()
            .find(|start| has_prefix(self.text, start))
            .map_or(self.text, |start| &self.text[start.len()..])
    }
}

fn foreign_refusal(status: u16, retry_after: Option<Duration>) -> Failure {
    match status {
        401 | 404 => refused(Class::Unauthorized, FailureCode::Unauthorized),
        429 => refused(Class::RateLimited { retry_after }, FailureCode::RateLimited),
        _ => refused(Class::Later, FailureCode::Http(status)),
    }
}

const fn refused(class: Class, code: FailureCode) -> Failure {
    Failure::Refused { class, code }
}

fn has_prefix(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, body: &str) -> Failure {
        classify(&Answer { status, retry_after: None, body: body.as_bytes() }).expect_err("no result")
    }

    fn described(status: u16, description: &str) -> Failure {
        let body = serde_json::json!({"ok": false, "error_code": status, "description": description});
        read(status, &body.to_string())
    }

    fn unreachable(reason: Reason, code: FailureCode) -> Failure {
        refused(Class::Unreachable(reason), code)
    }

    #[test]
    fn every_forbidden_text_of_the_server_has_its_code() {
        use FailureCode as Code;
        let groups = ["group", "supergroup", "channel"];
        let mut cases = vec![
            ("bot was blocked by the user".to_owned(), Reason::Blocked, Code::Blocked),
            ("user is deactivated".to_owned(), Reason::Deactivated, Code::Deactivated),
            ("bot can't initiate conversation with a user".to_owned(), Reason::NeverStarted, Code::CantInitiate),
            ("the group chat was deleted".to_owned(), Reason::Deactivated, Code::ChatDeleted),
            ("something new".to_owned(), Reason::Blocked, Code::Forbidden),
        ];
        for group in groups {
            cases.push((format!("bot was kicked from the {group} chat"), Reason::Blocked, Code::NotMember));
            cases.push((format!("bot is not a member of the {group} chat"), Reason::Blocked, Code::NotMember));
        }
        for (text, reason, code) in cases {
            assert_eq!(described(403, &format!("Forbidden: {text}")), unreachable(reason, code), "{text}");
        }
    }

    #[test]
    fn every_bad_request_text_of_the_server_has_its_code() {
        use FailureCode as Code;
        let nobody = Class::Unreachable(Reason::NeverStarted);
        let cases = [
            ("chat not found", nobody, Code::ChatNotFound),
            ("private chat not found", nobody, Code::ChatNotFound),
            ("PEER_ID_INVALID", nobody, Code::ChatNotFound),
            ("USER_IS_BOT", Class::Final, Code::IsBot),
            ("group chat was upgraded to a supergroup chat", Class::Final, Code::Migrated),
            ("can't parse entities: Unsupported start tag \"x\" at byte offset 4", Class::BadMarkup, Code::BadMarkup),
            ("message is too long", Class::Final, Code::TooLong),
            ("message text is empty", Class::Final, Code::Empty),
            ("message is not modified: specified new message content is the same", Class::Final, Code::NotModified),
            ("message to edit not found", Class::NoSuchMessage, Code::NoSuchMessage),
            ("message can't be edited", Class::NoSuchMessage, Code::NoSuchMessage),
            ("MESSAGE_ID_INVALID", Class::NoSuchMessage, Code::NoSuchMessage),
            ("BUTTON_DATA_INVALID", Class::Final, Code::ButtonInvalid),
            ("query is too old and response timeout expired or query ID is invalid", Class::Final, Code::QueryTooOld),
            ("not enough rights to send text messages to the chat", Class::Final, Code::NoRights),
            ("message thread not found", Class::Final, Code::ThreadNotFound),
            ("something new", Class::Final, Code::Http(400)),
            ("", Class::Final, Code::Http(400)),
        ];
        for (text, class, code) in cases {
            assert_eq!(described(400, &format!("Bad Request: {text}")), refused(class, code), "{text}");
        }
    }

    #[test]
    fn a_migrated_group_names_its_new_id() {
        let body = r#"{"ok":false,"error_code":400,"description":"Bad Request: group chat was upgraded to a supergroup chat",
            "parameters":{"migrate_to_chat_id":-1001234567890}}"#;
        assert_eq!(read(400, body), refused(Class::MovedTo(-1_001_234_567_890), FailureCode::Migrated));
    }

    #[test]
    fn a_refused_token_is_no_failure_of_the_message() {
        let unauthorized = refused(Class::Unauthorized, FailureCode::Unauthorized);
        assert_eq!(described(401, "Unauthorized"), unauthorized);
        assert_eq!(described(404, "Not Found"), unauthorized);
        assert_eq!(read(404, "<html>404</html>"), unauthorized);
        let method = refused(Class::Final, FailureCode::MethodNotFound);
        assert_eq!(described(404, "Not Found: method not found"), method);
    }

    #[test]
    fn every_conflict_text_is_a_conflict() {
        let texts = [
            "terminated by other getUpdates request; make sure that only one bot instance is running",
            "terminated by setWebhook request",
            "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first",
        ];
        for text in texts {
            let expected = refused(Class::Later, FailureCode::Conflict);
            assert_eq!(described(409, &format!("Conflict: {text}")), expected, "{text}");
        }
    }

    #[test]
    fn a_429_waits_as_long_as_any_part_of_it_says() {
        let limited = |seconds: Option<u64>| {
            refused(Class::RateLimited { retry_after: seconds.map(Duration::from_secs) }, FailureCode::RateLimited)
        };
        let named = r#"{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 7","parameters":{"retry_after":7}}"#;
        assert_eq!(read(429, named), limited(Some(7)));
        assert_eq!(described(429, "Too Many Requests: retry after 7"), limited(None));
        assert_eq!(read(429, "<html>slow down</html>"), limited(None));
        let header = Answer { status: 429, retry_after: Some(Duration::from_secs(9)), body: b"" };
        assert_eq!(classify(&header).expect_err("limited"), limited(Some(9)));
    }

    #[test]
    fn an_answer_that_cannot_be_trusted_is_an_unknown_outcome() {
        let cases = [
            (
                500,
                r#"{"ok":false,"error_code":500,"description":"Internal Server Error: restart"}"#,
                FailureCode::Http(500),
            ),
            (502, "<html><h1>502 Bad Gateway</h1><hr>nginx</html>", FailureCode::Http(502)),
            (504, "", FailureCode::Http(504)),
            (200, r#"{"ok":true,"result":{"mess"#, FailureCode::BrokenAnswer),
            (200, r#"{"ok":false}"#, FailureCode::BrokenAnswer),
            (200, "<html>welcome</html>", FailureCode::BrokenAnswer),
            (200, "", FailureCode::BrokenAnswer),
            (302, "", FailureCode::Http(302)),
        ];
        for (status, body, code) in cases {
            assert_eq!(read(status, body), Failure::Unknown { code }, "{status} {body}");
        }
    }

    #[test]
    fn a_refusal_by_a_gateway_is_tried_later() {
        assert_eq!(read(403, "<html>blocked by policy</html>"), refused(Class::Later, FailureCode::Http(403)));
        assert_eq!(read(413, ""), refused(Class::Later, FailureCode::Http(413)));
        assert_eq!(described(413, "Request Entity Too Large"), refused(Class::Final, FailureCode::Http(413)));
    }

    #[test]
    fn an_accepted_call_has_its_result() {
        let body = br#"{"ok":true,"result":{"message_id":5}}"#;
        let result = classify(&Answer { status: 200, retry_after: None, body }).expect("accepted");
        assert_eq!(result.get(), r#"{"message_id":5}"#);
        let without = classify(&Answer { status: 200, retry_after: None, body: br#"{"ok":true}"# });
        assert_eq!(without.expect("accepted").get(), "null");
    }
}
