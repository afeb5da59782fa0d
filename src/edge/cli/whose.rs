//! Whose things a verb is about: what the verbs of tenants, events and webhooks have in common.

use anyhow::bail;
use clap::Args;

use super::args::{Overrides, Printed};
use super::print::note;
use crate::kernel::store::Db;
use crate::kernel::tenant::TenantId;
use crate::tenants;

/// A tenant, and how what is its own is printed.
#[derive(Clone, Debug, Args)]
pub(super) struct Whose {
    /// The tenant
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = tenant_name)]
    pub(super) tenant: TenantId,
    #[command(flatten)]
    pub(super) printed: Printed,
    #[command(flatten)]
    pub(super) overrides: Overrides,
}

impl Whose {
    /// Refuses a name that no tenant has: its empty lists would look like an answer.
    ///
    /// # Errors
    /// There is none, or the store's.
    pub(super) async fn must_exist(&self, db: &Db) -> anyhow::Result<()> {
        let tenant = self.tenant.clone();
        if !db.read(move |tx| tenants::exists(tx, &tenant)).await? {
            bail!("there is no tenant {}; `pillarbox tenants list` shows which there are", self.tenant);
        }
        Ok(())
    }
}

/// Which part of a list is printed; its ids are texts.
#[derive(Clone, Debug, Args)]
pub(super) struct TextPage {
    /// Only what comes after this one in the list
    #[arg(long, value_name = "ID")]
    pub(super) after: Option<String>,
    /// How many at most, up to 200
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=200))]
    pub(super) limit: i64,
}

/// Says how to go on when there is more.
pub(super) fn note_more(next: Option<&str>) {
    if let Some(next) = next {
        note(&format!("there is more; go on with --after {next}"));
    }
}

/// A tenant's name; for clap.
///
/// # Errors
/// What may be written instead.
pub(super) fn tenant_name(text: &str) -> Result<TenantId, String> {
    TenantId::parse(text)
        .ok_or_else(|| format!("a name has 1 to {} of a-z, 0-9, `-` and `_`, such as acme-2", TenantId::LONGEST))
}
