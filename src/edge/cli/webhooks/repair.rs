//! The verbs by which a person has deliveries sent again: one, those of an endpoint that failed, those that it did not get
//! while it was disabled. What they ask for is in the file before they say so; a verb that is interrupted has queued what
//! it counted, and the same call goes on.

use std::io::{self, IsTerminal, Write};

use anyhow::{anyhow, bail};
use serde::Serialize;

use super::delivery_args::{ResendArgs, WindowArgs};
use super::{Desk, refusal};
use crate::edge::cli::Exit;
use crate::edge::cli::print::Printer;
use crate::webhooks::recover::{self, Cursor, Lost, Window};
use crate::webhooks::{self, Error};

/// What became of one id.
#[derive(Serialize)]
struct Answer {
    id: String,
    queued: bool,
    what: &'static str,
}

pub(super) async fn resend(desk: &Desk, args: ResendArgs) -> anyhow::Result<Exit> {
    let mut printer = Printer::stdout(args.whose.printed);
    let mut is_refused = false;
    for id in args.ids {
        let (tenant, delivery) = (args.whose.tenant.clone(), id.clone());
        let (queued, what) = match desk.db.write(move |tx| webhooks::resend(tx, &tenant, &delivery)).await {
            Ok(()) => (true, "is sent once more, beside its schedule"),
            Err(Error::NotFound) => (false, "no such delivery"),
            Err(Error::EndpointDisabled) => (false, "its endpoint is disabled; activate that first"),
            Err(error) => return Err(error.into()),
        };
        is_refused |= !queued;
        let text = format!("{id} {what}");
        printer.one(&Answer { id, queued, what }, &text)?;
    }
    Ok(if is_refused { Exit::Failure } else { Exit::Ok })
}

/// How many wait now.
#[derive(Serialize)]
struct Queued {
    queued: usize,
}

pub(super) async fn queue(desk: &Desk, lost: Lost, args: WindowArgs) -> anyhow::Result<Exit> {
    let now = desk.db.clock().now();
    // What is made in this millisecond is asked for too.
    let until = args.until.map_or(now.saturating_add(1), |moment| moment.at(now));
    let window = Window { since: args.since.at(now), until };
    if window.since >= window.until {
        bail!("--since has to be before --until");
    }
    let mut progress = Progress::begin();
    let (mut queued, mut from) = (0, Some(Cursor::default()));
    while let Some(cursor) = from {
        let (tenant, id) = (args.whose.tenant.clone(), args.id.clone());
        let batch = match lost {
            Lost::Undelivered => desk.db.write(move |tx| recover::recover(tx, &tenant, &id, window, cursor)).await,
            Lost::Skipped => desk.db.write(move |tx| recover::replay_skipped(tx, &tenant, &id, window, cursor)).await,
        };
        let batch = match batch {
            Ok(batch) => batch,
            Err(Error::EndpointDisabled) => {
                return Err(anyhow!(
                    "the endpoint is disabled; `pillarbox webhooks endpoints activate {}` first",
                    args.id
                ));
            }
            Err(error) => return Err(refusal(error, &args.id, &args.whose)),
        };
        queued += batch.queued;
        from = batch.next;
        progress.tell(queued);
    }
    drop(progress);
    let text = match queued {
        0 => "there are none".to_owned(),
        1 => "1 delivery waits again".to_owned(),
        many => format!("{many} deliveries wait again"),
    };
    Printer::stdout(args.whose.printed).one(&Queued { queued }, &text)?;
    Ok(Exit::Ok)
}

/// How many there are so far, on one line of a terminal that is wiped at the end.
struct Progress {
    is_shown: bool,
}

impl Progress {
    fn begin() -> Self {
        Self { is_shown: io::stderr().is_terminal() }
    }

    /// A closed stderr is nobody who looks.
    fn tell(&mut self, queued: usize) {
        if self.is_shown && queued > 0 {
            let _ = write!(io::stderr(), "\r{queued} queued …");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}
