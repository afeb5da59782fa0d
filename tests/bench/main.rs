//! `make bench`: the goals of speed and size, measured and printed as one table.
//!
//! Absolute numbers say more about the machine and its neighbours than about the code. So every goal of throughput is a
//! ratio to F, what the same disk does in the same second: overwriting 8 KiB and `fdatasync`. A round measures F, the
//! thing, and F again; a value is the median of the rounds. A run in which F itself swung more than threefold says that
//! it is inconclusive.
//!
//! `cargo bench --bench bench -- [GROUP]…` runs some groups only. Settings: `BENCH_DIR` (where the files lie; the disk is
//! what is measured), `BENCH_ROUNDS`, `BENCH_ROWS` (processed rows of the large file; a tenth of it waits).

mod bulk;
mod consume;
mod floor;
mod http;
mod idle;
mod large;
mod leads;
mod load;
mod postgres;
mod process;
mod receiver;
mod relay;
mod rounds;
mod table;
mod webhooks;
mod write;

use std::process::ExitCode;

use rounds::Run;

type Group = (&'static str, fn(&mut Run) -> anyhow::Result<()>);

/// In the order in which they run; `postgres` only when it is named, since it needs a server installed.
const GROUPS: &[Group] = &[
    ("write", write::measure),
    ("http", http::measure),
    ("consume", consume::measure),
    ("postgres", postgres::measure),
    ("idle", idle::measure),
    ("leads", leads::measure),
    ("webhooks", webhooks::measure),
    ("relay", relay::measure),
    ("reminders", bulk::measure_reminders),
    ("digest", bulk::measure_digest),
    ("large", large::measure),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|word| word == "--bench") {
        // `cargo test --all-targets` builds this too, without optimisation; what it would measure means nothing.
        println!("bench: run me with `cargo bench`");
        return ExitCode::SUCCESS;
    }
    let wanted: Vec<String> = arguments.into_iter().filter(|word| !word.starts_with('-')).collect();
    match run(&wanted) {
        Ok(exit) => exit,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(wanted: &[String]) -> anyhow::Result<ExitCode> {
    if let Some(unknown) = wanted.iter().find(|word| !GROUPS.iter().any(|(name, _)| name == word)) {
        let names: Vec<&str> = GROUPS.iter().map(|(name, _)| *name).collect();
        anyhow::bail!("no group is called {unknown}; there are: {}", names.join(" "));
    }
    let mut run = Run::begin()?;
    for (name, measure) in GROUPS {
        let is_wanted = if wanted.is_empty() { *name != "postgres" } else { wanted.iter().any(|word| word == name) };
        if is_wanted {
            eprintln!("bench: {name}");
            measure(&mut run)?;
        }
    }
    Ok(run.end())
}
