//! `webhooks listen`: beside a running `dev`, deliveries to the program that is being written, told as they arrive.
//!
//! It is an endpoint like any other, made at the start and deleted at the end. One that was killed leaves its endpoint
//! behind; the next start finds it by its description, asks its address whether anybody is there, and deletes it if not.

use anyhow::{Context, bail};
use clap::Args;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::secret::SecretSource;
use super::{Desk, refusal};
use crate::config::{Config, Place};
use crate::dev::listen::{self, Answer, Arrival, Forward, Receiver};
use crate::dev::signature::{Key, TOLERANCE_S};
use crate::edge::cli::args::Location;
use crate::edge::cli::print::{Printer, note};
use crate::edge::cli::whose::Whose;
use crate::edge::cli::{Exit, Form, beside, dev};
use crate::edge::host::Signals;
use crate::kernel::clock::rfc3339;
use crate::kernel::secret::Secret;
use crate::kernel::store::is_held;
use crate::kernel::tenant::TenantId;
use crate::tenants;
use crate::webhooks::{self, Endpoint, Error, NewEndpoint};

/// What the endpoints of listeners are called, so that they are known again.
const DESCRIPTION: &str = "pillarbox webhooks listen";
/// Arrivals that wait to be printed.
const QUEUE: usize = 256;
/// Rows of a page of tenants.
const PAGE: i64 = 200;

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct ListenArgs {
    /// Hand each delivery on to this address of the program that is being written; its status is the answer
    #[arg(long, value_name = "URL", value_parser = address)]
    forward_to: Option<Url>,
    /// Only these types, or all that begin so: order.paid,lead.*
    #[arg(long, value_name = "TYPE,…", value_delimiter = ',')]
    event_types: Option<Vec<String>>,
    /// Print the bodies too
    #[arg(long)]
    print_body: bool,
    #[command(flatten)]
    secret: SecretSource,
    #[command(flatten)]
    whose: Whose,
}

/// `localhost:3000/hook` is meant as http.
fn address(text: &str) -> Result<Url, String> {
    let is_web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    let whole = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let parsed = Url::parse(&whole).ok().filter(is_web);
    parsed.ok_or_else(|| "write an address, such as http://localhost:3000/hooks".to_owned())
}

/// Listens until a signal.
///
/// # Errors
/// No `dev` serves the directory, the store's, or stdout's.
pub(super) async fn run(location: &Location, args: ListenArgs) -> anyhow::Result<Exit> {
    let desk = open(location, &args.whose).await?;
    let stop = CancellationToken::new();
    tokio::spawn(Signals::listen()?.obey(stop.clone()));
    let receiver = Receiver::bind().await?;
    clear(&desk).await?;
    let (endpoint, secret) = subscribe(&desk, &args, receiver.url()?).await?;
    announce(&args, &endpoint, &secret)?;
    warn_of_the_clock(desk.db.clock().offset_ms());
    let listened = listen_until(&desk, &args, (receiver, &secret), stop).await;
    // Whatever ended it.
    let (tenant, id) = (args.whose.tenant.clone(), endpoint.id);
    let deleted = desk.db.write(move |tx| webhooks::delete(tx, &tenant, &id)).await;
    desk.db.close().await;
    listened?;
    match deleted {
        Ok(()) | Err(Error::NotFound) => Ok(Exit::Ok),
        Err(error) => Err(error).context("the endpoint of this listener stays until the next one starts"),
    }
}

/// The directory of a running `dev`: the one that `dev` takes itself, unless another is named.
async fn open(location: &Location, whose: &Whose) -> anyhow::Result<Desk> {
    let sources = location.sources(&whose.overrides.set);
    let mut config = Config::load(sources.clone())?;
    if matches!(config.place("store.data_dir"), Place::Default) {
        config = Config::load(sources.with_flag("dev", "store.data_dir", dev::DATA_DIR))?;
    }
    let dir = config.store.data_dir.display();
    if !beside::is_in_dev_time(&config.store.data_dir) {
        bail!("{dir} is no directory of `pillarbox dev`; start that first, or name its directory with --data-dir");
    }
    if !is_held(&config.store.data_dir) {
        bail!("no `pillarbox dev` is running on {dir}; start it, and then this beside it");
    }
    Desk::of(config, whose, false).await
}

/// Deletes the endpoints of listeners that are not there any more.
async fn clear(desk: &Desk) -> anyhow::Result<()> {
    let mut after = None::<TenantId>;
    loop {
        let page = desk.db.read(move |tx| tenants::tenants(tx, after.as_ref(), PAGE)).await?;
        for tenant in &page {
            clear_of(desk, &tenant.id).await?;
        }
        after = page.into_iter().next_back().map(|last| last.id);
        if after.is_none() {
            return Ok(());
        }
    }
}

