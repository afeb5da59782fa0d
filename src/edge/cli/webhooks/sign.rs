//! `webhooks sign`: the three headers of a webhook that somebody sends by hand, made by the code that signs deliveries.

use std::path::PathBuf;

use anyhow::{anyhow, bail};
use clap::Args;
use serde::Serialize;

use super::secret::SecretSource;
use crate::edge::cli::args::Printed;
use crate::edge::cli::print::Printer;
use crate::edge::cli::{Exit, input};
use crate::kernel::clock::Clock;
use crate::webhooks::signature::{self, Key};

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct SignArgs {
    #[command(flatten)]
    secret: SecretSource,
    /// The value of webhook-id, without dots
    #[arg(long)]
    id: String,
    /// When it is signed, in seconds since 1970; now, unless it is given
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(i64).range(0..))]
    timestamp: Option<i64>,
    /// The body, byte for byte
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    #[command(flatten)]
    printed: Printed,
}

/// The headers for programs.
#[derive(Serialize)]
struct HeadersBody<'a> {
    #[serde(rename = "webhook-id")]
    id: &'a str,
    #[serde(rename = "webhook-timestamp")]
    timestamp: String,
    #[serde(rename = "webhook-signature")]
    signature: &'a str,
}

/// Prints the headers, as lines that `curl -H @FILE` takes.
///
/// # Errors
/// There is no secret, or it cannot be signed.
pub(super) fn run(args: SignArgs) -> anyhow::Result<Exit> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'.';
    if args.id.is_empty() || args.id.len() > 128 || !args.id.bytes().all(is_plain) {
        bail!(
            "--id has to be 1 to 128 visible characters and no dot; with one it could be read as another id and time"
        );
    }
    let key = Key::parse(args.secret.load()?.expose())?;
    let body = input::read(&args.file)?;
    let at_s = args.timestamp.unwrap_or_else(|| Clock::system().now().div_euclid(1000));
    let signature = signature::sign(&[key], &args.id, at_s, &body)
        .map_err(|_| anyhow!("the body is not UTF-8; the bodies of webhooks are text"))?;
    let mut printer = Printer::stdout(args.printed);
    if args.printed.json {
        let timestamp = at_s.to_string();
        printer.one(&HeadersBody { id: &args.id, timestamp, signature: &signature }, "")?;
    } else {
        // The lines themselves, also into a pipe.
        let id = &args.id;
        printer.lines(&format!("webhook-id: {id}\nwebhook-timestamp: {at_s}\nwebhook-signature: {signature}"))?;
    }
    Ok(Exit::Ok)
}
