//! The inbox on a real file, with a clock that is moved by hand.

use super::*;
use crate::kernel::clock::Clock;
use crate::kernel::store::{Db, Role, Settings, StoreError, Tx};

const START: i64 = 1_800_000_000_000;

struct World {
    db: Db,
    clock: Clock,
    _dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::stopped_at(START);
        let db = Db::open(dir.path(), Role::Owner("test"), &Settings::small(), clock.clone(), vec![]).unwrap();
        Self { db, clock, _dir: dir }
    }

    async fn run<T: Send + 'static>(&self, work: impl FnOnce(&Tx<'_>) -> Result<T, StoreError> + Send + 'static) -> T {
        self.db.write(work).await.unwrap()
    }

    /// Stores one update of each pair of number and chat; which were new.
    async fn store(&self, updates: &'static [(i64, i64)]) -> Vec<usize> {
        let batch: Vec<Received> = updates.iter().map(|&(number, chat)| received(number, chat)).collect();
        self.run(move |tx| store(tx, 7, &batch, batch.iter().map(|it| it.update_id + 1).max())).await
    }

    async fn heads(&self) -> Vec<(i64, i64)> {
        self.run(|tx| Ok(due(tx, 64)?.into_iter().map(|head| (head.id, head.chat_id)).collect())).await
    }

    async fn fail(&self, id: i64, attempts: i64) -> Fate {
        self.run(move |tx| put_off(tx, id, attempts, Why::Failed("content"))).await
    }

    async fn plan(&self, sql: &'static str) -> String {
        let names = [":now", ":limit", ":id", ":cutoff", ":after", ":chat_id"];
        let literal = names.iter().fold(sql.to_owned(), |sql, name| sql.replace(name, "1"));
        self.run(move |tx| tx.plan(&literal)).await
    }
}

