//! Claims, ends that come late, kills, moves of the clock and whatever a person may do, in any order, held against a small
//! model of what is promised.

mod known;
mod steps;

use proptest::test_runner::{Config, TestRunner};

use self::known::{End, Known, Place};
use self::steps::{Step, steps};
use super::super::endpoint::{delete, disable, rotate_secret, update};
use super::super::sweep::{Swept, sweep};
use super::super::{EndpointChanges, EndpointStatus, Rotation, resend};
use super::*;

/// An attempt under way: whose, and whether a task still has it.
struct Send {
    delivery: usize,
    claim: Claim,
    is_held: bool,
}

struct Model {
    world: World,
    boot: u32,
    places: Vec<Place>,
    deliveries: Vec<Known>,
    sends: Vec<Send>,
}

/// The row of the delivery in that place.
fn row_of(delivery: usize) -> i64 {
    i64::try_from(delivery).unwrap() + 1
}

fn place_of(row: i64) -> usize {
    usize::try_from(row - 1).unwrap()
}

impl Model {
    async fn new() -> Self {
        let world = World::new();
        let mut places = vec![];
        for _ in 0..2 {
            let Endpoint { row, id, .. } = world.endpoint().await;
            let (status, secrets) = ("active", vec![None]);
            let (reason, held_until, failing_since, told) = (None, None, None, vec![]);
            let (is_warned, is_deleted) = (false, false);
            places.push(Place {
                row,
                id,
                status,
                reason,
                held_until,
                failing_since,
                is_warned,
                is_deleted,
                secrets,
                told,
            });
        }
        Self { world, boot: 0, places, deliveries: vec![], sends: vec![] }
    }

    fn now(&self) -> i64 {
        self.world.clock.now()
    }

    async fn event(&mut self) {
        let now = self.now();
        self.world.event(row_of(self.deliveries.len())).await;
        for (at, place) in self.places.iter().enumerate().filter(|(_, place)| !place.is_deleted) {
            let known = match place.status {
                "disabled" => Known::new(at, "skipped", None),
                _ => Known::new(at, "pending", Some(now)),
            };
            self.deliveries.push(known);
        }
    }

    /// Of an endpoint that may be sent to: what was asked for, then what is due, the longest first.
    fn claimable(&self, place: usize, most: usize) -> Vec<(usize, bool)> {
        let now = self.now();
        let of = &self.places[place];
        if of.is_deleted || of.status != "active" || of.held(now).is_some_and(|until| until > now) {
            return vec![];
        }
        let at_rest = self.deliveries.iter().enumerate().filter(|(_, known)| known.place == place && !known.is_purged);
        let (mut asked, mut due) = (vec![], vec![]);
        for (at, known) in at_rest.filter(|(_, known)| known.status != "sending") {
            if let Some(asked_at) = known.asked_at {
                asked.push((asked_at, at));
            } else if known.status == "pending" && known.next.is_some_and(|next| next <= now) {
                due.push((known.next.unwrap(), at));
            }
        }
        asked.sort_unstable();
        due.sort_unstable();
        let all = asked.into_iter().map(|(_, at)| (at, true)).chain(due.into_iter().map(|(_, at)| (at, false)));
        all.take(most).collect()
    }

    async fn claim(&mut self, place: usize, most: usize) {
        let (now, boot) = (self.now(), self.boot);
        let mut expected = self.claimable(place, most);
        let mut claims = self.world.claim(self.places[place].row, most).await;
        claims.sort_unstable_by_key(|claim| claim.delivery);
        expected.sort_unstable();
        let is_manual = |claim: &Claim| claim.trigger == super::super::Trigger::Manual;
        let found: Vec<_> = claims.iter().map(|claim| (place_of(claim.delivery), is_manual(claim))).collect();
        assert_eq!(found, expected);
        for (claim, (delivery, is_manual)) in claims.into_iter().zip(found) {
            assert_eq!(claim.destination.secrets.len(), self.places[place].signing(now));
            self.deliveries[delivery].begin(now, boot, is_manual);
            assert_eq!(claim.number, self.deliveries[delivery].attempts, "no number is left out");
            self.sends.push(Send { delivery, claim, is_held: true });
        }
    }

    async fn finish(&mut self, send: usize, end: End) {
        if send >= self.sends.len() {
            return;
        }
        let Send { delivery, claim, .. } = self.sends.remove(send);
        let settled = self.world.finish(&claim, end.outcome()).await.settled;
        let now = self.now();
        let known = &mut self.deliveries[delivery];
        let is_ours = known.status == "sending" && known.attempts == claim.number && !known.is_purged;
        assert_eq!(settled == Settled::Fenced, !is_ours);
        if is_ours {
            known.end(now, end, &mut self.places[known.place]);
        }
    }

