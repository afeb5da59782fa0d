//! `webhooks endpoints`: where events go, and whether they do.

use std::collections::BTreeSet;

use anyhow::Context;
use serde::Serialize;

use super::endpoint_args::{CreateArgs, EndpointsVerb, ListArgs, ManyArgs, OneArgs, OwnSecret, RotateArgs, UpdateArgs};
use super::{Desk, counted, refusal};
use crate::app::Webhooks;
use crate::edge::cli::print::{Printer, Row, note, or_dash};
use crate::edge::cli::whose::{Whose, note_more};
use crate::edge::cli::{Exit, confirm, input};
use crate::edge::http::EndpointBody;
use crate::kernel::clock::rfc3339;
use crate::kernel::secret::Secret;
use crate::kernel::store::Tx;
use crate::kernel::tenant::TenantId;
use crate::webhooks::{self, Endpoint, EndpointChanges, EndpointStatus, Error, NewEndpoint, Rotation};

pub(super) async fn on(desk: &Desk, verb: EndpointsVerb) -> anyhow::Result<Exit> {
    match verb {
        EndpointsVerb::List(args) => list(desk, args).await,
        EndpointsVerb::Show(args) => show(desk, args).await,
        EndpointsVerb::Create(args) => create(desk, args).await,
        EndpointsVerb::Update(args) => update(desk, args).await,
        EndpointsVerb::Pause(args) => set_status(desk, args, EndpointStatus::Paused).await,
        EndpointsVerb::Activate(args) => set_status(desk, args, EndpointStatus::Active).await,
        EndpointsVerb::Disable(args) => set_status(desk, args, EndpointStatus::Disabled).await,
        EndpointsVerb::Delete { many, yes } => delete(desk, many, yes).await,
        EndpointsVerb::RotateSecret(args) => rotate(desk, args).await,
    }
}

/// Whether it gets anything, and if not why.
fn standing(endpoint: &EndpointBody) -> String {
    let reason = endpoint.disabled_reason;
    reason.map_or_else(|| endpoint.status.to_owned(), |reason| format!("{}: {reason}", endpoint.status))
}

fn types(endpoint: &EndpointBody) -> String {
    endpoint.event_types.as_ref().map_or_else(|| "all".to_owned(), |types| types.join(", "))
}

fn fields(endpoint: &EndpointBody) -> Vec<(&'static str, Option<String>)> {
    vec![
        ("id", Some(endpoint.id.clone())),
        ("url", Some(endpoint.url.clone())),
        ("description", Some(endpoint.description.clone()).filter(|text| !text.is_empty())),
        ("event types", Some(types(endpoint))),
        ("rate per second", endpoint.rate_per_second.map(|rate| rate.to_string())),
        ("status", Some(standing(endpoint))),
        ("held until", endpoint.held_until.clone()),
        ("failing since", endpoint.failing_since.clone()),
        ("secret ends in", Some(endpoint.secret_last_four.clone())),
        ("created", Some(endpoint.created_at.clone())),
        ("updated", Some(endpoint.updated_at.clone())),
    ]
}

impl Row for EndpointBody {
    const HEADER: &'static [&'static str] = &["ID", "URL", "STATUS", "TYPES", "FAILING SINCE", "HELD UNTIL", "FOR"];

    fn cells(&self) -> Vec<String> {
        // What stands behind the `?` is often a token, and a list is looked at over shoulders.
        let url = self.url.split_once('?').map_or_else(|| self.url.clone(), |(before, _)| format!("{before}?…"));
        vec![
            self.id.clone(),
            url,
            standing(self),
            types(self),
            or_dash(self.failing_since.as_deref()),
            or_dash(self.held_until.as_deref()),
            self.description.clone(),
        ]
    }
}

async fn list(desk: &Desk, args: ListArgs) -> anyhow::Result<Exit> {
    let (tenant, page) = (args.whose.tenant.clone(), args.page);
    let limit = usize::try_from(page.limit).unwrap_or(1);
    let found = desk.db.read(move |tx| webhooks::endpoints(tx, &tenant, page.after, limit)).await?;
    let bodies: Vec<EndpointBody> = found.items.into_iter().map(EndpointBody::from).collect();
    Printer::stdout(args.whose.printed)
        .list(&bodies, "no endpoints; `pillarbox webhooks endpoints create` makes one")?;
    note_more(found.next.map(|next| next.to_string()).as_deref());
    Ok(Exit::Ok)
}

