//! What a tenant can see: its deliveries, their journal, the test attempts of its endpoints. Lists are pages, newest
//! first, and each page looks at a bounded number of rows.

use std::cmp::Reverse;
use std::collections::VecDeque;

use super::attempt::Trigger;
use super::delivery::DeliveryStatus;
use super::endpoint::find_endpoint;
use super::page::{Page, page};
use super::response::ErrorClass;
use super::{Error, id, sql};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::Tx;
use crate::kernel::tenant::TenantId;

/// The longest page.
pub(crate) const LONGEST_PAGE: usize = 200;
/// Deliveries that are looked at for one page, of all endpoints together.
const LOOKED_AT: usize = 5_000;
/// Deliveries of an endpoint that are read at once, at most.
const LONGEST_READ: usize = 256;
/// A list that begins at an instant ends at the first delivery that is this much older: its rows are in the order in
/// which they were made, but for what a clock that was set back has mixed up.
const DISORDER_MS: i64 = 24 * 60 * 60 * 1000;

/// Which deliveries.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeliveryFilter {
    /// Only those to this endpoint.
    pub(crate) endpoint_id: Option<String>,
    /// Only those that stand there.
    pub(crate) status: Option<DeliveryStatus>,
    /// Only those of events of this type.
    pub(crate) event_type: Option<String>,
    /// Only those that were made then or later.
    pub(crate) since: Option<UnixMs>,
    /// Only those that were made before.
    pub(crate) until: Option<UnixMs>,
}

/// A delivery as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Delivery {
    /// Its row: where a page of a list ends.
    pub(crate) row: i64,
    /// Its id, `dlv_…`.
    pub(crate) id: String,
    /// The event.
    pub(crate) event_id: String,
    /// The event's type.
    pub(crate) event_type: String,
    /// Where it goes.
    pub(crate) endpoint_id: String,
    /// Where it stands.
    pub(crate) status: DeliveryStatus,
    /// Attempts that were begun.
    pub(crate) attempts: i64,
    /// When it is tried again, if it waits.
    pub(crate) next_attempt_at: Option<UnixMs>,
    /// When a person asked for it, if that was not begun yet.
    pub(crate) resend_requested_at: Option<UnixMs>,
    /// The short code of why the last attempt failed.
    pub(crate) last_error: Option<String>,
    /// When the endpoint first had it.
    pub(crate) delivered_at: Option<UnixMs>,
    /// When it was made.
    pub(crate) created_at: UnixMs,
}

/// An attempt as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    /// Its number, from one.
    pub(crate) number: i64,
    /// Who caused it.
    pub(crate) trigger: Trigger,
    /// What came of it.
    pub(crate) seen: Seen,
}

/// A test attempt as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestAttempt {
    /// Its row: where a page of a list ends.
    pub(crate) row: i64,
    /// Its `webhook-id`.
    pub(crate) message_id: String,
    /// What came of it.
    pub(crate) seen: Seen,
}

/// What came of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// When it began.
    pub(crate) started_at: UnixMs,
    /// How long it took; unknown if it was cut off.
    pub(crate) duration_ms: Option<i64>,
    /// The status of the answer.
    pub(crate) http_status: Option<u16>,
    /// Why it did not deliver.
    pub(crate) error: Option<ErrorClass>,
    /// The first 4 KiB of the answer.
    pub(crate) response_body: Option<String>,
    /// The address that was dialled.
    pub(crate) resolved_ip: Option<String>,
}

/// A page of a tenant's deliveries, newest first: `after` is the row that the page before ended with. What no index
/// serves is looked for in a bounded number of rows: the page may be short, and say where the next one begins.
///
/// # Errors
/// [`Error::NotFound`] if there is no such endpoint; the store's.
pub(crate) fn deliveries(
    tx: &Tx<'_>,
    tenant: &TenantId,
    filter: &DeliveryFilter,
    after: Option<i64>,
    limit: usize,
) -> Result<Page<Delivery>, Error> {
    let limit = limit.clamp(1, LONGEST_PAGE);
    let before = after.unwrap_or(i64::MAX);
    let endpoints = match &filter.endpoint_id {
        Some(id) => vec![find_endpoint(tx, tenant, id)?.row],
        None => sql::lists::endpoints_of(tx, tenant)?,
    };
    let batch = (limit / endpoints.len().max(1) + 1).clamp(4, LONGEST_READ);
    let sources = endpoints.into_iter().map(|endpoint| Source::new(endpoint, before, batch)).collect();
    let mut merge = Merge { filter, sources };
    let mut found = Page { items: Vec::new(), next: None };
    for looked_at in 1.. {
        let Some(delivery) = merge.next(tx)? else { break };
        let row = delivery.row;
        if filter.since.is_some_and(|since| delivery.created_at < since.saturating_sub(DISORDER_MS)) {
            break;
        }
        if fits(filter, &delivery) {
            found.items.push(delivery);
        }
        if found.items.len() == limit || looked_at == LOOKED_AT {
            found.next = merge.next(tx)?.map(|_| row);
            break;
        }
    }
    Ok(found)
}

