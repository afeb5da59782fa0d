//! Consumers that do as they are told and remember what they were asked.

use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use crate::kernel::store::{StoreError, Tx};
use crate::outbox::consumer::{Consumer, Inside, Outside, Refusal, Shape, StoredEvent};

/// What a consumer does when it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Takes,
    Refuses,
    /// Only events with an odd row.
    RefusesOdd,
    Panics,
    /// Only at that row.
    PanicsAt(i64),
    /// Its store was busy.
    Busy,
    /// Answers nothing, not even for one event.
    Mute,
    /// Takes everything and never says so.
    Dies,
}

/// What a consumer answered to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Accepted,
    Refused,
    Busy,
}

#[derive(Clone, Debug)]
pub(super) struct Actor {
    name: &'static str,
    is_outside: bool,
    mood: Arc<Mutex<Mood>>,
    calls: Arc<Mutex<Vec<(i64, Said)>>>,
    events: Arc<Mutex<Vec<StoredEvent>>>,
    /// It has taken everything and says nothing.
    pub(super) died: Arc<Notify>,
}

impl Actor {
    pub(super) fn inside(name: &'static str) -> Self {
        Self::new(name, false)
    }

    pub(super) fn outside(name: &'static str) -> Self {
        Self::new(name, true)
    }

    fn new(name: &'static str, is_outside: bool) -> Self {
        let mood = Arc::new(Mutex::new(Mood::Takes));
        Self { name, is_outside, mood, calls: Arc::default(), events: Arc::default(), died: Arc::default() }
    }

    pub(super) fn be(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    /// The rows it was asked for, and what it said, since the last time somebody looked.
    pub(super) fn calls(&self) -> Vec<(i64, Said)> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    /// The events it was asked for.
    pub(super) fn events(&self) -> Vec<StoredEvent> {
        std::mem::take(&mut self.events.lock().unwrap())
    }

    fn mood(&self) -> Mood {
        *self.mood.lock().unwrap()
    }

    fn hear(&self, event: &StoredEvent) -> Result<(), Refusal> {
        let mood = self.mood();
        self.events.lock().unwrap().push(event.clone());
        let is_panic = mood == Mood::Panics || mood == Mood::PanicsAt(event.row);
        let said = match mood {
            _ if is_panic => Said::Refused,
            Mood::Takes | Mood::Dies | Mood::PanicsAt(_) => Said::Accepted,
            Mood::RefusesOdd if event.row % 2 == 0 => Said::Accepted,
            Mood::Busy => Said::Busy,
            _ => Said::Refused,
        };
        self.calls.lock().unwrap().push((event.row, said));
        assert!(!is_panic, "a consumer panics");
        match said {
            Said::Accepted => Ok(()),
            Said::Refused => Err(Refusal::Code("no")),
            Said::Busy => Err(StoreError::Busy.into()),
        }
    }
}

impl Consumer for Actor {
    fn name(&self) -> &'static str {
        self.name
    }

    fn shape(&self) -> Shape<'_> {
        if self.is_outside { Shape::Outside(self) } else { Shape::Inside(self) }
    }
}

impl Inside for Actor {
    fn accept(&self, tx: &Tx<'_>, event: &StoredEvent) -> Result<(), Refusal> {
        // Before the answer is known: what a refused one wrote is to be taken back.
        tx.execute("INSERT INTO seen (consumer, event) VALUES (?1, ?2)", (self.name, event.row))?;
        self.hear(event)
    }
}

impl Outside for Actor {
    fn accept<'a>(&'a self, events: &'a [StoredEvent]) -> BoxFuture<'a, Vec<Result<(), Refusal>>> {
        Box::pin(async move {
            let answers: Vec<_> = events.iter().map(|event| self.hear(event)).collect();
            match self.mood() {
                Mood::Mute => vec![],
                Mood::Dies => {
                    self.died.notify_one();
                    std::future::pending().await
                }
                _ => answers,
            }
        })
    }
}
