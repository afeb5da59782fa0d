//! What an operator or a tenant sees of events: lists by page, one event whole.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::{Error, sql};
use crate::kernel::clock::{UnixMs, rfc3339};
use crate::kernel::store::{StoreError, Tx};
use crate::kernel::tenant::TenantId;

/// The most events that one page holds.
pub(crate) const LONGEST_PAGE: i64 = 200;

/// Where an event stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EventStatus {
    /// Not every consumer has accepted it yet.
    Pending,
    /// Every consumer has.
    Published,
    /// Given up after ten refusals, until a person retries it.
    Failed,
}

impl EventStatus {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Pending, Self::Published, Self::Failed];

    /// The word on the wire.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Published => "published",
            Self::Failed => "failed",
        }
    }

    /// The status of a row with these times.
    pub(super) fn of(published_at: Option<UnixMs>, failed_at: Option<UnixMs>) -> Self {
        match (published_at, failed_at) {
            (_, Some(_)) => Self::Failed,
            (Some(_), None) => Self::Published,
            (None, None) => Self::Pending,
        }
    }

    /// The status of that word.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

/// Which events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EventFilter {
    /// Only those that stand there.
    pub(crate) status: Option<EventStatus>,
    /// Only those of exactly this type.
    pub(crate) event_type: Option<String>,
}

/// A place in a list, to go on from; each order of lists has its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cursor {
    /// In the order of ids: behind this one. Bytes, since another program may have written any.
    Id(Vec<u8>),
    /// In the order of due times: behind this row, which is due then, or at once.
    Due(Option<UnixMs>, i64),
}

impl Cursor {
    /// What [`Cursor`] was shown as; `None` if it is no such text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (kind, rest) = bytes.split_first()?;
        match kind {
            b'i' => Some(Self::Id(rest.to_vec())),
            b'd' => {
                let (due, row) = std::str::from_utf8(rest).ok()?.split_once(' ')?;
                let due = if due.is_empty() { None } else { Some(due.parse().ok()?) };
                Some(Self::Due(due, row.parse().ok()?))
            }
            _ => None,
        }
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = match self {
            Self::Id(id) => [b"i", id.as_slice()].concat(),
            Self::Due(due, row) => {
                format!("d{} {row}", due.map(|due| due.to_string()).unwrap_or_default()).into_bytes()
            }
        };
        f.write_str(&URL_SAFE_NO_PAD.encode(bytes))
    }
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page<T> {
    /// What is on it. Fewer than asked for, even none, do not mean that there are no more.
    pub(crate) items: Vec<T>,
    /// Where the next one begins; `None` at the end.
    pub(crate) next: Option<Cursor>,
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Aggregate {
    /// The kind.
    #[serde(rename = "type")]
    pub(crate) aggregate_type: String,
    /// The id.
    pub(crate) id: String,
}

/// An event as it is listed: everything but its data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct EventRow {
    /// Its id.
    pub(crate) event_id: String,
    /// The dotted type.
    #[serde(rename = "type")]
    pub(crate) event_type: String,
    /// The version of its fields.
    pub(crate) version: i64,
    /// What it is about.
    pub(crate) aggregate: Aggregate,
    /// When it happened.
    #[serde(serialize_with = "instant")]
    pub(crate) occurred_at: UnixMs,
    /// When it was stored.
    #[serde(serialize_with = "instant")]
    pub(crate) created_at: UnixMs,
    /// Where it stands.
    pub(crate) status: EventStatus,
    /// How often a consumer has refused it.
    pub(crate) attempts: i64,
    /// When it is handed over again, if that has a time.
    #[serde(serialize_with = "instant_or_null")]
    pub(crate) next_attempt_at: Option<UnixMs>,
    /// Who refused it last, and why: `consumer: code`.
    pub(crate) last_error: Option<String>,
    /// When the last consumer had accepted it.
    #[serde(serialize_with = "instant_or_null")]
    pub(crate) published_at: Option<UnixMs>,
    /// When it was given up.
    #[serde(serialize_with = "instant_or_null")]
    pub(crate) failed_at: Option<UnixMs>,
    /// Which consumers have accepted it, and when.
    #[serde(serialize_with = "instants")]
    pub(crate) acceptances: BTreeMap<String, UnixMs>,
}

/// An event whole.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct WholeEvent {
    /// Everything else.
    #[serde(flatten)]
    pub(crate) event: EventRow,
    /// The JSON text that came.
    pub(crate) data: Box<RawValue>,
}

/// Rows that one page looks at, at most: filters that no index serves answer a short page and where to go on.
const LOOKED_AT: usize = 1000;

/// With so many pending events of all tenants together, those of one are looked for among its own, by id: what is due is
/// in one order for all, and a tenant would go through the others' backlog.
const MOST_BY_DUE: i64 = 10 * LOOKED_AT as i64;

/// A page that is being filled, row by row.
#[derive(Debug)]
pub(super) struct Gathering<'f> {
    tenant: &'f TenantId,
    filter: &'f EventFilter,
    /// How many items are still wanted, and how many rows may still be looked at.
    wanted: usize,
    looks: usize,
    items: Vec<(i64, EventRow)>,
    last: Option<Cursor>,
    leaves: bool,
}

impl<'f> Gathering<'f> {
    pub(super) fn new(tenant: &'f TenantId, filter: &'f EventFilter, limit: i64) -> Self {
        let wanted = usize::try_from(limit.clamp(1, LONGEST_PAGE)).unwrap_or(1);
        Self { tenant, filter, wanted, looks: LOOKED_AT, items: Vec::new(), last: None, leaves: false }
    }

