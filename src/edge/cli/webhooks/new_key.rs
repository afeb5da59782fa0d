//! `webhooks new-key`: a key for the secrets of endpoints in the place of one that is lost for good.

use anyhow::bail;
use clap::Args;

use crate::config::Config;
use crate::edge::cli::args::{Location, Overrides};
use crate::edge::cli::print::note;
use crate::edge::cli::{Exit, beside, confirm};
use crate::webhooks::Vault;

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct NewKeyArgs {
    /// Do not ask
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    overrides: Overrides,
}

pub(super) async fn run(location: &Location, args: NewKeyArgs) -> anyhow::Result<Exit> {
    let config = Config::load(location.sources(&args.overrides.set))?;
    // A server would go on with the old key, which it has in memory: nobody may serve meanwhile.
    let db = beside::take(&config, "webhooks new-key")?;
    let vault = Vault::at(db.dir());
    let done = make(&vault, args.yes);
    db.close().await;
    done
}

fn make(vault: &Vault, yes: bool) -> anyhow::Result<Exit> {
    if vault.has_key()? {
        bail!("webhooks.key is there and is kept: a new one would open none of the secrets that are sealed with it");
    }
    if !yes && !confirm::is_meant("new-key", "give up every secret that was sealed with the lost key")? {
        note("nothing was changed");
        return Ok(confirm::refused());
    }
    vault.make_new()?;
    note("webhooks.key is new: keep a copy of it, and not where the copies of the database are");
    note(
        "each endpoint now needs a secret of its own: `pillarbox webhooks endpoints rotate-secret ID`, and its receiver too",
    );
    Ok(Exit::Ok)
}
