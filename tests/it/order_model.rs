//! What the outbox must do, as plainly as it can be said: a list of events, and every rule a loop over it.

use std::collections::{BTreeMap, HashMap};

/// Back-off: 60 s × 2^attempts (contract).
const BACK_OFF_BASE_MS: i64 = 60_000;
/// An event that failed so often is given up (contract).
const MOST_ATTEMPTS: i64 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Open,
    Handled,
    Abandoned,
    Dead,
}

/// An event as the model has it, and as it is read from the file for comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) id: i64,
    pub(crate) event_type: String,
    pub(crate) uid: Option<i64>,
    pub(crate) chat: Option<i64>,
    pub(crate) subject: String,
    pub(crate) state: State,
    pub(crate) attempts: i64,
    pub(crate) next_retry: Option<i64>,
}

impl Event {
    fn due(&self) -> i64 {
        self.next_retry.unwrap_or(0)
    }
}

/// The counts that an acknowledgement answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) processed: i64,
    pub(crate) retried: i64,
    pub(crate) abandoned: i64,
    pub(crate) dead_lettered: i64,
    pub(crate) unknown: i64,
}

impl Counts {
    fn count(&mut self, state: State) {
        match state {
            State::Open => self.retried += 1,
            State::Handled => self.processed += 1,
            State::Abandoned => self.abandoned += 1,
            State::Dead => self.dead_lettered += 1,
        }
    }
}

/// What a page may hold.
#[derive(Debug)]
pub(crate) struct Servable {
    /// Every event that may be served now, in order.
    pub(crate) ids: Vec<i64>,
    /// Whether an event that waits by itself stands behind a due head; a page may then be shorter than it could be.
    pub(crate) has_hidden: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) events: Vec<Event>,
    /// Chat to member.
    bound: HashMap<i64, i64>,
}

impl Model {
    pub(crate) fn find(&self, id: i64) -> Option<&Event> {
        self.events.iter().find(|event| event.id == id)
    }

    /// An event was emitted under this id.
    pub(crate) fn emitted(&mut self, id: i64, event_type: &str, uid: Option<i64>, chat: Option<i64>) {
        assert!(self.events.last().is_none_or(|last| last.id < id), "ids rise: {id}");
        let subject = self.subject(uid, chat);
        let event_type = event_type.to_owned();
        self.events.push(Event {
            id,
            event_type,
            uid,
            chat,
            subject,
            state: State::Open,
            attempts: 0,
            next_retry: None,
        });
    }

    fn subject(&self, uid: Option<i64>, chat: Option<i64>) -> String {
        match uid.or_else(|| self.bound.get(&chat?).copied()) {
            Some(uid) => format!("uid:{uid}"),
            None => format!("tg:{}", chat.expect("an event has one of the two")),
        }
    }

    /// Whether the backend could bind so: a chat is one member's at most.
    pub(crate) fn may_bind(&self, uid: i64, chat: i64) -> bool {
        self.bound.get(&chat).is_none_or(|other| *other == uid)
    }

    /// The member is bound to this chat from now on, and to no other.
    pub(crate) fn bind(&mut self, uid: i64, chat: i64) {
        self.unbind(uid);
        self.bound.insert(chat, uid);
        let (from, to) = (format!("tg:{chat}"), format!("uid:{uid}"));
        for event in self.events.iter_mut().filter(|event| event.state == State::Open && event.subject == from) {
            event.subject.clone_from(&to);
        }
    }

    /// What names the member stays in the member's order; what names only the chat goes on with the chat.
    pub(crate) fn unbind(&mut self, uid: i64) {
        let subject = format!("uid:{uid}");
        let is_open = |event: &&mut Event| event.state == State::Open && event.subject == subject;
        for event in self.events.iter_mut().filter(is_open).filter(|event| event.uid.is_none()) {
            event.subject = format!("tg:{}", event.chat.expect("an event has a subject"));
        }
        self.bound.retain(|_, member| *member != uid);
    }

    /// What may be served at `now`: subjects by their heads' due times; none whose head waits; of each the events
    /// upward by id, to the first that waits.
    pub(crate) fn servable(&self, now: i64) -> Servable {
        let mut subjects: BTreeMap<&str, Vec<&Event>> = BTreeMap::new();
        for event in self.events.iter().filter(|event| event.state == State::Open) {
            subjects.entry(&event.subject).or_default().push(event);
        }
        let mut lanes: Vec<_> = subjects.into_values().filter(|lane| lane[0].due() <= now).collect();
        lanes.sort_by_key(|lane| (lane[0].due(), lane[0].id));
        let mut servable = Servable { ids: Vec::new(), has_hidden: false };
        for lane in lanes {
            let due = lane.iter().take_while(|event| event.due() <= now);
            let before = servable.ids.len();
            servable.ids.extend(due.map(|event| event.id));
            servable.has_hidden |= servable.ids.len() - before < lane.len();
        }
        servable
    }

    /// The nearest instant after `now` at which something becomes due.
    pub(crate) fn next_due(&self, now: i64) -> Option<i64> {
        let open = self.events.iter().filter(|event| event.state == State::Open);
        open.filter_map(|event| event.next_retry).filter(|at| *at >= now).min()
    }

    /// An acknowledgement whose failures were recorded at `now`. Ids are distinct within a list.
    pub(crate) fn acknowledge(&mut self, processed: &[i64], failed: &[i64], now: i64) -> Counts {
        let mut counts = Counts::default();
        for id in processed {
            let Some(event) = self.events.iter_mut().find(|event| event.id == *id) else {
                counts.unknown += 1;
                continue;
            };
            if event.state == State::Open {
                event.state = State::Handled;
                event.next_retry = None;
            }
            counts.count(event.state);
        }
        for id in failed.iter().filter(|id| !processed.contains(id)) {
            let Some(event) = self.events.iter_mut().find(|event| event.id == *id) else {
                counts.unknown += 1;
                continue;
            };
            if event.state == State::Open && event.due() <= now {
                fail(event, now);
            }
            counts.count(event.state);
        }
        counts
    }

    /// A person opens a given-up event again; whether it was one.
    pub(crate) fn reopen(&mut self, id: i64) -> bool {
        let Some(event) = self.find(id).cloned() else { return false };
        if !matches!(event.state, State::Abandoned | State::Dead) {
            return false;
        }
        let subject = self.subject(event.uid, event.chat);
        let event = self.events.iter_mut().find(|event| event.id == id).expect("it was found above");
        *event = Event { subject, state: State::Open, attempts: 0, next_retry: None, ..event.clone() };
        true
    }
}

fn fail(event: &mut Event, now: i64) {
    event.attempts += 1;
    event.next_retry = None;
    if event.attempts < MOST_ATTEMPTS {
        event.next_retry = Some(now + (BACK_OFF_BASE_MS << event.attempts));
    } else if event.event_type == "registered" {
        event.state = State::Dead;
    } else {
        event.state = State::Abandoned;
    }
}
