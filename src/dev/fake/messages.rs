//! `sendMessage`, `editMessageText` and `answerCallbackQuery`: what a chat sees.

use std::sync::Arc;

use serde_json::{Value, json};

use super::params::Params;
use super::refusal::Refusal;
use super::world::{Accepted, Content, Entry, TapAnswer};
use super::{Fake, bot_user, html, markup};

/// Unicode scalars of visible text. The documentation does not say of what; a probe of the real server counted these
/// (4096 emoji passed, 4097 did not).
const LONGEST_TEXT: usize = 4096;

/// Characters of an answer to a tap.
const LONGEST_TAP_ANSWER: usize = 200;

/// How long the server waits for an answer to a tap.
const TAP_LASTS_MS: i64 = 150_000;

impl Fake {
    pub(super) fn send_message(&self, params: &Params) -> Result<Value, Refusal> {
        let chat_id = params.chat_id()?;
        let content = Content::read(params)?;
        let mut kept = self.kept();
        let now = self.0.clock.now();
        let accepted = Arc::new(Accepted {
            ordinal: kept.world.next_ordinal(),
            chat_id,
            message_id: kept.world.next_message_id(),
            method: "sendMessage".into(),
            content,
            date: now,
            sent_at: now,
        });
        kept.accept(Entry::Message(Arc::clone(&accepted)))?;
        Ok(message(&accepted))
    }

    pub(super) fn edit_message_text(&self, params: &Params) -> Result<Value, Refusal> {
        if params.text("inline_message_id").is_some() {
            // Messages sent through inline mode have no chat here, since the fake has no inline mode.
            return Err(Refusal::bad_request("MESSAGE_ID_INVALID"));
        }
        let chat_id = params.chat_id()?;
        let message_id = params.integer("message_id");
        let message_id = message_id.ok_or_else(|| Refusal::bad_request("message identifier is not specified"))?;
        let content = Content::read(params)?;
        let mut kept = self.kept();
        let before = kept.world.find_message(chat_id, message_id);
        let before = before.ok_or_else(|| Refusal::bad_request("message to edit not found"))?;
        if before.content == content {
            return Err(Refusal::bad_request(
                "message is not modified: specified new message content and reply markup are exactly the same as a \
                 current content and reply markup of the message",
            ));
        }
        let accepted = Arc::new(Accepted {
            ordinal: kept.world.next_ordinal(),
            method: "editMessageText".into(),
            content,
            sent_at: self.0.clock.now(),
            ..Accepted::clone(before)
        });
        kept.accept(Entry::Message(Arc::clone(&accepted)))?;
        Ok(message(&accepted))
    }

    pub(super) fn answer_callback_query(&self, params: &Params) -> Result<Value, Refusal> {
        let id = params.text("callback_query_id").unwrap_or_default();
        let mut kept = self.kept();
        let at = self.0.clock.now();
        if kept.world.find_tap(&id).is_none_or(|tapped| at.saturating_sub(tapped) > TAP_LASTS_MS) {
            return Err(Refusal::bad_request("query is too old and response timeout expired or query ID is invalid"));
        }
        let text = params.text("text");
        if text.as_ref().is_some_and(|text| text.chars().count() > LONGEST_TAP_ANSWER) {
            return Err(Refusal::bad_request("MESSAGE_TOO_LONG"));
        }
        kept.accept(Entry::Answered(TapAnswer { callback_query_id: id, text, at }))?;
        Ok(true.into())
    }
}

impl Content {
    fn read(params: &Params) -> Result<Self, Refusal> {
        let raw = params.text("text").unwrap_or_default();
        let mode = params.text("parse_mode").unwrap_or_default();
        let (text, entities) = match mode.to_lowercase().as_str() {
            "html" => {
                html::parse(&raw).map_err(|error| Refusal::bad_request(format!("can't parse entities: {error}")))?
            }
            "" | "markdown" | "markdownv2" => (raw, Vec::new()),
            _ => return Err(Refusal::bad_request("unsupported parse_mode")),
        };
        if text.trim().is_empty() {
            return Err(Refusal::bad_request("message text is empty"));
        }
        if text.chars().count() > LONGEST_TEXT {
            return Err(Refusal::bad_request("message is too long"));
        }
        let reply_markup = params.json("reply_markup")?;
        reply_markup.as_ref().map(markup::check).transpose()?;
        Ok(Self { text, entities, reply_markup })
    }
}

/// The `Message` that the Bot API answers with.
fn message(accepted: &Accepted) -> Value {
    let mut message = json!({
        "message_id": accepted.message_id,
        "date": accepted.date.div_euclid(1000),
        "chat": chat(accepted.chat_id),
        "from": bot_user(),
        "text": accepted.content.text,
    });
    if !accepted.content.entities.is_empty() {
        message["entities"] = accepted.content.entities.clone().into();
    }
    // Only inline keyboards come back; the other kinds belong to the person's screen, not to the message.
    if let Some(markup) = accepted.content.reply_markup.as_ref().filter(|it| it.get("inline_keyboard").is_some()) {
        message["reply_markup"] = markup.clone();
    }
    if accepted.method == "editMessageText" {
        message["edit_date"] = accepted.sent_at.div_euclid(1000).into();
    }
    message
}

/// Supergroups and channels have ids below this; basic groups are the other negative ones.
const HIGHEST_SUPERGROUP_ID: i64 = -1_000_000_000_000;

fn chat(id: i64) -> Value {
    match id {
        1.. => json!({"id": id, "type": "private", "first_name": format!("Person {id}")}),
        ..=HIGHEST_SUPERGROUP_ID => json!({"id": id, "type": "supergroup", "title": format!("Supergroup {id}")}),
        _ => json!({"id": id, "type": "group", "title": format!("Group {id}")}),
    }
}
