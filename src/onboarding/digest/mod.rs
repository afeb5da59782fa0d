//! Digests: a leader's numbers, at local noon, once a day.
//!
//! # What
//! From noon in `jobs.time_zone` on, each leader (somebody who has brought anybody) whom the bot can write to and who
//! wants it is sent the numbers of whom they brought.
//!
//! # States
//! A leader has had the digest of a local date, which is a row of `bot_digests_sent`, or not.
//!
//! # Guarantees
//! - One digest a leader and local date, also over restarts and another zone: `tests/it/digests.rs::a_restart_at_noon_sends_no_second`,
//!   `tests/it/digests.rs::a_changed_zone_sends_no_second_for_the_date`.
//! - What was not sent at noon is, as long as that day lasts, and not after it:
//!   `tests/it/digests.rs::a_start_in_the_evening_still_sends`, `tests/it/digests.rs::a_day_that_the_clock_jumped_over_is_not_made_up`.
//! - A leader whose digest fails holds up nobody: `tests/it/digests.rs::a_failing_leader_stops_nobody`.
//!
//! # Windows
//! None: the row and the queued message are one transaction
//! (`tests/it/crash_bulk.rs::reminders_and_digests_are_queued_once_through_every_kill`).
//!
//! # Not here
//! The cabinet, which shows the same numbers when it is asked for.

pub(crate) mod day;
pub(crate) mod sql;

use std::sync::Arc;

use chrono_tz::Tz;
use tokio_util::sync::CancellationToken;

use self::day::local_day;
use super::Error;
use super::content::{Content, Values};
use super::menu::{self, Metrics};
use super::sql::{Person, find_person_of};
use crate::chat::{self, Action, Button, Format, Keyboard, Kind, NewMessage};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{Db, StoreError, Tx};

/// Leaders of one read and of one write: few enough that whoever writes beside it does not notice.
const PAGE: usize = 20;
/// When those are tried again whose digest failed.
const AGAIN_MS: i64 = 600_000;

/// What a pass did.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Report {
    /// Digests queued.
    pub(crate) queued: u32,
    /// Leaders who have had theirs, do not want it, cannot be written to, or are not known to the bot.
    pub(crate) skipped: u32,
    /// Leaders whose digest failed.
    pub(crate) failed: u32,
    /// When the next pass is wanted besides the schedule.
    #[serde(skip)]
    pub(crate) next: Option<UnixMs>,
}

/// A digest that is to be queued.
#[derive(Clone, Copy, Debug)]
struct Due {
    leader_uid: i64,
    metrics: Metrics,
}

/// Some leaders, in their order.
#[derive(Debug, Default)]
struct Page {
    due: Vec<Due>,
    skipped: u32,
    failed: u32,
    /// The last one that was looked at; none if there are no more.
    last: Option<i64>,
}

/// What became of a page.
#[derive(Debug, Default)]
struct Written {
    queued: u32,
    skipped: u32,
    failed: u32,
    is_over: bool,
}

/// One pass.
///
/// # Errors
/// The store's; what was queued before stays queued.
pub(crate) async fn run_once(
    db: &Db,
    content: &Arc<Content>,
    zone: Tz,
    stop: &CancellationToken,
) -> Result<Report, StoreError> {
    let day = local_day(db.clock().now(), zone);
    if day.noon.is_some() {
        return Ok(Report { next: day.noon, ..Report::default() });
    }
    let date: Arc<str> = day.date.into();
    let (mut report, mut after) = (Report::default(), i64::MIN);
    while !stop.is_cancelled() {
        let of = Arc::clone(&date);
        let page = db.read(move |tx| next_page(tx, &of, after)).await?;
        report.skipped += page.skipped;
        report.failed += page.failed;
        if !page.due.is_empty() {
            let round = Round { content: Arc::clone(content), date: Arc::clone(&date), zone };
            let written = db.write(move |tx| round.write(tx, &page.due)).await?;
            report.queued += written.queued;
            report.skipped += written.skipped;
            report.failed += written.failed;
            if written.is_over {
                break;
            }
        }
        match page.last {
            Some(last) => after = last,
            None => break,
        }
    }
    metrics::counter!("pillarbox_digests_total", "outcome" => "queued").increment(u64::from(report.queued));
    metrics::counter!("pillarbox_digests_total", "outcome" => "failed").increment(u64::from(report.failed));
    report.next = (report.failed > 0).then(|| db.clock().now().saturating_add(AGAIN_MS));
    Ok(report)
}

