//! What an operator sees of the leads: lists, one lead whole, an export, numbers.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::lead::CrmStatus;
use super::{NotificationStatus, sql};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

pub(crate) use super::sql::lists::COLUMNS;

/// The most leads that one page holds.
const LONGEST_PAGE: i64 = 500;
/// The most events that are shown of one lead: a person's retries are few, those of a program that loops are not.
const MOST_EVENTS: i64 = 200;

/// A place in the order of leads: by when they came, and then by their ids.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    /// When the lead came.
    pub(crate) created_at: UnixMs,
    /// Its id.
    pub(crate) id: String,
}

/// Which leads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    /// Only those whose notification stands there.
    pub(crate) notification: Option<NotificationStatus>,
    /// Only those that the CRM has there.
    pub(crate) status: Option<CrmStatus>,
    /// Only those that came then or later.
    pub(crate) from: Option<UnixMs>,
    /// Only those that came before.
    pub(crate) to: Option<UnixMs>,
    /// Only those behind this one in the order asked for; the last one of the page before.
    pub(crate) after: Option<Position>,
    /// How many, 1 to 500.
    pub(crate) limit: i64,
}

/// A lead as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Listed {
    /// Where the next page begins.
    #[serde(skip)]
    pub(crate) position: Position,
    /// The lead.
    pub(crate) id: String,
    /// The id its form gave it.
    pub(crate) request_id: Option<String>,
    /// When it came.
    pub(crate) created_at: String,
    /// Where the CRM has it.
    pub(crate) status: String,
    /// Where its notification stands.
    pub(crate) notification_status: String,
    /// How often that was claimed.
    pub(crate) notification_attempt_count: i64,
    /// Why the last attempt failed.
    pub(crate) notification_last_error: Option<String>,
    /// How often a person asked for it.
    pub(crate) notification_manual_retry_count: i64,
    /// How soon somebody should call.
    pub(crate) technical_priority: Option<String>,
    /// Where it came from.
    pub(crate) source: String,
    /// Who.
    pub(crate) client_name: Option<String>,
    /// Where from.
    pub(crate) city: Option<String>,
}

/// A lead with all its [`COLUMNS`]; serialized as an object in their order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    /// Where the next page begins.
    pub(crate) position: Position,
    /// One value for each column.
    pub(crate) values: Vec<Value>,
}

impl Record {
    /// The value of a column.
    pub(crate) fn value(&self, column: &str) -> Option<&Value> {
        let at = COLUMNS.iter().position(|name| *name == column)?;
        self.values.get(at)
    }
}

impl Serialize for Record {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.values.len()))?;
        for (column, value) in COLUMNS.iter().zip(&self.values) {
            map.serialize_entry(column, value)?;
        }
        map.end()
    }
}

/// Something that happened to a lead.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct EventRow {
    /// When.
    pub(crate) created_at: String,
    /// What.
    pub(crate) event_type: String,
    /// Codes and counters.
    pub(crate) payload: Value,
}

/// A lead with what happened to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Whole {
    /// The lead.
    pub(crate) lead: Record,
    /// Its events, the oldest first; of very many, the last.
    pub(crate) events: Vec<EventRow>,
}

/// A page of leads, the newest first.
///
/// # Errors
/// The store's.
pub(crate) fn list(tx: &Tx<'_>, filter: &Filter) -> Result<Vec<Listed>, StoreError> {
    sql::lists::list(tx, &within_a_page(filter))
}

/// A page of leads with all their columns, the oldest first.
///
/// # Errors
/// The store's.
pub(crate) fn export_page(tx: &Tx<'_>, filter: &Filter) -> Result<Vec<Record>, StoreError> {
    sql::lists::export(tx, &within_a_page(filter))
}

fn within_a_page(filter: &Filter) -> Filter {
    Filter { limit: filter.limit.clamp(1, LONGEST_PAGE), ..filter.clone() }
}

/// The lead of that id, or else of that request id, with its events.
///
/// # Errors
/// The store's.
pub(crate) fn find(tx: &Tx<'_>, id_or_request_id: &str) -> Result<Option<Whole>, StoreError> {
    let Some(lead) = sql::lists::find_whole(tx, id_or_request_id)? else { return Ok(None) };
    let mut events = sql::lists::events_of(tx, &lead.position.id, MOST_EVENTS)?;
    events.reverse();
    Ok(Some(Whole { lead, events }))
}

/// The leads in numbers; of a table with more than [`Stats::looked_at`] leads, those of the newest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Stats {
    /// How many leads were counted: no more than [`super::sql::stats::MOST`].
    pub(crate) looked_at: i64,
    /// By where the notification stands.
    pub(crate) by_notification_status: Vec<(String, i64)>,
    /// By where the CRM has them.
    pub(crate) by_status: Vec<(String, i64)>,
    /// By priority.
    pub(crate) by_priority: Vec<(String, i64)>,
    /// By source, the twenty most frequent.
    pub(crate) by_source: Vec<(String, i64)>,
    /// By UTC day, the last thirty that had any, the newest first.
    pub(crate) by_day: Vec<Day>,
}

/// The leads of a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Day {
    /// The day, `YYYY-MM-DD`, UTC.
    pub(crate) day: String,
    /// How many came.
    pub(crate) received: i64,
    /// Of how many the broker's chat was told.
    pub(crate) sent: i64,
    /// Of how many that failed.
    pub(crate) failed: i64,
}

/// The leads in numbers.
///
/// # Errors
/// The store's.
pub(crate) fn stats(tx: &Tx<'_>) -> Result<Stats, StoreError> {
    let by = |statement| sql::stats::grouped(tx, statement);
    Ok(Stats {
        looked_at: sql::stats::looked_at(tx)?,
        by_notification_status: by(sql::stats::BY_NOTIFICATION_STATUS)?,
        by_status: by(sql::stats::BY_STATUS)?,
        by_priority: by(sql::stats::BY_PRIORITY)?,
        by_source: by(sql::stats::BY_SOURCE)?,
        by_day: sql::stats::by_day(tx)?,
    })
}
