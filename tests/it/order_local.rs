//! Order where the bot and its backend are one process: failing handlers, bindings, repairs, restarts and clock moves,
//! with a witness in the file that sees every ledger mark at the moment it is made.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use rusqlite::Connection;
use serde_json::json;

use crate::harness::dev::Dev;
use crate::harness::file::{add_chat, call_witness, column, disorder, value};
use crate::harness::until;
use crate::order::cases;

const PEOPLE: i64 = 3;

#[derive(Clone, Debug)]
enum Op {
    /// An event of a person, by uid, by chat, or by both; a bad one cannot be handled until it is repaired.
    Emit {
        person: i64,
        named: Named,
        is_bad: bool,
    },
    /// Many at once in one transaction of another program, of which every `bad`th is bad.
    Insert {
        number: i64,
        bad: i64,
    },
    Bind {
        person: i64,
    },
    Repair {
        person: i64,
    },
    Advance {
        minutes: u64,
    },
    Kill,
}

#[derive(Clone, Copy, Debug)]
enum Named {
    Uid,
    Chat,
    Both,
}

fn op() -> impl Strategy<Value = Op> {
    let named = prop::sample::select(vec![Named::Uid, Named::Chat, Named::Both]);
    prop_oneof![
        10 => (0..PEOPLE, named, prop::bool::weighted(0.3))
            .prop_map(|(person, named, is_bad)| Op::Emit { person, named, is_bad }),
        3 => (1..20_i64, 2..9_i64).prop_map(|(number, bad)| Op::Insert { number, bad }),
        3 => (0..PEOPLE).prop_map(|person| Op::Bind { person }),
        2 => (0..PEOPLE).prop_map(|person| Op::Repair { person }),
        4 => prop::sample::select(vec![1, 3, 9, 100]).prop_map(|minutes| Op::Advance { minutes }),
        1 => Just(Op::Kill),
    ]
}

/// The people of one case.
struct Case<'a> {
    dev: &'a mut Dev,
    conn: Connection,
    base: i64,
}

impl Case<'_> {
    fn uid(&self, person: i64) -> i64 {
        self.base + 1 + person
    }

    fn chat(&self, person: i64) -> i64 {
        1_000_000 + self.uid(person)
    }

    fn names(&self, person: i64, named: Named) -> (Option<i64>, Option<i64>) {
        match named {
            Named::Uid => (Some(self.uid(person)), None),
            Named::Chat => (None, Some(self.chat(person))),
            Named::Both => (Some(self.uid(person)), Some(self.chat(person))),
        }
    }

    fn step(&mut self, op: &Op) {
        match op {
            Op::Emit { person, named, is_bad } => {
                let (uid, chat) = self.names(*person, *named);
                let level = if *is_bad { "lp9" } else { "lp1" };
                self.dev.emit(&json!({"eventType": "status_nft_activated", "magnetUid": uid,
                                      "telegramId": chat.map(|id| id.to_string()), "payload": {"level": level}}));
            }
            Op::Insert { number, bad } => self.insert(*number, *bad),
            Op::Bind { person } => {
                let sql = "UPDATE members SET telegram_id = ?2 WHERE uid = ?1";
                self.conn.execute(sql, [self.uid(*person), self.chat(*person)]).expect("bound");
            }
            Op::Repair { person } => {
                let sql = "UPDATE bot_event_outbox SET payload = '{\"level\": \"lp2\"}'
                           WHERE (magnet_uid = ?1 OR telegram_id = ?2) AND payload LIKE '%lp9%'";
                self.conn.execute(sql, [self.uid(*person), self.chat(*person)]).expect("repaired");
            }
            Op::Advance { minutes } => self.dev.advance(Duration::from_secs(60 * minutes)),
            Op::Kill => self.dev.start_again(),
        }
    }

    fn insert(&self, number: i64, bad: i64) {
        self.conn.execute_batch("BEGIN IMMEDIATE").expect("the lock comes within the time-out");
        for n in 0..number {
            let named = [Named::Uid, Named::Chat, Named::Both][usize::try_from(n % 3).expect("small")];
            let (uid, chat) = self.names(n % PEOPLE, named);
            let level = if n % bad == bad - 1 { "lp9" } else { "lp1" };
            let sql = "INSERT INTO bot_event_outbox (event_type, magnet_uid, telegram_id, payload)
                       VALUES ('status_nft_activated', ?1, ?2, json_object('level', ?3))";
            self.conn.execute(sql, (uid, chat, level)).expect("an event");
        }
        self.conn.execute_batch("COMMIT").expect("committed");
    }

    /// Repairs everything and lets time pass until all is closed; then the witness is heard.
    fn end(&mut self) {
        for person in 0..PEOPLE {
            self.step(&Op::Repair { person });
        }
        let open = "SELECT count(*) FROM bot_event_outbox WHERE processed_at IS NULL AND dead_lettered_at IS NULL";
        let due = "SELECT count(*) FROM bot_event_lanes WHERE due_at <= ?1";
        until("everything is closed", || {
            if value::<i64>(&self.conn, open, []) == 0 {
                return Some(());
            }
            if value::<i64>(&self.conn, due, [self.dev.now()]) == 0 {
                self.dev.advance(Duration::from_secs(18 * 3600));
            }
            None
        });
        assert_eq!(disorder(&self.conn), [], "(event, subject, earlier open ones)");
        let twice = "SELECT event_id FROM witness GROUP BY event_id HAVING count(*) > 1";
        assert_eq!(column::<i64>(&self.conn, twice, []), [0_i64; 0], "marked more than once");
        // The ledger itself forgets after thirty days, which pass quickly here.
        let unlike = "SELECT id FROM bot_event_outbox AS e WHERE (outcome = 'handled') <> EXISTS (
                        SELECT 1 FROM witness WHERE event_id = e.id)";
        assert_eq!(
            column::<i64>(&self.conn, unlike, []),
            [0_i64; 0],
            "handled without a mark, or marked and not handled"
        );
        let bad = "SELECT id FROM bot_event_outbox WHERE outcome = 'handled' AND payload LIKE '%lp9%'";
        assert_eq!(column::<i64>(&self.conn, bad, []), [0_i64; 0], "handled although it cannot be");
    }
}

#[test]
fn the_local_bot_handles_each_subject_in_its_order() {
    let dev = RefCell::new(Dev::start(&["store.ballast=0", "store.synchronous=normal"]));
    call_witness(&dev.borrow().writer());
    let number = Cell::new(0);
    let checked = TestRunner::new(cases(40)).run(&prop::collection::vec(op(), 1..30), |ops| {
        number.set(number.get() + 1);
        let mut dev = dev.borrow_mut();
        let conn = dev.writer();
        let mut case = Case { dev: &mut dev, conn, base: number.get() * 100 };
        for person in 0..PEOPLE {
            case.conn.execute("INSERT INTO members (uid) VALUES (?1)", [case.uid(person)]).expect("a member");
            add_chat(&case.conn, None, case.chat(person));
        }
        ops.iter().for_each(|op| case.step(op));
        case.end();
        Ok(())
    });
    if let Err(failed) = checked {
        panic!("{failed}");
    }
    let conn = dev.borrow().reader();
    let failures: i64 = value(&conn, "SELECT sum(attempts) FROM bot_event_outbox", []);
    assert!(failures > 50, "handlers failed {failures} times: enough to have held subjects");
}
