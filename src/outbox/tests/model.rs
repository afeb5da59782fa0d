//! Refusals, panics, busy stores, restarts between an acceptance and its record, and clock moves in any order, held
//! against a small model of what is promised.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::super::retry;
use super::actors::{Mood, Said};
use super::*;

/// Something that happens.
#[derive(Clone, Debug)]
enum Step {
    /// So many events are stored.
    Emit(usize),
    /// A consumer, by its place, changes its mood.
    Mood(usize, Mood),
    Pass,
    /// A pass, and the process ends when the outside consumer has taken its page and before anything is recorded. Another
    /// one starts.
    Die,
    /// The process ends between two passes, and another one starts.
    Restart,
    Advance(i64),
    SetBack(i64),
    /// The clock goes to when the next event is due, and a pass is made.
    Onward,
    /// A consumer, by its place, refuses for so many passes, each when the next event is due.
    Outage(usize, usize),
    /// A person retries an event, by its place.
    Retry(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let mood = prop::sample::select(vec![
        Mood::Takes,
        Mood::Takes,
        Mood::Refuses,
        Mood::RefusesOdd,
        Mood::Panics,
        Mood::PanicsAt(2),
        Mood::Busy,
    ]);
    let step = prop_oneof![
        3 => (1_usize..4).prop_map(Step::Emit),
        4 => (0_usize..3, mood).prop_map(|(place, mood)| Step::Mood(place, mood)),
        6 => Just(Step::Pass),
        2 => Just(Step::Die),
        1 => Just(Step::Restart),
        3 => prop::sample::select(vec![1, SECOND, 30 * SECOND, MINUTE, HOUR, DAY]).prop_map(Step::Advance),
        1 => prop::sample::select(vec![1, MINUTE, HOUR + 1, DAY, 300 * DAY]).prop_map(Step::SetBack),
        8 => Just(Step::Onward),
        2 => (0_usize..3, 8_usize..12).prop_map(|(place, passes)| Step::Outage(place, passes)),
        2 => (0_usize..6).prop_map(Step::Retry),
    ];
    proptest::collection::vec(step, 1..40)
}

/// What is known of an event besides its row.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Attempts at which somebody refused it, since it was stored or reopened.
    refused: i64,
    /// Until when the relay leaves it alone.
    aside: Option<i64>,
    /// How often the outside consumer took it.
    taken: usize,
}

struct Model {
    world: World,
    actors: [Actor; 3],
    relay: Relay,
    known: BTreeMap<i64, Known>,
    ids: Vec<String>,
}

const NAMES: [&str; 3] = ["first", "second", "outside"];

fn actors() -> [Actor; 3] {
    [Actor::inside(NAMES[0]), Actor::inside(NAMES[1]), Actor::outside(NAMES[2])]
}

fn has(row: &Row, name: &str) -> bool {
    row.acceptances.contains(&format!("\"{name}\":"))
}

impl Model {
    async fn begin() -> Self {
        let world = World::new().await;
        let actors = actors();
        let relay = world.relay(&[&actors[0], &actors[1], &actors[2]]);
        Self { world, actors, relay, known: BTreeMap::new(), ids: vec![] }
    }

    fn is_aside(&self, row: i64) -> bool {
        let now = self.world.clock.now();
        self.known[&row].aside.is_some_and(|until| (1..=5 * MINUTE).contains(&(until - now)))
    }

    /// What a pass has to hand over now.
    fn due(&self, rows: &[Row]) -> Vec<Row> {
        let now = self.world.clock.now();
        let is_due = |row: &&Row| {
            let is_open = row.published.is_none() && row.failed.is_none();
            is_open && !self.is_aside(row.id) && row.next.is_none_or(|next| next <= now || next > now + HOUR)
        };
        rows.iter().filter(is_due).cloned().collect()
    }

    async fn pass(&mut self) {
        let before = self.world.rows().await;
        let due = self.due(&before);
        let report = pass(&self.relay).await;
        let calls = self.actors.each_ref().map(Actor::calls);
        for (place, calls) in calls.iter().enumerate() {
            let asked: BTreeSet<i64> = calls.iter().map(|(row, _)| *row).collect();
            let open: BTreeSet<i64> = due.iter().filter(|row| !has(row, NAMES[place])).map(|row| row.id).collect();
            assert_eq!(asked, open, "{} is asked for what is due and not accepted", NAMES[place]);
        }
        let now = self.world.clock.now();
        let after = self.world.rows().await;
        let (mut published, mut retried, mut failed) = (0, 0, 0);
        for row in &due {
            // The last word counts: one that panicked at a page is asked for each event.
            let said: Vec<_> = calls
                .iter()
                .filter_map(|calls| calls.iter().rev().find(|(at, _)| *at == row.id))
                .map(|(_, said)| *said)
                .collect();
            let known = self.known.get_mut(&row.id).unwrap();
            known.taken += usize::from(calls[2].contains(&(row.id, Said::Accepted)));
            known.refused += i64::from(said.contains(&Said::Refused));
            known.aside = (said.contains(&Said::Busy) && !said.contains(&Said::Refused)).then_some(now + SECOND);
            let ended = after.iter().find(|after| after.id == row.id).unwrap();
            published += u64::from(ended.published.is_some());
            failed += u64::from(ended.failed.is_some());
            retried += u64::from(said.contains(&Said::Refused) && ended.failed.is_none());
            assert_eq!(ended.published.is_some(), said.iter().all(|said| *said == Said::Accepted), "{row:?}: {said:?}");
        }
        assert_eq!((report.published, report.retried, report.failed, report.stuck), (published, retried, failed, 0));
        // The pass says when it is wanted again, or something is due right away.
        let next =
            after.iter().filter(|row| row.failed.is_none()).filter_map(|row| row.next.filter(|next| *next > now)).min();
        let aside = self.known.keys().filter(|row| self.is_aside(**row)).filter_map(|row| self.known[row].aside).min();
        assert_eq!(report.next, next.into_iter().chain(aside).min());
        assert!(!report.more);
    }

