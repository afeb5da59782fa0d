//! `webhooks test`: one `webhook.test` to an endpoint, by the very code behind the server's test button, and what was said
//! on both sides.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;

use super::{Desk, refusal};
use crate::edge::cli::print::Printer;
use crate::edge::cli::whose::Whose;
use crate::edge::cli::{Exit, Form};
use crate::webhooks::probe::{self, Said, Tested, Tools};

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct TestArgs {
    /// The endpoint's id
    #[arg(value_name = "ENDPOINT")]
    id: String,
    #[command(flatten)]
    pub(super) whose: Whose,
}

/// What came of it, as `/v1` has it.
#[derive(Serialize)]
struct TestedBody<'a> {
    delivered: bool,
    http_status: Option<u16>,
    duration_ms: u128,
    error: Option<&'static str>,
    resolved_ip: Option<String>,
    request: SaidBody<'a>,
    response: Option<SaidBody<'a>>,
}

#[derive(Serialize)]
struct SaidBody<'a> {
    headers: BTreeMap<&'a str, &'a str>,
    body: &'a str,
}

impl<'a> From<&'a Said> for SaidBody<'a> {
    fn from(said: &'a Said) -> Self {
        let headers = said.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        Self { headers: headers.collect(), body: &said.body }
    }
}

impl<'a> From<&'a Tested> for TestedBody<'a> {
    fn from(tested: &'a Tested) -> Self {
        let outcome = &tested.outcome;
        Self {
            delivered: outcome.is_delivered(),
            http_status: outcome.http_status,
            duration_ms: outcome.duration.as_millis(),
            error: outcome.error.map(|class| class.as_str()),
            resolved_ip: outcome.resolved_ip.map(|ip| ip.to_string()),
            request: SaidBody::from(&tested.request),
            response: tested.response.as_ref().map(SaidBody::from),
        }
    }
}

pub(super) async fn test(desk: &Desk, args: TestArgs) -> anyhow::Result<Exit> {
    let webhooks = desk.tools()?;
    let tools = Tools { transport: &webhooks.transport, vault: &webhooks.vault };
    let tested = probe::test(&desk.db, tools, &args.whose.tenant, &args.id).await;
    let tested = tested.map_err(|error| refusal(error, &args.id, &args.whose))?;
    let body = TestedBody::from(&tested);
    let mut printer = Printer::stdout(args.whose.printed);
    let fields = [
        ("delivered", Some(body.error.map_or_else(|| "yes".to_owned(), |error| format!("no: {error}")))),
        ("status", body.http_status.map(|status| status.to_string())),
        ("took", Some(format!("{} ms", body.duration_ms))),
        ("address", body.resolved_ip.clone()),
    ];
    printer.fields(&body, &fields)?;
    if printer.form() == Form::Table {
        printer.lines(&told("sent", &body.request))?;
        if let Some(response) = &body.response {
            printer.lines(&told("answered", response))?;
        }
    }
    Ok(if body.delivered { Exit::Ok } else { Exit::Failure })
}

fn told(what: &str, said: &SaidBody<'_>) -> String {
    let headers: String = said.headers.iter().map(|(name, value)| format!("  {name}: {value}\n")).collect();
    let body: String = said.body.lines().map(|line| format!("  {line}\n")).collect();
    format!("\n{what}:\n{headers}\n{body}")
}
