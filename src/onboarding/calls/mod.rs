//! Writes to a remote backend: wanted in a transaction, sent after it, repeated until they are answered.
//!
//! **What.** [`request`] leaves a row of `backend_calls` in the caller's transaction. [`Calls::run_once`] claims what is
//! due, one row after the other, makes the call, and settles it.
//!
//! **States.** pending → sending → done · sending → pending (an attempt that failed, or whose outcome is unknown; 2 s,
//! 4 s, … up to ten minutes) · sending → failed (a day old, or unreadable).
//!
//! **Guarantees.**
//! - A call is wanted if and only if its transaction commits, and once per dedup key:
//!   `src/edge/backend/tests/calls.rs::a_notification_is_a_row_of_its_transaction_and_is_sent_once`.
//! - At least once, with the same dedup key each time, so that a backend that knows it stores once:
//!   `src/edge/backend/tests/calls.rs::a_lost_answer_is_repeated_with_the_same_key`.
//! - What was meant for one backend is not sent to another: `src/edge/backend/tests/calls.rs::another_backends_calls_wait`.
//!
//! - A binding is asked for once per question that was put to the person, and until it is answered:
//!   `src/edge/backend/tests/members.rs::the_bot_binds_at_another_backend`; a refusal is an answer:
//!   `src/edge/backend/tests/members.rs::a_refused_binding_is_an_answer_and_not_repeated`. The person is told by the
//!   transaction that records it.
//!
//! **Windows.** Between claim and settle the outcome is unknown: the row is due again at the next start, or after its
//! lease (`src/edge/backend/tests/calls.rs::a_call_in_flight_at_the_end_of_the_process_is_repeated`).
//!
//! **Not here.** HTTP (`edge/backend`). No order among calls: they are independent of each other.

mod sql;

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::Error;
use super::dialog::Dialog;
use super::dialog::bind::{Answer, answered};
use super::port::{BackendError, Remote};
use crate::kernel::clock::UnixMs;
use crate::kernel::contract::{Bound, WebNotification};
use crate::kernel::id;
use crate::kernel::retry;
use crate::kernel::store::{Db, StoreError, Tx, Wake};

/// Something is wanted of a remote backend.
pub(crate) const BACKEND_CALLS: Wake = Wake("backend-calls");

/// Calls of one pass.
const BATCH: u64 = 100;
/// Longer than a call can take, with its repetition in another form.
const LEASE_MS: i64 = 60_000;
/// The pause after a failed attempt is 2 s × 2^attempts, and this at most.
const LONGEST_PAUSE_MS: i64 = 600_000;
/// A call of this age is given up: what it tells is no news any more.
const GIVE_UP_AFTER_MS: i64 = 24 * 3_600_000;

/// What a backend is asked to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Have a member told something in the web cabinet (contract: `POST /bot/notification`).
    Notification(WebNotification),
    /// Bind a chat to a member (contract: `POST /bot/telegram/bind`).
    Bind(Bind),
}

/// A chat whose person has confirmed that it is this member's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bind {
    pub(crate) telegram_id: i64,
    pub(crate) uid: i64,
    /// When the person was asked: a confirmation of a later question is another call.
    pub(crate) prompted_at: UnixMs,
}

impl Call {
    /// The call of a row; `None` for one that another version wrote.
    fn parse(kind: &str, body: &str) -> Option<Self> {
        match kind {
            "notification" => serde_json::from_str(body).ok().map(Self::Notification),
            "bind" => serde_json::from_str(body).ok().map(Self::Bind),
            _ => None,
        }
    }
}

/// Wants a member of `source` to be told something; once per dedup key. One without a key is given one, since the call
/// may have to be repeated.
///
/// # Errors
/// The store's.
pub(crate) fn request(tx: &Tx<'_>, source: &str, notification: &WebNotification) -> Result<(), StoreError> {
    let key = notification.dedup_key.clone().unwrap_or_else(|| id::uuid_v7(tx.now()));
    let sent = WebNotification { dedup_key: Some(key.clone()), ..notification.clone() };
    let body = serde_json::to_string(&sent).expect("strings and a number are always JSON");
    insert(tx, &sql::NewCall { source, kind: "notification", body: &body, dedup_key: &key })
}

