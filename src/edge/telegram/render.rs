//! A message of the queue as a payload of the Bot API.

use reqwest::Url;
use teloxide::payloads::SendMessage;
use teloxide::types::{
    ChatId, InlineKeyboardButton, InlineKeyboardMarkup, LinkPreviewOptions, ParseMode, Recipient, ReplyMarkup,
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

/// The `sendMessage` call for this message.
///
/// # Errors
/// [`Failure::Refused`] for a button whose address is none: Telegram would refuse it too.
pub(super) fn send_message(message: &Rendered) -> Result<SendMessage, Failure> {
    let mut payload = SendMessage::new(Recipient::Id(ChatId(message.chat_id)), &message.text);
    payload.parse_mode = match message.format {
        Format::Html => Some(ParseMode::Html),
        Format::Plain => None,
    };
    payload.link_preview_options = match message.preview {
        Preview::Usual => None,
        Preview::Off => Some(NO_PREVIEW),
    };
    if !message.keyboard.0.is_empty() {
        let rows: Result<Vec<Vec<_>>, Failure> =
            message.keyboard.0.iter().map(|row| row.iter().map(button).collect()).collect();
        payload.reply_markup = Some(ReplyMarkup::InlineKeyboard(InlineKeyboardMarkup::new(rows?)));
    }
    Ok(payload)
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
        serde_json::to_value(send_message(message).expect("it can be sent")).expect("payloads are JSON")
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
        let refused = send_message(&message(Format::Plain, Some(Action::Url("not an address".into()))));
        let code = FailureCode::ButtonInvalid;
        assert_eq!(refused.expect_err("no address"), Failure::Refused { class: Class::Final, code });
    }
}
