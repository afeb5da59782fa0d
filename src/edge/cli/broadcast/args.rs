//! The arguments of `broadcast`, as clap reads them.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::edge::cli::args::{Overrides, Page, Printed};
use crate::edge::cli::moment::{instant, length};
use crate::kernel::clock::UnixMs;
use crate::onboarding::content::Lang;

#[derive(Debug, Subcommand)]
pub(in crate::edge::cli) enum BroadcastVerb {
    /// Make a draft: its texts, its audience, its pace
    #[command(after_help = "Texts are files in Telegram's HTML, without placeholders. Example:\n  \
        pillarbox broadcast create --name spring --ru spring.ru.html --en spring.en.html --stage 5..7 --active-within 30d")]
    Create(Box<CreateArgs>),
    /// List broadcasts, the oldest first
    List {
        #[command(flatten)]
        page: Page,
        #[command(flatten)]
        printed: Printed,
        #[command(flatten)]
        overrides: Overrides,
    },
    /// Count whom a start would write to now, and whom not, by reason
    Preview(OneArgs),
    /// Send it to one chat, on the way that its recipients are sent it
    #[command(after_help = "Example: pillarbox broadcast test 3 --chat 123456 --lang en")]
    Test(TestArgs),
    /// Start it, now or at an instant; its recipients are decided then
    #[command(after_help = "Example: pillarbox broadcast start 3 --at 2026-12-01T10:00:00+03:00 --yes")]
    Start(StartArgs),
    /// Hold a running one; what waits in the send queue is taken back
    Pause(OneArgs),
    /// Let a paused one go on
    Resume(OneArgs),
    /// End it; whoever was not written to yet will not be
    Cancel {
        #[command(flatten)]
        one: OneArgs,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
    /// Show how far it is
    Status {
        #[command(flatten)]
        one: OneArgs,
        /// Go on showing it until it is over or paused
        #[arg(long)]
        watch: bool,
    },
    /// Print what became of each recipient, as CSV
    #[command(after_help = "Example: pillarbox broadcast report 3 --out spring.csv")]
    Report {
        #[command(flatten)]
        one: OneArgs,
        /// Write it to this file, which is there whole or not at all
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct OneArgs {
    /// The broadcast's id
    #[arg(value_parser = clap::value_parser!(i64).range(1..))]
    pub(super) id: i64,
    #[command(flatten)]
    pub(super) printed: Printed,
    #[command(flatten)]
    pub(super) overrides: Overrides,
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct TestArgs {
    #[command(flatten)]
    pub(super) one: OneArgs,
    /// The chat
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    pub(super) chat: i64,
    /// In which language; the default one otherwise
    #[arg(long)]
    pub(super) lang: Option<Language>,
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct StartArgs {
    #[command(flatten)]
    pub(super) one: OneArgs,
    /// Not now, but at this day or instant
    #[arg(long, value_name = "INSTANT", value_parser = instant)]
    pub(super) at: Option<UnixMs>,
    /// Do not ask
    #[arg(long)]
    pub(super) yes: bool,
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct CreateArgs {
    /// What it is called in lists
    #[arg(long)]
    pub(super) name: String,
    /// The text in Russian; - is stdin
    #[arg(long, value_name = "FILE")]
    pub(super) ru: Option<PathBuf>,
    /// The text in English
    #[arg(long, value_name = "FILE")]
    pub(super) en: Option<PathBuf>,
    /// What its button says in Russian
    #[arg(long, value_name = "TEXT", requires = "button_url")]
    pub(super) button_ru: Option<String>,
    /// What its button says in English
    #[arg(long, value_name = "TEXT", requires = "button_url")]
    pub(super) button_en: Option<String>,
    /// The address that its button opens
    #[arg(long, value_name = "URL")]
    pub(super) button_url: Option<String>,
    /// Only people at these stages, 1 to 9
    #[arg(long, value_name = "A..B", value_parser = stages)]
    pub(super) stage: Option<(i64, i64)>,
    /// Only people of this language
    #[arg(long)]
    pub(super) lang: Option<Language>,
    /// Only people whom this member brought
    #[arg(long, value_name = "UID")]
    pub(super) leader: Option<i64>,
    /// Only people who were here within this time before the start
    #[arg(long, value_name = "30d", value_parser = length)]
    pub(super) active_within: Option<Duration>,
    /// Only people whose NFT is active
    #[arg(long, conflicts_with = "no_nft")]
    pub(super) nft: bool,
    /// Only people whose NFT is not active
    #[arg(long)]
    pub(super) no_nft: bool,
    /// Messages a second (else broadcasts.per_second)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(super) per_second: Option<u32>,
    /// Hours in which nothing of it is sent
    #[arg(long, value_name = "22:00-08:00", value_parser = hours)]
    pub(super) quiet: Option<(u32, u32)>,
    /// Whose wall clock these hours are of (else jobs.time_zone)
    #[arg(long, value_name = "ZONE", value_parser = zone, requires = "quiet")]
    pub(super) zone: Option<chrono_tz::Tz>,
    #[command(flatten)]
    pub(super) printed: Printed,
    #[command(flatten)]
    pub(super) overrides: Overrides,
}

/// A language of the bot, as it is written on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(in crate::edge::cli) enum Language {
    Ru,
    En,
}

impl From<Language> for Lang {
    fn from(language: Language) -> Self {
        match language {
            Language::Ru => Self::Ru,
            Language::En => Self::En,
        }
    }
}

impl BroadcastVerb {
    /// Settings over the file and the environment.
    pub(super) fn set(&self) -> &[String] {
        match self {
            Self::Create(args) => &args.overrides.set,
            Self::List { overrides, .. } => &overrides.set,
            Self::Preview(one)
            | Self::Pause(one)
            | Self::Resume(one)
            | Self::Test(TestArgs { one, .. })
            | Self::Start(StartArgs { one, .. })
            | Self::Cancel { one, .. }
            | Self::Status { one, .. }
            | Self::Report { one, .. } => &one.overrides.set,
        }
    }

    /// Whether it changes nothing.
    pub(super) const fn only_looks(&self) -> bool {
        matches!(self, Self::List { .. } | Self::Preview(_) | Self::Status { .. } | Self::Report { .. })
    }
}

fn stages(text: &str) -> Result<(i64, i64), String> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let stage = |text: &str| text.parse().ok().filter(|stage| (1..=9).contains(stage));
    match (stage(first), stage(last)) {
        (Some(first), Some(last)) if first <= last => Ok((first, last)),
        _ => Err("write a stage from 1 to 9, or two of them, such as 5..7".to_owned()),
    }
}

fn hours(text: &str) -> Result<(u32, u32), String> {
    let minute = |text: &str| {
        let (hour, minute) = text.split_once(':')?;
        let (hour, minute): (u32, u32) = (hour.parse().ok()?, minute.parse().ok()?);
        (hour < 24 && minute < 60).then_some(hour * 60 + minute)
    };
    let hours = text.split_once('-').and_then(|(from, to)| Some((minute(from)?, minute(to)?)));
    hours.ok_or_else(|| "write two times of the day, such as 22:00-08:00".to_owned())
}

fn zone(text: &str) -> Result<chrono_tz::Tz, String> {
    text.parse().map_err(|_| "write a time zone's name, such as Europe/Berlin".to_owned())
}

#[cfg(test)]
mod tests {
    use super::{hours, stages};

    #[test]
    fn stages_and_hours_are_read_as_people_write_them() {
        assert_eq!((stages("5..7"), stages("9")), (Ok((5, 7)), Ok((9, 9))));
        assert_eq!(hours("22:00-08:30"), Ok((1320, 510)));
        assert!(["", "0", "7..5", "1..10", "a..b"].into_iter().all(|text| stages(text).is_err()));
        assert!(["", "22-08", "24:00-08:00", "22:60-08:00", "22:00"].into_iter().all(|text| hours(text).is_err()));
    }
}
