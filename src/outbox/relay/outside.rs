//! Consumers that work outside any transaction: asked page by page, with a limit to the patience, so that one that hangs
//! keeps nobody's events for long.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::join_all;

use super::candidate::Candidate;
use super::settle::{Answer, PANICKED, read_answer};
use crate::outbox::consumer::{Consumer, Outside, Refusal, Shape, StoredEvent};

/// How long a page may take. A write and a flush take milliseconds; a disk that is asleep, seconds.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long one that has not answered in time is not asked: what it has in hand may still be under way.
const LEFT_ALONE: Duration = Duration::from_secs(30);

/// What each consumer, by its place, answered to an event, by its row.
pub(super) type Answers = HashMap<i64, Vec<(usize, Answer)>>;

/// What is remembered of outside consumers, in real time: the patience is not the events'.
#[derive(Debug)]
pub(super) struct Patience {
    longest: Duration,
    /// By name: not to be asked before then.
    hanging: Mutex<HashMap<&'static str, Instant>>,
}

impl Default for Patience {
    fn default() -> Self {
        Self::of(PATIENCE)
    }
}

impl Patience {
    pub(super) fn of(longest: Duration) -> Self {
        Self { longest, hanging: Mutex::default() }
    }

    /// Asks every outside consumer of a page, all at the same time and each for the events that it has not accepted.
    pub(super) async fn ask_all(&self, consumers: &[Box<dyn Consumer>], page: &[&Candidate]) -> Answers {
        let asked = consumers.iter().enumerate().filter_map(|(place, consumer)| match consumer.shape() {
            Shape::Outside(outside) => Some(self.ask(place, consumer.name(), outside, page)),
            Shape::Inside(_) => None,
        });
        let mut all = Answers::new();
        for (place, answers) in join_all(asked).await {
            for (row, answer) in answers {
                all.entry(row).or_default().push((place, answer));
            }
        }
        all
    }

    async fn ask(
        &self,
        place: usize,
        name: &'static str,
        outside: &dyn Outside,
        page: &[&Candidate],
    ) -> (usize, Vec<(i64, Answer)>) {
        let open = page.iter().filter(|candidate| !candidate.acceptances.has(name));
        let events: Vec<StoredEvent> = open.filter_map(|candidate| candidate.event.clone().ok()).collect();
        let all = |answer| events.iter().map(|event| (event.row, answer)).collect();
        if events.is_empty() {
            return (place, Vec::new());
        }
        if self.is_hanging(name) {
            return (place, all(Answer::NotAsked));
        }
        let end = Instant::now() + self.longest;
        let answers = match self.call(name, outside, &events, end).await {
            Err(code) if code == PANICKED && events.len() > 1 => self.one_by_one(name, outside, &events, end).await,
            Err(code) => all(Answer::Refused(code)),
            Ok(answers) => answers,
        };
        (place, answers)
    }

    /// One event of the page makes the consumer panic; the others are not to suffer for it.
    async fn one_by_one(
        &self,
        name: &'static str,
        outside: &dyn Outside,
        events: &[StoredEvent],
        end: Instant,
    ) -> Vec<(i64, Answer)> {
        let mut answers = Vec::with_capacity(events.len());
        for event in events {
            let one = std::slice::from_ref(event);
            if self.is_hanging(name) {
                answers.push((event.row, Answer::NotAsked));
                continue;
            }
            let asked = self.call(name, outside, one, end).await;
            answers.extend(asked.unwrap_or_else(|code| vec![(event.row, Answer::Refused(code))]));
        }
        answers
    }

    /// One call; its error is the code for all of these events.
    async fn call(
        &self,
        name: &'static str,
        outside: &dyn Outside,
        events: &[StoredEvent],
        end: Instant,
    ) -> Result<Vec<(i64, Answer)>, &'static str> {
        let left = end.saturating_duration_since(Instant::now());
        let called = AssertUnwindSafe(async { outside.accept(events).await }).catch_unwind();
        let mut results = match tokio::time::timeout(left, called).await {
            Ok(Ok(results)) => results.into_iter(),
            Ok(Err(_)) => return Err(PANICKED),
            Err(_) => {
                self.leave_alone(name);
                return Err("timed_out");
            }
        };
        let mut next = || results.next().unwrap_or(Err(Refusal::Code("no_answer")));
        Ok(events.iter().map(|event| (event.row, read_answer(next(), event, name))).collect())
    }

    fn is_hanging(&self, name: &'static str) -> bool {
        let hanging = self.hanging.lock().unwrap_or_else(PoisonError::into_inner);
        hanging.get(name).is_some_and(|until| Instant::now() < *until)
    }

    fn leave_alone(&self, name: &'static str) {
        tracing::warn!(consumer = name, "a consumer does not answer; it is left alone for half a minute");
        let mut hanging = self.hanging.lock().unwrap_or_else(PoisonError::into_inner);
        hanging.insert(name, Instant::now() + LEFT_ALONE);
    }
}
