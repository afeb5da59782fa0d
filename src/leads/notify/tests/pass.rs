//! A pass: what is claimed and what is not, and what becomes of a claim that somebody else has taken over.

use super::*;
use crate::chat::Lane;
use crate::leads::claim;

const QUARTER_MS: u64 = 15 * 60_000;

#[tokio::test]
async fn nothing_is_claimed_without_a_slot() {
    let world = World::new().await;
    let lead = world.insert("r-1").await;
    let slot = world.limiter.take(CHAT, Lane::Interactive).unwrap();
    let report = world.pass().await;
    assert_eq!((report.handled(), report.next), (0, Some(START + 1_000)));
    assert_eq!(world.row(&lead).await, pending());
    drop(slot);
    assert_eq!(world.pass().await.sent, 1);
}

#[tokio::test]
async fn a_group_gets_twenty_a_minute_and_the_others_wait_unclaimed() {
    let world = World::new().await;
    for number in 0..25 {
        world.insert(&format!("r-{number}")).await;
    }
    let report = world.pass().await;
    assert_eq!((report.sent, report.next), (20, Some(START + 60_000)));
    assert_eq!((world.count("sent", 1).await, world.count("pending", 0).await), (20, 5));
    world.advance(59_999);
    assert_eq!(world.pass().await.sent, 0);
    world.advance(1);
    assert_eq!(world.pass().await.sent, 5);
    assert_eq!((world.count("sent", 1).await, world.stage.calls()), (25, 25));
}

#[tokio::test]
async fn what_is_stored_is_told_although_the_disk_is_low() {
    let low = Settings { min_free: u64::MAX / 2, ..Settings::small() };
    let world = World::open(Delivery::Worker, CHAT, &low);
    let lead = world.insert("r-1").await;
    let refused = world.db.write(|_| Ok::<_, StoreError>(())).await;
    assert!(matches!(refused, Err(StoreError::DiskLow)), "{refused:?}");
    assert_eq!(world.pass().await, Report { announced: 1, sent: 1, ..Report::default() });
    assert_eq!(world.row(&lead).await, sent(1));
}

#[tokio::test]
async fn the_second_of_two_passes_is_empty() {
    let world = World::new().await;
    world.insert("r-1").await;
    assert_eq!(world.pass().await.sent, 1);
    assert_eq!(world.pass().await, Report::default());
}

#[tokio::test]
async fn other_deliveries_claim_nothing() {
    for (delivery, status) in [(Delivery::Rpc, "pending"), (Delivery::Off, "disabled")] {
        let world = World::with(delivery, CHAT).await;
        let lead = world.insert("r-1").await;
        assert_eq!(world.pass().await, Report { announced: 1, ..Report::default() });
        world.run("UPDATE broker_leads SET notification_status = 'sending', notification_attempted_at = 1").await;
        world.pass().await;
        world.run("UPDATE broker_leads SET notification_status = 'pending'").await;
        world.pass().await;
        assert_eq!((world.stage.calls(), world.row(&lead).await.attempts), (0, 0), "{status}");
        assert_eq!(world.events(&lead).await, ["created"]);
        assert!(world.worker.recipient().is_none());
        let other = world.insert("r-2").await;
        world.pass().await;
        assert_eq!(world.row(&other).await.status, status);
    }
}

#[tokio::test]
async fn a_claim_that_was_taken_over_is_left_alone() {
    let world = World::new().await;
    let lead = world.insert("r-1").await;
    world.stage.will(Play::Hang);
    let pass = world.start_pass();
    world.stage.called_times(1).await;
    world.advance(QUARTER_MS + 1);
    // Another process, which does not know what this one has in hand.
    let (id, stranger) = (lead.clone(), Hands::default());
    let taken = world.db.write(move |tx| claim(tx, &id, Some("r-1"), &stranger)).await.unwrap();
    assert!(taken.claimed);
    world.stage.released.notify_waiters();
    let report = pass.await.unwrap();
    assert_eq!((report.overtaken, report.sent, report.failed), (1, 0, 0));
    assert_eq!(world.row(&lead).await, Row { status: "sending".into(), attempts: 2, code: None });
    assert_eq!(world.events(&lead).await, ["created"]);
}

#[tokio::test]
async fn what_is_in_hand_is_taken_by_nobody_whatever_the_clock_says() {
    let world = World::new().await;
    let lead = world.insert("r-1").await;
    world.stage.will(Play::Hang);
    let pass = world.start_pass();
    world.stage.called_times(1).await;
    world.advance(25 * 3_600_000);
    assert_eq!(world.pass().await.handled(), 0, "our own recovery");
    let (id, hands) = (lead.clone(), world.hands.clone());
    let refused = world.db.write(move |tx| claim(tx, &id, Some("r-1"), &hands)).await.unwrap();
    assert!(!refused.claimed && refused.current_status == "sending", "{refused:?}");
    world.stage.released.notify_waiters();
    assert_eq!(pass.await.unwrap().sent, 1);
    assert_eq!((world.row(&lead).await, world.stage.calls()), (sent(1), 1));
    assert!(!world.hands.holds(&lead));
}

