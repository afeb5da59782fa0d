//! The consumer with a reaction that fails: panics, errors, and what they do to the rest of a page.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::{Consumer, Context};
use crate::kernel::clock::Clock;
use crate::kernel::contract::{BotEvent, Bound, ConnectLink, Leader, MemberState, Payload, WebNotification};
use crate::kernel::store::{Db, Role, Settings, StoreError, Tx};
use crate::onboarding::content::{Content, Lang};
use crate::onboarding::{Backend, BackendError, Error, Fate, Finished, PageEvent};

/// Serves the same page until it is told that all of it was processed.
struct OnePage {
    events: Vec<PageEvent>,
    done: AtomicBool,
}

impl Backend for OnePage {
    fn source(&self) -> &'static str {
        "test"
    }
    fn next_page(&self, _: i64) -> BoxFuture<'_, Result<Vec<PageEvent>, BackendError>> {
        let page = if self.done.load(Ordering::SeqCst) { Vec::new() } else { self.events.clone() };
        async move { Ok(page) }.boxed()
    }
    fn hold<'a>(&'a self, _: &'a [i64]) -> BoxFuture<'a, Result<(), BackendError>> {
        async { Ok(()) }.boxed()
    }
    fn may_apply(&self, _: &Tx<'_>, _: i64) -> Result<bool, StoreError> {
        Ok(true)
    }
    fn close(&self, _: &Tx<'_>, _: i64) -> Result<(), StoreError> {
        Ok(())
    }
    fn put_off(&self, _: &Tx<'_>, _: i64, _: &str) -> Result<Fate, StoreError> {
        Ok(Fate::Theirs)
    }
    fn closes_at_once(&self) -> bool {
        false
    }
    fn finish<'a>(&'a self, _: &'a Finished) -> BoxFuture<'a, Result<(), BackendError>> {
        self.done.store(true, Ordering::SeqCst);
        async { Ok(()) }.boxed()
    }
    fn notify(&self, _: &Tx<'_>, _: &WebNotification) -> Result<(), StoreError> {
        Ok(())
    }
    fn find_leader<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Option<Leader>, BackendError>> {
        async { Ok(None) }.boxed()
    }
    fn find_account(&self, _: i64) -> BoxFuture<'_, Result<Option<i64>, BackendError>> {
        async { Ok(None) }.boxed()
    }
    fn find_state(&self, _: i64) -> BoxFuture<'_, Result<Option<MemberState>, BackendError>> {
        async { Ok(None) }.boxed()
    }
    fn connect_link(&self, _: i64) -> BoxFuture<'_, Result<Option<ConnectLink>, BackendError>> {
        async { Ok(None) }.boxed()
    }
    fn bind(&self, _: &Tx<'_>, _: i64, _: i64) -> Result<Option<Bound>, StoreError> {
        Ok(Some(Bound::Refused))
    }
}

fn event(id: i64, uid: i64) -> PageEvent {
    let event = BotEvent {
        id,
        event_type: "reactivation".into(),
        telegram_id: None,
        magnet_uid: Some(uid),
        payload: Payload::None,
        created_at: 0,
        attempts: 0,
    };
    PageEvent { subject: format!("uid:{uid}"), event }
}

fn open(dir: &std::path::Path) -> Db {
    let settings = Settings::small();
    Db::open(dir, Role::Owner("test"), &settings, Clock::stopped_at(1_000), vec![]).unwrap()
}

/// Writes a row for every event, then fails for member 1 in the way its id says.
fn react(tx: &Tx<'_>, _: &Context, entry: &PageEvent) -> Result<(), Error> {
    tx.execute("INSERT INTO bot_users (telegram_id) VALUES (?1)", [entry.event.id])?;
    match (entry.event.magnet_uid, entry.event.id) {
        (Some(1), 1) => panic!("on purpose"),
        (Some(2), 3) => Err(Error::UnknownType),
        _ => Ok(()),
    }
}

#[tokio::test]
async fn a_panicking_handler_is_a_failed_event_and_stops_only_its_subject() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(dir.path());
    let events = vec![event(1, 1), event(2, 1), event(3, 2), event(4, 2), event(5, 3), event(6, 3)];
    let backend = Arc::new(OnePage { events, done: AtomicBool::new(false) });
    let content = Arc::new(Content::shipped(Lang::Ru).unwrap());
    let consumer = Consumer { react, ..Consumer::new(db.clone(), backend, content) };
    let report = consumer.run_once(|| ()).await.unwrap();
    assert_eq!((report.processed, report.failed), (2, 2));
    let effects =
        db.read(|tx| tx.query_all("SELECT telegram_id FROM bot_users ORDER BY 1", [], |row| row.get::<_, i64>(0)));
    assert_eq!(effects.await.unwrap(), [5, 6], "a failed event's effects are taken back");
    let marks = db.read(|tx| {
        tx.query_all("SELECT outbox_event_id FROM bot_processed_events ORDER BY 1", [], |row| row.get::<_, i64>(0))
    });
    assert_eq!(marks.await.unwrap(), [5, 6], "and so is its mark");
    db.close().await;
}
