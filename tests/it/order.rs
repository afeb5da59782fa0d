//! Order: for one subject, no event is served before an earlier open one of it, through failures, retries, restarts,
//! bindings and clock moves. Random steps drive a server that a remote bot consumes from, beside a model of it.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};
use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::harness::dev::Dev;
use crate::harness::file::{column, rows};
use crate::harness::{PATIENCE, setting};
use crate::order_model::{Counts, Event, Model, State};

/// Nothing becomes due this soon after a look: a step takes far less.
const QUIET_MS: i64 = 5_000;

#[derive(Clone, Debug)]
enum Op {
    /// So many events of the same person.
    Emit(Who, &'static str, usize),
    Bind(usize, usize),
    Unbind(usize),
    /// What a bot does: fetch so many, handle each subject up to its first failure, acknowledge, and the same once
    /// more, as after a lost answer. A bit for each event that fails.
    Consume(usize, u16),
    /// An acknowledgement out of turn.
    Acknowledge(Which, Index, Verdict),
    /// Fails an event until it is given up.
    Exhaust(Index),
    /// `pillarbox outbox retry`.
    Reopen(Index),
    /// Minutes.
    Advance(u64),
    Restart(How),
}

#[derive(Clone, Copy, Debug)]
enum Who {
    Member(usize),
    Chat(usize),
    Both(usize, usize),
}

#[derive(Clone, Copy, Debug)]
enum Which {
    Open,
    Any,
}

#[derive(Clone, Copy, Debug)]
enum Verdict {
    Processed,
    Failed,
    Both,
    Unknown,
}

#[derive(Clone, Copy, Debug)]
enum How {
    Kill,
    Term,
}

const MEMBERS: usize = 3;
const CHATS: usize = 3;

fn op() -> impl Strategy<Value = Op> {
    let who = prop_oneof![
        (0..MEMBERS).prop_map(Who::Member),
        (0..CHATS).prop_map(Who::Chat),
        (0..MEMBERS, 0..CHATS).prop_map(|(member, chat)| Who::Both(member, chat)),
    ];
    let event_type = prop::sample::select(vec!["registered", "wallet_connected", "reactivation"]);
    let which = prop::sample::select(vec![Which::Open, Which::Open, Which::Any]);
    let verdict = prop_oneof![
        4 => Just(Verdict::Failed),
        1 => Just(Verdict::Processed),
        1 => Just(Verdict::Both),
        1 => Just(Verdict::Unknown),
    ];
    prop_oneof![
        12 => (who, event_type, 1..4_usize).prop_map(|(who, event_type, times)| Op::Emit(who, event_type, times)),
        4 => (0..MEMBERS, 0..CHATS).prop_map(|(member, chat)| Op::Bind(member, chat)),
        1 => (0..MEMBERS).prop_map(Op::Unbind),
        9 => (1..9_usize, any::<u16>()).prop_map(|(limit, fails)| Op::Consume(limit, fails)),
        6 => (which, any::<Index>(), verdict).prop_map(|(which, event, verdict)| Op::Acknowledge(which, event, verdict)),
        1 => any::<Index>().prop_map(Op::Exhaust),
        2 => any::<Index>().prop_map(Op::Reopen),
        4 => prop::sample::select(vec![1, 3, 5, 20, 600]).prop_map(Op::Advance),
        1 => prop::sample::select(vec![How::Kill, How::Term]).prop_map(Op::Restart),
    ]
}

/// What the cases have met, so that a property which never meets its danger does not pass.
#[derive(Debug, Default)]
struct Met {
    pages: u64,
    /// Pages while an event waited behind a head that was due.
    hidden: u64,
    /// Pages while a whole subject waited.
    waiting: u64,
    given_up: u64,
    reopened: u64,
}

/// The server, the model, and the people of this case, who are nobody of another case.
struct Case<'a> {
    dev: &'a mut Dev,
    conn: Connection,
    model: Model,
    base: i64,
    first_id: i64,
    met: &'a mut Met,
}

