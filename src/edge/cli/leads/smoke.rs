//! `leads smoke`: everything that the first lead would need, tried before it comes, and told step by step.
//!
//! The chat is written to last, once everything else is in order, so that a message there means that nothing is left to
//! do. Neither the chat's id nor the token is printed.

use std::io;

use serde::Serialize;

use crate::app::open_lead_post;
use crate::config::{Config, Delivery, LeadsConfig};
use crate::dev::rehearsal::Rehearsal;
use crate::edge::cli::Exit;
use crate::edge::cli::args::Printed;
use crate::edge::cli::print::{Printer, note};
use crate::edge::host::lead_messenger;
use crate::kernel::store::Db;
use crate::leads::ErrorCode;
use crate::leads::smoke::{self, TEST_MESSAGE};

/// The worker looks once a minute.
const PASSED: &str = "the smoke test has passed; a running server notices within a minute";

/// A step as it is printed.
#[derive(Serialize)]
struct StepBody {
    step: &'static str,
    outcome: &'static str,
    what: String,
}

/// How a step ended: `Ok` with what was seen, `Err` with what to do.
type Told = Result<String, String>;

pub(super) async fn smoke(db: &Db, config: &Config, printed: Printed) -> anyhow::Result<Exit> {
    let mut is_ok = told(printed, "configuration", configuration(config))?;
    let mut rehearsal = Rehearsal::begin(config).await.map_err(|error| format!("{error:#}"));
    is_ok &= told(printed, "schema", schema(db, &rehearsal).await)?;
    is_ok &= told(printed, "retention", retention(&config.leads))?;
    is_ok &= told(printed, "crash window", crash_window(&mut rehearsal).await)?;
    if !is_ok {
        let what = "the chat is written to when everything above is ok".to_owned();
        tell(printed, StepBody { step: "recipient", outcome: "skipped", what })?;
        note("the smoke test has not passed");
        return Ok(Exit::Failure);
    }
    let is_ok = told(printed, "recipient", recipient(db, config).await)?;
    note(if is_ok { PASSED } else { "the smoke test has not passed" });
    Ok(if is_ok { Exit::Ok } else { Exit::Failure })
}

fn told(printed: Printed, step: &'static str, ended: Told) -> io::Result<bool> {
    let is_ok = ended.is_ok();
    let outcome = if is_ok { "ok" } else { "failed" };
    tell(printed, StepBody { step, outcome, what: ended.unwrap_or_else(|what| what) })?;
    Ok(is_ok)
}

fn tell(printed: Printed, body: StepBody) -> io::Result<()> {
    let text = format!("{:<7} {}: {}", body.outcome, body.step, body.what);
    Printer::stdout(printed).one(&body, &text)
}

fn configuration(config: &Config) -> Told {
    let mut missing = Vec::new();
    if config.telegram.token.is_none() {
        missing.push("set telegram.token or telegram.token_file, from @BotFather");
    }
    if config.leads.chat_id.is_none() {
        missing.push("set leads.chat_id, the id of the group or person who is told: write /id@name_of_the_bot in the group, and take \
             chat.id from https://api.telegram.org/bot<token>/getUpdates");
    }
    match config.leads.delivery {
        Delivery::Worker => {}
        Delivery::Rpc => {
            missing.push("leads.delivery is `rpc`: whoever claims over RPC tests its own way to its own chat")
        }
        Delivery::Off if missing.is_empty() => missing.push("leads.delivery is `off`; set it to `worker` or `auto`"),
        Delivery::Off => {}
    }
    if missing.is_empty() { Ok("token, chat and worker are there".to_owned()) } else { Err(missing.join("; ")) }
}

/// What this version makes is what the file has, and it does its work.
async fn schema(db: &Db, rehearsal: &Result<Rehearsal, String>) -> Told {
    let rehearsal = rehearsal.as_ref().map_err(Clone::clone)?;
    rehearsal.store_lead().await.map_err(|error| format!("in a temporary directory {error:#}"))?;
    let there = db.read(smoke::parts).await.map_err(|error| error.to_string())?;
    let made = rehearsal.db().read(smoke::parts).await.map_err(|error| error.to_string())?;
    let missing: Vec<String> = made.into_iter().filter(|part| !part.is_among(&there)).map(|part| part.name).collect();
    if !missing.is_empty() {
        let names = missing.join(", ");
        return Err(format!(
            "missing in the file, or changed by another program: {names}; `pillarbox sql \"SELECT sql FROM sqlite_schema\"` \
             in a new directory shows how they should be"
        ));
    }
    Ok("tables and triggers are there; in a temporary directory a lead was stored and its preparation cleaned"
        .to_owned())
}

fn retention(leads: &LeadsConfig) -> Told {
    match leads.retention_days {
        None => {
            Err("decide how long leads are kept, and set leads.retention_days: days, or 0 for until they are deleted \
                     by hand"
                .to_owned())
        }
        Some(0) => Ok("leads are kept until they are deleted by hand (`leads delete`)".to_owned()),
        Some(days) => Ok(format!("leads are deleted {days} days after they came")),
    }
}

async fn crash_window(rehearsal: &mut Result<Rehearsal, String>) -> Told {
    let rehearsal = rehearsal.as_mut().map_err(|error| error.clone())?;
    rehearsal.crash().await.map_err(|error| format!("{error:#}"))?;
    Ok("played in a temporary directory, nothing was sent to the chat: killed between the send and its record, the lead \
        stayed `sending`; 15 minutes later there was one more message with the same ID, and no other"
        .to_owned())
}

/// One message to the chat, by the client that brings the leads.
async fn recipient(db: &Db, config: &Config) -> Told {
    let messenger = lead_messenger(config).map_err(|error| format!("{error:#}"))?;
    let post = messenger.and_then(|messenger| open_lead_post(config, db, messenger));
    let post = post.ok_or("there is no client or no chat")?;
    post.say(TEST_MESSAGE.to_owned()).await.map_err(|code| advice(&code))?;
    let kept = post.recipient.smoke_passed(db.clock().now());
    kept.map_err(|error| {
        let dir = db.dir().display();
        format!("the message arrived, but that cannot be kept in {dir}: {error}; run this as the user that serves it")
    })?;
    Ok("Telegram took a test message for the chat; look whether the right people see it".to_owned())
}

/// What a person can do about the code of a failed send.
fn advice(code: &ErrorCode) -> String {
    let what = match code.as_str() {
        "telegram_http_400" => {
            "Telegram knows no such chat, or the bot is not in it: add the bot to the group, and check leads.chat_id"
        }
        "telegram_http_401" | "telegram_http_404" => "Telegram does not accept the token: check telegram.token",
        "telegram_http_403" => "the bot may not write there: add it to the group again, or have the person press Start",
        "telegram_http_429" => "Telegram asks to wait: try again in a few minutes",
        "telegram_timeout" => "no answer in time: the message may have arrived, look; then try again",
        "telegram_unreachable" => "no connection to telegram.api_url: check the network, the proxy and the firewall",
        code if code == "notification_failed" || code.starts_with("telegram_http_5") => {
            "the connection or the answer broke: the message may have arrived, look; then try again"
        }
        _ => "Telegram did not take the message: try again, and look at telegram.api_url",
    };
    format!("{}: {what}", code.as_str())
}
