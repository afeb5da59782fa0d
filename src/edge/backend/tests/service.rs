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
    for status in ["503 Down", "503 Down", "503 Down", "502 Down", "503 Down"] {
        peer.fails("/pending", Fault::Answer(status, String::new()));
    }
    let parts = Parts { db: db.clone(), messenger: None, remote: Some(backend.clone()), stop: stop.clone() };
    let app = Arc::new(App::build(&settings, parts).await.unwrap());
    let running = tokio::spawn(Driver::new(app).run(stop.clone()));

    // The run before a request has been recorded, since runs of a job do not overlap.
    for (request, recorded) in [(1, 0), (2, 1), (3, 1), (4, 1), (5, 2), (6, 3)] {
        requests(&peer, "/pending", request).await;
        assert_eq!(failed_runs(&db).await, recorded, "at request {request}");
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