impl<'a> Case<'a> {
    /// Begins with nothing open: what an earlier case left, perhaps by failing, is acknowledged.
    fn begin(dev: &'a mut Dev, met: &'a mut Met, number: i64) -> Self {
        let conn = dev.writer();
        let open = "SELECT id FROM bot_event_outbox WHERE processed_at IS NULL AND dead_lettered_at IS NULL LIMIT 500";
        loop {
            let ids: Vec<i64> = column(&conn, open, []);
            if ids.is_empty() {
                break;
            }
            dev.http.done("/bot/events/ack", &json!({"processedIds": ids}));
        }
        let last: Vec<Option<i64>> = column(&conn, "SELECT max(id) FROM bot_event_outbox", []);
        let first_id = last[0].unwrap_or(0) + 1;
        Self { dev, conn, model: Model::default(), base: number * 100, first_id, met }
    }

    fn uid(&self, member: usize) -> i64 {
        self.base + 1 + i64::try_from(member).expect("few")
    }

    fn chat(&self, chat: usize) -> i64 {
        1_000_000 + self.uid(chat)
    }

    fn step(&mut self, op: &Op) {
        match op {
            Op::Emit(who, event_type, times) => (0..*times).for_each(|_| self.emit(*who, event_type)),
            Op::Bind(member, chat) => self.bind(self.uid(*member), self.chat(*chat)),
            Op::Unbind(member) => {
                let uid = self.uid(*member);
                self.conn.execute("UPDATE members SET telegram_id = NULL WHERE uid = ?1", [uid]).expect("unbound");
                self.model.unbind(uid);
            }
            Op::Consume(limit, fails) => self.consume(*limit, *fails),
            Op::Acknowledge(which, event, verdict) => self.acknowledge_one(*which, event, *verdict),
            Op::Exhaust(event) => self.exhaust(event),
            Op::Reopen(event) => self.reopen(event),
            Op::Advance(minutes) => self.dev.advance(Duration::from_secs(60 * minutes)),
            Op::Restart(by) => {
                if matches!(by, How::Term) {
                    self.dev.process.signal(Signal::TERM);
                    assert!(self.dev.process.wait(PATIENCE).success());
                }
                self.dev.start_again();
            }
        }
        assert_eq!(self.in_file(), self.model.events, "after {op:?}");
    }

    fn emit(&mut self, who: Who, event_type: &str) {
        let (uid, chat) = match who {
            Who::Member(member) => (Some(self.uid(member)), None),
            Who::Chat(chat) => (None, Some(self.chat(chat))),
            Who::Both(member, chat) => (Some(self.uid(member)), Some(self.chat(chat))),
        };
        let body = json!({"eventType": event_type, "magnetUid": uid, "telegramId": chat.map(|id| id.to_string())});
        let id = self.dev.emit(&body);
        self.model.emitted(id, event_type, uid, chat);
    }

    fn bind(&mut self, uid: i64, chat: i64) {
        if !self.model.may_bind(uid, chat) {
            return;
        }
        let sql = "INSERT INTO members (uid, telegram_id) VALUES (?1, ?2)
                   ON CONFLICT (uid) DO UPDATE SET telegram_id = excluded.telegram_id";
        self.conn.execute(sql, [uid, chat]).expect("bound");
        self.model.bind(uid, chat);
    }

    fn consume(&mut self, limit: usize, fails: u16) {
        let page = self.page(limit);
        let (mut processed, mut failed, mut stopped) = (Vec::new(), Vec::new(), Vec::new());
        for (place, id) in page.iter().enumerate() {
            let subject = self.model.find(*id).expect("only events of this case are open").subject.clone();
            if stopped.contains(&subject) {
                continue;
            }
            if fails & (1 << place) == 0 {
                processed.push(*id);
            } else {
                failed.push(*id);
                stopped.push(subject);
            }
        }
        self.acknowledge(&processed, &failed);
        self.acknowledge(&processed, &failed);
    }