    async fn die(mut self) -> Self {
        let due = self.due(&self.world.rows().await);
        let open: Vec<i64> = due.iter().filter(|row| !has(row, NAMES[2])).map(|row| row.id).collect();
        if open.is_empty() {
            return self;
        }
        self.actors[2].be(Mood::Dies);
        tokio::select! {
            _ = pass(&self.relay) => panic!("the pass should hang"),
            () = self.actors[2].died.notified() => {}
        }
        self.actors[2].be(Mood::Takes);
        assert_eq!(self.actors[2].calls().len(), open.len());
        for row in open {
            self.known.get_mut(&row).unwrap().taken += 1;
        }
        self.restart().await
    }

    async fn restart(self) -> Self {
        let Self { world, actors, relay, mut known, ids } = self;
        drop(relay);
        known.values_mut().for_each(|known| known.aside = None);
        let world = world.restart().await;
        let relay = world.relay(&[&actors[0], &actors[1], &actors[2]]);
        Self { world, actors, relay, known, ids }
    }

    async fn emit(&mut self, count: usize) {
        self.ids.extend(self.world.fill(count).await);
        for row in self.world.rows().await {
            self.known.entry(row.id).or_default();
        }
    }

    async fn onward(&mut self) {
        let rows = self.world.rows().await;
        let waiting = rows.iter().filter(|row| row.published.is_none() && row.failed.is_none());
        if let Some(next) = waiting.filter_map(|row| row.next).min().filter(|next| *next > self.world.clock.now()) {
            self.world.clock.set(next);
        }
        self.pass().await;
    }

    async fn retry(&mut self, place: usize) {
        let Some(id) = self.ids.get(place).cloned() else { return };
        let before = self.world.rows().await;
        let asked = self.world.db.write(move |tx| retry(tx, &acme(), &id)).await;
        let row = &before[place];
        assert_eq!(asked.is_err(), row.published.is_some());
        if row.failed.is_some() {
            self.known.get_mut(&row.id).unwrap().refused = 0;
        }
    }

    async fn step(mut self, step: Step) -> Self {
        match step {
            Step::Emit(count) => self.emit(count).await,
            Step::Mood(place, mood) => self.actors[place].be(mood),
            Step::Pass => self.pass().await,
            Step::Die => return self.die().await,
            Step::Restart => return self.restart().await,
            Step::Advance(ms) => self.world.advance(ms),
            Step::SetBack(ms) => self.world.clock.set(self.world.clock.now() - ms),
            Step::Onward => self.onward().await,
            Step::Outage(place, passes) => {
                self.actors[place].be(Mood::Refuses);
                for _ in 0..passes {
                    self.onward().await;
                }
            }
            Step::Retry(place) => self.retry(place).await,
        }
        self
    }

    /// The file says what the model does.
    async fn check(&self) {
        let seen = self.world.column("SELECT consumer || ' ' || event FROM seen").await;
        let seen_by = |name: &str, row: i64| seen.iter().filter(|one| **one == format!("{name} {row}")).count();
        for row in self.world.rows().await {
            let known = &self.known[&row.id];
            assert_eq!(row.attempts, known.refused, "{row:?}");
            assert_eq!(
                row.failed.is_some(),
                known.refused == 10,
                "the tenth refusal, and no other, gives it up: {row:?}"
            );
            for name in &NAMES[..2] {
                assert_eq!(seen_by(name, row.id), usize::from(has(&row, name)), "exactly once: {row:?}");
            }
            assert!(!has(&row, NAMES[2]) || known.taken > 0, "accepted and never asked: {row:?}");
            assert_eq!(row.published.is_some(), NAMES.iter().all(|name| has(&row, name)), "{row:?}");
        }
    }

    /// In the end, everybody takes everything.
    async fn finish(&mut self) {
        self.actors.iter().for_each(|actor| actor.be(Mood::Takes));
        for place in 0..self.ids.len() {
            self.retry(place).await;
        }
        self.world.advance(HOUR);
        self.pass().await;
        self.check().await;
        assert_eq!(self.world.published().await, self.ids.len());
        assert!(self.known.values().all(|known| known.taken > 0), "at least once");
    }
}

#[test]
fn any_order_of_refusals_restarts_and_clock_moves_keeps_what_is_promised() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let play = async |steps: Vec<Step>| {
        let mut model = Model::begin().await;
        for step in steps {
            model = model.step(step).await;
            model.check().await;
        }
        model.finish().await;
        model.world.db.close().await;
    };
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(64) });
    runner
        .run(&steps(), |steps| {
            runtime.block_on(play(steps));
            Ok(())
        })
        .unwrap();
}
