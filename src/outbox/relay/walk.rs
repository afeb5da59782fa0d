//! The way of a pass through what is due: fresh events by id, refused ones by when they are due, each page half of these
//! and half of those, so that neither keeps the other waiting. A pass goes past an event once.

use std::collections::HashSet;

use super::candidate::Candidate;
use super::settle::LONGEST_WAIT_MS;
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};
use crate::outbox::sql;

/// How much a page may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) rows: usize,
    /// Of data. One event alone may be larger.
    pub(super) bytes: usize,
}

/// What is taken of one order.
#[derive(Debug)]
pub(crate) struct Basket<'a> {
    aside: &'a HashSet<i64>,
    rows: usize,
    bytes: usize,
    taken: Vec<Candidate>,
    leaves: bool,
}

impl<'a> Basket<'a> {
    fn new(aside: &'a HashSet<i64>, size: Size) -> Self {
        Self { aside, rows: size.rows, bytes: size.bytes, taken: Vec::new(), leaves: false }
    }

    /// Whether the row of that id is to be handed over; one that was put aside is not.
    pub(crate) fn wants(&self, row: i64) -> bool {
        self.aside.is_empty() || !self.aside.contains(&row)
    }

    /// Whether nothing more goes in.
    pub(crate) fn is_full(&self) -> bool {
        self.rows == 0 || self.bytes == 0
    }

    /// Takes note of what does not go in.
    pub(crate) fn leave(&mut self) {
        self.leaves = true;
    }

    /// Whether something did not go in.
    pub(crate) fn has_left(&self) -> bool {
        self.leaves
    }

    /// Takes a row.
    pub(crate) fn put(&mut self, candidate: Candidate) {
        self.rows = self.rows.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(candidate.event.as_ref().map_or(0, |event| event.payload.len()));
        self.taken.push(candidate);
    }
}

/// In which order a candidate was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    Fresh,
    Retry,
    /// Due later than anything is put off: the clock was set back, or another program wrote that time. It is due now.
    Lost,
}

/// How far a pass has come in each order.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    fresh: i64,
    retry: (UnixMs, i64),
    lost: (UnixMs, i64),
    /// The last one was fresh: one that was refused comes first now, even if a transaction has time for one event only.
    was_fresh: bool,
}

/// What comes next.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) candidates: Vec<(Lane, Candidate)>,
    /// Nothing is due behind it.
    pub(super) is_last: bool,
}

impl Walk {
    pub(super) fn begin() -> Self {
        // No id is negative unless a program makes it so.
        Self { fresh: i64::MIN, retry: (i64::MIN, i64::MIN), lost: (i64::MIN, i64::MIN), was_fresh: true }
    }

    /// The next page. The walk stays where it is until it is told of what was handed over.
    pub(super) fn page(&self, tx: &Tx<'_>, aside: &HashSet<i64>, size: Size) -> Result<Page, StoreError> {
        let half = Size { rows: size.rows.div_ceil(2), bytes: size.bytes.div_ceil(2) };
        let mut retry = Basket::new(aside, half);
        sql::relay::take_retries(tx, self.retry, tx.now(), &mut retry)?;
        let mut lost = Basket::new(aside, Size { rows: retry.rows, bytes: retry.bytes });
        let latest = (tx.now().saturating_add(LONGEST_WAIT_MS), i64::MAX);
        sql::relay::take_retries(tx, self.lost.max(latest), i64::MAX, &mut lost)?;
        let left = Size { rows: lost.rows + size.rows - half.rows, bytes: lost.bytes + size.bytes - half.bytes };
        let mut fresh = Basket::new(aside, left);
        sql::relay::take_fresh(tx, self.fresh, &mut fresh)?;

        let is_last = !retry.leaves && !lost.leaves && !fresh.leaves;
        let again = retry.taken.into_iter().map(|one| (Lane::Retry, one));
        let again = again.chain(lost.taken.into_iter().map(|one| (Lane::Lost, one)));
        let fresh = fresh.taken.into_iter().map(|one| (Lane::Fresh, one));
        let candidates = if self.was_fresh { alternate(again, fresh) } else { alternate(fresh, again) };
        Ok(Page { candidates, is_last })
    }

    /// Goes past a row.
    pub(super) fn pass(&mut self, lane: Lane, candidate: &Candidate) {
        let due = (candidate.next_attempt_at.unwrap_or_default(), candidate.row);
        self.was_fresh = lane == Lane::Fresh;
        match lane {
            Lane::Fresh => self.fresh = candidate.row,
            Lane::Retry => self.retry = due,
            Lane::Lost => self.lost = due,
        }
    }
}

/// One of these, one of those, and what is left of either.
fn alternate<T>(these: impl Iterator<Item = T>, those: impl Iterator<Item = T>) -> Vec<T> {
    let (mut these, mut those) = (these.fuse(), those.fuse());
    let mut all = Vec::new();
    loop {
        let before = all.len();
        all.extend(these.next());
        all.extend(those.next());
        if all.len() == before {
            return all;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::alternate;

    #[test]
    fn two_orders_alternate_and_the_longer_one_goes_on_alone() {
        assert_eq!(alternate([1, 3].into_iter(), [2, 4, 5, 6].into_iter()), [1, 2, 3, 4, 5, 6]);
        assert_eq!(alternate([1, 2].into_iter(), std::iter::empty()), [1, 2]);
    }
}
