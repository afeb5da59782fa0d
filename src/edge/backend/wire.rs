//! The contract's bodies as other backends may send them: read liberally, but never guessed at.
//!
//! A field that does not fit is named by its place, never by its value: values are personal data.

use std::collections::HashMap;
use std::fmt;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};

use crate::kernel::clock::parse_rfc3339;
use crate::kernel::contract::{BotEvent, Leader, Payload};
use crate::onboarding::{BackendError, Finished};

/// The most events that a page may have, whatever was asked for (contract: `BOT_OUTBOX_MAX_PENDING_LIMIT`).
const LARGEST_PAGE: usize = 500;
/// What is sent of a reason.
const REASON_LENGTH: usize = 300;

/// Whether a backend takes the reasons of failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reasons {
    Taken,
    NotTaken,
}

/// A page, as it came.
#[derive(Debug)]
pub(super) struct Page {
    /// In the backend's order, without repetitions.
    pub(super) events: Vec<BotEvent>,
    /// How many came, with repetitions.
    pub(super) served: usize,
}

/// A whole number. Ids of 64 bits are text in the JSON of some databases' drivers.
#[derive(Clone, Copy)]
struct Whole(i64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct NumberOrDigits;

        impl Visitor<'_> for NumberOrDigits {
            type Value = Whole;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("a whole number")
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Whole, E> {
                Ok(Whole(number))
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Whole, E> {
                i64::try_from(number).map(Whole).map_err(E::custom)
            }

            fn visit_str<E: serde::de::Error>(self, digits: &str) -> Result<Whole, E> {
                digits.parse().map(Whole).map_err(E::custom)
            }
        }

        from.deserialize_any(NumberOrDigits)
    }
}

#[derive(Deserialize)]
struct PageBody {
    events: Option<Vec<EventBody>>,
}

/// Whatever else a backend adds is not looked at.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventBody {
    id: Option<Whole>,
    event_type: Option<String>,
    telegram_id: Option<Whole>,
    magnet_uid: Option<Whole>,
    #[serde(default)]
    payload: Payload,
    created_at: Option<String>,
    attempts: Option<Whole>,
}

impl EventBody {
    /// The event, or the name of the field that it lacks.
    fn check(self) -> Result<BotEvent, &'static str> {
        Ok(BotEvent {
            id: self.id.map(|id| id.0).filter(|id| *id > 0).ok_or("id")?,
            event_type: self.event_type.filter(|word| !word.is_empty()).ok_or("eventType")?,
            telegram_id: self.telegram_id.map(|id| id.0),
            magnet_uid: self.magnet_uid.map(|uid| uid.0),
            payload: self.payload,
            created_at: self.created_at.as_deref().and_then(parse_rfc3339).ok_or("createdAt")?,
            attempts: self.attempts.map_or(0, |attempts| attempts.0),
        })
    }
}

/// Reads a page: `{"events": [..]}`, or the list alone. All of it or nothing.
///
/// # Errors
/// [`BackendError::Contract`], which names the place.
pub(super) fn read_page(body: &[u8]) -> Result<Page, BackendError> {
    let bodies = if body.trim_ascii_start().starts_with(b"[") {
        parse::<Vec<EventBody>>(body)?
    } else {
        parse::<PageBody>(body)?.events.ok_or_else(|| outside("`events` is missing"))?
    };
    let served = bodies.len();
    if served > LARGEST_PAGE {
        return Err(outside(format!("a page of more than {LARGEST_PAGE} events")));
    }
    let mut events: Vec<BotEvent> = Vec::with_capacity(served);
    let mut seen: HashMap<i64, usize> = HashMap::with_capacity(served);
    for (index, body) in bodies.into_iter().enumerate() {
        let event =
            body.check().map_err(|field| outside(format!("events[{index}].{field} is missing or not valid")))?;
        match seen.get(&event.id) {
            // A join that was too wide; harmless as long as it is the same event.
            Some(first) if events[*first] == event => {}
            Some(_) => return Err(outside(format!("event {} is in a page twice and differs", event.id))),
            None => {
                seen.insert(event.id, events.len());
                events.push(event);
            }
        }
    }
    Ok(Page { events, served })
}

