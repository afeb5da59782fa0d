//! What the relay does within a transaction: the inside consumers' work, the acceptances, and what becomes of the event,
//! in a savepoint for each event and for each consumer.

use super::candidate::Candidate;
use crate::kernel::retry::doubled;
use crate::kernel::store::{StoreError, Tx};
use crate::outbox::consumer::{Consumer, Refusal, Shape, StoredEvent};
use crate::outbox::sql;
use crate::outbox::sql::relay::PutOff;

/// After the first refusal: a consumer that stumbles is up again by then.
const FIRST_WAIT_MS: i64 = 30_000;
/// Between two attempts at most; the ten of them then take three hours, and no outage of an hour gives an event up.
pub(super) const LONGEST_WAIT_MS: i64 = 60 * 60 * 1000;
/// So many refused attempts, and the event is given up until a person retries it.
pub(super) const MOST_ATTEMPTS: i64 = 10;
/// As the schema has it.
const LONGEST_ERROR: usize = 500;

/// What an outside consumer answered to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Accepted,
    /// With its code.
    Refused(&'static str),
    /// The store was busy: no attempt was made.
    Busy,
}

/// What became of an event that was handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settled {
    pub(super) fate: Fate,
    /// Who refused it, with which code.
    pub(super) refusals: Vec<(&'static str, &'static str)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Every consumer has accepted it.
    Published,
    /// It is handed over again later, to those who refused it.
    PutOff,
    /// It was given up.
    Failed,
    /// No attempt was made at a consumer, and it stays due.
    Waits,
}

/// Why nothing could be written of an event.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stuck {
    #[error("the relay panicked")]
    Panicked,
    #[error("the row cannot be changed")]
    Unchanged,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Hands an event to those who have not accepted it, with what the outside ones among them have `answered` (by their
/// places), and writes what becomes of it. The inner error has taken back all of it.
///
/// # Errors
/// The store's, when the transaction as a whole no longer stands.
pub(super) fn settle(
    tx: &Tx<'_>,
    consumers: &[Box<dyn Consumer>],
    candidate: &Candidate,
    answered: &[(usize, Answer)],
) -> Result<Result<Settled, Stuck>, StoreError> {
    tx.attempt(|| Stuck::Panicked, || settle_one(tx, consumers, candidate, answered))
}

fn settle_one(
    tx: &Tx<'_>,
    consumers: &[Box<dyn Consumer>],
    candidate: &Candidate,
    answered: &[(usize, Answer)],
) -> Result<Settled, Stuck> {
    let event = match &candidate.event {
        Ok(event) => event,
        Err(code) => {
            let refusals = vec![("relay", *code)];
            return Ok(Settled { fate: put_off(tx, candidate, candidate.acceptances.as_str(), &refusals)?, refusals });
        }
    };
    let mut acceptances = candidate.acceptances.clone();
    let (mut refusals, mut is_busy) = (Vec::new(), false);
    for (place, consumer) in consumers.iter().enumerate().filter(|(_, one)| !candidate.acceptances.has(one.name())) {
        let answer = match consumer.shape() {
            Shape::Inside(inside) => {
                let accept = || inside.accept(tx, event);
                read_answer(tx.attempt(|| Refusal::Code(PANICKED), accept)?, event, consumer.name())
            }
            // One that was not asked has been added since.
            Shape::Outside(_) => {
                answered.iter().find(|(at, _)| *at == place).map_or(Answer::Busy, |(_, answer)| *answer)
            }
        };
        match answer {
            Answer::Accepted => acceptances.add(consumer.name(), tx.now()),
            Answer::Refused(code) => refusals.push((consumer.name(), code)),
            Answer::Busy => is_busy = true,
        }
    }
    let fate = match (refusals.is_empty(), is_busy) {
        (true, false) => {
            is_changed(sql::relay::publish(tx, candidate.row, acceptances.as_str())?)?;
            Fate::Published
        }
        (true, true) => {
            if acceptances != candidate.acceptances {
                is_changed(sql::relay::note_acceptances(tx, candidate.row, acceptances.as_str())?)?;
            }
            Fate::Waits
        }
        (false, _) => put_off(tx, candidate, acceptances.as_str(), &refusals)?,
    };
    Ok(Settled { fate, refusals })
}

/// The code of a consumer that panics.
pub(super) const PANICKED: &str = "panicked";

/// What a consumer's result is to the relay.
pub(super) fn read_answer(result: Result<(), Refusal>, event: &StoredEvent, consumer: &'static str) -> Answer {
    let error = match result {
        Ok(()) => return Answer::Accepted,
        Err(Refusal::Code(code)) => return Answer::Refused(code),
        Err(Refusal::Store(error)) => error,
    };
    if error.is_store_fault() {
        return Answer::Busy;
    }
    tracing::warn!(event.id = event.event_id, consumer, %error, "a consumer could not write what an event asks for");
    Answer::Refused(if matches!(error, StoreError::Constraint(_)) { "constraint" } else { "store" })
}

fn put_off(
    tx: &Tx<'_>,
    candidate: &Candidate,
    acceptances: &str,
    refusals: &[(&'static str, &'static str)],
) -> Result<Fate, Stuck> {
    // Another program may have written any number.
    let attempts = candidate.attempts.max(0).saturating_add(1);
    let wait = doubled(FIRST_WAIT_MS, attempts - 1, LONGEST_WAIT_MS);
    let next = (attempts < MOST_ATTEMPTS).then(|| tx.now().saturating_add(wait));
    let said: Vec<String> = refusals.iter().map(|(consumer, code)| format!("{consumer}: {code}")).collect();
    let mut last_error = said.join("; ");
    last_error.truncate(last_error.floor_char_boundary(LONGEST_ERROR));
    let row = candidate.row;
    let put_off = PutOff { row, acceptances, attempts, next_attempt_at: next, last_error: &last_error };
    is_changed(sql::relay::put_off(tx, &put_off)?)?;
    Ok(if next.is_some() { Fate::PutOff } else { Fate::Failed })
}

/// The row was read in this very transaction: that nothing was changed is another program's trigger.
fn is_changed(changed: bool) -> Result<(), Stuck> {
    if changed { Ok(()) } else { Err(Stuck::Unchanged) }
}
