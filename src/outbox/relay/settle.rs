//! What the relay does within a transaction: the inside consumers' work, the acceptances, and what becomes of the event,
//! in a savepoint for each event and for each consumer.

use super::candidate::Candidate;
use crate::kernel::retry::doubled;
use crate::kernel::store::{StoreError, Tx};
use crate::outbox::consumer::{Consumer, Inside, Refusal, Shape, StoredEvent};
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
    /// One outside was not asked, as it does not answer at present: no attempt was made.
    NotAsked,
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
    /// It is handed over again later, to those who refused it or were not asked.
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

/// Has the inside consumers do their work before those outside have answered, and notes who has accepted; what the others
/// of them answered, by their places, for [`settle`]. The inner error has taken back all of it.
///
/// # Errors
/// The store's, when the transaction as a whole no longer stands.
pub(super) fn settle_inside(
    tx: &Tx<'_>,
    consumers: &[Box<dyn Consumer>],
    candidate: &Candidate,
) -> Result<Result<Vec<(usize, Answer)>, Stuck>, StoreError> {
    let work = || {
        let Ok(event) = &candidate.event else { return Ok(Vec::new()) };
        let (mut acceptances, mut answered) = (candidate.acceptances.clone(), Vec::new());
        for (place, consumer) in open(consumers, candidate) {
            let Shape::Inside(inside) = consumer.shape() else { continue };
            match ask_inside(tx, inside, event, consumer.name())? {
                Answer::Accepted => acceptances.add(consumer.name(), tx.now()),
                answer => answered.push((place, answer)),
            }
        }
        if acceptances != candidate.acceptances {
            is_changed(sql::relay::note_acceptances(tx, candidate.row, acceptances.as_str())?)?;
        }
        Ok(answered)
    };
    tx.attempt(|| Stuck::Panicked, work)
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
    let (mut refusals, mut not_asked, mut is_busy) = (Vec::new(), Vec::new(), false);
    for (place, consumer) in open(consumers, candidate) {
        let known = answered.iter().find(|(at, _)| *at == place).map(|(_, answer)| *answer);
        let answer = match (known, consumer.shape()) {
            (Some(answer), _) => answer,
            (None, Shape::Inside(inside)) => ask_inside(tx, inside, event, consumer.name())?,
            // One that has no answer has been added since.
            (None, Shape::Outside(_)) => Answer::Busy,
        };
        match answer {
            Answer::Accepted => acceptances.add(consumer.name(), tx.now()),
            Answer::Refused(code) => refusals.push((consumer.name(), code)),
            Answer::NotAsked => not_asked.push((consumer.name(), "not_asked")),
            Answer::Busy => is_busy = true,
        }
    }
    let fate = if !refusals.is_empty() {
        put_off(tx, candidate, acceptances.as_str(), &[&*refusals, &*not_asked].concat())?
    } else if is_busy {
        if acceptances != candidate.acceptances {
            is_changed(sql::relay::note_acceptances(tx, candidate.row, acceptances.as_str())?)?;
        }
        Fate::Waits
    } else if !not_asked.is_empty() {
        wait(tx, candidate, acceptances.as_str(), &not_asked)?
    } else {
        is_changed(sql::relay::publish(tx, candidate.row, acceptances.as_str())?)?;
        Fate::Published
    };
    Ok(Settled { fate, refusals })
}

/// The consumers that have not accepted, with their places.
fn open<'c>(
    consumers: &'c [Box<dyn Consumer>],
    candidate: &'c Candidate,
) -> impl Iterator<Item = (usize, &'c dyn Consumer)> {
    let all = consumers.iter().map(Box::as_ref).enumerate();
    all.filter(|(_, consumer)| !candidate.acceptances.has(consumer.name()))
}

fn ask_inside(
    tx: &Tx<'_>,
    inside: &dyn Inside,
    event: &StoredEvent,
    consumer: &'static str,
) -> Result<Answer, StoreError> {
    Ok(read_answer(tx.attempt(|| Refusal::Code(PANICKED), || inside.accept(tx, event))?, event, consumer))
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
    let pause = doubled(FIRST_WAIT_MS, attempts - 1, LONGEST_WAIT_MS);
    let next = (attempts < MOST_ATTEMPTS).then(|| tx.now().saturating_add(pause));
    let (row, last_error) = (candidate.row, said(refusals));
    let put_off = PutOff { row, acceptances, attempts, next_attempt_at: next, last_error: &last_error };
    is_changed(sql::relay::put_off(tx, &put_off)?)?;
    Ok(if next.is_some() { Fate::PutOff } else { Fate::Failed })
}

/// Nobody has refused it: it is due again when the consumer may be asked again, with as many attempts as before.
fn wait(
    tx: &Tx<'_>,
    candidate: &Candidate,
    acceptances: &str,
    not_asked: &[(&'static str, &'static str)],
) -> Result<Fate, Stuck> {
    let (row, attempts, last_error) = (candidate.row, candidate.attempts.max(0), said(not_asked));
    let next_attempt_at = Some(tx.now().saturating_add(FIRST_WAIT_MS));
    is_changed(sql::relay::put_off(
        tx,
        &PutOff { row, acceptances, attempts, next_attempt_at, last_error: &last_error },
    )?)?;
    Ok(Fate::PutOff)
}

fn said(answers: &[(&'static str, &'static str)]) -> String {
    let each: Vec<String> = answers.iter().map(|(consumer, code)| format!("{consumer}: {code}")).collect();
    let mut said = each.join("; ");
    said.truncate(said.floor_char_boundary(LONGEST_ERROR));
    said
}

/// The row was read in this very transaction: that nothing was changed is another program's trigger.
fn is_changed(changed: bool) -> Result<(), Stuck> {
    if changed { Ok(()) } else { Err(Stuck::Unchanged) }
}