#[tokio::test]
async fn a_row_that_cannot_be_changed_is_put_aside_and_the_others_are_told() {
    let world = World::new().await;
    let stuck = world.insert("AUDIT").await;
    let ignored = world.insert("IGNORED").await;
    let fine = world.insert("r-1").await;
    for (name, what) in [("AUDIT", "RAISE(ABORT, 'no')"), ("IGNORED", "RAISE(IGNORE)")] {
        let audit = format!(
            "CREATE TRIGGER audit_{name} BEFORE UPDATE ON broker_leads WHEN OLD.request_id = '{name}' BEGIN SELECT {what}; END"
        );
        world.db.write::<_, StoreError>(move |tx: &Tx<'_>| tx.execute(&audit, [])).await.unwrap();
    }
    let report = world.pass().await;
    assert_eq!((report.sent, report.failed), (1, 2));
    assert_eq!(world.row(&fine).await, sent(1));
    assert_eq!([world.row(&stuck).await, world.row(&ignored).await], [pending(), pending()]);
    // They are left alone, and a later one is told.
    let later = world.insert("r-2").await;
    let report = world.pass().await;
    assert_eq!((report.sent, report.failed, world.row(&later).await), (1, 0, sent(1)));
    let mend =
        |tx: &Tx<'_>| tx.execute("DROP TRIGGER audit_AUDIT", []).and(tx.execute("DROP TRIGGER audit_IGNORED", []));
    world.db.write::<_, StoreError>(mend).await.unwrap();
    world.advance(15 * 60_000);
    assert_eq!(world.pass().await.sent, 2);
}

#[tokio::test]
async fn a_clock_that_is_set_back_leaves_nobody_aside_for_longer() {
    let world = World::new().await;
    let stuck = world.insert("AUDIT").await;
    let audit = "CREATE TRIGGER audit BEFORE UPDATE ON broker_leads WHEN NEW.notification_status = 'sending'
                 BEGIN SELECT RAISE(ABORT, 'no'); END";
    world.db.write::<_, StoreError>(move |tx: &Tx<'_>| tx.execute(audit, [])).await.unwrap();
    assert_eq!(world.pass().await.failed, 1);
    world.db.write::<_, StoreError>(|tx: &Tx<'_>| tx.execute("DROP TRIGGER audit", [])).await.unwrap();
    assert_eq!(world.pass().await.sent, 0, "it is left alone for 15 minutes");
    world.clock.set(START - 3_600_000);
    assert_eq!(world.pass().await.sent, 1);
    assert_eq!(world.row(&stuck).await, sent(1));
}

#[tokio::test]
async fn a_lead_is_claimed_three_times_and_then_given_up() {
    let world = World::new().await;
    let lead = world.insert("r-1").await;
    for attempt in 1..=3 {
        world.stage.will(Play::Hang);
        let pass = world.start_pass();
        world.stage.called_times(attempt).await;
        // The process ends before the answer comes.
        pass.abort();
        let _ = pass.await;
        world.advance(QUARTER_MS);
        assert_eq!(world.pass().await.handled(), 0, "strictly older than 15 minutes");
        world.advance(1);
    }
    assert_eq!(world.pass().await.given_up, 1);
    assert_eq!((world.row(&lead).await, world.stage.calls()), (failed(3, "notification_failed"), 3));
    assert_eq!(world.events(&lead).await, ["created", "notification_failed"]);
    assert_eq!(world.pass().await, Report::default());
}

#[tokio::test]
async fn a_send_that_nobody_completed_for_a_day_is_given_up() {
    let world = World::new().await;
    let lead = world.insert("r-1").await;
    world.stage.will(Play::Hang);
    let pass = world.start_pass();
    world.stage.called_times(1).await;
    pass.abort();
    let _ = pass.await;
    world.advance(24 * 3_600_000 + 1);
    assert_eq!(world.pass().await.given_up, 1);
    assert_eq!((world.row(&lead).await, world.stage.calls()), (failed(1, "notification_failed"), 1));
}

#[tokio::test]
async fn a_stop_lets_the_lead_in_hand_end_and_takes_no_other() {
    let world = World::new().await;
    world.insert("r-1").await;
    world.insert("r-2").await;
    world.stage.will(Play::Hang);
    let pass = world.start_pass();
    world.stage.called_times(1).await;
    world.stop.cancel();
    world.stage.released.notify_waiters();
    assert_eq!(pass.await.unwrap().sent, 1);
    assert_eq!((world.count("sent", 1).await, world.count("pending", 0).await), (1, 1));
    assert_eq!(world.pass().await.handled(), 0);
}

#[tokio::test]
async fn a_pass_ends_after_so_many_leads_and_asks_for_another() {
    let world = World::with(Delivery::Worker, 42).await;
    world
        .run(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 70)
             INSERT INTO broker_leads (request_id, phone, created_at) SELECT 'r-' || i, '79990001122', i FROM n",
        )
        .await;
    let first = world.pass().await;
    assert_eq!((first.sent, first.more), (super::super::MOST_IN_A_PASS, true));
    let second = world.pass().await;
    assert_eq!((second.sent, second.more), (70 - first.sent, false));
}
