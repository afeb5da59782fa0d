//! The command line as clap reads it: verbs, flags, and what they say of themselves.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand};

use super::{broadcast, content, events, jobs, keys, leads, members, messages, outbox, tenants, updates, webhooks};
use crate::edge::jobs::JOBS;

/// One binary, one SQLite file: bot events, a Telegram send queue, leads and webhooks for a single server.
#[derive(Debug, Parser)]
#[command(name = "pillarbox", version, max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = "Try it without a token or a network: pillarbox dev\n\
                        Lists are tables on a terminal and one JSON object a line otherwise, or with --json.\n\
                        Exit: 0 done, 1 failed, 2 wrong command line, 3 invalid configuration.")]
pub(super) struct Line {
    #[command(flatten)]
    pub(super) location: Location,
    #[command(subcommand)]
    pub(super) verb: Verb,
}

/// Where things are; taken before and after the verb.
#[derive(Clone, Debug, Args)]
pub(super) struct Location {
    /// Directory of the database (overrides store.data_dir)
    #[arg(long, global = true, value_name = "DIR")]
    pub(super) data_dir: Option<PathBuf>,
    /// Configuration file (else PILLARBOX_CONFIG, else ./pillarbox.toml if it exists)
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
}

/// Settings over the file and the environment.
#[derive(Clone, Debug, Args)]
pub(super) struct Overrides {
    /// Set one key over file and environment; may be repeated
    #[arg(long, value_name = "SECTION.KEY=VALUE")]
    pub(super) set: Vec<String>,
}

/// What is printed.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Printed {
    /// Print one JSON object a line, also on a terminal
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Subcommand)]
pub(super) enum Verb {
    #[command(flatten)]
    Serving(Serving),
    /// Write a commented configuration file with a fresh secret
    #[command(after_help = "Example: pillarbox init --config /etc/pillarbox.toml --data-dir /var/lib/pillarbox")]
    Init,
    /// Send one message to many people: make it, try it, start it, watch it
    #[command(subcommand)]
    Broadcast(broadcast::BroadcastVerb),
    /// Check the configuration, or show it with the origin of every value
    #[command(subcommand)]
    Config(ConfigVerb),
    /// Bring the database to this version's schema, keeping a copy; needs the server stopped
    #[command(after_help = "`serve` does the same when it starts. Example: pillarbox migrate --status")]
    Migrate(MigrateArgs),
    /// Look at the bot's event outbox, and retry what was given up
    #[command(subcommand)]
    Outbox(OutboxVerb),
    /// See the background jobs, or run one now
    #[command(subcommand)]
    Jobs(JobsVerb),
    /// Look at the Telegram send queue, and retry what was not delivered
    #[command(subcommand)]
    Messages(MessagesVerb),
    /// Look after the broker's leads: list, show, retry, export, delete, and test the way to the chat
    #[command(subcommand)]
    Leads(leads::LeadsVerb),
    /// Look after members: import a file of them, show one
    #[command(subcommand)]
    Members(members::MembersVerb),
    /// Look after the bot's texts: list, show, change, give back, check
    #[command(subcommand)]
    Content(content::ContentVerb),
    /// See tenants, and make one
    #[command(subcommand)]
    Tenants(tenants::TenantsVerb),
    /// See, make and revoke the keys of /v1
    #[command(subcommand)]
    Keys(keys::KeysVerb),
    /// Look after domain events: list, show, retry, emit; the catalogue of types
    #[command(subcommand)]
    Events(events::EventsVerb),
    /// Look at updates from Telegram, and have dead ones handled again
    #[command(subcommand)]
    Updates(updates::UpdatesVerb),
    /// Look after webhooks: endpoints, deliveries, repairs; sign, verify, and listen beside dev
    #[command(subcommand)]
    Webhooks(webhooks::WebhooksVerb),
    /// Run SQL on the database with the SQLite that fits it
    #[command(after_help = "Without STATEMENT it is read from stdin. Examples:\n  \
        pillarbox sql \"SELECT name, type FROM sqlite_schema\"\n  \
        pillarbox sql --write < changes.sql")]
    Sql(SqlArgs),
    /// Print the versions of the program, of its schema and of its SQLite
    Version(Printed),
    /// Print the completions of a shell
    #[command(
        after_help = "Example: pillarbox completions bash > ~/.local/share/bash-completion/completions/pillarbox"
    )]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
}

/// The verbs that run until they are told to stop.
#[derive(Debug, Subcommand)]
pub(super) enum Serving {
    /// Serve the data directory: HTTP, the bot, the jobs
    #[command(after_help = "Example: pillarbox serve --data-dir /var/lib/pillarbox --listen 127.0.0.1:8080")]
    Serve(ServeArgs),
    /// Run everything on this machine with a fake Telegram: no token, no network
    #[command(after_help = "As the double in another project's tests:\n  \
        pillarbox dev --data-dir DIR --listen 127.0.0.1:0 --no-demo --ready-file PATH")]
    Dev(DevArgs),
    /// Run only the fake Telegram Bot API and the webhook sink
    #[command(
        after_help = "Example: pillarbox fake --listen 127.0.0.1:8081, then pillarbox dev --fake http://127.0.0.1:8081"
    )]
    Fake(FakeArgs),
}

