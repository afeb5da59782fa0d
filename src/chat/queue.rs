//! Queueing, claiming and settling messages, each within the caller's transaction.
//!
//! A claim is fenced by its attempt number: whoever settles another attempt than the last changes nothing.

use std::collections::HashSet;
use std::time::Duration;

use super::addressee::{Addressee, Asked, Closed, End, Permit};
use super::kind::Kind;
use super::limiter::Pause;
use super::message::{Keyboard, NewMessage, Preview, Rendered};
use super::outcome::{FailureCode, Outcome};
use super::plain::plain_text;
use super::sql;
use super::sql::claim::Waiting;
use super::sql::settle::Fence;
use super::verdict::{Attempt, Change, Doubt, Verdict, decide};
use super::{Error, QUEUED};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

/// What became of queueing a message; the id either way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enqueued {
    /// It is queued.
    New(i64),
    /// One with its key was queued before, and nothing changed.
    Known(i64),
}

/// A message that this process may send now, once.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// The row.
    pub(crate) id: i64,
    /// What makes it one of its kind.
    pub(crate) dedup_key: String,
    /// What is sent.
    pub(crate) message: Rendered,
    /// What the policy looks at.
    pub(crate) attempt: Attempt,
}

/// What became of claiming a message.
#[derive(Clone, Debug)]
pub(crate) enum Claimed {
    /// It is ours.
    Message(Box<Claim>),
    /// It was closed without an attempt.
    Skipped {
        /// Its kind, for the count.
        kind: Kind,
        /// Why.
        code: FailureCode,
    },
    /// It may not go yet, and waits on without an attempt.
    PutOff,
    /// It is not there to be taken any more.
    Nothing,
}

/// An ended attempt, to be recorded.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    /// Which attempt.
    pub(crate) claim: Claim,
    /// How it ended.
    pub(crate) outcome: Outcome,
    /// The pauses that it caused.
    pub(crate) pauses: Vec<Pause>,
    /// The age from which a refused message is given up.
    pub(crate) give_up_after: Duration,
}

/// Queues a message in the caller's transaction, and wakes the sender once that is committed. A change of a message that
/// was not tried yet is cancelled by a newer change of the same one.
///
/// # Errors
/// [`Error::InvalidButton`] for a button that Telegram would not take; the store's.
pub(crate) fn enqueue(tx: &Tx<'_>, message: &NewMessage) -> Result<Enqueued, Error> {
    message.keyboard.check()?;
    let keyboard = (!message.keyboard.0.is_empty())
        .then(|| serde_json::to_string(&message.keyboard).expect("rows of strings are always JSON"));
    let fallback = message.fallback.as_ref().map(serde_json::Value::to_string);
    if let Some(id) = sql::insert_once(tx, message, &sql::NewJson { keyboard, fallback })? {
        if let Some(edit) = message.edit {
            // Ten taps on a menu are one change of it, not ten a second apart.
            sql::cancel_superseded(tx, message, edit, id)?;
        }
        tx.wake(QUEUED);
        return Ok(Enqueued::New(id));
    }
    Ok(Enqueued::Known(sql::load_id_by_key(tx, &message.dedup_key)?))
}

/// Claims a waiting message if it still is the head of its lane and its addressee still wants it.
pub(super) fn claim(tx: &Tx<'_>, addressee: &dyn Addressee, id: i64, lease: UnixMs) -> Result<Claimed, Error> {
    let Some(waiting) = sql::claim::find_claimable(tx, id)? else { return Ok(Claimed::Nothing) };
    let asked = Asked { chat_id: waiting.chat_id, kind: waiting.kind, dedup_key: &waiting.dedup_key };
    match addressee.permits(tx, &asked)? {
        Permit::Granted => {}
        Permit::OptedOut => return close_waiting(tx, addressee, &waiting, FailureCode::OptedOut),
        Permit::Unreachable => return close_waiting(tx, addressee, &waiting, FailureCode::Unreachable),
        Permit::NotYet(at) => {
            // Never to an instant that is over: the pass would meet it again at once, and again.
            sql::claim::put_off(tx, id, at.max(tx.now().saturating_add(1)))?;
            return Ok(Claimed::PutOff);
        }
    }
    let Some(keyboard) = read_keyboard(waiting.keyboard.as_deref()) else {
        // Left to wait it would hold its lane, and the pass, for ever.
        return close_waiting(tx, addressee, &waiting, FailureCode::ButtonInvalid);
    };
    sql::claim::mark_sending(tx, id, lease)?;
    let attempts = waiting.attempts + 1;
    Ok(Claimed::Message(Box::new(Claim::new(waiting, attempts, keyboard))))
}

/// Closes a message of which no attempt is made. Who does not want it is not told in another way either.
fn close_waiting(
    tx: &Tx<'_>,
    addressee: &dyn Addressee,
    waiting: &Waiting,
    code: FailureCode,
) -> Result<Claimed, Error> {
    let &Waiting { id, chat_id, kind, ref dedup_key, .. } = waiting;
    // Who cannot or will not be written to is passed over; what cannot be sent to anybody is undeliverable.
    let is_ours = code == FailureCode::ButtonInvalid;
    let (status, end) =
        if is_ours { ("undeliverable", End::Undeliverable(code)) } else { ("skipped", End::Skipped(code)) };
    sql::claim::close_waiting(tx, id, status, code)?;
    if code != FailureCode::OptedOut {
        fall_back(tx, addressee, id)?;
    }
    addressee.closed(tx, &Closed { id, chat_id, kind, dedup_key, end })?;
    Ok(Claimed::Skipped { kind, code })
}