fn parse<T: for<'de> Deserialize<'de>>(body: &[u8]) -> Result<T, BackendError> {
    let mut from = serde_json::Deserializer::from_slice(body);
    let parsed: T = serde_path_to_error::deserialize(&mut from).map_err(|error| {
        if error.inner().is_data() {
            outside(format!("`{}` is not valid", error.path()))
        } else {
            outside("an answer that is not JSON")
        }
    })?;
    from.end().map_err(|_| outside("an answer that is not JSON"))?;
    Ok(parsed)
}

fn outside(what: impl Into<String>) -> BackendError {
    BackendError::Contract(what.into())
}

/// Reads an answer of any of the contract's forms; what a backend adds to it is not looked at.
///
/// # Errors
/// [`BackendError::Contract`], which names the place.
pub(super) fn read_answer<T: for<'de> Deserialize<'de>>(body: &[u8]) -> Result<T, BackendError> {
    parse(body)
}

/// A member as whoever follows their link sees them.
#[derive(Deserialize)]
pub(super) struct LeaderBody {
    uid: Whole,
    link: Option<String>,
    name: Option<String>,
}

impl LeaderBody {
    /// The member; one whose link is left out has the one that was asked for.
    pub(super) fn into_leader(self, code: &str) -> Leader {
        Leader { uid: self.uid.0, link: self.link.unwrap_or_else(|| code.to_owned()), name: self.name }
    }
}

/// Which member a chat is bound to.
#[derive(Deserialize)]
pub(super) struct AccountBody {
    exists: bool,
    uid: Option<Whole>,
}

impl AccountBody {
    /// The member, if there is one.
    ///
    /// # Errors
    /// [`BackendError::Contract`] if there is one without an id.
    pub(super) fn into_uid(self) -> Result<Option<i64>, BackendError> {
        match (self.exists, self.uid) {
            (false, _) => Ok(None),
            (true, Some(Whole(uid))) => Ok(Some(uid)),
            (true, None) => Err(outside("`uid` is missing")),
        }
    }
}

/// An acknowledgement.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AckBody {
    pub(super) processed_ids: Vec<i64>,
    pub(super) retry_ids: Vec<RetryBody>,
}

/// A failed event.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum RetryBody {
    /// As the contract has it.
    Id(i64),
    /// As a backend takes it that says so.
    WithReason { id: i64, error: String },
}