    async fn round(&mut self, place: usize, end: End) {
        self.claim(place, 9).await;
        while let Some(send) = self.sends.iter().position(|send| send.is_held) {
            self.finish(send, end).await;
        }
        let of_it = self.deliveries.iter().filter(|known| known.place == place && known.status == "pending");
        if let Some(next) = of_it.filter_map(|known| known.next).min() {
            self.world.clock.set(next.max(self.now()));
        }
    }

    async fn take_up(&mut self) {
        let in_hand: Vec<usize> = self.sends.iter().filter(|send| send.is_held).map(|send| send.delivery).collect();
        let rows: Vec<i64> = in_hand.iter().map(|delivery| row_of(*delivery)).collect();
        let taken = self.world.take_up(&rows).await;
        let (now, boot) = (self.now(), self.boot);
        let mut expected = 0;
        for (at, known) in self.deliveries.iter_mut().enumerate() {
            if known.status == "sending" && known.is_cut_off(now, boot) && !in_hand.contains(&at) {
                known.cut_off(now);
                expected += 1;
            }
        }
        assert_eq!(taken, expected);
    }

    async fn restart(mut self) -> Self {
        self.sends.iter_mut().for_each(|send| send.is_held = false);
        self.boot += 1;
        Self { world: self.world.restart().await, ..self }
    }

    async fn resend(&mut self, delivery: usize) {
        let Some(known) = self.deliveries.get(delivery) else { return };
        let sql = format!("SELECT CAST(created_at AS TEXT) FROM webhook_deliveries WHERE id = {}", delivery + 1);
        let made_at = self.world.column(&sql).await.first().map_or(0, |at| at.parse().unwrap());
        let id = super::super::id::delivery_id(row_of(delivery), made_at);
        let answer = self.world.db.write(move |tx| resend(tx, &TenantId::installation(), &id)).await;
        let place = &self.places[known.place];
        let now = self.now();
        match (place.is_deleted || known.is_purged, place.status) {
            (true, _) => assert!(matches!(answer, Err(Error::NotFound))),
            (false, "disabled") => assert!(matches!(answer, Err(Error::EndpointDisabled))),
            (false, _) => {
                answer.unwrap();
                self.deliveries[delivery].asked_at = Some(now);
            }
        }
    }

    async fn queue(&mut self, place: usize, lost: Lost) {
        let ever = Window { since: i64::MIN, until: i64::MAX };
        let answer = self.world.queue_all(&self.places[place].id, lost, ever).await;
        let now = self.now();
        match (self.places[place].is_deleted, self.places[place].status) {
            (true, _) => assert!(matches!(answer, Err(Error::NotFound))),
            (false, "disabled") => assert!(matches!(answer, Err(Error::EndpointDisabled))),
            (false, _) => {
                let statuses: &[&str] = if lost == Lost::Skipped { &["skipped"] } else { &["failed", "cancelled"] };
                let is_lost = |known: &&mut Known| known.place == place && statuses.contains(&known.status);
                let mut queued = 0;
                for known in self.deliveries.iter_mut().filter(is_lost) {
                    (known.status, known.step, known.interruptions, known.next) = ("pending", 0, 0, Some(now));
                    queued += 1;
                }
                assert_eq!(answer.unwrap(), queued);
            }
        }
    }

    async fn disable(&mut self, place: usize) {
        let (id, of) = (self.places[place].id.clone(), &mut self.places[place]);
        let answer = self.world.db.write(move |tx| disable(tx, &TenantId::installation(), &id)).await;
        assert_eq!(answer.is_err(), of.is_deleted);
        if of.is_live() {
            of.disable("manual");
        }
    }

    async fn set(&mut self, place: usize, status: EndpointStatus) {
        let (id, egress) = (self.places[place].id.clone(), self.world.egress.clone());
        let changes = EndpointChanges { status: Some(status), ..EndpointChanges::default() };
        let work = move |tx: &Tx<'_>| update(tx, &TenantId::installation(), &id, &changes, &egress);
        let answer = self.world.db.write(work).await;
        let of = &mut self.places[place];
        assert_eq!(answer.is_err(), of.is_deleted);
        if of.is_deleted {
            return;
        }
        if of.status == "disabled" {
            (of.held_until, of.failing_since, of.is_warned) = (None, None, false);
        }
        (of.status, of.reason) = (status.as_str(), None);
    }

    async fn delete(&mut self, place: usize) {
        let id = self.places[place].id.clone();
        let answer = self.world.db.write(move |tx| delete(tx, &TenantId::installation(), &id)).await;
        let of = &mut self.places[place];
        assert_eq!(answer.is_err(), of.is_deleted);
        (of.is_deleted, of.secrets) = (true, vec![]);
    }

