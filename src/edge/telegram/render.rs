//! A message of the queue as a payload of the Bot API.

use reqwest::Url;
use teloxide::payloads::{EditMessageText, SendMessage};
use teloxide::types::{
    ChatId, InlineKeyboardButton, InlineKeyboardMarkup, LinkPreviewOptions, MessageId, ParseMode, Recipient,
    ReplyMarkup,
};

use super::Failure;
use crate::chat::{Action, Button, Class, FailureCode, Format, Preview, Rendered};

const NO_PREVIEW: LinkPreviewOptions = LinkPreviewOptions {
    is_disabled: true,
    url: None,
    prefer_small_media: false,
    prefer_large_media: false,
    show_above_text: false,
};

/// The call that a message of the queue is.
pub(super) enum Outgoing {
    /// It is a message of its own.
    Send(SendMessage),
    /// It takes the place of another.
    Edit(EditMessageText),
}

/// The call for this message.
///
/// # Errors
/// [`Failure::Refused`] for a button whose address is none, or a message that cannot be named: Telegram would refuse it.
pub(super) fn outgoing(message: &Rendered) -> Result<Outgoing, Failure> {
    match message.edit {
        None => send_message(message).map(Outgoing::Send),
        Some(edited) => edit_message(message, edited).map(Outgoing::Edit),
    }
}

fn send_message(message: &Rendered) -> Result<SendMessage, Failure> {
    let mut payload = SendMessage::new(Recipient::Id(ChatId(message.chat_id)), &message.text);
    payload.parse_mode = parse_mode(message.format);
    payload.link_preview_options = preview(message.preview);
    payload.reply_markup = keyboard(message)?.map(ReplyMarkup::InlineKeyboard);
    Ok(payload)
}

/// The keyboard goes with every edit: without one, Telegram takes the old one away.
fn edit_message(message: &Rendered, edited: i64) -> Result<EditMessageText, Failure> {
    let no_such = Failure::Refused { class: Class::NoSuchMessage, code: FailureCode::NoSuchMessage };
    let edited = MessageId(i32::try_from(edited).map_err(|_| no_such)?);
    let mut payload = EditMessageText::new(Recipient::Id(ChatId(message.chat_id)), edited, &message.text);
    payload.parse_mode = parse_mode(message.format);
    payload.link_preview_options = preview(message.preview);
    payload.reply_markup = keyboard(message)?;
    Ok(payload)
}

fn parse_mode(format: Format) -> Option<ParseMode> {
    match format {
        Format::Html => Some(ParseMode::Html),
        Format::Plain => None,
    }
}

fn preview(preview: Preview) -> Option<LinkPreviewOptions> {
    match preview {
        Preview::Usual => None,
        Preview::Off => Some(NO_PREVIEW),
    }
}

fn keyboard(message: &Rendered) -> Result<Option<InlineKeyboardMarkup>, Failure> {
    if message.keyboard.0.is_empty() {
        return Ok(None);
    }
    let rows: Result<Vec<Vec<_>>, Failure> =
        message.keyboard.0.iter().map(|row| row.iter().map(button).collect()).collect();
    Ok(Some(InlineKeyboardMarkup::new(rows?)))
}

fn button(button: &Button) -> Result<InlineKeyboardButton, Failure> {
    match &button.action {
        Action::Data(data) => Ok(InlineKeyboardButton::callback(&button.text, data)),
        Action::Url(url) => {
            let url = Url::parse(url)
                .map_err(|_| Failure::Refused { class: Class::Final, code: FailureCode::ButtonInvalid })?;
            Ok(InlineKeyboardButton::url(&button.text, url))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::chat::Keyboard;

    fn message(format: Format, action: Option<Action>) -> Rendered {
        let keyboard = action.map(|action| vec![vec![Button { text: "go".into(), action }]]).unwrap_or_default();
        let (text, keyboard) = ("<b>hi</b>".into(), Keyboard(keyboard));
        Rendered { chat_id: -100, text, format, keyboard, edit: None, preview: Preview::Usual }
    }

    fn body(message: &Rendered) -> serde_json::Value {
        let payload = outgoing(message).expect("it can be sent");
        let json = match payload {
            Outgoing::Send(payload) => serde_json::to_value(payload),
            Outgoing::Edit(payload) => serde_json::to_value(payload),
        };
        json.expect("payloads are JSON")
    }

    #[test]
    fn html_has_a_parse_mode_and_plain_text_has_none() {
        let html = json!({"chat_id": -100, "text": "<b>hi</b>", "parse_mode": "HTML"});
        assert_eq!(body(&message(Format::Html, None)), html);
        assert_eq!(body(&message(Format::Plain, None)), json!({"chat_id": -100, "text": "<b>hi</b>"}));
    }

    #[test]
    fn a_preview_that_is_off_is_told_so() {
        let message = Rendered { preview: Preview::Off, ..message(Format::Plain, None) };
        let off = json!({"chat_id": -100, "text": "<b>hi</b>", "link_preview_options": {"is_disabled": true}});
        assert_eq!(body(&message), off);
    }

    #[test]
    fn buttons_become_an_inline_keyboard() {
        let data = body(&message(Format::Plain, Some(Action::Data("m:help".into()))));
        assert_eq!(data["reply_markup"], json!({"inline_keyboard": [[{"text": "go", "callback_data": "m:help"}]]}));
        let url = body(&message(Format::Plain, Some(Action::Url("https://example.org/?a=1".into()))));
        assert_eq!(url["reply_markup"]["inline_keyboard"][0][0]["url"], json!("https://example.org/?a=1"));
    }

    #[test]
    fn an_address_that_is_none_is_refused_before_the_call() {
        let refused = outgoing(&message(Format::Plain, Some(Action::Url("not an address".into()))));
        let code = FailureCode::ButtonInvalid;
        assert_eq!(refused.err(), Some(Failure::Refused { class: Class::Final, code }));
    }

    #[test]
    fn a_message_that_takes_the_place_of_another_names_it_and_keeps_its_keyboard() {
        let message = Rendered { edit: Some(77), ..message(Format::Html, Some(Action::Data("m:help".into()))) };
        let expected = json!({
            "chat_id": -100, "message_id": 77, "text": "<b>hi</b>", "parse_mode": "HTML",
            "reply_markup": {"inline_keyboard": [[{"text": "go", "callback_data": "m:help"}]]},
        });
        assert_eq!(body(&message), expected);
        let unnamed = Rendered { edit: Some(i64::MAX), ..message };
        let refused = Failure::Refused { class: Class::NoSuchMessage, code: FailureCode::NoSuchMessage };
        assert_eq!(outgoing(&unnamed).err(), Some(refused));
    }
}
