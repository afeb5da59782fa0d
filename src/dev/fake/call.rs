//! `/bot{token}/{method}`: which method is meant, whether a fault answers instead, and the shape of the answer.

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};

use super::params::Params;
use super::refusal::Refusal;
use super::{Fake, me};

/// The methods the fake knows, with the names they have in the Bot API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    GetMe,
    SendMessage,
    EditMessageText,
    AnswerCallbackQuery,
    GetUpdates,
    SetWebhook,
    DeleteWebhook,
    GetWebhookInfo,
    SetMyCommands,
    GetMyCommands,
}

const METHODS: [(&str, Method); 10] = [
    ("getMe", Method::GetMe),
    ("sendMessage", Method::SendMessage),
    ("editMessageText", Method::EditMessageText),
    ("answerCallbackQuery", Method::AnswerCallbackQuery),
    ("getUpdates", Method::GetUpdates),
    ("setWebhook", Method::SetWebhook),
    ("deleteWebhook", Method::DeleteWebhook),
    ("getWebhookInfo", Method::GetWebhookInfo),
    ("setMyCommands", Method::SetMyCommands),
    ("getMyCommands", Method::GetMyCommands),
];

impl Method {
    /// Whether a bot calls it all the time, whatever anybody does.
    pub(super) fn is_of_the_intake(self) -> bool {
        matches!(self, Self::GetUpdates | Self::GetWebhookInfo)
    }

    /// The real server lower-cases names before it looks; teloxide relies on it.
    pub(super) fn find(name: &str) -> Option<Self> {
        METHODS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, method)| *method)
    }
}

pub(super) fn router() -> Router<Fake> {
    Router::new().route("/bot{token}/{method}", get(call).post(call))
}

async fn call(State(fake): State<Fake>, path: UrlPath, request: Request) -> Response {
    match admit(path, request).await {
        Ok((method, params)) => fake.respond(method, &params).await,
        Err(refusal) => refusal.into_response(),
    }
}

/// A path that is no text has no token in it either.
type UrlPath = Result<Path<(String, String)>, PathRejection>;

async fn admit(path: UrlPath, request: Request) -> Result<(Method, Params), Refusal> {
    let Path((token, method)) = path.map_err(|_| Refusal::not_found())?;
    if !is_well_formed(&token) {
        return Err(Refusal::not_found());
    }
    let method = Method::find(&method).ok_or_else(Refusal::method_not_found)?;
    Ok((method, Params::read(request).await?))
}

/// `<digits>:<letters>`; whose token it is does not matter here.
fn is_well_formed(token: &str) -> bool {
    let Some((id, key)) = token.split_once(':') else { return false };
    let digits = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    digits && !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// A method's outcome as the server sends it.
pub(super) fn answer(outcome: Result<Value, Refusal>) -> Response {
    match outcome {
        Ok(result) => {
            let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
            (json, json!({"ok": true, "result": result}).to_string()).into_response()
        }
        Err(refusal) => refusal.into_response(),
    }
}

impl Fake {
    async fn respond(&self, method: Method, params: &Params) -> Response {
        let fault = self.faults().take(method, params.integer("chat_id"));
        match fault {
            None => answer(self.perform(method, params).await),
            // What is only late or unanswered has happened before it is late.
            Some(fault) if fault.lets_through() => {
                let outcome = self.perform(method, params).await;
                fault.answer(Some(outcome)).await
            }
            Some(fault) => fault.answer(None).await,
        }
    }

    async fn perform(&self, method: Method, params: &Params) -> Result<Value, Refusal> {
        match method {
            Method::GetMe => Ok(me()),
            Method::SendMessage => self.send_message(params),
            Method::EditMessageText => self.edit_message_text(params),
            Method::AnswerCallbackQuery => self.answer_callback_query(params),
            Method::GetUpdates => self.get_updates(params).await,
            Method::SetWebhook => self.set_webhook(params),
            Method::DeleteWebhook => self.delete_webhook(params),
            Method::GetWebhookInfo => Ok(self.webhook_info()),
            Method::SetMyCommands => self.set_my_commands(params),
            Method::GetMyCommands => self.my_commands(params),
        }
    }
}