#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// Address to listen on (overrides http.listen)
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(super) listen: Option<String>,
    #[command(flatten)]
    pub(super) overrides: Overrides,
}

#[derive(Debug, Args)]
pub(super) struct DevArgs {
    #[command(flatten)]
    pub(super) serve: ServeArgs,
    /// Load and play no demo scenario
    #[arg(long)]
    pub(super) no_demo: bool,
    /// Write addresses and secrets to this file, in one step, when ready to serve
    #[arg(long, value_name = "FILE")]
    pub(super) ready_file: Option<PathBuf>,
    /// Talk to a `pillarbox fake` at this address instead of the built-in one
    #[arg(long, value_name = "URL", value_parser = http_address)]
    pub(super) fake: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct FakeArgs {
    /// Address to listen on; loopback only, port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8081")]
    pub(super) listen: SocketAddr,
    /// Write {"url", "pid"} to this file, in one step, when ready to serve
    #[arg(long, value_name = "FILE")]
    pub(super) ready_file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(super) enum ConfigVerb {
    /// Say what is wrong with the configuration, all at once; exit 3 if anything is
    Check(Overrides),
    /// List every key with its value and where that comes from; secrets are masked
    Show {
        #[command(flatten)]
        printed: Printed,
        #[command(flatten)]
        overrides: Overrides,
    },
}

#[derive(Debug, Args)]
pub(super) struct MigrateArgs {
    /// Print the versions and change nothing
    #[arg(long)]
    pub(super) status: bool,
    #[command(flatten)]
    pub(super) printed: Printed,
    #[command(flatten)]
    pub(super) overrides: Overrides,
}

/// Which part of a list is printed.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Page {
    /// Only what comes after this id
    #[arg(long, value_name = "ID", default_value_t = 0, hide_default_value = true)]
    pub(super) after: i64,
    /// How many at most, up to 500
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(i64).range(1..=500))]
    pub(super) limit: i64,
}

#[derive(Debug, Subcommand)]
pub(super) enum OutboxVerb {
    /// List events, the oldest first
    #[command(after_help = "Example: pillarbox outbox list --state dead --type registered")]
    List(outbox::ListArgs),
    /// Show one event whole
    Show {
        /// The event's id
        #[arg(value_parser = clap::value_parser!(i64).range(1..))]
        id: i64,
        #[command(flatten)]
        printed: Printed,
        #[command(flatten)]
        overrides: Overrides,
    },
    /// Open abandoned and dead events again, with their attempts counted anew
    #[command(after_help = "Exit 1 if any of them was not reopened. Example: pillarbox outbox retry 12 15")]
    Retry(outbox::RetryArgs),
    /// Count what waits and what was given up, and say who waits
    Stats {
        #[command(flatten)]
        printed: Printed,
        #[command(flatten)]
        overrides: Overrides,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum MessagesVerb {
    /// List messages, the oldest first; never their texts
    #[command(after_help = "Example: pillarbox messages list --status undeliverable --chat 123456")]
    List(messages::ListArgs),
    /// Queue closed messages again; sent ones are never repeated
    #[command(after_help = "Exit 1 if any of them was not reopened. A message that is `unknown` may arrive twice.")]
    Retry {
        /// The messages' ids
        #[arg(required = true, value_name = "ID", value_parser = clap::value_parser!(i64).range(1..))]
        ids: Vec<i64>,
        #[command(flatten)]
        printed: Printed,
        #[command(flatten)]
        overrides: Overrides,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum JobsVerb {
    /// List the jobs: when they run, why, and how their last recorded run ended
    List {
        #[command(flatten)]
        printed: Printed,
        #[command(flatten)]
        overrides: Overrides,
    },
    /// Run a job now: in the server, or here when none runs
    #[command(after_help = "Example: pillarbox jobs run bot-outbox-poll")]
    Run(jobs::RunArgs),
}

#[derive(Debug, Args)]
pub(super) struct SqlArgs {
    /// Allow changes; without it the file is opened read-only
    #[arg(long)]
    pub(super) write: bool,
    /// One or more statements, separated by semicolons
    pub(super) statement: Option<String>,
    #[command(flatten)]
    pub(super) printed: Printed,
    #[command(flatten)]
    pub(super) overrides: Overrides,
}

/// Job names for clap, which then suggests the nearest one.
pub(super) fn job_name() -> PossibleValuesParser {
    PossibleValuesParser::new(JOBS.iter().map(|job| job.name))
}

fn http_address(text: &str) -> Result<String, String> {
    match url::Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(text.to_owned()),
        _ => Err("write an http address, such as http://127.0.0.1:8081".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Line;

    #[test]
    fn the_command_line_is_consistent() {
        Line::command().debug_assert();
    }
}
