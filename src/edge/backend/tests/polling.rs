//! The jobs of a whole service whose backend is elsewhere: a fault that lasts is told once, and calls leave by a wake.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::peer::{Fault, Peer};
use super::{NOW, config, open, remote};
use crate::app::{App, Parts};
use crate::config::{Config, EventSource};
use crate::edge::jobs::Driver;
use crate::kernel::clock::Clock;
use crate::kernel::contract::WebNotification;
use crate::kernel::store::{Db, StoreError};
use crate::onboarding::Backend;

/// Returns once the backend has had that many requests to `path`.
async fn requests(peer: &Peer, path: &str, wanted: usize) {
    let waiting = async {
        while peer.state().heads.iter().filter(|head| head.contains(path)).count() < wanted {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("the request is made");
}

async fn failed_runs(db: &Db) -> i64 {
    let count = db.read(|tx| {
        let sql = "SELECT count(*) FROM job_runs WHERE job = 'bot-outbox-poll' AND outcome = 'failed'";
        tx.query_one(sql, [], |row| row.get(0))
    });
    count.await.unwrap_or_else(|error: StoreError| panic!("{error}"))
}

#[tokio::test]
async fn a_backend_that_stays_away_is_told_once_and_calls_leave_when_they_are_committed() {
    let dir = tempfile::tempdir().unwrap();
    let clock = Clock::stopped_at(NOW);
    let db = open(dir.path(), clock.clone());
    let peer = Peer::start().await;
    let backend = Arc::new(remote(&db, &peer.url(), "shop"));
    let mut settings = Config::default();
    settings.bot.event_source = EventSource::Remote(config(&peer.url(), "shop"));
    let stop = CancellationToken::new();
    for status in ["503 Down", "503 Down", "503 Down", "200 OK", "503 Down", "502 Down", "200 OK"] {
        peer.fails("/pending", Fault::Answer(status, r#"{"events":[]}"#.into()));
    }
    let parts = Parts {
        db: db.clone(),
        messenger: None,
        lead_messenger: None,
        remote: Some(backend.clone()),
        reader: None,
        stop: stop.clone(),
    };
    let app = Arc::new(App::build(&settings, parts).await.unwrap());
    let running = tokio::spawn(Driver::new(app).run(stop.clone()));

    for request in 1..=7 {
        requests(&peer, "/pending", request).await;
        // Looked at during a run that succeeds: those before it have been recorded.
        match request {
            4 => assert_eq!(failed_runs(&db).await, 1, "the same fault is told once"),
            7 => assert_eq!(failed_runs(&db).await, 3, "one that comes back or changes is told again"),
            _ => {}
        }
        clock.advance(Duration::from_secs(60));
    }

    let notification = WebNotification {
        magnet_uid: 7,
        kind: "new_partner".into(),
        title: "T".into(),
        body: "B".into(),
        dedup_key: Some("k".into()),
    };
    db.write(move |tx| backend.notify(tx, &notification)).await.unwrap();
    requests(&peer, "/notification", 1).await;
    stop.cancel();
    running.await.unwrap();
    db.close().await;
}
