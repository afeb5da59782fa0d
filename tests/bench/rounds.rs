//! A run: its directory, its rounds, its floor and its table.

use std::path::PathBuf;
use std::process::ExitCode;

use tokio::runtime::Runtime;

use crate::floor::Floor;
use crate::load::Sample;
use crate::table::{Goal, Line, Table};

/// Rounds of a measurement unless `BENCH_ROUNDS` says otherwise.
const ROUNDS: usize = 7;
/// Processed rows of the large file unless `BENCH_ROWS` says otherwise.
const ROWS: i64 = 10_000_000;
/// Beyond this the disk was busy with something else.
const LARGEST_SWING: f64 = 3.0;

/// Everything the groups share.
pub(crate) struct Run {
    /// Where every file of the run lies, so that all of them are on the disk that F is measured on.
    pub(crate) dir: tempfile::TempDir,
    pub(crate) runtime: Runtime,
    pub(crate) rounds: usize,
    pub(crate) rows: i64,
    pub(crate) table: Table,
    floor: Floor,
}

/// What the rounds of one measurement came to: medians.
pub(crate) struct Medians {
    pub(crate) per_second: f64,
    pub(crate) ratio: f64,
    pub(crate) p99_ms: f64,
}

impl Run {
    pub(crate) fn begin() -> anyhow::Result<Self> {
        let base = setting("BENCH_DIR").map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from);
        let dir = tempfile::Builder::new().prefix("bench").tempdir_in(base)?;
        let rounds = setting("BENCH_ROUNDS").map(|text| text.parse()).transpose()?.unwrap_or(ROUNDS);
        let rows = setting("BENCH_ROWS").map(|text| text.parse()).transpose()?.unwrap_or(ROWS);
        let floor = Floor::lay(dir.path())?;
        Ok(Self { dir, runtime: Runtime::new()?, rounds, rows, table: Table::default(), floor })
    }

    /// Measures in rounds, each between two looks at the floor. The closure gets what it needs of the run.
    pub(crate) fn against_floor(
        &mut self,
        mut sample: impl FnMut(&Runtime) -> anyhow::Result<Sample>,
    ) -> anyhow::Result<Medians> {
        let (mut rates, mut ratios, mut p99s) = (Vec::new(), Vec::new(), Vec::new());
        let mut before = self.floor.measure()?;
        for _ in 0..self.rounds {
            let sample = sample(&self.runtime)?;
            let after = self.floor.measure()?;
            rates.push(sample.per_second());
            ratios.push(sample.per_second() / f64::midpoint(before, after));
            p99s.push(sample.percentile_ms(99.0));
            before = after;
        }
        Ok(Medians { per_second: median(rates), ratio: median(ratios), p99_ms: median(p99s) })
    }

    /// Adds a line of throughput, whose goal is about its ratio to F.
    pub(crate) fn add_rate(&mut self, what: &str, medians: &Medians, goal: Goal) {
        let (value, ratio) = (medians.per_second, Some(medians.ratio));
        self.table.add(Line { what: what.into(), unit: "/s", value, ratio, goal });
    }

    /// Adds a line whose goal is an upper bound.
    pub(crate) fn add_at_most(&mut self, what: &str, unit: &'static str, value: f64, most: f64) {
        self.table.add(Line { what: what.into(), unit, value, ratio: None, goal: Goal::AtMost(most) });
    }

    /// Prints the table; success only if every goal was reached and the disk was steady enough to tell.
    pub(crate) fn end(mut self) -> ExitCode {
        let floor = self.floor.range();
        if let Some((least, greatest)) = floor {
            for (what, value) in [("F, least of the run", least), ("F, greatest of the run", greatest)] {
                self.table.add(Line { what: what.into(), unit: "/s", value, ratio: None, goal: Goal::Shown });
            }
        }
        self.table.print();
        if let Some((least, greatest)) = floor
            && greatest > least * LARGEST_SWING
        {
            println!("Inconclusive: F swung from {least:.0}/s to {greatest:.0}/s. Run it again on a quiet machine.");
            return ExitCode::from(2);
        }
        match self.table.misses() {
            0 => ExitCode::SUCCESS,
            missed => {
                println!("{missed} goals were missed.");
                ExitCode::FAILURE
            }
        }
    }
}

/// The middle one, or the mean of the middle two.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[count / 2],
        count => f64::midpoint(values[count / 2 - 1], values[count / 2]),
    }
}

#[expect(clippy::disallowed_methods, reason = "settings of the bench itself, not of the product")]
fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