async fn show(desk: &Desk, args: OneArgs) -> anyhow::Result<Exit> {
    let (tenant, id) = (args.whose.tenant.clone(), args.id.clone());
    let found = desk.db.read(move |tx| webhooks::find_endpoint(tx, &tenant, &id)).await;
    let body = EndpointBody::from(found.map_err(|error| refusal(error, &args.id, &args.whose))?);
    Printer::stdout(args.whose.printed).fields(&body, &fields(&body))?;
    Ok(Exit::Ok)
}

/// An endpoint with the secret that is shown this once.
#[derive(Serialize)]
struct WithSecret<'a> {
    #[serde(flatten)]
    endpoint: &'a EndpointBody,
    secret: &'a str,
}

async fn create(desk: &Desk, args: CreateArgs) -> anyhow::Result<Exit> {
    let new = NewEndpoint {
        url: args.url,
        description: args.description,
        event_types: args.event_types,
        rate_per_second: args.rate,
        secret: own_secret(&args.own)?,
    };
    let (tenant, tools) = (args.whose.tenant.clone(), desk.tools()?);
    look_up(&tools, &new.url, &args.whose).await?;
    let made = desk.db.write(move |tx| webhooks::create(tx, &tenant, &new, &tools.vault, &tools.egress)).await;
    let (endpoint, secret) = made.map_err(|error| refusal(error, "", &args.whose))?;
    let body = EndpointBody::from(endpoint);
    let mut fields = fields(&body);
    fields.retain(|(name, _)| *name != "secret ends in");
    fields.push(("secret", Some(secret.expose().to_owned())));
    let whole = WithSecret { endpoint: &body, secret: secret.expose() };
    Printer::stdout(args.whose.printed).fields(&whole, &fields)?;
    note("the secret is shown this once; the receiver verifies with it (docs/webhooks.md)");
    Ok(Exit::Ok)
}

/// Looks where the name leads now, so that a wrong one is told here and not by its first failure.
async fn look_up(tools: &Webhooks, url: &str, whose: &Whose) -> anyhow::Result<()> {
    tools.transport.check_url(url).await.map_err(|fault| refusal(fault.into(), "", whose))
}

/// The secret of the file, if one is named.
fn own_secret(own: &OwnSecret) -> anyhow::Result<Option<Secret>> {
    let Some(path) = &own.secret_file else { return Ok(None) };
    let text = String::from_utf8(input::read(path)?).context("the file of --secret-file is not text")?;
    Ok(Some(Secret::new(text.trim())))
}

async fn update(desk: &Desk, args: UpdateArgs) -> anyhow::Result<Exit> {
    if let Some(url) = &args.url {
        look_up(&desk.tools()?, url, &args.whose).await?;
    }
    let changes = EndpointChanges {
        url: args.url,
        description: args.description.map(|text| Some(text).filter(|text| !text.is_empty())),
        event_types: if args.all_types { Some(None) } else { args.event_types.map(Some) },
        rate_per_second: if args.no_rate { Some(None) } else { args.rate.map(Some) },
        status: None,
    };
    let changed = change(desk, &args.whose, &args.id, changes).await?;
    let body = EndpointBody::from(changed.map_err(|error| refusal(error, &args.id, &args.whose))?);
    Printer::stdout(args.whose.printed).fields(&body, &fields(&body))?;
    Ok(Exit::Ok)
}

async fn change(
    desk: &Desk,
    whose: &Whose,
    id: &str,
    changes: EndpointChanges,
) -> anyhow::Result<Result<Endpoint, Error>> {
    let (tenant, id, egress) = (whose.tenant.clone(), id.to_owned(), desk.tools()?.egress);
    let is_relief = changes.is_relief();
    let change = move |tx: &Tx<'_>| webhooks::update(tx, &tenant, &id, &changes, &egress);
    Ok(if is_relief { desk.db.settle(change).await } else { desk.db.write(change).await })
}

