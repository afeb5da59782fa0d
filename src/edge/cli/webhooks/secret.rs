//! Where a verb takes a signing secret from: the environment or a file rather than the command line, which every user of
//! the machine can read in the list of processes, and which a shell keeps in its history.

use std::convert::Infallible;
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;

use crate::kernel::secret::Secret;

/// The secret of an endpoint, by one of three ways.
#[derive(Clone, Debug, Args)]
pub(super) struct SecretSource {
    /// The secret, whsec_…; better given in the environment, since every user of this machine sees arguments
    #[arg(long, value_name = "SECRET", env = "WEBHOOK_SECRET", hide_env_values = true, value_parser = hidden)]
    secret: Option<Secret>,
    /// A file that holds the secret and nothing else; goes before --secret
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
}

/// A refusal of clap repeats the value, so none is refused here.
fn hidden(text: &str) -> Result<Secret, Infallible> {
    Ok(Secret::new(text.trim()))
}

impl SecretSource {
    /// The secret; `None` if none is given.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn find(&self) -> anyhow::Result<Option<Secret>> {
        let Some(path) = &self.secret_file else { return Ok(self.secret.clone()) };
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Some(Secret::new(text.trim())))
    }

    /// The secret.
    ///
    /// # Errors
    /// None is given, or the file cannot be read.
    pub(super) fn load(&self) -> anyhow::Result<Secret> {
        match self.find()? {
            Some(secret) => Ok(secret),
            None => {
                bail!("a secret is needed: in the environment's WEBHOOK_SECRET, or by --secret-file FILE")
            }
        }
    }
}
