//! The verbs of `pillarbox content`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::edge::cli::args::{Overrides, Printed};
use crate::onboarding::content::Lang;

#[derive(Debug, Subcommand)]
pub(in crate::edge::cli) enum ContentVerb {
    /// List the blocks: how each is shown, and whether its text is the shipped one
    List(ListArgs),
    /// Show blocks: the text in each language, what it may name, and how it looks with an example of that
    #[command(after_help = "Example: pillarbox content show menu --lang en --body > menu.txt")]
    Show(ShowArgs),
    /// Put a text in the place of a shipped one, if it can be sent with everything that its values may be
    #[command(after_help = "It holds from now on, without a restart. Exit 1 with everything that is wrong with it.\n\
        Example: pillarbox content set menu --lang en menu.txt")]
    Set(SetArgs),
    /// Give a block its shipped text back
    #[command(after_help = "Example: pillarbox content reset menu --lang en")]
    Reset(ResetArgs),
    /// Check every text that was put in the place of a shipped one; exit 1 if any of them is not used
    Check {
        #[command(flatten)]
        printed: Printed,
        #[command(flatten)]
        overrides: Overrides,
    },
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct ListArgs {
    /// Only those whose text is not the shipped one
    #[arg(long)]
    pub(super) changed: bool,
    #[command(flatten)]
    pub(super) printed: Printed,
    #[command(flatten)]
    pub(super) overrides: Overrides,
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct ShowArgs {
    /// The blocks, as `content list` names them
    #[arg(required = true, value_name = "KEY")]
    pub(super) keys: Vec<String>,
    /// Only this language
    #[arg(long, value_name = "LANG", value_parser = language)]
    pub(super) lang: Option<Lang>,
    /// Print the text alone, as it is written
    #[arg(long, requires = "lang", conflicts_with = "json")]
    pub(super) body: bool,
    #[command(flatten)]
    pub(super) printed: Printed,
    #[command(flatten)]
    pub(super) overrides: Overrides,
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct SetArgs {
    /// The block, as `content list` names it
    pub(super) key: String,
    /// The language
    #[arg(long, value_name = "LANG", value_parser = language)]
    pub(super) lang: Lang,
    /// The text; `-` for stdin. A line break at its end is dropped
    #[arg(value_name = "FILE", default_value = "-")]
    pub(super) file: PathBuf,
    #[command(flatten)]
    pub(super) printed: Printed,
    #[command(flatten)]
    pub(super) overrides: Overrides,
}

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct ResetArgs {
    /// The block, as `content list` names it
    pub(super) key: String,
    /// Only this language
    #[arg(long, value_name = "LANG", value_parser = language)]
    pub(super) lang: Option<Lang>,
    #[command(flatten)]
    pub(super) printed: Printed,
    #[command(flatten)]
    pub(super) overrides: Overrides,
}

impl ContentVerb {
    /// The settings of the command line.
    pub(super) fn set(&self) -> &[String] {
        let overrides = match self {
            Self::List(args) => &args.overrides,
            Self::Show(args) => &args.overrides,
            Self::Set(args) => &args.overrides,
            Self::Reset(args) => &args.overrides,
            Self::Check { overrides, .. } => overrides,
        };
        &overrides.set
    }
}

fn language(text: &str) -> Result<Lang, String> {
    Lang::parse(text).ok_or_else(|| format!("write one of {}", Lang::ALL.map(Lang::as_str).join(", ")))
}

/// The languages that are meant.
pub(super) fn languages(only: Option<Lang>) -> Vec<Lang> {
    only.map_or_else(|| Lang::ALL.to_vec(), |lang| vec![lang])
}