async fn clear_of(desk: &Desk, tenant: &TenantId) -> anyhow::Result<()> {
    let whose = tenant.clone();
    let limit = usize::try_from(webhooks::MOST_ENDPOINTS).unwrap_or(1);
    let found = desk.db.read(move |tx| webhooks::endpoints(tx, &whose, None, limit)).await?;
    for endpoint in found.items.into_iter().filter(|endpoint| endpoint.description == DESCRIPTION) {
        if listen::is_alive(&endpoint.url).await? {
            continue;
        }
        let whose = tenant.clone();
        match desk.db.write(move |tx| webhooks::delete(tx, &whose, &endpoint.id)).await {
            Ok(()) => note("the endpoint of a listener that was killed has been deleted"),
            Err(Error::NotFound) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

async fn subscribe(desk: &Desk, args: &ListenArgs, url: String) -> anyhow::Result<(Endpoint, Secret)> {
    let new = NewEndpoint {
        url,
        description: Some(DESCRIPTION.to_owned()),
        event_types: args.event_types.clone(),
        rate_per_second: None,
        secret: args.secret.find()?,
    };
    let (tenant, tools) = (args.whose.tenant.clone(), desk.tools()?);
    let made = desk.db.write(move |tx| webhooks::create(tx, &tenant, &new, &tools.vault, &tools.egress)).await;
    made.map_err(|error| refusal(error, "", &args.whose))
}

/// Says what is listened to, and the secret if it was made here: the program needs it to verify.
fn announce(args: &ListenArgs, endpoint: &Endpoint, secret: &Secret) -> anyhow::Result<()> {
    let types = args.event_types.as_ref().map_or_else(|| "every type".to_owned(), |types| types.join(", "));
    let to = match &args.forward_to {
        // Its query may hold a token.
        Some(url) => format!("handed on to {}{}", url.origin().ascii_serialization(), url.path()),
        None => "answered with 200 (--forward-to hands them on)".to_owned(),
    };
    note(&format!("listening as {}, tenant {}: {types}, {to}. Ctrl-C ends it.", endpoint.id, args.whose.tenant));
    if args.secret.find()?.is_none() {
        note(&format!("signed with {}; WEBHOOK_SECRET chooses one that stays", secret.expose()));
    }
    Ok(())
}

/// What a program's own library says of signatures from the future is no fault of the program.
fn warn_of_the_clock(ahead_ms: i64) {
    if ahead_ms.unsigned_abs() / 1000 > TOLERANCE_S {
        note(
            "the clock of this dev has been moved ahead (the demo does that), so your program's library will refuse the \
             signatures as too new; they fit in a new directory: pillarbox dev --no-demo --data-dir DIR",
        );
    }
}

/// Serves the receiver and prints what arrives, until a signal or until nobody reads any more.
async fn listen_until(
    desk: &Desk,
    args: &ListenArgs,
    (receiver, secret): (Receiver, &Secret),
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let key = Key::parse(secret.expose()).context("the secret is no key")?;
    let forward = args.forward_to.clone().map(Forward::to).transpose()?;
    let (told, mut arrivals) = mpsc::channel(QUEUE);
    let office = listen::Desk { key, clock: desk.db.clock().clone(), forward, told };
    let serving = tokio::spawn(receiver.serve(office, stop.clone()));
    let mut printed = Ok(());
    while let Some(arrival) = arrivals.recv().await {
        printed = print(args, &arrival);
        if printed.is_err() {
            stop.cancel();
            break;
        }
    }
    // Arrivals end when the receiver has.
    serving.await??;
    printed
}

/// An arrival as it is printed.
#[derive(Serialize)]
struct ArrivalBody<'a> {
    received_at: String,
    #[serde(rename = "type")]
    event_type: Option<&'a str>,
    id: Option<&'a str>,
    attempt: u32,
    verified: bool,
    /// Why it is not.
    reason: Option<String>,
    duration_ms: u128,
    /// What the program said, if it is handed on and said something.
    forwarded_status: Option<u16>,
    /// Why the program said nothing.
    forward_error: Option<&'a str>,
    /// The sender had given up before the answer was there.
    late: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
}

fn print(args: &ListenArgs, arrival: &Arrival) -> anyhow::Result<()> {
    let text = String::from_utf8_lossy(&arrival.body);
    let (forwarded_status, forward_error) = match &arrival.answer {
        Answer::Own => (None, None),
        Answer::Forwarded(status) => (Some(*status), None),
        Answer::Unreachable(why) => (None, Some(why.as_str())),
    };
    let body = ArrivalBody {
        received_at: rfc3339(arrival.at),
        event_type: arrival.event_type.as_deref(),
        id: arrival.id.as_deref(),
        attempt: arrival.attempt,
        verified: arrival.fault.is_none(),
        reason: arrival.fault.as_ref().map(ToString::to_string),
        duration_ms: arrival.took.as_millis(),
        forwarded_status,
        forward_error,
        late: arrival.is_late,
        body: args.print_body.then(|| text.clone().into_owned()),
    };
    let mut printer = Printer::stdout(args.whose.printed);
    printer.one(&body, &line(&body, &arrival.answer))?;
    if args.print_body && printer.form() == Form::Table {
        printer.lines(&text)?;
    }
    Ok(())
}

fn line(body: &ArrivalBody<'_>, answer: &Answer) -> String {
    let verdict = body.reason.as_ref().map_or_else(|| "verified".to_owned(), |why| format!("NOT VERIFIED ({why})"));
    let answer = match answer {
        Answer::Own => "200".to_owned(),
        Answer::Forwarded(status) => status.to_string(),
        Answer::Unreachable(why) => format!("502, since the program gave no answer ({why})"),
    };
    let late = if body.late { ", too late: the sender had given up" } else { "" };
    format!(
        "{}  {}  {}  attempt {}  {verdict}  {} ms -> {answer}{late}",
        body.received_at,
        body.event_type.unwrap_or("(no type)"),
        body.id.unwrap_or("(no id)"),
        body.attempt,
        body.duration_ms,
    )
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn an_address_may_be_written_without_its_scheme() {
        for (text, meant) in [
            ("http://localhost:3000/hooks?a=1", "http://localhost:3000/hooks?a=1"),
            ("localhost:3000/hooks", "http://localhost:3000/hooks"),
            ("127.0.0.1:3000", "http://127.0.0.1:3000/"),
            ("https://shop.test/hooks", "https://shop.test/hooks"),
        ] {
            assert_eq!(address(text).unwrap().as_str(), meant);
        }
        for wrong in ["", "file:///etc/passwd", "ftp://localhost/a", "http://", "a b"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }
}