/// The next leaders, and which of them a digest is due to.
fn next_page(tx: &Tx<'_>, date: &str, after: i64) -> Result<Page, StoreError> {
    let mut page = Page { last: Some(after), ..Page::default() };
    for _ in 0..PAGE {
        page.last = match page.last {
            Some(last) => sql::next_leader(tx, last)?,
            None => return Ok(page),
        };
        let Some(leader_uid) = page.last else { return Ok(page) };
        match find_due(tx, leader_uid, date) {
            Ok(Some(due)) => page.due.push(due),
            Ok(None) => page.skipped += 1,
            Err(error) if error.is_store_fault() => return Err(error),
            Err(error) => {
                page.failed += 1;
                tracing::warn!(leader.uid = leader_uid, %error, "a leader's numbers could not be read");
            }
        }
    }
    Ok(page)
}

fn find_due(tx: &Tx<'_>, leader_uid: i64, date: &str) -> Result<Option<Due>, StoreError> {
    if sql::is_sent(tx, leader_uid, date)? || find_wanting(tx, leader_uid)?.is_none() {
        return Ok(None);
    }
    Ok(Some(Due { leader_uid, metrics: menu::metrics(tx, leader_uid)? }))
}

/// The leader's card, if there is one and a digest may be sent to it.
fn find_wanting(tx: &Tx<'_>, leader_uid: i64) -> Result<Option<Person>, StoreError> {
    Ok(find_person_of(tx, leader_uid)?.filter(|leader| leader.optin_digest && leader.is_reachable))
}

struct Round {
    content: Arc<Content>,
    date: Arc<str>,
    zone: Tz,
}

impl Round {
    fn write(&self, tx: &Tx<'_>, due: &[Due]) -> Result<Written, StoreError> {
        // A pass that began before midnight would send yesterday's digest now, and today's at noon.
        if local_day(tx.now(), self.zone).date != *self.date {
            return Ok(Written { is_over: true, ..Written::default() });
        }
        let mut written = Written::default();
        for due in due {
            match tx.attempt(|| Error::Panicked, || self.queue(tx, due))? {
                Ok(true) => written.queued += 1,
                Ok(false) => written.skipped += 1,
                Err(error) => {
                    written.failed += 1;
                    tracing::warn!(leader.uid = due.leader_uid, %error, "a leader's digest could not be queued");
                }
            }
        }
        Ok(written)
    }

    /// Queues a digest; whether there was none, and it is still wanted.
    fn queue(&self, tx: &Tx<'_>, due: &Due) -> Result<bool, Error> {
        let Some(leader) = find_wanting(tx, due.leader_uid)? else { return Ok(false) };
        if !sql::insert_once(tx, due.leader_uid, &self.date, leader.telegram_id)? {
            return Ok(false);
        }
        let text = self.content.render(tx, "digest", leader.lang, &values(&due.metrics))?;
        let label = self.content.render(tx, "digest_button", leader.lang, &Values::none())?;
        let button = Button { text: label, action: Action::Data("+m:cabinet".to_owned()) };
        chat::enqueue(
            tx,
            &NewMessage {
                chat_id: leader.telegram_id,
                kind: Kind::Digest,
                text,
                format: Format::Html,
                keyboard: Keyboard(vec![vec![button]]),
                edit: None,
                dedup_key: format!("digest:{}:{}", due.leader_uid, self.date),
                due_at: None,
                fallback: None,
            },
        )?;
        Ok(true)
    }
}

fn values(metrics: &Metrics) -> Values {
    let mut values = Values::none();
    let Metrics { in_bot, watched, registered, nft } = *metrics;
    for (name, number) in [("in_bot", in_bot), ("watched", watched), ("registered", registered), ("nft", nft)] {
        values.set(name, &number.to_string());
    }
    values
}

/// Deletes up to `limit` digests from before `cutoff`; how many.
///
/// # Errors
/// The store's.
pub(crate) fn prune(tx: &Tx<'_>, cutoff: UnixMs, limit: i64) -> Result<usize, StoreError> {
    sql::delete_older(tx, cutoff, limit)
}
