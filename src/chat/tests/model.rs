//! Random queueing, outcomes, crashes and clock moves, held against what the queue promises.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::super::queue::{self, Claimed};
use super::super::{Class, FailureCode};
use super::*;

const KINDS: [Kind; 5] = [Kind::Reply, Kind::Event, Kind::Help, Kind::Reminder, Kind::Broadcast];
const CHATS: [i64; 4] = [1, 2, 3, -4];

/// One message's life, as the world outside saw it.
#[derive(Debug, Default)]
struct Seen {
    calls: usize,
    /// Calls after which it may be in the chat.
    arrivals: usize,
}

/// What the test knows beside the file.
struct Model {
    rng: StdRng,
    queued: BTreeMap<i64, (i64, Kind)>,
    seen: BTreeMap<i64, Seen>,
    /// The calls of each lane of each chat, in their order.
    order: BTreeMap<(i64, Lane), Vec<i64>>,
    /// What each call that is still to be made in a chat will lead to.
    arrives: HashMap<i64, VecDeque<bool>>,
}

impl Model {
    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.rng.random_range(0..choices.len())]
    }

    fn outcome(&mut self) -> (Outcome, bool) {
        let unknown = Outcome::Unknown { code: FailureCode::Timeout };
        let refused = |class, code| Outcome::Refused { class, code };
        let limited = Class::RateLimited { retry_after: Some(Duration::from_secs(self.rng.random_range(1..20))) };
        match self.rng.random_range(0..9) {
            0 | 1 => (unknown, self.rng.random_bool(0.5)),
            2 => (refused(Class::Later, FailureCode::Connect), false),
            3 => (refused(limited, FailureCode::RateLimited), false),
            4 => (refused(Class::Final, FailureCode::TooLong), false),
            5 => (refused(Class::BadMarkup, FailureCode::BadMarkup), false),
            _ => (Outcome::Delivered { message_id: Some(1) }, true),
        }
    }

    fn call(&mut self, id: i64, may_have_arrived: bool) {
        let (chat_id, kind) = self.queued[&id];
        let seen = self.seen.entry(id).or_default();
        seen.calls += 1;
        seen.arrivals += usize::from(may_have_arrived);
        self.order.entry((chat_id, kind.lane())).or_default().push(id);
    }

    async fn queue(&mut self, world: &World) {
        let (chat_id, kind) = (self.pick(&CHATS), self.pick(&KINDS));
        let number = self.queued.len() + 1;
        let id = world.queue(message(chat_id, kind, &number.to_string())).await;
        assert_eq!(usize::try_from(id).unwrap(), number);
        self.queued.insert(id, (chat_id, kind));
    }

    async fn pass(&mut self, world: &World) {
        for chat in CHATS {
            for _ in 0..2 {
                let (outcome, arrived) = self.outcome();
                world.stage.will_answer(chat, outcome);
                self.arrives.entry(chat).or_default().push_back(arrived);
            }
        }
        world.pass().await;
        for (chat, text) in world.stage.calls() {
            // Plays that are used up deliver.
            let arrived = self.arrives.get_mut(&chat).and_then(VecDeque::pop_front).unwrap_or(true);
            self.call(text.parse().unwrap(), arrived);
        }
        world.stage.calls.lock().unwrap().clear();
        world.stage.plays.lock().unwrap().clear();
        self.arrives.clear();
    }

    /// The process ends after a claim, before or after its call.
    async fn crash(&mut self, world: World) -> World {
        let heads = world.db.read(|tx| {
            let all = Lane::ALL.into_iter().map(|lane| super::super::sql::claim::due_heads(tx, lane, None, 9));
            Ok::<_, Error>(all.collect::<Result<Vec<_>, _>>()?.concat())
        });
        if let Some(head) = heads.await.unwrap().first().copied() {
            let people = Arc::clone(&world.people);
            let claim = move |tx: &Tx<'_>| queue::claim(tx, people.as_ref(), head.id, tx.now() + 60_000);
            if matches!(world.db.write(claim).await.unwrap(), Claimed::Message(_)) {
                self.call(head.id, true);
            }
        }
        world.restart().await
    }

    async fn check(&self, world: &World) {
        for ((chat, lane), calls) in &self.order {
            assert!(calls.is_sorted(), "chat {chat} {lane:?}: {calls:?}");
        }
        for (id, seen) in &self.seen {
            let row = world.row(*id).await;
            let (_, kind) = self.queued[id];
            assert_eq!(usize::try_from(row.attempts).unwrap(), seen.calls, "message {id}");
            assert!(seen.arrivals <= 1 || row.doubts > 0, "message {id} arrived twice without a reason: {row:?}");
            assert!(row.status != "sent" || seen.arrivals > 0, "message {id} never arrived: {row:?}");
            let at_most_once = kind.lane() == Lane::Bulk;
            assert!(!at_most_once || seen.arrivals <= 1, "message {id} of kind {kind:?} arrived twice");
        }
    }
}

#[tokio::test]
async fn no_order_is_broken_and_no_second_copy_is_without_a_reason() {
    for seed in 0..25 {
        let mut model = Model {
            rng: StdRng::seed_from_u64(seed),
            queued: BTreeMap::new(),
            seen: BTreeMap::new(),
            order: BTreeMap::new(),
            arrives: HashMap::new(),
        };
        let mut world = World::new().await;
        for _ in 0..60 {
            match model.rng.random_range(0..10) {
                0..4 => model.queue(&world).await,
                4..7 => model.pass(&world).await,
                7..9 => world.advance(model.rng.random_range(0..15_000)),
                _ => world = model.crash(world).await,
            }
        }
        model.check(&world).await;
        // In the end everything comes to an end.
        for _ in 0..200 {
            world.advance(5_000);
            world.pass().await;
            for (_, text) in world.stage.calls.lock().unwrap().drain(..).map(|call| (call.chat_id, call.text)) {
                model.call(text.parse().unwrap(), true);
            }
        }
        model.check(&world).await;
        let open = world.db.read(|tx| {
            Ok::<_, Error>(tx.query_one(
                "SELECT COUNT(*) FROM telegram_messages WHERE status IN ('pending', 'sending')",
                [],
                |row| row.get::<_, i64>(0),
            )?)
        });
        assert_eq!(open.await.unwrap(), 0, "seed {seed}");
    }
}
