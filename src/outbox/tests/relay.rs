//! The relay with consumers inside the file: who is asked when, and what becomes of an event.

use super::actors::{Mood, Said};
use super::*;

#[tokio::test]
async fn an_event_is_published_when_every_consumer_has_accepted_it() {
    let world = World::new().await;
    let (first, second) = (Actor::inside("first"), Actor::inside("second"));
    let relay = world.relay(&[&first, &second]);
    world.fill(3).await;
    let report = pass(&relay).await;
    assert_eq!(report, Report { published: 3, ..Report::default() });
    assert_eq!(pass(&relay).await, Report::default(), "a second pass finds nothing");
    let row = &world.rows().await[0];
    assert_eq!(row.acceptances, format!("{{\"first\":{START},\"second\":{START}}}"));
    assert_eq!((row.published, row.attempts, row.next), (Some(START), 0, None));
    assert_eq!(world.column("SELECT consumer || event FROM seen ORDER BY event, consumer").await.len(), 6);
}

#[tokio::test]
async fn our_own_events_are_relayed_as_they_were_published() {
    let world = World::new().await;
    let taker = Actor::inside("taker");
    let lead = crate::kernel::events::Lead { id: "l1".into(), request_id: None };
    world.write(move |tx| tx.publish(&crate::kernel::events::Event::LeadReceived(lead)).unwrap()).await;
    pass(&world.relay(&[&taker])).await;
    let event = &taker.events()[0];
    assert!(event.tenant.is_installation());
    assert_eq!((event.event_type.as_str(), event.version), ("lead.received", 1));
    assert_eq!((event.aggregate_type.as_str(), event.aggregate_id.as_str()), ("lead", "l1"));
    assert_eq!((event.occurred_at, event.payload.as_str()), (START, "{\"lead_id\":\"l1\",\"request_id\":null}"));
}

#[tokio::test]
async fn a_retry_asks_only_those_who_have_not_accepted() {
    let world = World::new().await;
    let (good, bad) = (Actor::inside("good"), Actor::inside("bad"));
    let relay = world.relay(&[&good, &bad]);
    bad.be(Mood::Refuses);
    world.fill(1).await;
    let report = pass(&relay).await;
    assert_eq!((report.published, report.retried, report.next), (0, 1, Some(START + 30 * SECOND)));
    assert_eq!(world.rows().await[0].error.as_deref(), Some("bad: no"));
    assert_eq!(world.column("SELECT consumer FROM seen").await, ["good"], "what a refused one wrote is taken back");
    world.advance(30 * SECOND - 1);
    assert_eq!(pass(&relay).await.retried, 0, "it is not due yet");
    assert_eq!(bad.calls().len(), 1);
    world.advance(1);
    bad.be(Mood::Takes);
    assert_eq!(pass(&relay).await.published, 1);
    assert_eq!((good.calls().len(), bad.calls().len()), (1, 1), "who has accepted is not asked again");
    let row = &world.rows().await[0];
    assert_eq!((row.attempts, row.error.as_deref()), (1, Some("bad: no")), "what went wrong is remembered");
    let late = START + 30 * SECOND;
    assert_eq!(row.acceptances, format!("{{\"good\":{START},\"bad\":{late}}}"));
}

#[tokio::test]
async fn the_back_off_doubles_up_to_an_hour_and_the_tenth_refusal_is_the_last() {
    let world = World::new().await;
    let bad = Actor::inside("bad");
    let relay = world.relay(&[&bad]);
    bad.be(Mood::Refuses);
    world.fill(1).await;
    let mut waits = Vec::new();
    loop {
        let before = world.clock.now();
        pass(&relay).await;
        let Some(next) = world.rows().await[0].next else { break };
        waits.push((next - before) / SECOND);
        world.clock.set(next);
    }
    assert_eq!(waits, [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]);
    let row = &world.rows().await[0];
    assert_eq!((row.attempts, row.failed, row.published), (10, Some(world.clock.now()), None));
    world.advance(DAY);
    assert_eq!(pass(&relay).await, Report::default(), "a failed event waits for a person");
}

#[tokio::test]
async fn each_refusal_is_named_and_the_text_fits_its_column() {
    let world = World::new().await;
    let names = ["a".repeat(300), "б".repeat(200)].map(|name| &*name.leak());
    let (one, two, three) = (Actor::inside("one"), Actor::inside(names[0]), Actor::inside(names[1]));
    let relay = world.relay(&[&one, &two, &three]);
    one.be(Mood::Panics);
    two.be(Mood::Refuses);
    three.be(Mood::Refuses);
    world.fill(1).await;
    assert_eq!(pass(&relay).await.retried, 1);
    let error = world.rows().await[0].error.clone().unwrap();
    assert!(error.starts_with("one: panicked; aaa") && error.len() <= 500, "{error}");
}