/// Wants a chat to be bound to a member of `source`; once per question that was put to the person.
///
/// # Errors
/// The store's.
pub(crate) fn request_bind(tx: &Tx<'_>, source: &str, telegram_id: i64, uid: i64) -> Result<(), StoreError> {
    let prompted_at = sql::find_prompted_at(tx, telegram_id, uid)?.unwrap_or_else(|| tx.now());
    let body = serde_json::to_string(&Bind { telegram_id, uid, prompted_at }).expect("numbers are always JSON");
    let key = format!("bind:{source}:{telegram_id}:{uid}:{prompted_at}");
    insert(tx, &sql::NewCall { source, kind: "bind", body: &body, dedup_key: &key })
}

fn insert(tx: &Tx<'_>, new: &sql::NewCall<'_>) -> Result<(), StoreError> {
    if sql::insert_once(tx, new)? == 1 {
        tx.wake(BACKEND_CALLS);
    }
    Ok(())
}

/// Deletes up to `limit` calls that were answered or given up before `cutoff`; how many. Their keys are forgotten with
/// them.
///
/// # Errors
/// The store's.
pub(crate) fn prune(tx: &Tx<'_>, cutoff: UnixMs, limit: i64) -> Result<usize, StoreError> {
    sql::delete_finished(tx, cutoff, limit)
}

/// What a pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Answered.
    pub(crate) done: u64,
    /// To be made again.
    pub(crate) again: u64,
    /// Given up.
    pub(crate) failed: u64,
    /// When the next pass has something to do, as far as is known; the wake [`BACKEND_CALLS`] may come before.
    pub(crate) next: Option<UnixMs>,
}

/// Makes the calls to one backend.
#[derive(Clone)]
pub(crate) struct Calls {
    db: Db,
    remote: Arc<dyn Remote>,
    /// Who tells people of the answers; nobody where there is no conversation.
    dialog: Option<Arc<Dialog>>,
}

/// How an attempt went.
enum Made {
    /// It was answered; with what, if it asked for a binding.
    Answered(Option<Bound>),
    Failed(BackendError),
    /// Another version wrote the row.
    Unreadable,
}

impl Made {
    fn of(called: Result<Option<Bound>, BackendError>) -> Self {
        called.map_or_else(Self::Failed, Self::Answered)
    }
}

/// What became of an attempt.
enum Settled {
    Done,
    Again,
    Failed,
}

impl Calls {
    pub(crate) fn new(db: Db, remote: Arc<dyn Remote>, dialog: Option<Arc<Dialog>>) -> Self {
        Self { db, remote, dialog }
    }

    /// Makes what is due, until nothing is, a hundred are made, `stop` is cancelled, or the backend as a whole does not
    /// answer: then the next call would only fail too.
    ///
    /// # Errors
    /// The store's.
    pub(crate) async fn run_once(&self, stop: &CancellationToken) -> Result<Report, StoreError> {
        let mut report = Report::default();
        if self.recover().await?.is_none_or(|due| due > self.db.clock().now()) {
            return Ok(Report { next: self.next().await?, ..report });
        }
        while report.done + report.again + report.failed < BATCH && !stop.is_cancelled() {
            let source = self.remote.source().to_owned();
            let Some(claim) = self.db.settle(move |tx| sql::claim_due(tx, &source, tx.now() + LEASE_MS)).await? else {
                break;
            };
            let call = Call::parse(&claim.kind, &claim.body);
            let made = match &call {
                Some(call) => Made::of(self.remote.call(call).await),
                None => Made::Unreadable,
            };
            let is_everybodys = matches!(made, Made::Failed(BackendError::Unreachable(_) | BackendError::Unauthorized));
            let pause_ends = self.db.clock().now() + pause_ms(claim.attempts);
            match self.settle(claim, call, made).await? {
                Settled::Done => report.done += 1,
                Settled::Again => report.again += 1,
                Settled::Failed => report.failed += 1,
            }
            if is_everybodys {
                return Ok(Report { next: Some(pause_ends), ..report });
            }
        }
        Ok(Report { next: self.next().await?, ..report })
    }

