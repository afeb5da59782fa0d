//! Claims, endings, retries, clock moves and restarts in any order, held against a small model of what is promised.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::super::{
    Completed, RetryReason, Taken, announce, claim, complete, enqueue_disabled, next_for_worker, request_retry, take,
};
use super::*;
use crate::config::Delivery;

/// Something that somebody does. Leads are named by their place, as far as there are so many.
#[derive(Clone, Debug)]
enum Step {
    /// Another program inserts a lead of that status.
    Insert(&'static str),
    /// A caller of the RPC surface claims a lead.
    Claim(usize),
    /// A caller completes it, of that many attempts ago, or without saying which.
    Complete { lead: usize, is_sent: bool, behind: Option<i64> },
    /// The worker takes what is next, and has it in hand.
    Take,
    /// The worker comes back from one of its sends.
    Finish { send: usize, is_sent: bool },
    /// The worker takes what is next and is never heard of again; a quarter of an hour passes.
    Lose,
    /// A person asks for a lead again.
    Retry(usize),
    /// A person asks for disabled ones.
    Enqueue(i64),
    /// The pass over what others inserted.
    Announce(Delivery),
    /// Time goes by.
    Advance(i64),
    /// The process ends, and another one starts. Sends that were under way may still come back.
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let lead = || 0_usize..4;
    let minutes = prop_oneof![1_i64..20, Just(15), Just(16), Just(24 * 60), Just(24 * 60 + 1)];
    let step = prop_oneof![
        3 => prop_oneof![3 => Just("pending"), 1 => Just("sending"), 1 => Just("sent"), 1 => Just("failed"), 1 => Just("disabled")]
            .prop_map(Step::Insert),
        3 => lead().prop_map(Step::Claim),
        3 => (lead(), any::<bool>(), prop_oneof![Just(None), (0_i64..2).prop_map(Some)])
            .prop_map(|(lead, is_sent, behind)| Step::Complete { lead, is_sent, behind }),
        8 => Just(Step::Take),
        5 => Just(Step::Lose),
        4 => (0_usize..9, any::<bool>()).prop_map(|(send, is_sent)| Step::Finish { send, is_sent }),
        2 => lead().prop_map(Step::Retry),
        1 => (1_i64..3).prop_map(Step::Enqueue),
        1 => prop_oneof![Just(Delivery::Worker), Just(Delivery::Off)].prop_map(Step::Announce),
        6 => minutes.prop_map(|minutes| Step::Advance(minutes * MINUTE)),
        1 => Just(Step::Advance(1)),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 1..70)
}

/// What a lead's history may not break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// Somebody was told to send.
    Won { by_worker: bool },
    /// It was sent, failed, or is not to be sent.
    Closed,
    /// A person wants it sent.
    Asked,
}

#[derive(Clone, Debug)]
struct Known {
    status: &'static str,
    attempts: i64,
    cycle: i64,
    attempted_at: Option<i64>,
    retries: i64,
    is_announced: bool,
    history: Vec<Act>,
}

impl Known {
    fn is_stale(&self, now: i64) -> bool {
        self.status == "sending" && self.attempted_at.is_none_or(|at| now - at > 15 * MINUTE)
    }

    fn is_claimable(&self, now: i64) -> bool {
        self.status == "pending" || self.is_stale(now)
    }

    fn win(&mut self, now: i64, by_worker: bool) {
        (self.status, self.attempted_at) = ("sending", Some(now));
        self.attempts += 1;
        self.cycle += i64::from(by_worker);
        self.history.push(Act::Won { by_worker });
    }

    fn close(&mut self, status: &'static str) {
        self.status = status;
        self.history.push(Act::Closed);
    }

    fn ask(&mut self) {
        (self.status, self.cycle) = ("pending", 0);
        self.retries += 1;
        self.history.push(Act::Asked);
    }

    /// The promises, told from the history alone.
    fn check(&self) {
        let (mut is_open, mut claims) = (true, 0);
        for act in &self.history {
            match act {
                Act::Won { by_worker } => {
                    assert!(is_open, "sent again and nobody asked: {self:?}");
                    claims += i64::from(*by_worker);
                    assert!(claims <= 3, "a fourth claim of a cycle: {self:?}");
                }
                Act::Closed => is_open = false,
                Act::Asked => (is_open, claims) = (true, 0),
            }
        }
    }
}

struct Model {
    world: World,
    leads: Vec<Known>,
    /// What was recorded, in order: the lead and the type of the event.
    events: Vec<(usize, &'static str)>,
    /// The worker's sends: the lead, the attempt, and the hold that a restart ends.
    sends: Vec<(usize, i64, Option<super::super::hands::Hold>)>,
}

fn number(lead: usize) -> u32 {
    u32::try_from(lead).unwrap()
}

impl Model {
    fn holds(&self, lead: usize) -> bool {
        self.sends.iter().any(|(held, _, hold)| *held == lead && hold.is_some())
    }

