//! `webhooks verify`: whether a kept webhook is signed by a secret, and if not, why; for whoever writes a receiver.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};
use clap::Args;
use serde::Serialize;

use super::message::Message;
use super::secret::SecretSource;
use crate::dev::signature::{Fault, Key, Moment, Signed};
use crate::edge::cli::args::Printed;
use crate::edge::cli::moment::length;
use crate::edge::cli::print::Printer;
use crate::edge::cli::{Exit, input};
use crate::kernel::clock::Clock;

#[derive(Debug, Args)]
pub(in crate::edge::cli) struct VerifyArgs {
    #[command(flatten)]
    secret: SecretSource,
    /// The value of webhook-id
    #[arg(long, requires = "timestamp", requires = "signature")]
    id: Option<String>,
    /// The value of webhook-timestamp
    #[arg(long, value_name = "SECONDS", requires = "id")]
    timestamp: Option<String>,
    /// The value of webhook-signature
    #[arg(long, requires = "id")]
    signature: Option<String>,
    /// How old the signature may be, or how far ahead
    #[arg(long, value_name = "LENGTH", default_value = "5m", value_parser = length)]
    tolerance: Duration,
    /// The body, byte for byte; without --id, --timestamp and --signature the whole HTTP message
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    #[command(flatten)]
    printed: Printed,
}

/// The verdict as it is printed.
#[derive(Serialize)]
struct Verdict<'a> {
    verified: bool,
    id: Option<&'a str>,
    /// What is wrong, and what may be the matter.
    reason: Option<String>,
}

/// Verifies and says so.
///
/// # Errors
/// There is no secret, or the file is none that can be verified.
pub(super) fn run(args: VerifyArgs) -> anyhow::Result<Exit> {
    let secret = args.secret.load()?;
    let key = Key::parse(secret.expose());
    let key = key.context("the secret is none: it has to be whsec_ and base64, as it was shown when it was made")?;
    let bytes = input::read(&args.file)?;
    let given =
        Signed { id: args.id.as_deref(), timestamp: args.timestamp.as_deref(), signatures: args.signature.as_deref() };
    let (signed, body) = match given.id {
        Some(_) => (given, &bytes[..]),
        None => taken_apart(&bytes, &args.file)?,
    };
    let at = Moment { now: Clock::system().now(), tolerance_s: args.tolerance.as_secs() };
    let reason = signed.check(&key, body, at).err().map(|fault| told(&fault, &signed, (&key, body), at));
    let text = match &reason {
        None => format!("verified: {}", signed.id.unwrap_or_default()),
        Some(reason) => format!("not verified: {reason}"),
    };
    let verified = reason.is_none();
    Printer::stdout(args.printed).one(&Verdict { verified, id: signed.id, reason }, &text)?;
    Ok(if verified { Exit::Ok } else { Exit::Failure })
}

fn taken_apart<'a>(bytes: &'a [u8], file: &Path) -> anyhow::Result<(Signed<'a>, &'a [u8])> {
    let message = Message::parse(bytes).map_err(|error| {
        anyhow!(
            "{} is no HTTP message: {error}; give the headers by --id, --timestamp and --signature if it is the body \
             alone",
            if file == Path::new("-") { "stdin".to_owned() } else { file.display().to_string() }
        )
    })?;
    Ok((message.signed(), message.body))
}

/// The fault, and what most often causes it if that is the case here: a line break that a tool put at the end of the
/// body, or took away.
fn told(fault: &Fault, signed: &Signed<'_>, (key, body): (&Key, &[u8]), at: Moment) -> String {
    let fits = |body: &[u8]| !matches!(signed.check(key, body, at), Err(Fault::Unfit));
    let hint = match fault {
        Fault::Unfit if body.strip_suffix(b"\r\n").is_some_and(fits) => "without the line break at its end it fits",
        Fault::Unfit if body.strip_suffix(b"\n").is_some_and(fits) => "without the line break at its end it fits",
        Fault::Unfit if fits(&[body, b"\n"].concat()) => "with a line break at its end it fits",
        Fault::Old { .. } | Fault::Ahead { .. } => "--tolerance allows more",
        _ => return fault.to_string(),
    };
    format!("{fault}; {hint}")
}