    /// Makes calls due again whose sender was lost, and says when the first is due. An idle look writes nothing.
    async fn recover(&self) -> Result<Option<UnixMs>, StoreError> {
        let source = self.remote.source().to_owned();
        if self.db.read(move |tx| sql::has_lost(tx, &source)).await? {
            let source = self.remote.source().to_owned();
            self.db.settle(move |tx| sql::release_lost(tx, &source)).await?;
        }
        self.next().await
    }

    async fn next(&self) -> Result<Option<UnixMs>, StoreError> {
        let source = self.remote.source().to_owned();
        self.db.read(move |tx| sql::next_due(tx, &source)).await
    }

    /// Records how an attempt ended, and tells the person of it who waits for the answer.
    async fn settle(&self, claim: sql::Claim, call: Option<Call>, made: Made) -> Result<Settled, StoreError> {
        let sql::Claim { id, attempts, created_at, .. } = claim;
        let fence = sql::Fence { id, attempts };
        let dialog = self.dialog.clone();
        let (code, is_readable) = match made {
            Made::Answered(bound) => {
                let answered = move |tx: &Tx<'_>| match sql::mark_done(tx, fence)? {
                    1 => tell(tx, dialog.as_deref(), call.as_ref(), bound.map(Answer::Is)),
                    _ => Ok(()),
                };
                self.db.settle(answered).await?;
                count("done");
                return Ok(Settled::Done);
            }
            Made::Failed(error) => (error.code().to_owned(), true),
            Made::Unreadable => ("unreadable".to_owned(), false),
        };
        let stored = code.clone();
        let failed = move |tx: &Tx<'_>| {
            let is_given_up = !is_readable || tx.now() - created_at >= GIVE_UP_AFTER_MS;
            if !is_given_up {
                sql::put_off(tx, fence, tx.now() + pause_ms(attempts), &stored)?;
            } else if sql::give_up(tx, fence, &stored)? == 1 {
                tell(tx, dialog.as_deref(), call.as_ref(), Some(Answer::None))?;
            }
            Ok::<_, StoreError>(is_given_up)
        };
        if self.db.settle(failed).await? {
            tracing::error!(call.id = id, attempts, code, "a call to the remote backend was given up");
            count("failed");
            return Ok(Settled::Failed);
        }
        if attempts == 1 {
            tracing::warn!(call.id = id, code, "a call to the remote backend failed and is made again");
        }
        count("again");
        Ok(Settled::Again)
    }
}

/// Tells the person who waits for it what came of a binding. The answer counts although it could not be told: the
/// backend would give the same again.
fn tell(tx: &Tx<'_>, dialog: Option<&Dialog>, call: Option<&Call>, answer: Option<Answer>) -> Result<(), StoreError> {
    let (Some(dialog), Some(Call::Bind(bind)), Some(answer)) = (dialog, call, answer) else { return Ok(()) };
    let told = tx.attempt(|| Error::Panicked, || answered(tx, dialog, bind.telegram_id, bind.uid, answer))?;
    if let Err(error) = told {
        tracing::error!(%error, "the answer to a binding was recorded and could not be told");
    }
    Ok(())
}

fn count(outcome: &'static str) {
    metrics::counter!("pillarbox_backend_calls_total", "outcome" => outcome).increment(1);
}

/// The pause after the attempt of this number.
fn pause_ms(attempts: i64) -> i64 {
    retry::doubled(1_000, attempts, LONGEST_PAUSE_MS)
}

#[cfg(test)]
mod tests {
    use super::{Call, pause_ms};

    #[test]
    fn the_pause_doubles_from_two_seconds_to_ten_minutes() {
        let seconds: Vec<i64> = (1..12).map(|attempts| pause_ms(attempts) / 1_000).collect();
        assert_eq!(seconds, [2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]);
        assert_eq!(pause_ms(i64::MAX), 600_000);
    }

    #[test]
    fn a_row_of_another_version_is_not_guessed_at() {
        assert_eq!(Call::parse("bind", "{}"), None);
        assert_eq!(Call::parse("notification", r#"{"magnetUid":7}"#), None);
    }
}
