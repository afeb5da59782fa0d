//! `pillarbox keys`: what programs prove with that they may speak for a tenant on `/v1`.
//!
//! A new key is printed alone on stdout, so that `KEY=$(pillarbox keys create …)` has it; everything that is said of it goes to
//! stderr. It is the one time that it is shown.

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use serde::Serialize;

use super::args::Location;
use super::print::{Printer, Row, note, or_dash};
use super::whose::{TextPage, Whose, note_more};
use super::{Exit, beside};
use crate::config::Config;
use crate::kernel::clock::rfc3339;
use crate::kernel::store::Db;
use crate::tenants::{self, Error, Key, Role};

#[derive(Debug, Subcommand)]
pub(super) enum KeysVerb {
    /// List a tenant's keys, the oldest first, each by its last four characters
    List {
        #[command(flatten)]
        page: TextPage,
        #[command(flatten)]
        whose: Whose,
    },
    /// Make a key and print it, alone and this once
    #[command(after_help = "`admin` may do all of /v1, `publish` posts events, `read` looks. The file keeps no more \
        than a hash of it.\nExample: KEY=$(pillarbox keys create --tenant acme --role publish)")]
    Create(CreateArgs),
    /// Make keys void at once and for ever
    #[command(after_help = "Exit 1 if any of them is not there. Example: pillarbox keys revoke key_0190…")]
    Revoke {
        /// The keys' ids, as `keys list` shows them
        #[arg(required = true, value_name = "ID")]
        ids: Vec<String>,
        #[command(flatten)]
        whose: Whose,
    },
}

#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// What it may do
    #[arg(long, value_parser = roles())]
    role: String,
    /// What it is for, as `keys list` shows it; up to 200 characters
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    description: String,
    #[command(flatten)]
    whose: Whose,
}

fn roles() -> PossibleValuesParser {
    PossibleValuesParser::new(Role::ALL.map(Role::as_str))
}

impl KeysVerb {
    fn whose(&self) -> &Whose {
        match self {
            Self::List { whose, .. } | Self::Revoke { whose, .. } => whose,
            Self::Create(args) => &args.whose,
        }
    }
}

/// Runs one of the verbs.
///
/// # Errors
/// The configuration's, the store's, or stdout's.
pub(super) async fn run(location: &Location, verb: KeysVerb) -> anyhow::Result<Exit> {
    let config = Config::load(location.sources(&verb.whose().overrides.set))?;
    let db = match &verb {
        KeysVerb::List { .. } => beside::open_to_read(&config)?,
        KeysVerb::Create(_) | KeysVerb::Revoke { .. } => beside::open(&config)?,
    };
    let done = match verb.whose().must_exist(&db).await {
        Ok(()) => on(&db, verb).await,
        Err(error) => Err(error),
    };
    db.close().await;
    done
}

async fn on(db: &Db, verb: KeysVerb) -> anyhow::Result<Exit> {
    match verb {
        KeysVerb::List { page, whose } => list(db, page, whose).await,
        KeysVerb::Create(args) => create(db, args).await,
        KeysVerb::Revoke { ids, whose } => revoke(db, ids, whose).await,
    }
}

/// A key as it is printed; never its text.
#[derive(Serialize)]
struct KeyBody {
    id: String,
    role: &'static str,
    description: String,
    last_four: String,
    created_at: String,
    revoked_at: Option<String>,
}

impl From<Key> for KeyBody {
    fn from(key: Key) -> Self {
        Self {
            id: key.id,
            role: key.role.as_str(),
            description: key.description,
            last_four: key.last_four,
            created_at: rfc3339(key.created_at),
            revoked_at: key.revoked_at.map(rfc3339),
        }
    }
}

impl Row for KeyBody {
    const HEADER: &'static [&'static str] = &["ID", "ROLE", "ENDS IN", "MADE", "REVOKED", "FOR"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.id.clone(),
            self.role.to_owned(),
            self.last_four.clone(),
            self.created_at.clone(),
            or_dash(self.revoked_at.as_deref()),
            self.description.clone(),
        ]
    }
}

async fn list(db: &Db, page: TextPage, whose: Whose) -> anyhow::Result<Exit> {
    let (tenant, limit) = (whose.tenant.clone(), page.limit);
    let found = db.read(move |tx| tenants::keys(tx, &tenant, page.after.as_deref(), limit)).await?;
    let bodies: Vec<KeyBody> = found.into_iter().map(KeyBody::from).collect();
    Printer::stdout(whose.printed).list(&bodies, "no keys; `pillarbox keys create --role …` makes one")?;
    let is_full = i64::try_from(bodies.len()).is_ok_and(|rows| rows >= limit);
    note_more(bodies.last().filter(|_| is_full).map(|last| last.id.as_str()));
    Ok(Exit::Ok)
}

/// A new key for programs that want its id too.
#[derive(Serialize)]
struct NewKeyBody<'a> {
    id: &'a str,
    tenant: &'a str,
    role: &'static str,
    key: &'a str,
}

async fn create(db: &Db, args: CreateArgs) -> anyhow::Result<Exit> {
    let CreateArgs { role, description, whose } = args;
    let role = Role::parse(&role).expect("clap has checked the role against the same list");
    let tenant = whose.tenant.clone();
    let made = db.write(move |tx| tenants::create_key(tx, &tenant, role, &description)).await?;
    let mut printer = Printer::stdout(whose.printed);
    if whose.printed.json {
        let tenant = whose.tenant.as_str();
        printer.one(&NewKeyBody { id: &made.id, tenant, role: role.as_str(), key: made.token.expose() }, "")?;
        return Ok(Exit::Ok);
    }
    printer.lines(made.token.expose())?;
    note(&format!(
        "that is the key {} of tenant {}, role {}; it is shown this once. Send it as `Authorization: Bearer …`",
        made.id,
        whose.tenant,
        role.as_str()
    ));
    Ok(Exit::Ok)
}

/// What became of one id.
#[derive(Serialize)]
struct Answer {
    id: String,
    revoked_at: Option<String>,
}

async fn revoke(db: &Db, ids: Vec<String>, whose: Whose) -> anyhow::Result<Exit> {
    let mut printer = Printer::stdout(whose.printed);
    let mut is_missing = false;
    for id in ids {
        let (tenant, key) = (whose.tenant.clone(), id.clone());
        let revoked_at = match db.write(move |tx| tenants::revoke_key(tx, &tenant, &key)).await {
            Ok(at) => Some(rfc3339(at)),
            Err(Error::NoKey) => None,
            Err(error) => return Err(error.into()),
        };
        is_missing |= revoked_at.is_none();
        let text = match &revoked_at {
            Some(at) => format!("{id} is void since {at}"),
            None => format!("{id} no such key of tenant {}; see `pillarbox keys list`", whose.tenant),
        };
        printer.one(&Answer { id, revoked_at }, &text)?;
    }
    Ok(if is_missing { Exit::Failure } else { Exit::Ok })
}