#[tokio::test]
async fn one_that_panics_takes_back_its_own_work_only() {
    let world = World::new().await;
    let (good, bad) = (Actor::inside("good"), Actor::inside("bad"));
    let relay = world.relay(&[&bad, &good]);
    bad.be(Mood::PanicsAt(2));
    world.fill(3).await;
    let report = pass(&relay).await;
    assert_eq!((report.published, report.retried), (2, 1));
    let seen = world.column("SELECT consumer || ' ' || event FROM seen ORDER BY event, consumer").await;
    assert_eq!(seen, ["bad 1", "good 1", "good 2", "bad 3", "good 3"]);
}

#[tokio::test]
async fn a_busy_store_is_no_attempt() {
    let world = World::new().await;
    let (good, busy) = (Actor::inside("good"), Actor::inside("busy"));
    let relay = world.relay(&[&good, &busy]);
    busy.be(Mood::Busy);
    world.fill(1).await;
    let report = pass(&relay).await;
    assert_eq!((report.retried, report.failed, report.next), (0, 0, Some(START + SECOND)));
    let row = &world.rows().await[0];
    assert_eq!((row.attempts, row.next, row.error.as_deref()), (0, None, None));
    assert_eq!(pass(&relay).await.next, Some(START + SECOND), "it is left alone for a second");
    assert_eq!(busy.calls(), [(1, Said::Busy)]);
    busy.be(Mood::Takes);
    world.advance(SECOND);
    assert_eq!(pass(&relay).await.published, 1);
    assert_eq!(good.calls().len(), 1, "what the others accepted was written down meanwhile");
}

#[tokio::test]
async fn neither_fresh_nor_refused_events_keep_the_others_waiting() {
    let world = World::new().await;
    let taker = Actor::inside("taker");
    let relay = world.relay(&[&taker]);
    world.fill(600).await;
    world.run(&format!("UPDATE outbox_events SET attempts = 1, next_attempt_at = {START} - id WHERE id <= 300")).await;
    let report = pass(&relay).await;
    assert_eq!((report.published, report.more), (600, false));
    let order: Vec<i64> = taker.calls().into_iter().map(|(row, _)| row).collect();
    let expected: Vec<i64> = (0..300).flat_map(|n| [300 - n, 301 + n]).collect();
    // Each page takes one of these and one of those, for as long as there are both.
    assert_eq!(order, expected);
}

#[tokio::test]
async fn a_clock_that_was_set_back_holds_up_nothing_for_long() {
    let world = World::new().await;
    let bad = Actor::inside("bad");
    let relay = world.relay(&[&bad]);
    bad.be(Mood::Refuses);
    world.fill(2).await;
    pass(&relay).await;
    world.clock.set(START - DAY);
    let report = pass(&relay).await;
    assert_eq!(
        (report.retried, report.next),
        (2, Some(START - DAY + MINUTE)),
        "it was due a day and a minute from now"
    );
    bad.be(Mood::Takes);
    world.clock.set(START + 365 * DAY);
    assert_eq!(pass(&relay).await.published, 2);
}

#[tokio::test]
async fn a_pass_ends_at_a_stop_and_loses_nothing() {
    let world = World::new().await;
    let taker = Actor::inside("taker");
    let relay = world.relay(&[&taker]);
    world.fill(2).await;
    let stop = CancellationToken::new();
    stop.cancel();
    assert_eq!(relay.run_once(&stop).await.unwrap().published, 0);
    assert_eq!(pass(&relay).await.published, 2);
}

#[tokio::test]
async fn a_consumer_that_was_added_is_asked_for_what_is_still_due_only() {
    let world = World::new().await;
    let (old, new) = (Actor::inside("old"), Actor::inside("new"));
    old.be(Mood::RefusesOdd);
    world.fill(2).await;
    assert_eq!(pass(&world.relay(&[&old])).await.published, 1);
    old.be(Mood::Takes);
    world.advance(MINUTE);
    assert_eq!(pass(&world.relay(&[&old, &new])).await.published, 1);
    assert_eq!(new.calls(), [(1, Said::Accepted)]);
    world.fill(1).await;
    assert_eq!(pass(&world.relay(&[])).await.published, 1, "without consumers there is nothing to wait for");
}