impl AckBody {
    pub(super) fn of(page: &Finished, reasons: Reasons) -> Self {
        let retry = |(id, error, _): &(i64, String, _)| match reasons {
            Reasons::Taken => RetryBody::WithReason { id: *id, error: error.chars().take(REASON_LENGTH).collect() },
            Reasons::NotTaken => RetryBody::Id(*id),
        };
        Self { processed_ids: page.processed.clone(), retry_ids: page.failed.iter().map(retry).collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.processed_ids.is_empty() && self.retry_ids.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{Payload, read_page};

    fn refusal(body: &str) -> String {
        read_page(body.as_bytes()).expect_err("outside the contract").to_string()
    }

    fn page(event: &str) -> String {
        format!(r#"{{"events":[{event}]}}"#)
    }

    #[test]
    fn what_other_backends_may_add_or_leave_out_is_taken() {
        let body = page(
            r#"{"id":"12","eventType":"registered","telegramId":5,"payload":null,
                "createdAt":"2026-11-30T12:00:00.250+03:00","processedAt":null,"lockedUntil":"x"},
               {"id":13,"eventType":"unheard_of","telegramId":"-100123","magnetUid":"7","payload":{"a":[1]},
                "createdAt":"2026-11-30T09:00:00Z","attempts":2}"#,
        );
        let events = read_page(body.as_bytes()).unwrap().events;
        assert_eq!((events[0].id, events[0].telegram_id, events[0].magnet_uid), (12, Some(5), None));
        assert_eq!((events[0].created_at, events[0].attempts), (1_796_029_200_250, 0));
        assert_eq!((events[1].telegram_id, events[1].magnet_uid, events[1].attempts), (Some(-100_123), Some(7), 2));
        assert!(read_page(b" []").unwrap().events.is_empty());
        assert!(read_page(br#"{"events":[],"total":0}"#).unwrap().events.is_empty());
    }

    #[test]
    fn what_does_not_fit_is_named_by_its_place_and_not_by_its_value() {
        let at = r#""createdAt":"2026-11-30T09:00:00Z""#;
        for (event, place) in [
            (format!(r#"{{"eventType":"registered",{at}}}"#), "events[0].id"),
            (format!(r#"{{"id":0,"eventType":"registered",{at}}}"#), "events[0].id"),
            (format!(r#"{{"id":1.5,"eventType":"registered",{at}}}"#), "events[0].id"),
            (format!(r#"{{"id":1e30,"eventType":"registered",{at}}}"#), "events[0].id"),
            (format!(r#"{{"id":18446744073709551615,"eventType":"registered",{at}}}"#), "events[0].id"),
            (format!(r#"{{"id":1,"eventType":7,{at}}}"#), "events[0].eventType"),
            (format!(r#"{{"id":1,"eventType":"",{at}}}"#), "events[0].eventType"),
            (format!(r#"{{"id":1,"eventType":"registered","telegramId":"@olga",{at}}}"#), "events[0].telegramId"),
            (format!(r#"{{"id":1,"eventType":"registered","payload":"olga",{at}}}"#), "events[0].payload"),
            (r#"{"id":1,"eventType":"registered","createdAt":"olga"}"#.to_owned(), "events[0].createdAt"),
            (r#"{"id":1,"eventType":"registered","createdAt":1790000000000}"#.to_owned(), "events[0].createdAt"),
            (r#"{"id":1,"eventType":"registered"}"#.to_owned(), "events[0].createdAt"),
            ("7".to_owned(), "events[0]"),
        ] {
            let refusal = refusal(&page(&event));
            assert!(refusal.contains(place), "{event}: {refusal}");
            assert!(!refusal.contains("olga"), "{refusal}");
        }
        for body in ["", "<html>olga</html>", "{\"events\":[]} x", "{\"events\":[", "\u{0}"] {
            assert!(refusal(body).contains("not JSON"), "{body}");
        }
        for body in ["{}", "{\"events\":null}"] {
            assert!(refusal(body).contains("`events` is missing"), "{body}");
        }
        assert!(refusal("null").contains("not valid"));
    }

    #[test]
    fn a_payload_that_cannot_be_taken_apart_spoils_its_own_event_only() {
        let deep = format!("{}1{}", "{\"a\":".repeat(200), "}".repeat(200));
        for payload in [r#"{"n":1e999}"#, r#"{"s":"\ud800"}"#, &deep] {
            let event = format!(
                r#"{{"id":1,"eventType":"registered","createdAt":"2026-11-30T09:00:00Z","payload":{payload}}}"#
            );
            let read = read_page(page(&event).as_bytes()).unwrap();
            assert!(matches!(read.events[0].payload, Payload::Unreadable(_)), "{payload}");
        }
    }

    #[test]
    fn an_event_that_is_there_twice_is_one_unless_it_differs() {
        let at = r#""createdAt":"2026-11-30T09:00:00Z""#;
        let one = format!(r#"{{"id":1,"eventType":"registered",{at}}}"#);
        let page_of_two = read_page(page(&format!("{one},{one}")).as_bytes()).unwrap();
        assert_eq!((page_of_two.events.len(), page_of_two.served), (1, 2));
        let other = one.replace("registered", "reactivation");
        assert!(refusal(&page(&format!("{one},{other}"))).contains("event 1 is in a page twice"));
        let many: Vec<String> = (1..502).map(|id| one.replace(":1,", &format!(":{id},"))).collect();
        assert!(refusal(&page(&many.join(","))).contains("more than 500"));
    }
}