/// What became of one endpoint.
#[derive(Serialize)]
struct Answer {
    id: String,
    status: Option<&'static str>,
    what: String,
}

async fn set_status(desk: &Desk, args: ManyArgs, status: EndpointStatus) -> anyhow::Result<Exit> {
    let mut printer = Printer::stdout(args.whose.printed);
    let mut is_missing = false;
    for id in distinct(args.ids) {
        let changed = match status {
            EndpointStatus::Disabled => {
                let (tenant, id) = (args.whose.tenant.clone(), id.clone());
                desk.db.settle(move |tx| webhooks::disable(tx, &tenant, &id)).await
            }
            status => {
                let changes = EndpointChanges { status: Some(status), ..EndpointChanges::default() };
                change(desk, &args.whose, &id, changes).await?
            }
        };
        let (status, what) = match changed {
            Ok(endpoint) => {
                let body = EndpointBody::from(endpoint);
                (Some(body.status), format!("is {}", standing(&body)))
            }
            Err(Error::NotFound) => (None, missing(&args.whose.tenant)),
            Err(error) => return Err(error.into()),
        };
        is_missing |= status.is_none();
        let text = format!("{id} {what}");
        printer.one(&Answer { id, status, what }, &text)?;
    }
    Ok(if is_missing { Exit::Failure } else { Exit::Ok })
}

async fn delete(desk: &Desk, args: ManyArgs, yes: bool) -> anyhow::Result<Exit> {
    let ids = distinct(args.ids);
    if !yes && !confirm::is_meant("delete", &format!("delete {}", counted(ids.len(), "endpoint")))? {
        note("nothing was deleted");
        return Ok(confirm::refused());
    }
    let mut printer = Printer::stdout(args.whose.printed);
    let mut is_missing = false;
    for id in ids {
        let (tenant, gone) = (args.whose.tenant.clone(), id.clone());
        let what = match desk.db.settle(move |tx: &Tx<'_>| webhooks::delete(tx, &tenant, &gone)).await {
            Ok(()) => "deleted; its deliveries go in batches".to_owned(),
            Err(Error::NotFound) => {
                is_missing = true;
                missing(&args.whose.tenant)
            }
            Err(error) => return Err(error.into()),
        };
        let text = format!("{id} {what}");
        printer.one(&Answer { id, status: None, what }, &text)?;
    }
    Ok(if is_missing { Exit::Failure } else { Exit::Ok })
}

fn missing(tenant: &TenantId) -> String {
    format!("no such endpoint of tenant {tenant}; see `pillarbox webhooks endpoints list`")
}

/// Each id once, in the order given.
fn distinct(ids: Vec<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    ids.into_iter().filter(|id| seen.insert(id.clone())).collect()
}

/// A new secret as it is printed.
#[derive(Serialize)]
struct RotatedBody<'a> {
    secret: &'a str,
    previous_valid_until: Option<String>,
}

async fn rotate(desk: &Desk, args: RotateArgs) -> anyhow::Result<Exit> {
    let overlap_seconds = i64::try_from(args.overlap.as_secs()).ok();
    let rotation = Rotation { overlap_seconds, secret: own_secret(&args.own)? };
    let (tenant, id, vault) = (args.whose.tenant.clone(), args.id.clone(), desk.tools()?.vault);
    let rotated = desk.db.write(move |tx| webhooks::rotate_secret(tx, &tenant, &id, &rotation, &vault)).await;
    let rotated = rotated.map_err(|error| refusal(error, &args.id, &args.whose))?;
    let until = rotated.previous_valid_until.map(rfc3339);
    let body = RotatedBody { secret: rotated.secret.expose(), previous_valid_until: until.clone() };
    let fields = [("secret", Some(body.secret.to_owned())), ("old one until", until)];
    Printer::stdout(args.whose.printed).fields(&body, &fields)?;
    note("the secret is shown this once; give it to the receiver before the old one stops signing");
    Ok(Exit::Ok)
}