/// Records how an attempt ended. `None` if it is not the attempt that the row waits for: then nothing changes.
pub(super) fn settle(tx: &Tx<'_>, addressee: &dyn Addressee, ended: &Ended) -> Result<Option<Verdict>, Error> {
    let claim = &ended.claim;
    let fence = Fence { id: claim.id, attempts: claim.attempt.attempts };
    let verdict = decide(&claim.attempt, &ended.outcome, ended.give_up_after, tx.now());
    keep_pauses(tx, &ended.pauses)?;
    let changed = match verdict {
        Verdict::Sent { message_id } => sql::settle::mark_sent(tx, fence, message_id)?,
        Verdict::Again { due_at, code, doubt, .. } => sql::settle::mark_again(tx, fence, due_at, code, count(doubt))?,
        Verdict::Undeliverable { code, .. } => sql::settle::close_claimed(tx, fence, "undeliverable", code, 0)?,
        Verdict::Unknown { code } => sql::settle::close_claimed(tx, fence, "unknown", code, 1)?,
    };
    if changed == 0 {
        return Ok(None);
    }
    follow_up(tx, addressee, claim, &verdict)?;
    // Another message of this lane may go now.
    tx.wake(QUEUED);
    Ok(Some(verdict))
}

/// Treats messages that were in flight when the process ended, or whose sender was lost, as attempts of unknown
/// outcome. Those in `in_hand` (id and attempt) are this process's own and are left alone, whatever the clock says.
pub(super) fn recover(
    tx: &Tx<'_>,
    addressee: &dyn Addressee,
    in_hand: &HashSet<(i64, i64)>,
) -> Result<Vec<(i64, Kind, Verdict)>, Error> {
    let mut verdicts = Vec::new();
    for waiting in sql::claim::void_sends(tx)? {
        let attempts = waiting.attempts;
        if in_hand.contains(&(waiting.id, attempts)) {
            continue;
        }
        let (id, kind) = (waiting.id, waiting.kind);
        let claim = Claim::new(waiting, attempts, Keyboard::default());
        let outcome = Outcome::Unknown { code: FailureCode::Crashed };
        let ended = Ended { claim, outcome, pauses: Vec::new(), give_up_after: Duration::ZERO };
        verdicts.extend(settle(tx, addressee, &ended)?.map(|verdict| (id, kind, verdict)));
    }
    Ok(verdicts)
}

impl Claim {
    fn new(waiting: Waiting, attempts: i64, keyboard: Keyboard) -> Self {
        let Waiting { id, chat_id, kind, text, format, edit, unknown_count, waiting_since, dedup_key, .. } = waiting;
        Self {
            id,
            dedup_key,
            message: Rendered { chat_id, text, format, keyboard, edit, preview: Preview::Usual },
            attempt: Attempt { kind, format, is_edit: edit.is_some(), attempts, unknown_count, waiting_since },
        }
    }
}

fn follow_up(tx: &Tx<'_>, addressee: &dyn Addressee, claim: &Claim, verdict: &Verdict) -> Result<(), Error> {
    let chat_id = claim.message.chat_id;
    match *verdict {
        Verdict::Again { change: Change::Chat(to), .. } => {
            sql::settle::move_chat(tx, chat_id, to)?;
            addressee.moved(tx, chat_id, to)?;
        }
        Verdict::Again { change: Change::Plain, .. } => {
            sql::settle::set_plain_text(tx, claim.id, &plain_text(&claim.message.text))?;
        }
        Verdict::Again { change: Change::Anew, .. } => {
            sql::settle::set_anew(tx, claim.id)?;
        }
        Verdict::Undeliverable { reason, .. } => {
            if let Some(reason) = reason {
                addressee.unreachable(tx, chat_id, reason)?;
            }
            fall_back(tx, addressee, claim.id)?;
        }
        Verdict::Sent { .. } | Verdict::Again { change: Change::None, .. } | Verdict::Unknown { .. } => {}
    }
    let end = match *verdict {
        Verdict::Sent { message_id } => End::Sent { message_id },
        Verdict::Undeliverable { code, .. } => End::Undeliverable(code),
        Verdict::Unknown { code } => End::Unknown(code),
        Verdict::Again { .. } => return Ok(()),
    };
    let (kind, dedup_key) = (claim.attempt.kind, claim.dedup_key.as_str());
    Ok(addressee.closed(tx, &Closed { id: claim.id, chat_id, kind, dedup_key, end })?)
}

fn keep_pauses(tx: &Tx<'_>, pauses: &[Pause]) -> Result<(), Error> {
    if !pauses.is_empty() {
        sql::settle::drop_ended_pauses(tx)?;
    }
    for pause in pauses {
        sql::settle::keep_pause(tx, *pause)?;
    }
    Ok(())
}

fn fall_back(tx: &Tx<'_>, addressee: &dyn Addressee, id: i64) -> Result<(), Error> {
    match sql::settle::take_fallback(tx, id)? {
        Some(fallback) => Ok(addressee.fall_back(tx, &fallback)?),
        None => Ok(()),
    }
}

fn read_keyboard(json: Option<&str>) -> Option<Keyboard> {
    json.map_or_else(|| Some(Keyboard::default()), |json| serde_json::from_str(json).ok())
}

const fn count(doubt: Doubt) -> i64 {
    match doubt {
        Doubt::MayHaveArrived => 1,
        Doubt::None => 0,
    }
}

/// Deletes up to `limit` messages that were closed before `cutoff`, whatever became of them; how many. Their keys are
/// forgotten with them: whoever queued one of them again would have it sent again.
///
/// # Errors
/// The store's.
pub(crate) fn prune(tx: &Tx<'_>, cutoff: UnixMs, limit: i64) -> Result<usize, StoreError> {
    sql::lists::delete_finished(tx, cutoff, limit)
}
