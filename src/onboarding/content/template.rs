//! A block as a template: strict variables, values escaped for Telegram's HTML, and an end to everything.

use std::fmt::Write;

use minijinja::value::ValueKind;
use minijinja::{AutoEscape, Environment, Output, State, UndefinedBehavior, Value};

use super::blocks::{self, Shape};
use super::lang::Lang;

/// Steps that rendering one block may take. The longest of ours takes some hundred; a loop that somebody wrote by mistake
/// fails instead of holding the transaction that it is rendered in.
const STEPS: u64 = 20_000;

/// Where blocks are compiled.
pub(super) fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|name| if is_plain(name) { AutoEscape::None } else { AutoEscape::Html });
    environment.set_formatter(telegram_html);
    environment.set_fuel(Some(STEPS));
    environment
}

/// The name of a block's template.
pub(super) fn block_name(key: &str, lang: Lang) -> String {
    format!("{key}.{}", lang.as_str())
}

/// Buttons, descriptions of commands and the web cabinet's notifications are shown as they stand.
pub(super) fn is_plain(name: &str) -> bool {
    let key = name.split('.').next().unwrap_or(name);
    blocks::find(key).is_some_and(|block| block.shape != Shape::Html)
}

/// Escapes what Telegram's HTML gives a meaning to, and nothing else (Bot API, "HTML style").
fn telegram_html(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), minijinja::Error> {
    // A switch is written as in the event, not as the template language has it.
    let text = bool::try_from(value.clone()).ok().filter(|_| value.kind() == ValueKind::Bool);
    let text = text.map_or_else(|| value.to_string(), |is_on| is_on.to_string());
    if *state.auto_escape() == AutoEscape::None || value.is_safe() {
        return out.write_str(&text).map_err(minijinja::Error::from);
    }
    for character in text.chars() {
        match character {
            '&' => out.write_str("&amp;"),
            '<' => out.write_str("&lt;"),
            '>' => out.write_str("&gt;"),
            '"' => out.write_str("&quot;"),
            other => out.write_char(other),
        }
        .map_err(minijinja::Error::from)?;
    }
    Ok(())
}