    /// Fetches a page twice and compares it with what may be served.
    fn page(&mut self, limit: usize) -> Vec<i64> {
        let now = self.quiet_moment();
        let servable = self.model.servable(now);
        let fetch = || self.dev.http.get(&format!("/bot/events/pending?limit={limit}")).json();
        let page = fetch();
        assert_eq!(page, fetch(), "fetching takes nothing");
        let events = page["events"].as_array().expect("a list");
        let ids: Vec<i64> = events.iter().map(|event| event["id"].as_i64().expect("an id")).collect();
        let expected = &servable.ids[..limit.min(servable.ids.len())];
        self.met.pages += 1;
        self.met.waiting += u64::from(self.model.next_due(now).is_some() && !servable.has_hidden);
        if servable.has_hidden {
            self.met.hidden += 1;
            assert!(expected.starts_with(&ids), "served {ids:?} of {expected:?}");
            assert_eq!(ids.is_empty(), expected.is_empty(), "whatever may be served is served at last");
        } else {
            assert_eq!(ids, expected);
        }
        for event in events {
            self.compare_served(event);
        }
        ids
    }

    fn compare_served(&self, served: &Value) {
        let event = self.model.find(served["id"].as_i64().expect("an id")).expect("an event of this case");
        assert_eq!(served["eventType"], json!(event.event_type));
        assert_eq!(served["magnetUid"], json!(event.uid));
        assert_eq!(served["telegramId"], json!(event.chat.map(|id| id.to_string())));
        assert_eq!(served["attempts"], json!(event.attempts));
    }

    fn acknowledge_one(&mut self, which: Which, event: &Index, verdict: Verdict) {
        let ids: Vec<i64> = self
            .model
            .events
            .iter()
            .filter(|event| matches!(which, Which::Any) || event.state == State::Open)
            .map(|event| event.id)
            .collect();
        if ids.is_empty() {
            return;
        }
        let id = *event.get(&ids);
        match verdict {
            Verdict::Processed => self.acknowledge(&[id], &[]),
            Verdict::Failed => self.acknowledge(&[], &[id]),
            Verdict::Both => self.acknowledge(&[id], &[id]),
            Verdict::Unknown => self.acknowledge(&[id + 1_000_000_000], &[id + 1_000_000_001]),
        }
    }

    fn exhaust(&mut self, event: &Index) {
        if self.model.events.is_empty() {
            return;
        }
        let id = event.get(&self.model.events).id;
        while let Some(Event { state: State::Open, next_retry, .. }) = self.model.find(id).cloned() {
            if let Some(wait) = next_retry.map(|at| at - self.dev.now()).filter(|wait| *wait > 0) {
                self.dev.advance(Duration::from_millis(wait.unsigned_abs() + 1));
            }
            self.acknowledge(&[], &[id]);
        }
        self.met.given_up += 1;
    }

    /// One that was given up, if there is any; else one that must be left alone.
    fn reopen(&mut self, event: &Index) {
        let is_given_up = |event: &&Event| matches!(event.state, State::Abandoned | State::Dead);
        let mut ids: Vec<i64> = self.model.events.iter().filter(is_given_up).map(|event| event.id).collect();
        if ids.is_empty() {
            ids = self.model.events.iter().map(|event| event.id).collect();
        }
        if ids.is_empty() {
            return;
        }
        let id = *event.get(&ids);
        let was_given_up = self.model.reopen(id);
        self.met.reopened += u64::from(was_given_up);
        let done = self.dev.command(&["outbox", "retry", &id.to_string()]);
        assert_eq!(done.status.success(), was_given_up, "{done:?}");
    }

