//! `leads stats`: the leads in numbers, and what of their notifications needs looking after.

use serde::Serialize;

use crate::edge::cli::args::Printed;
use crate::edge::cli::print::{Printer, note, or_dash};
use crate::edge::cli::{Exit, Form};
use crate::kernel::store::{Db, StoreError};
use crate::leads::health::{self, COUNT_CAP, Health};
use crate::leads::inspect::{self, Day, Stats};

/// Both as they are printed.
#[derive(Serialize)]
struct StatsBody {
    /// The queue of notifications, with its alerts.
    queue: Health,
    #[serde(flatten)]
    stats: Stats,
}

pub(super) async fn stats(db: &Db, printed: Printed) -> anyhow::Result<Exit> {
    let (queue, stats) = db.read(|tx| Ok::<_, StoreError>((health::health(tx)?, inspect::stats(tx)?))).await?;
    let mut printer = Printer::stdout(printed);
    let body = StatsBody { queue, stats };
    match printer.form() {
        Form::Json => printer.json(&body)?,
        Form::Table => {
            printer.table(&["NOTIFICATION", "LEADS", "OLDEST", "AGE"], queues(&body.queue).into_iter())?;
            let StatsBody { queue, stats } = body;
            for (header, counts) in
                [("CRM", stats.by_status), ("PRIORITY", stats.by_priority), ("SOURCE", stats.by_source)]
            {
                printer.table(&[header, "LEADS"], counts.into_iter().map(|(name, n)| vec![name, n.to_string()]))?;
            }
            printer.table(&["DAY (UTC)", "CAME", "SENT", "FAILED"], stats.by_day.into_iter().map(day))?;
            for alert in queue.alerts {
                note(&format!("alert: {}", alert.as_str()));
            }
        }
    }
    printer.flush()?;
    Ok(Exit::Ok)
}

fn queues(health: &Health) -> Vec<Vec<String>> {
    let count = |n: i64| if n >= COUNT_CAP { format!("{n} or more") } else { n.to_string() };
    let row = |(status, queue): (crate::leads::NotificationStatus, &health::Queue)| {
        let age = queue.oldest_age_ms.map(|ms| format!("{} s", ms / 1000));
        vec![
            status.as_str().to_owned(),
            count(queue.count),
            or_dash(queue.oldest_at.as_deref()),
            or_dash(age.as_deref()),
        ]
    };
    health.queues().into_iter().map(row).collect()
}

fn day(day: Day) -> Vec<String> {
    vec![day.day, day.received.to_string(), day.sent.to_string(), day.failed.to_string()]
}