fn fits(filter: &DeliveryFilter, delivery: &Delivery) -> bool {
    filter.status.is_none_or(|status| status == delivery.status)
        && filter.event_type.as_ref().is_none_or(|event_type| *event_type == delivery.event_type)
        && filter.since.is_none_or(|since| delivery.created_at >= since)
        && filter.until.is_none_or(|until| delivery.created_at < until)
}

/// The deliveries of several endpoints in one order.
struct Merge<'a> {
    filter: &'a DeliveryFilter,
    sources: Vec<Source>,
}

/// The deliveries of one endpoint, newest first, a batch at a time.
struct Source {
    endpoint: i64,
    read: VecDeque<Delivery>,
    before: i64,
    batch: usize,
    is_exhausted: bool,
}

impl Merge<'_> {
    /// The newest that was not taken yet.
    fn next(&mut self, tx: &Tx<'_>) -> Result<Option<Delivery>, Error> {
        for source in &mut self.sources {
            source.fill(tx, self.filter.status)?;
        }
        self.sources.retain(|source| !source.read.is_empty());
        // There are few: a tenant has at most fifty.
        let newest = self.sources.iter_mut().min_by_key(|source| source.read.front().map(|one| Reverse(one.row)));
        Ok(newest.and_then(|source| source.read.pop_front()))
    }
}

impl Source {
    fn new(endpoint: i64, before: i64, batch: usize) -> Self {
        Self { endpoint, read: VecDeque::new(), before, batch, is_exhausted: false }
    }

    fn fill(&mut self, tx: &Tx<'_>, status: Option<DeliveryStatus>) -> Result<(), Error> {
        if !self.read.is_empty() || self.is_exhausted {
            return Ok(());
        }
        self.read = sql::lists::of_endpoint(tx, self.endpoint, status, self.before, self.batch)?.into();
        self.is_exhausted = self.read.len() < self.batch;
        self.before = self.read.back().map_or(self.before, |last| last.row);
        self.batch = (self.batch * 2).min(LONGEST_READ);
        Ok(())
    }
}

/// The delivery of that id.
///
/// # Errors
/// [`Error::NotFound`], the store's.
pub(crate) fn delivery(tx: &Tx<'_>, tenant: &TenantId, delivery_id: &str) -> Result<Delivery, Error> {
    let (row, _) = id::parse_delivery_id(delivery_id).ok_or(Error::NotFound)?;
    let found = sql::lists::find(tx, tenant, row)?.filter(|found| found.id == delivery_id);
    found.ok_or(Error::NotFound)
}

/// A page of a delivery's journal, in the order of the attempts: `after` is the number that the page before ended with.
///
/// # Errors
/// [`Error::NotFound`], the store's.
pub(crate) fn attempts(
    tx: &Tx<'_>,
    tenant: &TenantId,
    delivery_id: &str,
    after: Option<i64>,
    limit: usize,
) -> Result<Page<Attempt>, Error> {
    let limit = limit.clamp(1, LONGEST_PAGE);
    let delivery = delivery(tx, tenant, delivery_id)?;
    let found = sql::lists::attempts(tx, delivery.row, after.unwrap_or(0), limit + 1)?;
    Ok(page(found, limit, |attempt| attempt.number))
}

/// A page of an endpoint's test attempts, newest first: `after` is the row that the page before ended with.
///
/// # Errors
/// [`Error::NotFound`], the store's.
pub(crate) fn tests(
    tx: &Tx<'_>,
    tenant: &TenantId,
    endpoint_id: &str,
    after: Option<i64>,
    limit: usize,
) -> Result<Page<TestAttempt>, Error> {
    let limit = limit.clamp(1, LONGEST_PAGE);
    let endpoint = find_endpoint(tx, tenant, endpoint_id)?;
    let found = sql::lists::tests(tx, endpoint.row, after.unwrap_or(i64::MAX), limit + 1)?;
    Ok(page(found, limit, |test| test.row))
}