    async fn rotate(&mut self, place: usize, overlap_seconds: i64) {
        let (id, vault, now) = (self.places[place].id.clone(), self.world.vault.clone(), self.now());
        let rotation = Rotation { overlap_seconds: Some(overlap_seconds), secret: None };
        let work = move |tx: &Tx<'_>| rotate_secret(tx, &TenantId::installation(), &id, &rotation, &vault);
        let answer = self.world.db.write(work).await;
        let of = &mut self.places[place];
        assert_eq!(answer.is_err(), of.is_deleted);
        if !of.is_deleted {
            of.secrets[0] = Some(now + overlap_seconds * SECOND);
            if overlap_seconds == 0 {
                of.secrets.clear();
            }
            of.secrets.insert(0, None);
            of.secrets.retain(|until| until.is_none_or(|until| until > now));
            of.secrets.truncate(10);
        }
    }

    async fn sweep(&mut self) {
        // In as many batches as there is work for.
        while self.world.write(|tx| sweep(tx).unwrap()).await != Swept::default() {}
        let now = self.now();
        for place in &mut self.places {
            place.secrets.retain(|until| until.is_none_or(|until| until > now));
        }
        for known in self.deliveries.iter_mut().filter(|known| known.status != "sending") {
            known.swept(now, &self.places[known.place]);
        }
    }

    async fn step(mut self, step: Step) -> Self {
        match step {
            Step::Event => self.event().await,
            Step::Claim { place, most } => self.claim(place, most).await,
            Step::Finish { send, end } => self.finish(send, end).await,
            Step::Forget { send } => {
                self.sends.get_mut(send).into_iter().for_each(|send| send.is_held = false);
            }
            Step::TakeUp => self.take_up().await,
            Step::Restart => return self.restart().await,
            Step::Round { place, end } => self.round(place, end).await,
            Step::Kill(place) => {
                self.claim(place, 2).await;
                self = self.restart().await;
                self.take_up().await;
            }
            Step::Move(by) => self.world.clock.set(self.now() + by),
            Step::Resend(delivery) => self.resend(delivery).await,
            Step::Queue { place, lost } => self.queue(place, lost).await,
            Step::Disable(place) => self.disable(place).await,
            Step::Set { place, status } => self.set(place, status).await,
            Step::Delete(place) => self.delete(place).await,
            Step::Rotate { place, overlap_seconds } => self.rotate(place, overlap_seconds).await,
            Step::Sweep => self.sweep().await,
        }
        self
    }

    /// The file says what the model does: deliveries, journal, endpoints, and the events of both.
    async fn check(&self) {
        let known = || self.deliveries.iter().enumerate().filter(|(_, known)| !known.is_purged);
        let deliveries = known().map(|(at, known)| format!("{} {}", at + 1, known.shown())).collect();
        let journal =
            known().flat_map(|(at, known)| known.journal.iter().map(move |line| format!("{} {line}", at + 1)));
        let live = self.places.iter().filter(|place| !place.is_deleted).map(Place::shown);
        let mut told: Vec<String> = self.places.iter().flat_map(Place::told).collect();
        told.sort_unstable();
        let expected: [Vec<String>; 4] = [deliveries, journal.collect(), live.collect(), told];
        let read = |tx: &Tx<'_>| SEEN.map(|sql| tx.query_all(sql, [], |row| row.get::<_, String>(0)).unwrap());
        assert_eq!(self.world.db.read(move |tx| Ok::<_, StoreError>(read(tx))).await.unwrap(), expected);
        self.deliveries.iter().for_each(Known::check);
    }
}

/// Deliveries, the journal, endpoints, and what was told of them.
const SEEN: [&str; 4] = [
    "SELECT concat_ws(' ', id, status, attempts, step, interruptions, COALESCE(next_attempt_at, '-'),
                      COALESCE(resend_requested_at, '-'), COALESCE(resumes, '-'), COALESCE(locked_until, '-'))
     FROM webhook_deliveries ORDER BY id",
    "SELECT concat_ws(' ', delivery, number, trigger, COALESCE(error, 'ok'), COALESCE(http_status, '-'))
     FROM webhook_attempts ORDER BY delivery, number",
    "SELECT concat_ws(' ', id, status, COALESCE(disabled_reason, '-'), COALESCE(held_until, '-'),
                      COALESCE(failing_since, '-'), warned_at IS NOT NULL)
     FROM webhook_endpoints WHERE deleted_at IS NULL ORDER BY id",
    "SELECT aggregate_id || ' ' || type FROM outbox_events ORDER BY 1",
];

#[test]
fn anything_in_any_order_keeps_what_is_promised() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let play = async |steps: Vec<Step>| {
        let mut model = Model::new().await;
        for step in steps {
            model = model.step(step).await;
            model.check().await;
        }
        model.world.db.close().await;
    };
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(60) });
    runner
        .run(&steps(), |steps| {
            runtime.block_on(play(steps));
            Ok(())
        })
        .unwrap();
}
