//! What became of served events: processed, or failed and to be tried again.
//!
//! Idempotent: an id already in its state counts under that state and changes nothing; processed never reverts.

use std::collections::BTreeSet;

use super::{BACKOFF_BASE, ERROR_LENGTH, MAX_ATTEMPTS, sql};
use crate::kernel::clock::UnixMs;
use crate::kernel::contract::BotEventType;
use crate::kernel::retry;
use crate::kernel::store::{StoreError, Tx};

/// An acknowledgement, as the contract's `POST /bot/events/ack` carries it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ack {
    pub(crate) processed: Vec<i64>,
    pub(crate) retry: Vec<Retry>,
}

/// An event whose handling failed.
#[derive(Clone, Debug)]
pub(crate) struct Retry {
    pub(crate) id: i64,
    pub(crate) error: Option<String>,
}

/// How many ids are now in which state.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Acknowledged {
    pub(crate) processed: u64,
    pub(crate) retried: u64,
    pub(crate) abandoned: u64,
    pub(crate) dead_lettered: u64,
    pub(crate) unknown: u64,
    /// Which have just become dead letters, for the log line that each is owed.
    #[serde(skip)]
    pub(crate) newly_dead: Vec<i64>,
    /// Which have just been abandoned.
    #[serde(skip)]
    pub(crate) newly_abandoned: Vec<i64>,
}

impl Acknowledged {
    /// Says what was given up, once, after the commit.
    pub(crate) fn report(&self) {
        for id in &self.newly_dead {
            tracing::error!(event.id = id, "[bot-outbox][DEAD-LETTER] a registered event failed {MAX_ATTEMPTS} times");
        }
        for id in &self.newly_abandoned {
            tracing::warn!(event.id = id, "an event failed {MAX_ATTEMPTS} times and was abandoned");
        }
        metrics::counter!("pillarbox_bot_events_dead_lettered_total").increment(self.newly_dead.len() as u64);
        metrics::counter!("pillarbox_bot_events_abandoned_total").increment(self.newly_abandoned.len() as u64);
    }

    /// Counts another acknowledgement into this one.
    pub(crate) fn add(&mut self, other: Self) {
        self.processed += other.processed;
        self.retried += other.retried;
        self.abandoned += other.abandoned;
        self.dead_lettered += other.dead_lettered;
        self.unknown += other.unknown;
        self.newly_dead.extend(other.newly_dead);
        self.newly_abandoned.extend(other.newly_abandoned);
    }

    fn count(&mut self, state: State) {
        match state {
            State::Open { .. } => self.retried += 1,
            State::Handled => self.processed += 1,
            State::Abandoned => self.abandoned += 1,
            State::Dead => self.dead_lettered += 1,
        }
    }
}

/// Where an event stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Open { attempts: i64, next_retry_at: Option<UnixMs>, event_type: String },
    Handled,
    Abandoned,
    Dead,
}

/// Records what became of the events of a page.
///
/// # Errors
/// The store's.
pub(crate) fn acknowledge(tx: &Tx<'_>, ack: &Ack) -> Result<Acknowledged, StoreError> {
    let mut done = Acknowledged::default();
    let processed: BTreeSet<i64> = ack.processed.iter().copied().collect();
    let closed: BTreeSet<i64> = sql::close_all_handled(tx, &processed)?.into_iter().collect();
    done.processed += closed.len() as u64;
    for id in processed.difference(&closed) {
        match sql::find_state(tx, *id)? {
            Some(state) => done.count(state),
            None => done.unknown += 1,
        }
    }
    let mut failed = BTreeSet::new();
    for retry in &ack.retry {
        if !processed.contains(&retry.id) && failed.insert(retry.id) {
            done.add(put_off(tx, retry)?);
        }
    }
    Ok(done)
}

/// Closes an event whose effects are in this transaction. Whether it was open.
///
/// # Errors
/// The store's.
pub(crate) fn close_handled(tx: &Tx<'_>, id: i64) -> Result<bool, StoreError> {
    sql::close_handled(tx, id)
}

/// Whether an event is the first open one of its subject, as this transaction sees it.
///
/// # Errors
/// The store's.
pub(crate) fn is_head(tx: &Tx<'_>, id: i64) -> Result<bool, StoreError> {
    sql::is_head(tx, id)
}

/// Counts a failed attempt: the event waits, or is given up. A repeat while it waits changes nothing.
///
/// # Errors
/// The store's.
pub(crate) fn put_off(tx: &Tx<'_>, retry: &Retry) -> Result<Acknowledged, StoreError> {
    let mut done = Acknowledged::default();
    let (attempts, event_type) = match sql::find_state(tx, retry.id)? {
        None => {
            done.unknown += 1;
            return Ok(done);
        }
        Some(State::Open { attempts, next_retry_at, event_type }) if next_retry_at.is_none_or(|at| at <= tx.now()) => {
            (attempts.saturating_add(1), event_type)
        }
        Some(state) => {
            done.count(state);
            return Ok(done);
        }
    };
    let error = retry.error.as_deref().map(|text| text.chars().take(ERROR_LENGTH).collect::<String>());
    let failure = sql::Failure { id: retry.id, attempts, error: error.as_deref() };
    if attempts < MAX_ATTEMPTS {
        sql::put_off(tx, &failure, tx.now() + backoff_ms(attempts))?;
        done.retried += 1;
    } else if event_type == BotEventType::Registered.as_str() {
        sql::dead_letter(tx, &failure)?;
        done.dead_lettered += 1;
        done.newly_dead.push(retry.id);
    } else {
        sql::abandon(tx, &failure)?;
        done.abandoned += 1;
        done.newly_abandoned.push(retry.id);
    }
    Ok(done)
}

/// 60 s × 2^attempts: 120 s after the first failure (contract).
fn backoff_ms(attempts: i64) -> i64 {
    let base = i64::try_from(BACKOFF_BASE.as_millis()).unwrap_or(i64::MAX);
    retry::doubled(base, attempts, i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::backoff_ms;

    #[test]
    fn the_back_off_doubles_from_two_minutes() {
        let minutes: Vec<i64> = (1..10).map(|attempts| backoff_ms(attempts) / 60_000).collect();
        assert_eq!(minutes, [2, 4, 8, 16, 32, 64, 128, 256, 512]);
    }
}
