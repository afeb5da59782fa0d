//! `broadcast status --watch`: a bar on a terminal, a line for each change otherwise, until it is over or held.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::args::OneArgs;
use super::look::{self, BroadcastBody};
use crate::edge::cli::print::Printer;
use crate::edge::cli::{Exit, Form};
use crate::kernel::store::Db;
use crate::onboarding::broadcast::{Broadcast, State, report};

/// Between two looks, in real time.
const EVERY: Duration = Duration::from_millis(500);
/// Over how long the rate is measured.
const RATE_OVER: Duration = Duration::from_secs(10);

pub(super) async fn watch(db: &Db, one: OneArgs) -> anyhow::Result<Exit> {
    let mut printer = Printer::stdout(one.printed);
    let id = one.id;
    let (mut shown, mut rate, bar) = (None, Rate::default(), bar()?);
    loop {
        let broadcast = db.read(move |tx| report::load(tx, id)).await?;
        let is_over = !matches!(broadcast.state, State::Scheduled | State::Running) && broadcast.counts.queued == 0;
        match printer.form() {
            Form::Json if shown != Some((broadcast.state, broadcast.counts)) => {
                shown = Some((broadcast.state, broadcast.counts));
                printer.json(&BroadcastBody::from(broadcast))?;
                printer.flush()?;
            }
            Form::Json => {}
            Form::Table => draw(&bar, &broadcast, &mut rate),
        }
        if is_over {
            break;
        }
        tokio::time::sleep(EVERY).await;
    }
    if printer.form() == Form::Json {
        return Ok(Exit::Ok);
    }
    bar.finish_and_clear();
    drop(printer);
    look::status(db, one).await
}

fn bar() -> anyhow::Result<ProgressBar> {
    let bar = ProgressBar::new(0);
    bar.set_style(ProgressStyle::with_template("{prefix} {wide_bar} {pos}/{len} {msg}")?);
    Ok(bar)
}

fn draw(bar: &ProgressBar, broadcast: &Broadcast, rate: &mut Rate) {
    let counts = broadcast.counts;
    let left = counts.pending() + counts.queued;
    let done = counts.total - left;
    let per_second = rate.of(Instant::now(), done);
    bar.set_prefix(if broadcast.frozen_at.is_none() { "counting" } else { broadcast.state.as_str() });
    bar.set_length(counts.total.unsigned_abs());
    bar.set_position(done.unsigned_abs());
    bar.set_message(match remaining(left, per_second) {
        Some(eta) => format!("{per_second:.1}/s, {eta} s left"),
        None => format!("{per_second:.1}/s"),
    });
}

fn remaining(left: i64, per_second: f64) -> Option<u64> {
    let left = u32::try_from(left).ok()?;
    (per_second > 0.0).then(|| Duration::try_from_secs_f64(f64::from(left) / per_second).ok())?.map(|eta| eta.as_secs())
}

/// How fast it goes, over the last ten seconds.
#[derive(Default)]
struct Rate(VecDeque<(Instant, i64)>);

impl Rate {
    fn of(&mut self, now: Instant, done: i64) -> f64 {
        self.0.push_back((now, done));
        while self.0.len() > 2 && self.0.front().is_some_and(|(at, _)| now.duration_since(*at) > RATE_OVER) {
            self.0.pop_front();
        }
        let Some((at, before)) = self.0.front() else { return 0.0 };
        let seconds = now.duration_since(*at).as_secs_f64();
        let gone = u32::try_from(done - before).map(f64::from).unwrap_or_default();
        if seconds > 0.0 { gone / seconds } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_ten_seconds() {
        let (mut rate, start) = (Rate::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert!(rate.of(at(0), 0).abs() < 1e-9);
        assert!((rate.of(at(5), 100) - 20.0).abs() < 1e-9);
        for second in 6..=20 {
            rate.of(at(second), 100);
        }
        assert!(rate.of(at(21), 100).abs() < 1e-9, "nothing was sent lately");
        assert_eq!((remaining(100, 20.0), remaining(100, 0.0)), (Some(5), None));
    }
}