    /// Whether the row that has come may be looked at; if not, the page ends before it.
    pub(super) fn goes_on(&mut self) -> bool {
        self.leaves = self.wanted == 0 || self.looks == 0;
        !self.leaves
    }

    /// Whether a row is of the tenant whose events these are.
    pub(super) fn is_of(&self, tenant: &[u8]) -> bool {
        tenant == self.tenant.as_str().as_bytes()
    }

    /// Takes a row; the event of one that is the tenant's.
    pub(super) fn take(&mut self, row: i64, cursor: Cursor, event: Option<EventRow>) {
        self.looks -= 1;
        self.last = Some(cursor);
        let EventFilter { status, event_type } = self.filter;
        let is_wanted = |event: &EventRow| {
            status.is_none_or(|status| status == event.status)
                && event_type.as_ref().is_none_or(|wanted| *wanted == event.event_type)
        };
        if let Some(event) = event.filter(is_wanted) {
            self.wanted -= 1;
            self.items.push((row, event));
        }
    }

    /// Whether the page is full, or has looked at enough.
    pub(super) fn has_left(&self) -> bool {
        self.leaves
    }

    /// The rows and the page.
    pub(super) fn end(self) -> Page<(i64, EventRow)> {
        Page { items: self.items, next: self.last.filter(|_| self.leaves) }
    }
}

/// A page of a tenant's events by id, the newest first; the pending ones by when they are due, unless very many are
/// pending. A list keeps to the order in which it was begun.
///
/// # Errors
/// [`Error::Invalid`] for a cursor of another list; the store's.
pub(crate) fn events(
    tx: &Tx<'_>,
    tenant: &TenantId,
    filter: &EventFilter,
    after: Option<&Cursor>,
    limit: i64,
) -> Result<Page<EventRow>, Error> {
    let mut gathering = Gathering::new(tenant, filter, limit);
    match filter.status {
        Some(EventStatus::Pending) if is_by_due(tx, after)? => gather_pending(tx, due_after(after)?, &mut gathering)?,
        Some(EventStatus::Failed) => sql::lists::gather_failed(tx, tenant, id_after(after)?, &mut gathering)?,
        Some(EventStatus::Pending | EventStatus::Published) | None => {
            sql::lists::gather_by_id(tx, tenant, id_after(after)?, &mut gathering)?;
        }
    }
    let Page { items, next } = gathering.end();
    Ok(Page { items: items.into_iter().map(|(_, event)| event).collect(), next })
}

fn is_by_due(tx: &Tx<'_>, after: Option<&Cursor>) -> Result<bool, StoreError> {
    match after {
        Some(Cursor::Due(..)) => Ok(true),
        Some(Cursor::Id(_)) => Ok(false),
        None => Ok(sql::health::pending(tx, MOST_BY_DUE)? < MOST_BY_DUE),
    }
}

/// Those that nobody has refused come first: they are due at once.
fn gather_pending(
    tx: &Tx<'_>,
    (due, row): (Option<UnixMs>, i64),
    gathering: &mut Gathering<'_>,
) -> Result<(), StoreError> {
    let refused = match due {
        Some(due) => (due, row),
        None => {
            sql::lists::gather_fresh(tx, row, gathering)?;
            (i64::MIN, i64::MIN)
        }
    };
    if gathering.has_left() {
        return Ok(());
    }
    sql::lists::gather_refused(tx, refused, gathering)
}

const OTHER_LIST: &str = "must be the `next` of a page of the same list";

pub(super) fn id_after(after: Option<&Cursor>) -> Result<Option<&[u8]>, Error> {
    match after {
        None => Ok(None),
        Some(Cursor::Id(id)) => Ok(Some(id)),
        Some(Cursor::Due(..)) => Err(Error::invalid_request("after", OTHER_LIST)),
    }
}

fn due_after(after: Option<&Cursor>) -> Result<(Option<UnixMs>, i64), Error> {
    match after {
        None => Ok((None, i64::MIN)),
        Some(Cursor::Due(due, row)) => Ok((*due, *row)),
        Some(Cursor::Id(_)) => Err(Error::invalid_request("after", OTHER_LIST)),
    }
}

/// A tenant's event with its data; `null` for data that is no JSON, which only a program with the checks switched off
/// can write.
///
/// # Errors
/// The store's.
pub(crate) fn find(tx: &Tx<'_>, tenant: &TenantId, event_id: &str) -> Result<Option<WholeEvent>, StoreError> {
    let found = sql::lists::find(tx, tenant, event_id)?;
    Ok(found.map(|(event, payload)| {
        let data = RawValue::from_string(payload).unwrap_or_else(|_| RawValue::NULL.to_owned());
        WholeEvent { event, data }
    }))
}

pub(super) fn instant<S: Serializer>(at: &UnixMs, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&rfc3339(*at))
}

#[expect(clippy::ref_option, reason = "the signature serde's `serialize_with` asks for")]
fn instant_or_null<S: Serializer>(at: &Option<UnixMs>, to: S) -> Result<S::Ok, S::Error> {
    at.map(rfc3339).serialize(to)
}

fn instants<S: Serializer>(all: &BTreeMap<String, UnixMs>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(all.iter().map(|(name, at)| (name, rfc3339(*at))))
}