    fn now(&self) -> i64 {
        self.world.clock.now()
    }

    fn close(&mut self, lead: usize, is_sent: bool) {
        let (status, event) = if is_sent { ("sent", "notification_sent") } else { ("failed", "notification_failed") };
        self.leads[lead].close(status);
        self.events.push((lead, event));
    }

    fn ask(&mut self, lead: usize) {
        self.leads[lead].ask();
        self.events.push((lead, "notification_retry_requested"));
    }

    async fn insert(&mut self, status: &'static str) {
        self.world.insert(number(self.leads.len()), status).await;
        let history = if matches!(status, "pending" | "sending") { vec![] } else { vec![Act::Closed] };
        self.leads.push(Known {
            status,
            attempts: 0,
            cycle: 0,
            attempted_at: None,
            retries: 0,
            is_announced: false,
            history,
        });
    }

    async fn claim(&mut self, lead: usize) {
        let hands = self.world.hands.clone();
        let (lead_id, request) = (id(number(lead)), request(number(lead)));
        let answer = self.world.write(move |tx| claim(tx, &lead_id, Some(&request), &hands).unwrap()).await;
        let now = self.now();
        let may = self.leads.get(lead).is_some_and(|known| known.is_claimable(now)) && !self.holds(lead);
        assert_eq!(answer.claimed, may);
        if may {
            self.leads[lead].win(now, false);
        }
        let known = self.leads.get(lead).map_or(("missing", 0), |known| (known.status, known.attempts));
        assert_eq!((answer.current_status, answer.attempt_count), known);
    }

    async fn complete(&mut self, lead: usize, is_sent: bool, attempt: Option<i64>) {
        let (lead_id, request) = (id(number(lead)), request(number(lead)));
        let ending = if is_sent { Ending::Sent } else { failed("telegram_timeout") };
        let complete_it = move |tx: &Tx<'_>| complete(tx, &lead_id, Some(&request), &ending, attempt).unwrap();
        let answer = self.world.write(complete_it).await;
        let known = self.leads.get(lead).filter(|known| known.status == "sending");
        let is_changed = known.is_some_and(|known| attempt.is_none_or(|attempt| attempt == known.attempts));
        let ended = if is_sent { Completed::Sent } else { Completed::Failed };
        assert_eq!(answer, if is_changed { ended } else { Completed::Unchanged });
        if is_changed {
            self.close(lead, is_sent);
        }
    }

    async fn take(&mut self) {
        let hands = self.world.hands.clone();
        let work = move |tx: &Tx<'_>| next_for_worker(tx, &hands).unwrap().map(|next| take(tx, &next).unwrap());
        let taken = self.world.write(work).await;
        let now = self.now();
        let all = 0..self.leads.len();
        let stale = all.clone().filter(|&lead| self.leads[lead].is_stale(now) && !self.holds(lead));
        let oldest = stale.min_by_key(|&lead| (self.leads[lead].attempted_at, lead));
        // One in hand may wait again: somebody else completed it, and a person asked for it, while the worker still sends.
        let mut waiting = all.filter(|&lead| self.leads[lead].status == "pending" && !self.holds(lead));
        let Some(lead) = oldest.or_else(|| waiting.next()) else {
            assert_eq!(taken, None);
            return;
        };
        let known = &self.leads[lead];
        let is_too_old = known.status == "sending" && known.attempted_at.is_some_and(|at| now - at > 24 * 60 * MINUTE);
        if is_too_old || known.cycle >= 3 {
            assert_eq!(taken, Some(Taken::GivenUp));
            self.close(lead, false);
            return;
        }
        self.leads[lead].win(now, true);
        let Some(Taken::Claimed { lead_id, attempt, summary, .. }) = taken else { panic!("{taken:?}") };
        assert_eq!((lead_id.clone(), attempt), (id(number(lead)), self.leads[lead].attempts));
        assert!(summary.unwrap().contains(&request(number(lead))), "a repeated message is known by its ID");
        self.sends.push((lead, attempt, Some(self.world.hands.hold(&lead_id))));
    }

    async fn finish(&mut self, send: usize, is_sent: bool) {
        if send < self.sends.len() {
            let (lead, attempt, _hold) = self.sends.remove(send);
            self.complete(lead, is_sent, Some(attempt)).await;
        }
    }

