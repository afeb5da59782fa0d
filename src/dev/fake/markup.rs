//! Checks of `reply_markup`, as far as the real server refuses a whole message for them.

use serde_json::Value;

use super::refusal::Refusal;

/// Bytes, not characters: a Cyrillic letter is two.
const LONGEST_CALLBACK_DATA: usize = 64;

/// What an inline button can do; it must do one thing.
const ACTIONS: [&str; 10] = [
    "url",
    "callback_data",
    "web_app",
    "login_url",
    "switch_inline_query",
    "switch_inline_query_current_chat",
    "switch_inline_query_chosen_chat",
    "copy_text",
    "callback_game",
    "pay",
];

const OTHER_KINDS: [&str; 3] = ["keyboard", "remove_keyboard", "force_reply"];

/// Refuses what the real server would.
pub(super) fn check(markup: &Value) -> Result<(), Refusal> {
    let Value::Object(fields) = markup else {
        return Err(Refusal::bad_request("object expected as reply markup"));
    };
    let Some(rows) = fields.get("inline_keyboard") else {
        let known = fields.is_empty() || OTHER_KINDS.iter().any(|kind| fields.contains_key(*kind));
        return if known { Ok(()) } else { Err(Refusal::bad_request("can't parse reply keyboard markup JSON object")) };
    };
    let rows = rows.as_array().ok_or_else(|| inline("field \"inline_keyboard\" must be of type Array"))?;
    for row in rows {
        let row = row.as_array().ok_or_else(|| inline("field \"inline_keyboard\" must be an Array of Arrays"))?;
        row.iter().try_for_each(button)?;
    }
    Ok(())
}

fn inline(what: &str) -> Refusal {
    Refusal::bad_request(format!("can't parse inline keyboard: {what}"))
}

fn button(button: &Value) -> Result<(), Refusal> {
    let unusable = |what: &str| Refusal::bad_request(format!("can't parse inline keyboard button: {what}"));
    let Value::Object(fields) = button else { return Err(unusable("InlineKeyboardButton must be an Object")) };
    match fields.get("text") {
        Some(Value::String(text)) if !text.trim().is_empty() => {}
        Some(Value::String(_)) => return Err(Refusal::bad_request("inline keyboard button text must be non-empty")),
        Some(_) => return Err(unusable("field \"text\" must be of type String")),
        None => return Err(unusable("can't find field \"text\"")),
    }
    if !ACTIONS.iter().any(|action| fields.contains_key(*action)) {
        return Err(unusable("Text buttons are unallowed in the inline keyboard"));
    }
    if let Some(data) = fields.get("callback_data") {
        let fits = data.as_str().is_some_and(|text| (1..=LONGEST_CALLBACK_DATA).contains(&text.len()));
        return if fits { Ok(()) } else { Err(Refusal::bad_request("BUTTON_DATA_INVALID")) };
    }
    match fields.get("url") {
        None => Ok(()),
        Some(url) => check_url(url.as_str().unwrap_or_default()),
    }
}

fn check_url(url: &str) -> Result<(), Refusal> {
    let rest = ["https://", "http://", "tg://"].iter().find_map(|scheme| url.strip_prefix(scheme));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.starts_with('/') && !url.contains(char::is_whitespace) => Ok(()),
        _ => Err(Refusal::bad_request(format!("inline keyboard button URL '{url}' is invalid: Wrong HTTP URL"))),
    }
}