fn received(update_id: i64, chat_id: i64) -> Received {
    let raw = format!(r#"{{"update_id":{update_id},"message":{{}}}}"#);
    Received { update_id, chat_id, kind: "message".into(), raw, tap: None }
}

#[tokio::test]
async fn what_comes_again_is_known() {
    let world = World::new();
    assert_eq!(world.store(&[(10, 1), (11, 2)]).await, [0, 1]);
    assert_eq!(world.store(&[(10, 1), (11, 2), (12, 1)]).await, [2]);
    assert_eq!(world.store(&[(12, 1)]).await, [0_usize; 0]);
    let of_another_bot = world.run(|tx| store(tx, 8, &[received(10, 1)], Some(11))).await;
    assert_eq!(of_another_bot, [0], "another bot counts for itself");
    assert!(world.run(|tx| mark_handled(tx, 1, 0)).await);
    assert_eq!(world.store(&[(10, 1)]).await, [0_usize; 0], "a handled one is known too");
}

#[tokio::test]
async fn the_offset_stands_with_the_updates_and_does_not_outlive_six_days() {
    let world = World::new();
    let standing = || world.run(|tx| standing(tx, 7));
    assert_eq!(standing().await, Standing::default());
    world.store(&[(10, 1), (12, 1)]).await;
    assert_eq!(standing().await.next_offset, Some(13));
    world.run(|tx| note_webhook(tx, 7, Some("https://a.example/"))).await;
    world.clock.advance(std::time::Duration::from_secs(6 * 86_400 + 1));
    let now = standing().await;
    assert_eq!((now.next_offset, now.webhook_url.as_deref()), (None, Some("https://a.example/")));
    world.store(&[(3, 1)]).await;
    assert_eq!(standing().await.next_offset, Some(4), "a lower number after a silent week");
}

#[tokio::test]
async fn a_failing_update_holds_its_chat_and_no_other() {
    let world = World::new();
    world.store(&[(10, 1), (11, 1), (12, 2)]).await;
    assert_eq!(world.heads().await, [(1, 1), (3, 2)]);
    assert_eq!(world.fail(1, 0).await, Fate::Waits(START + 2_000));
    assert_eq!(world.heads().await, [(3, 2)]);
    assert!(world.run(|tx| Ok(find_head(tx, 2)?.is_none())).await, "it is behind the failed one");
    assert_eq!(world.run(next_due).await, Some(START + 2_000));
    world.clock.advance(std::time::Duration::from_secs(2));
    assert!(world.run(|tx| mark_handled(tx, 1, 1)).await);
    assert_eq!(world.heads().await, [(2, 1), (3, 2)]);
}

#[tokio::test]
async fn the_tenth_failure_is_death_and_the_chat_goes_on() {
    let world = World::new();
    world.store(&[(10, 1), (11, 1)]).await;
    for attempt in 0..9 {
        let wait = 2_000 << attempt;
        assert_eq!(world.fail(1, attempt).await, Fate::Waits(world.clock.now() + wait));
        world.clock.advance(std::time::Duration::from_millis(wait.unsigned_abs()));
    }
    assert_eq!(world.fail(1, 9).await, Fate::Dead);
    assert_eq!(world.heads().await, [(2, 1)]);
    let (dead, raw) = world.run(|tx| Ok(find(tx, 1)?.unwrap())).await;
    assert_eq!((dead.state.as_str(), dead.failures, dead.error_code.as_deref()), ("dead", 10, Some("content")));
    assert!(raw.is_some(), "a dead one is kept whole");
    assert!(world.run(|tx| replay(tx, 1)).await && !world.run(|tx| replay(tx, 2)).await);
    assert_eq!(world.heads().await, [(1, 1)], "at its old place");
    assert_eq!(world.fail(1, 10).await, Fate::Waits(world.clock.now() + 2_000), "counted anew");
}

#[tokio::test]
async fn what_cannot_be_read_is_dead_at_once_and_a_backend_away_counts_for_nothing() {
    let world = World::new();
    world.store(&[(10, 1), (11, 2)]).await;
    assert_eq!(world.run(|tx| put_off(tx, 1, 0, Why::Hopeless("unreadable"))).await, Fate::Dead);
    for (attempt, wait) in [(0, 5), (1, 10), (2, 20), (3, 40), (4, 60), (5, 60)] {
        let fate = world.run(move |tx| put_off(tx, 2, attempt, Why::BackendAway)).await;
        assert_eq!(fate, Fate::Waits(world.clock.now() + wait * 1_000));
    }
    let (waiting, _) = world.run(|tx| Ok(find(tx, 2)?.unwrap())).await;
    assert_eq!((waiting.attempts, waiting.failures, waiting.state.as_str()), (6, 0, "pending"));
}

#[tokio::test]
async fn an_attempt_that_was_overtaken_changes_nothing() {
    let world = World::new();
    world.store(&[(10, 1)]).await;
    assert!(matches!(world.fail(1, 0).await, Fate::Waits(_)));
    assert_eq!(world.fail(1, 0).await, Fate::Overtaken);
    assert!(!world.run(|tx| mark_handled(tx, 1, 0)).await);
    assert!(world.run(|tx| mark_handled(tx, 1, 1)).await);
    assert_eq!(world.fail(1, 2).await, Fate::Overtaken, "it is handled");
}

#[tokio::test]
async fn handled_ones_are_deleted_when_they_are_old_and_dead_ones_are_not() {
    let world = World::new();
    world.store(&[(10, 1), (11, 2), (12, 3)]).await;
    world.run(|tx| mark_handled(tx, 1, 0)).await;
    world.run(|tx| put_off(tx, 2, 0, Why::Hopeless("unreadable"))).await;
    world.clock.advance(std::time::Duration::from_secs(10));
    let stats = world.run(stats).await;
    assert_eq!(stats, Stats { pending: 1, waiting_chats: 1, dead: 1, oldest_age_ms: Some(10_000) });
    assert_eq!(world.run(|tx| prune(tx, START, 500)).await, 0);
    assert_eq!(world.run(|tx| prune(tx, START + 1, 500)).await, 1);
    let left = |state| Filter { state, limit: 10, ..Filter::default() };
    let ids = |page: Vec<Listed>| page.into_iter().map(|listed| listed.id).collect::<Vec<_>>();
    assert_eq!(ids(world.run(move |tx| list(tx, &left(None))).await), [2, 3]);
    assert_eq!(ids(world.run(move |tx| list(tx, &left(Some(State::Dead)))).await), [2]);
    assert_eq!(ids(world.run(move |tx| list(tx, &left(Some(State::Pending)))).await), [3]);
}

#[tokio::test]
async fn repeated_statements_use_their_indexes() {
    let world = World::new();
    let due = world.plan(sql::DUE_HEADS).await;
    assert!(due.contains("COVERING INDEX telegram_update_lanes_due (due_at<?)") && !due.contains("TEMP"), "{due}");
    assert!(world.plan(sql::NEXT_DUE).await.contains("telegram_update_lanes_due (due_at>?)"));
    let head = world.plan(sql::FIND_HEAD).await;
    assert!(head.contains("SEARCH u USING INTEGER PRIMARY KEY") && head.contains("SEARCH l USING INTEGER"), "{head}");
    assert!(world.plan(sql::LIST_PENDING).await.contains("telegram_updates_open"));
    let dead = world.plan(sql::LIST_DEAD).await;
    assert!(dead.contains("telegram_updates_dead (id>?)") && !dead.contains("TEMP"), "{dead}");
    assert!(world.plan(sql::DELETE_HANDLED).await.contains("telegram_updates_handled (finished_at<?)"));
    let sql = "SELECT id FROM telegram_updates WHERE chat_id = 1 AND status = 'pending' ORDER BY id LIMIT 1";
    let lane = world.plan(sql).await;
    assert!(lane.contains("telegram_updates_open (chat_id=?)") && !lane.contains("TEMP"), "{lane}");
}
