//! `pillarbox tenants`: those who have events, endpoints and keys of their own.

use anyhow::bail;
use clap::Subcommand;
use serde::Serialize;

use super::args::{Location, Overrides, Printed};
use super::print::{Printer, Row};
use super::whose::{TextPage, note_more, tenant_name};
use super::{Exit, beside};
use crate::config::Config;
use crate::kernel::clock::rfc3339;
use crate::kernel::store::Db;
use crate::kernel::tenant::TenantId;
use crate::tenants::{self, Error, Tenant};

#[derive(Debug, Subcommand)]
pub(super) enum TenantsVerb {
    /// List tenants by name; `default` is the installation itself
    List {
        #[command(flatten)]
        page: TextPage,
        #[command(flatten)]
        printed: Printed,
        #[command(flatten)]
        overrides: Overrides,
    },
    /// Make a tenant, which is never removed again
    #[command(after_help = "Then make it a key. Example: pillarbox tenants create acme")]
    Create {
        /// 1 to 64 of a-z, 0-9, `-` and `_`
        #[arg(value_name = "NAME", value_parser = tenant_name)]
        tenant: TenantId,
        #[command(flatten)]
        printed: Printed,
        #[command(flatten)]
        overrides: Overrides,
    },
}

/// A tenant as it is printed.
#[derive(Serialize)]
struct TenantBody {
    id: String,
    created_at: String,
}

impl From<Tenant> for TenantBody {
    fn from(tenant: Tenant) -> Self {
        Self { id: tenant.id.to_string(), created_at: rfc3339(tenant.created_at) }
    }
}

impl Row for TenantBody {
    const HEADER: &'static [&'static str] = &["TENANT", "SINCE"];

    fn cells(&self) -> Vec<String> {
        vec![self.id.clone(), self.created_at.clone()]
    }
}

/// Runs one of the verbs.
///
/// # Errors
/// The configuration's, the store's, or stdout's.
pub(super) async fn run(location: &Location, verb: TenantsVerb) -> anyhow::Result<Exit> {
    let (TenantsVerb::List { overrides, .. } | TenantsVerb::Create { overrides, .. }) = &verb;
    let config = Config::load(location.sources(&overrides.set))?;
    let db = match &verb {
        TenantsVerb::List { .. } => beside::open_to_read(&config)?,
        TenantsVerb::Create { .. } => beside::open(&config)?,
    };
    let done = match verb {
        TenantsVerb::List { page, printed, .. } => list(&db, page, printed).await,
        TenantsVerb::Create { tenant, printed, .. } => create(&db, tenant, printed).await,
    };
    db.close().await;
    done
}

async fn list(db: &Db, page: TextPage, printed: Printed) -> anyhow::Result<Exit> {
    let after = page.after.as_deref().map(tenant_name).transpose().map_err(anyhow::Error::msg)?;
    let limit = page.limit;
    let found = db.read(move |tx| tenants::tenants(tx, after.as_ref(), limit)).await?;
    let bodies: Vec<TenantBody> = found.into_iter().map(TenantBody::from).collect();
    Printer::stdout(printed).list(&bodies, "no tenants after that one")?;
    let is_full = i64::try_from(bodies.len()).is_ok_and(|rows| rows >= limit);
    note_more(bodies.last().filter(|_| is_full).map(|last| last.id.as_str()));
    Ok(Exit::Ok)
}

async fn create(db: &Db, id: TenantId, printed: Printed) -> anyhow::Result<Exit> {
    let name = id.clone();
    let tenant = match db.write(move |tx| tenants::create_tenant(tx, &id)).await {
        Ok(tenant) => tenant,
        Err(Error::TenantExists) => bail!("there is a tenant {name} already; `pillarbox keys list --tenant {name}`"),
        Err(error) => return Err(error.into()),
    };
    let text = format!("made tenant {name}; next: pillarbox keys create --tenant {name} --role admin");
    Printer::stdout(printed).one(&TenantBody::from(tenant), &text)?;
    Ok(Exit::Ok)
}
