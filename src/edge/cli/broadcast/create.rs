//! `broadcast create`: a draft from files and flags.

use std::path::Path;

use anyhow::Context;
use serde::Serialize;

use super::args::CreateArgs;
use crate::config::Config;
use crate::edge::cli::print::Printer;
use crate::edge::cli::{Exit, input};
use crate::kernel::store::Db;
use crate::onboarding::broadcast::{self, Audience, Button, Draft, Quiet};

/// What was made.
#[derive(Serialize)]
struct Made {
    id: i64,
}

pub(super) async fn create(db: &Db, config: &Config, args: CreateArgs) -> anyhow::Result<Exit> {
    let printed = args.printed;
    let draft = draft(config, args)?;
    let id = db.write(move |tx| broadcast::create(tx, &draft)).await?;
    let text = format!("broadcast {id} is a draft; next: pillarbox broadcast preview {id}");
    Printer::stdout(printed).one(&Made { id }, &text)?;
    Ok(Exit::Ok)
}

fn draft(config: &Config, args: CreateArgs) -> anyhow::Result<Draft> {
    let zone = args.zone.unwrap_or(config.jobs.time_zone);
    Ok(Draft {
        ru: args.ru.as_deref().map(text).transpose()?,
        en: args.en.as_deref().map(text).transpose()?,
        button: args.button_url.map(|url| Button { ru: args.button_ru, en: args.button_en, url }),
        audience: Audience {
            stages: args.stage,
            lang: args.lang.map(Into::into),
            leader_uid: args.leader,
            active_within_s: args
                .active_within
                .map(|within| i64::try_from(within.as_secs()).unwrap_or(i64::MAX).max(1)),
            has_nft: (args.nft || args.no_nft).then_some(args.nft),
        },
        per_second: args.per_second.unwrap_or(config.broadcasts.per_second),
        quiet: args.quiet.map(|(from, to)| Quiet { from, to, zone }),
        name: args.name,
    })
}

fn text(path: &Path) -> anyhow::Result<String> {
    let text = String::from_utf8(input::read(path)?).with_context(|| format!("{} is not UTF-8", path.display()))?;
    // Editors end a file with a line break, which no message wants.
    Ok(text.trim().to_owned())
}
