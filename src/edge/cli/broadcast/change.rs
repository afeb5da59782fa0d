//! The verbs that change a broadcast, and the one that tries it.

use serde::Serialize;

use super::args::{OneArgs, StartArgs, TestArgs};
use crate::edge::cli::Exit;
use crate::edge::cli::args::Printed;
use crate::edge::cli::confirm::{is_meant, refused};
use crate::edge::cli::print::Printer;
use crate::kernel::clock::rfc3339;
use crate::kernel::store::Db;
use crate::onboarding::broadcast::{self, Change};
use crate::onboarding::content::Lang;

/// What a broadcast is after a change.
#[derive(Serialize)]
struct Changed {
    id: i64,
    state: &'static str,
}

/// A queued test message.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tried {
    id: i64,
    message_id: i64,
}

pub(super) async fn start(db: &Db, args: StartArgs, default_lang: Lang) -> anyhow::Result<Exit> {
    let id = args.one.id;
    if !args.yes {
        let preview = broadcast::preview(db, id, default_lang).await?;
        let when = args.at.map_or_else(|| "now".to_owned(), rfc3339);
        if !is_meant("start", &format!("send broadcast {id} to {} people, {when}", preview.eligible))? {
            return Ok(refused());
        }
    }
    let to = args.at.map_or(Change::Start, Change::StartAt);
    apply(db, id, to, args.one.printed).await
}

pub(super) async fn cancel(db: &Db, one: OneArgs, is_sure: bool) -> anyhow::Result<Exit> {
    if !is_sure && !is_meant("cancel", &format!("end broadcast {} for ever", one.id))? {
        return Ok(refused());
    }
    apply(db, one.id, Change::Cancel, one.printed).await
}

pub(super) async fn change(db: &Db, one: OneArgs, to: Change) -> anyhow::Result<Exit> {
    apply(db, one.id, to, one.printed).await
}

async fn apply(db: &Db, id: i64, to: Change, printed: Printed) -> anyhow::Result<Exit> {
    let state = db.write(move |tx| broadcast::change(tx, id, to)).await?.as_str();
    Printer::stdout(printed).one(&Changed { id, state }, &format!("broadcast {id} is {state}"))?;
    Ok(Exit::Ok)
}

pub(super) async fn test(db: &Db, args: TestArgs, default_lang: Lang) -> anyhow::Result<Exit> {
    let (id, chat) = (args.one.id, args.chat);
    let lang = args.lang.map_or(default_lang, Lang::from);
    let message_id = db.write(move |tx| broadcast::send_test(tx, id, chat, lang)).await?;
    let text = format!("message {message_id} is in the send queue; see pillarbox messages list --chat {chat}");
    Printer::stdout(args.one.printed).one(&Tried { id, message_id }, &text)?;
    Ok(Exit::Ok)
}
