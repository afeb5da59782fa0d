//! From the arguments to the exit code: finds the verb, runs it, and tells how it failed.

use std::ffi::OsString;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;

use super::args::{ConfigVerb, Line, Location, Serving, Verb};
use super::dev::{Demo, DevOptions};
use super::print::{Printer, note};
use super::{
    Exit, broadcast, config, content, dev, events, fake, init, jobs, keys, leads, members, messages, migrate, outbox,
    serve, sql, tenants, updates, version, webhooks,
};
use crate::config::DEFAULT_FILE;

/// Where `fake` keeps its data when nobody says; it reads no configuration.
const FAKE_DATA_DIR: &str = "pillarbox-fake";

/// Runs the verb that `args` ask for.
pub(crate) fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let line = match Line::try_parse_from(args) {
        Ok(line) => line,
        Err(said) => {
            // Help and version come this way too; whoever closed the pipe does not want them.
            let _ = said.print();
            return if said.use_stderr() { Exit::Usage.into() } else { Exit::Ok.into() };
        }
    };
    match dispatch(line) {
        Ok(exit) => exit.into(),
        // The reader has what it wanted, as `| head` does.
        Err(error) if is_broken_pipe(&error) => Exit::Ok.into(),
        Err(error) => {
            note(&format!("error: {}", told(&error)));
            Exit::of_error(&error).into()
        }
    }
}

fn dispatch(Line { location, verb }: Line) -> anyhow::Result<Exit> {
    match verb {
        Verb::Serving(verb) => block_on(serving(&location, verb)),
        Verb::Init => {
            let path = location.config.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
            init::init(path, location.data_dir.as_deref(), &mut io::stdout().lock())
        }
        Verb::Broadcast(verb) => block_on(broadcast::run(&location, verb)),
        Verb::Config(verb) => configuration(&location, verb),
        Verb::Migrate(args) => block_on(migrate::run(&location, args)),
        Verb::Outbox(verb) => block_on(outbox::run(&location, verb)),
        Verb::Jobs(verb) => block_on(jobs::run(&location, verb)),
        Verb::Messages(verb) => block_on(messages::run(&location, verb)),
        Verb::Leads(verb) => block_on(leads::run(&location, verb)),
        Verb::Members(verb) => block_on(members::run(&location, verb)),
        Verb::Content(verb) => block_on(content::run(&location, verb)),
        Verb::Tenants(verb) => block_on(tenants::run(&location, verb)),
        Verb::Keys(verb) => block_on(keys::run(&location, verb)),
        Verb::Events(verb) => block_on(events::run(&location, verb)),
        Verb::Updates(verb) => block_on(updates::run(&location, verb)),
        Verb::Webhooks(verb) => block_on(webhooks::run(&location, verb)),
        Verb::Sql(args) => sql::run(&location, args),
        Verb::Version(printed) => version::version(&location, printed),
        Verb::Completions { shell } => version::completions(shell),
    }
}

async fn serving(location: &Location, verb: Serving) -> anyhow::Result<Exit> {
    match verb {
        Serving::Serve(args) => serve::run(args.sources(location)).await,
        Serving::Dev(args) => {
            let demo = if args.no_demo { Demo::Skip } else { Demo::Play };
            let options = DevOptions { ready_file: args.ready_file, demo, fake: args.fake };
            dev::run(args.serve.dev_sources(location), options).await
        }
        Serving::Fake(args) => {
            let data_dir = location.data_dir.clone().unwrap_or_else(|| FAKE_DATA_DIR.into());
            fake::run(args.listen, data_dir, args.ready_file).await
        }
    }
}

fn configuration(location: &Location, verb: ConfigVerb) -> anyhow::Result<Exit> {
    match verb {
        ConfigVerb::Check(overrides) => {
            Ok(config::check(location.sources(&overrides.set), &mut BufWriter::new(io::stdout().lock()))?)
        }
        ConfigVerb::Show { printed, overrides } => {
            let form = Printer::stdout(printed).form();
            let mut out = BufWriter::new(io::stdout().lock());
            let exit = config::show(location.sources(&overrides.set), form, &mut out)?;
            out.flush()?;
            Ok(exit)
        }
    }
}

fn block_on(verb: impl Future<Output = anyhow::Result<Exit>>) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("the system gives no threads to run on")?;
    let ended = runtime.block_on(verb);
    // A write that hangs in the disk must not hold the exit up: whoever was promised it has been answered.
    runtime.shutdown_background();
    ended
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let kind = match (cause.downcast_ref::<io::Error>(), cause.downcast_ref::<serde_json::Error>()) {
            (Some(error), _) => Some(error.kind()),
            (None, Some(error)) => error.io_error_kind(),
            (None, None) => None,
        };
        kind == Some(ErrorKind::BrokenPipe)
    })
}

/// The error with its causes, each once: some texts have their cause in them already.
fn told(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::store::{OpenError, StoreError};

    #[test]
    fn a_cause_is_told_once() {
        let busy = OpenError::Store { file: "p.db".into(), error: StoreError::Busy };
        let error = anyhow::Error::from(busy).context("while starting");
        let text = told(&error);
        assert_eq!(text.matches("another process has held").count(), 1, "{text}");
        assert!(text.starts_with("while starting: cannot open p.db"), "{text}");
    }

    #[test]
    fn a_closed_pipe_is_recognized_inside_another_error() {
        let closed = || io::Error::from(ErrorKind::BrokenPipe);
        assert!(is_broken_pipe(&anyhow::Error::from(closed()).context("printing")));
        assert!(is_broken_pipe(&anyhow::Error::from(serde_json::Error::io(closed()))));
        assert!(!is_broken_pipe(&anyhow::Error::from(io::Error::from(ErrorKind::NotFound))));
    }
}
