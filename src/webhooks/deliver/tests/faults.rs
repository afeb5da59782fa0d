//! What goes wrong in between, and what it costs.

use super::*;
use crate::webhooks::resolve::Line;

#[tokio::test]
async fn a_panic_in_one_attempt_costs_that_attempt_only() {
    let world = World::new();
    world.script.will("panics.example", Line::Panics);
    let bad = world.endpoint("http://panics.example/").await;
    let receiver = Receiver::that(Play::Answer("200 X")).await;
    let good = world.endpoint(&receiver.url).await;
    let unlucky = world.delivery(bad).await;
    world.events(good, 5).await;
    let report = world.run().await;
    // At once again, and by the schedule after the third time.
    assert_eq!((report.delivered, report.again), (5, 3));
    assert_eq!(world.journal(unlucky).await, vec![Some("interrupted".to_owned()); 3]);
    assert_eq!(world.row(unlucky).await.next_attempt_at, Some(START + 5000));
    world.worker.drain().await;
    assert_eq!(world.count("sending").await, 0, "nothing is left in hand");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_under_way_when_the_process_ended_is_sent_again() {
    let world = World::new();
    let receiver = Receiver::that(Play::Hang).await;
    let endpoint = world.endpoint(&receiver.url).await;
    let delivery = world.delivery(endpoint).await;
    let passes = world.drive();
    receiver.got_so_many(1).await;
    passes.abort();
    let _ = passes.await;
    let world = world.restart().await;
    receiver.will(Play::Answer("200 X"));
    let report = world.run().await;
    assert_eq!((report.interrupted, report.delivered), (1, 1));
    assert_eq!(world.journal(delivery).await, [Some("interrupted".to_owned()), None]);
    let got = receiver.got();
    assert_eq!(got.len(), 2);
    assert_eq!((got[0].id(), &got[0].body), (got[1].id(), &got[1].body));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_in_hand_is_not_taken_up_whatever_the_clock_says() {
    for jump in [365 * 24 * 3_600_000, -365 * 24 * 3_600_000_i64] {
        let world = World::new();
        let receiver = Receiver::that(Play::Hang).await;
        let endpoint = world.endpoint(&receiver.url).await;
        let delivery = world.delivery(endpoint).await;
        let passes = world.drive();
        receiver.got_so_many(1).await;
        world.stop.cancel();
        passes.await.unwrap();
        world.clock.set(START + jump);
        // A pass that is stopped still takes up what was cut off.
        assert_eq!(world.run().await.interrupted, 0);
        assert_eq!((receiver.count(), world.status(delivery).await.as_str()), (1, "sending"), "{jump}");
        receiver.release(1);
        world.becomes(delivery, "delivered").await;
        assert_eq!(world.journal(delivery).await, [None]);
    }
}

#[tokio::test]
async fn a_clock_that_is_set_back_holds_up_nothing_that_comes_after() {
    let world = World::new();
    let receiver = Receiver::that(Play::Answer("200 X")).await;
    let endpoint = world.endpoint(&receiver.url).await;
    world.execute("UPDATE webhook_endpoints SET rate_per_second = 1", vec![]).await;
    world.delivery(endpoint).await;
    assert_eq!(world.run().await.delivered, 1);
    world.clock.set(START - 3_600_000);
    let delivery = world.event("evt_after", "{}", &[endpoint]).await[0];
    assert_eq!(world.run().await.delivered, 1);
    assert_eq!(world.status(delivery).await, "delivered");
    assert_eq!(receiver.got()[1].at_s(), (START - 3_600_000) / 1000);
}

#[tokio::test]
async fn an_endpoint_whose_secret_does_not_open_waits_and_holds_up_nobody() {
    let world = World::new();
    let receiver = Receiver::that(Play::Answer("200 X")).await;
    let good = world.endpoint(&receiver.url).await;
    let bad = world.endpoint(&format!("{}?bad", receiver.url)).await;
    world
        .execute("UPDATE webhook_secrets SET sealed = ?1 WHERE endpoint = ?2", vec![vec![0; 72].into(), bad.into()])
        .await;
    let waits = world.delivery(bad).await;
    world.events(good, 5).await;
    let report = world.run().await;
    assert_eq!((report.delivered, report.next), (5, Some(START + 60_000)));
    let row = world.row(waits).await;
    assert_eq!((row.status.as_str(), row.attempts), ("pending", 0), "no attempt is lost");
    // The right secret is put back.
    let sealed = world
        .vault
        .seal(&format!("ep_{}_bad", receiver.url.replace(|c: char| !c.is_ascii_alphanumeric(), "_")), &SECRET, false)
        .unwrap();
    world.execute("UPDATE webhook_secrets SET sealed = ?1 WHERE endpoint = ?2", vec![sealed.into(), bad.into()]).await;
    world.clock.advance(Duration::from_secs(60));
    assert_eq!(world.run().await.delivered, 1);
}

#[tokio::test]
async fn a_row_that_cannot_be_changed_keeps_no_other_endpoint_from_its_turn() {
    let world = World::new();
    let receiver = Receiver::that(Play::Answer("200 X")).await;
    let (good, bad) = (world.endpoint(&receiver.url).await, world.endpoint(&format!("{}?bad", receiver.url)).await);
    let stuck = world.delivery(bad).await;
    world.events(good, 5).await;
    let trigger = "CREATE TRIGGER no BEFORE UPDATE ON webhook_deliveries WHEN OLD.endpoint = 2
                   BEGIN SELECT RAISE(ABORT, 'no'); END";
    assert_eq!(bad, 2);
    world.execute(trigger, vec![]).await;
    let report = world.run().await;
    assert_eq!((report.delivered, report.next), (5, Some(START + 60_000)));
    assert_eq!(world.row(stuck).await.attempts, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_cannot_be_written_keeps_no_other_from_it() {
    let world = World::new();
    let receiver = Receiver::that(Play::Hang).await;
    let endpoint = world.proven(&receiver).await;
    let deliveries = world.events(endpoint, 4).await;
    let trigger = "CREATE TRIGGER no BEFORE INSERT ON webhook_attempts WHEN NEW.delivery = 10
                   BEGIN SELECT RAISE(ABORT, 'no'); END";
    assert_eq!(deliveries[1], 10);
    world.execute(trigger, vec![]).await;
    let passes = world.drive();
    receiver.got_so_many(PROVEN + 4).await;
    // Together, so that they are written together.
    receiver.release(4);
    for delivery in [deliveries[0], deliveries[2], deliveries[3]] {
        world.becomes(delivery, "delivered").await;
    }
    world.stop.cancel();
    passes.await.unwrap();
    world.worker.drain().await;
    assert_eq!(world.status(deliveries[1]).await, "sending", "nobody knows what became of it");
    world.execute("DROP TRIGGER no", vec![]).await;
    receiver.will(Play::Answer("200 X"));
    let world = world.restart().await;
    let report = world.run().await;
    assert_eq!((report.interrupted, report.delivered), (1, 1));
    assert_eq!(receiver.count(), PROVEN + 5);
}

#[tokio::test]
async fn a_row_that_cannot_be_taken_up_keeps_no_other_from_it_and_is_tried_again_later() {
    let spoilt = [
        "CREATE TRIGGER no BEFORE UPDATE ON webhook_deliveries WHEN OLD.id = 2 BEGIN SELECT RAISE(ABORT, 'no'); END",
        // The number of its journal is taken.
        "INSERT INTO webhook_attempts (delivery, number, trigger, started_at) VALUES (2, 1, 'schedule', 1)",
        // As a program with the checks switched off may write it: it cannot even be read.
        "UPDATE webhook_deliveries SET claimed_at = NULL WHERE id = 2",
    ];
    for spoil in spoilt {
        let world = World::new();
        let receiver = Receiver::that(Play::Answer("200 X")).await;
        let endpoint = world.endpoint(&receiver.url).await;
        world.events(endpoint, 4).await;
        world.execute("PRAGMA ignore_check_constraints = 1", vec![]).await;
        let cut_off =
            "UPDATE webhook_deliveries SET status = 'sending', attempts = 1, claimed_at = 1, lease_boot = 'x',
                       locked_until = id, next_attempt_at = NULL";
        world.execute(cut_off, vec![]).await;
        world.execute(spoil, vec![]).await;
        let report = world.run().await;
        assert_eq!((report.interrupted, report.delivered), (3, 3), "{spoil}");
        assert_eq!(world.status(2).await, "sending", "{spoil}");
        // It is left alone for a while, and then it is as if it were met for the first time.
        world.execute("DROP TRIGGER IF EXISTS no", vec![]).await;
        world.execute("DELETE FROM webhook_attempts WHERE delivery = 2", vec![]).await;
        world.execute("UPDATE webhook_deliveries SET claimed_at = 1 WHERE id = 2", vec![]).await;
        assert_eq!(world.run().await.interrupted, 0, "{spoil}");
        world.clock.advance(Duration::from_secs(60));
        assert_eq!(world.run().await.delivered, 1, "{spoil}");
    }
}

#[tokio::test]
async fn more_rows_that_cannot_be_taken_up_than_a_batch_has_keep_no_other_from_it() {
    let world = World::new();
    let receiver = Receiver::that(Play::Answer("200 X")).await;
    let endpoint = world.endpoint(&receiver.url).await;
    world.events(endpoint, 502).await;
    let cut_off = "UPDATE webhook_deliveries SET status = 'sending', attempts = 1, claimed_at = 1, lease_boot = 'x',
                   locked_until = id, next_attempt_at = NULL";
    world.execute(cut_off, vec![]).await;
    let trigger = "CREATE TRIGGER no BEFORE UPDATE ON webhook_deliveries WHEN OLD.id <= 500
                   BEGIN SELECT RAISE(ABORT, 'no'); END";
    world.execute(trigger, vec![]).await;
    let report = world.run().await;
    assert_eq!((report.interrupted, report.delivered), (2, 2));
}

#[tokio::test]
async fn an_event_that_cannot_be_signed_is_not_the_endpoints_failure() {
    let world = World::new();
    let receiver = Receiver::that(Play::Answer("200 X")).await;
    let endpoint = world.endpoint(&receiver.url).await;
    let delivery = world.event("evt.with.dots", "{}", &[endpoint]).await[0];
    // At once again, and by the schedule after the third time.
    assert_eq!(world.run().await.again, 3);
    let row = world.row(delivery).await;
    assert_eq!((row.last_error.as_deref(), row.next_attempt_at), (Some("interrupted"), Some(START + 5000)));
    assert_eq!((receiver.count(), world.failing(endpoint).await), (0, false));
}

#[tokio::test]
async fn a_lookup_that_never_began_is_not_the_endpoints_failure() {
    let world = World::impatient();
    world.script.will("waits.example", Line::Waits);
    world.script.will("hangs.example", Line::Hangs);
    let waits = world.endpoint("http://waits.example/").await;
    let hangs = world.endpoint("http://hangs.example/").await;
    let deliveries = [world.delivery(waits).await, world.delivery(hangs).await];
    assert_eq!(world.run().await.again, 4);
    assert_eq!(world.journal(deliveries[0]).await, vec![Some("interrupted".to_owned()); 3]);
    assert_eq!(world.journal(deliveries[1]).await, [Some("timeout".to_owned())]);
    assert_eq!([world.failing(waits).await, world.failing(hangs).await], [false, true]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_starts_nothing_more_and_drain_waits_for_what_is_under_way() {
    let world = World::with(DeliverSettings { per_endpoint: 1, ..World::new().settings });
    let receiver = Receiver::that(Play::Hang).await;
    let endpoint = world.endpoint(&receiver.url).await;
    let deliveries = world.events(endpoint, 2).await;
    let passes = world.drive();
    receiver.got_so_many(1).await;
    world.stop.cancel();
    passes.await.unwrap();
    let worker = Arc::clone(&world.worker);
    let drained = tokio::spawn(async move { worker.drain().await });
    tokio::task::yield_now().await;
    assert!(!drained.is_finished());
    receiver.release(2);
    tokio::time::timeout(PATIENCE, drained).await.unwrap().unwrap();
    assert_eq!([world.status(deliveries[0]).await, world.status(deliveries[1]).await], ["delivered", "pending"]);
}
