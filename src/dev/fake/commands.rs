//! `setMyCommands` and `getMyCommands`: the bot's command list, one per scope and language.

use serde_json::Value;

use super::Fake;
use super::params::Params;
use super::refusal::Refusal;
use super::world::Entry;

const MOST_COMMANDS: usize = 100;
const LONGEST_COMMAND: usize = 32;
const LONGEST_DESCRIPTION: usize = 256;

impl Fake {
    pub(super) fn set_my_commands(&self, params: &Params) -> Result<Value, Refusal> {
        let commands = params.json("commands")?.unwrap_or_else(|| Value::Array(Vec::new()));
        let list = commands.as_array().ok_or_else(|| Refusal::bad_request("expected an Array of BotCommand"))?;
        if list.len() > MOST_COMMANDS {
            return Err(Refusal::bad_request("BOT_COMMANDS_TOO_MUCH"));
        }
        list.iter().try_for_each(check)?;
        let scope = scope(params)?;
        self.kept().accept(Entry::Commands { scope, commands })?;
        Ok(true.into())
    }

    pub(super) fn my_commands(&self, params: &Params) -> Result<Value, Refusal> {
        let scope = scope(params)?;
        Ok(self.kept().world.commands(&scope))
    }
}

fn scope(params: &Params) -> Result<String, Refusal> {
    let scope = params.json("scope")?.map_or_else(|| r#"{"type":"default"}"#.to_owned(), |scope| scope.to_string());
    Ok(format!("{} {scope}", params.text("language_code").unwrap_or_default()))
}

fn check(command: &Value) -> Result<(), Refusal> {
    let field = |name| command.get(name).and_then(Value::as_str).unwrap_or_default();
    let name = field("command").trim_start_matches('/');
    let spelled = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if !spelled || !(1..=LONGEST_COMMAND).contains(&name.len()) {
        return Err(Refusal::bad_request("BOT_COMMAND_INVALID"));
    }
    match field("description").chars().count() {
        1..=LONGEST_DESCRIPTION => Ok(()),
        _ => Err(Refusal::bad_request("BOT_COMMAND_DESCRIPTION_INVALID")),
    }
}