    async fn retry(&mut self, lead: usize) {
        let (lead_id, request) = (id(number(lead)), request(number(lead)));
        let ask = move |tx: &Tx<'_>| {
            request_retry(tx, &lead_id, Some(&request), RetryReason::TelegramTemporaryError).unwrap()
        };
        let answer = self.world.write(ask).await;
        let is_failed = self.leads.get(lead).is_some_and(|known| known.status == "failed");
        assert_eq!(answer.retry_requested, is_failed);
        if is_failed {
            self.ask(lead);
        }
        assert_eq!(answer.current_status, self.leads.get(lead).map_or("missing", |known| known.status));
    }

    async fn enqueue(&mut self, limit: i64) {
        let all = self.leads.iter().enumerate().filter(|(_, known)| known.status == "disabled");
        let disabled: Vec<usize> = all.map(|(lead, _)| lead).take(usize::try_from(limit).unwrap()).collect();
        let count = self.world.write(move |tx| enqueue_disabled(tx, RetryReason::ManualRecovery, limit).unwrap()).await;
        assert_eq!(count, disabled.len());
        disabled.into_iter().for_each(|lead| self.ask(lead));
    }

    async fn announce(&mut self, delivery: Delivery) {
        self.world.write(move |tx| announce(tx, delivery, 100).unwrap()).await;
        for lead in 0..self.leads.len() {
            let known = &mut self.leads[lead];
            if !std::mem::replace(&mut known.is_announced, true) {
                if known.status == "pending" && delivery == Delivery::Off && known.retries == 0 {
                    known.close("disabled");
                }
                self.events.push((lead, "created"));
            }
        }
    }

    async fn restart(mut self) -> Self {
        for (_, _, hold) in &mut self.sends {
            *hold = None;
        }
        Self { world: self.world.restart().await, ..self }
    }

    async fn step(mut self, step: Step) -> Self {
        match step {
            Step::Insert(status) => self.insert(status).await,
            Step::Claim(lead) => self.claim(lead).await,
            Step::Complete { lead, is_sent, behind } => {
                let attempts = self.leads.get(lead).map_or(0, |known| known.attempts);
                self.complete(lead, is_sent, behind.map(|behind| attempts - behind)).await;
            }
            Step::Take => self.take().await,
            Step::Lose => {
                self.take().await;
                self.sends.clear();
                self.world.advance(16 * MINUTE);
            }
            Step::Finish { send, is_sent } => self.finish(send, is_sent).await,
            Step::Retry(lead) => self.retry(lead).await,
            Step::Enqueue(limit) => self.enqueue(limit).await,
            Step::Announce(delivery) => self.announce(delivery).await,
            Step::Advance(ms) => self.world.advance(ms),
            Step::Restart => return self.restart().await,
        }
        self
    }

    /// The file says what the model does, and the events are in step with it in both tables.
    async fn check(&self) {
        let rows = self.world.column(
            "SELECT concat_ws(' ', id, notification_status, notification_attempt_count, notification_cycle_claims,
                              COALESCE(notification_attempted_at, '-'), notification_manual_retry_count)
             FROM broker_leads ORDER BY id",
        );
        let known = self.leads.iter().enumerate().map(|(lead, known)| {
            let at = known.attempted_at.map_or("-".to_owned(), |at| at.to_string());
            let Known { status, attempts, cycle, retries, .. } = known;
            format!("{} {status} {attempts} {cycle} {at} {retries}", id(number(lead)))
        });
        assert_eq!(rows.await, known.collect::<Vec<_>>());
        let events = self.world.column("SELECT lead_id || ' ' || event_type FROM broker_lead_events ORDER BY id").await;
        let known = self.events.iter().map(|(lead, event)| format!("{} {event}", id(number(*lead))));
        assert_eq!(events, known.collect::<Vec<_>>());
        let published = self.events.iter().filter_map(|(lead, event)| {
            let name = match *event {
                "created" => "lead.received",
                "notification_sent" => "lead.notification_sent",
                "notification_failed" => "lead.notification_failed",
                _ => return None,
            };
            Some(format!("{name} {}", id(number(*lead))))
        });
        assert_eq!(self.world.published().await, published.collect::<Vec<_>>());
        self.leads.iter().for_each(Known::check);
    }
}

#[test]
fn any_order_of_claims_endings_retries_and_restarts_keeps_what_is_promised() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let play = async |steps: Vec<Step>| {
        let mut model = Model { world: World::new(), leads: vec![], events: vec![], sends: vec![] };
        for step in steps {
            model = model.step(step).await;
            model.check().await;
        }
        model.world.db.close().await;
    };
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(150) });
    runner
        .run(&steps(), |steps| {
            runtime.block_on(play(steps));
            Ok(())
        })
        .unwrap();
}