    /// Acknowledges, and holds the answer against the model's.
    fn acknowledge(&mut self, processed: &[i64], failed: &[i64]) {
        let before = self.quiet_moment();
        let retry: Vec<Value> = failed.iter().map(|id| json!({"id": id, "error": "on purpose"})).collect();
        let answer = self.dev.http.done("/bot/events/ack", &json!({"processedIds": processed, "retryIds": retry}));
        let number = |name: &str| answer[name].as_i64().unwrap_or_else(|| panic!("{name} in {answer}"));
        let answered = Counts {
            processed: number("processed"),
            retried: number("retried"),
            abandoned: number("abandoned"),
            dead_lettered: number("deadLettered"),
            unknown: number("unknown"),
        };
        // The instant of the acknowledgement is the server's; the file says which it was.
        let at = "SELECT max(last_attempt_at) FROM bot_event_outbox WHERE last_attempt_at >= ?1";
        let at = column::<Option<i64>>(&self.conn, at, [before])[0].unwrap_or(before);
        assert!(at <= self.dev.now());
        assert_eq!(answered, self.model.acknowledge(processed, failed, at), "{processed:?} {failed:?}");
    }

    /// A moment soon after which nothing becomes due, so that the server and the model cannot see different sides of
    /// an instant.
    fn quiet_moment(&self) -> i64 {
        loop {
            let now = self.dev.now();
            if self.model.next_due(now).is_none_or(|at| at > now + QUIET_MS) {
                return now;
            }
            self.dev.advance(Duration::from_millis(QUIET_MS.unsigned_abs() + 1));
        }
    }

    /// This case's events as the file has them.
    fn in_file(&self) -> Vec<Event> {
        let sql = "SELECT id, event_type, magnet_uid, telegram_id, subject, attempts, next_retry_at, outcome,
                          dead_lettered_at IS NOT NULL, locked_until IS NULL
                   FROM bot_event_outbox WHERE id >= ?1 ORDER BY id";
        rows(&self.conn, sql, [self.first_id], |row| {
            assert!(row.get::<_, bool>(9)?, "nothing is leased to a remote bot");
            Ok(Event {
                id: row.get(0)?,
                event_type: row.get(1)?,
                uid: row.get(2)?,
                chat: row.get(3)?,
                subject: row.get(4)?,
                state: match (row.get::<_, Option<String>>(7)?.as_deref(), row.get(8)?) {
                    (None, false) => State::Open,
                    (None, true) => State::Dead,
                    (Some("handled"), _) => State::Handled,
                    (Some(_), _) => State::Abandoned,
                },
                attempts: row.get(5)?,
                next_retry: row.get(6)?,
            })
        })
    }
}

/// Cases of a property; `PILLARBOX_CASES` asks for more of them.
pub(crate) fn cases(usual: u32) -> Config {
    let cases = setting("PILLARBOX_CASES").map_or(usual, |number| u32::try_from(number).expect("a sensible number"));
    Config { cases, failure_persistence: None, max_shrink_iters: 300, ..Config::default() }
}

#[test]
fn a_remote_bot_is_served_each_subject_in_its_order() {
    let dev = RefCell::new(Dev::start(&["bot.event_source=off", "store.ballast=0", "store.synchronous=normal"]));
    let (number, met) = (Cell::new(0), RefCell::new(Met::default()));
    let checked = TestRunner::new(cases(60)).run(&prop::collection::vec(op(), 1..50), |ops| {
        number.set(number.get() + 1);
        let (mut dev, mut met) = (dev.borrow_mut(), met.borrow_mut());
        let mut case = Case::begin(&mut dev, &mut met, number.get());
        ops.iter().for_each(|op| case.step(op));
        case.page(500);
        Ok(())
    });
    if let Err(failed) = checked {
        panic!("{failed}");
    }
    let met = met.into_inner();
    eprintln!("{met:?}");
    assert!(met.pages > 200 && met.hidden > 5 && met.waiting > 20 && met.given_up > 5 && met.reopened > 2, "{met:?}");
}
