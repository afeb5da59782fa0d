//! The relay with consumers that work outside any transaction: they hang, panic, or are cut off.

use super::actors::{Mood, Said};
use super::*;

#[tokio::test]
async fn one_call_hands_over_the_page_and_the_acceptances_are_recorded() {
    let world = World::new().await;
    let (inside, outside) = (Actor::inside("inside"), Actor::outside("outside"));
    let relay = world.relay(&[&inside, &outside]);
    world.fill(1200).await;
    assert_eq!(pass(&relay).await, Report { published: 1200, ..Report::default() });
    assert_eq!((inside.calls().len(), outside.calls().len()), (1200, 1200));
    assert_eq!(world.published().await, 1200);
    assert_eq!(pass(&relay).await, Report::default());
}

#[tokio::test]
async fn one_that_refuses_is_asked_again_alone() {
    let world = World::new().await;
    let (inside, outside) = (Actor::inside("inside"), Actor::outside("outside"));
    let relay = world.relay(&[&inside, &outside]);
    outside.be(Mood::RefusesOdd);
    world.fill(4).await;
    let report = pass(&relay).await;
    assert_eq!((report.published, report.retried), (2, 2));
    outside.be(Mood::Takes);
    outside.calls();
    world.advance(MINUTE);
    assert_eq!(pass(&relay).await.published, 2);
    assert_eq!(outside.calls(), [(1, Said::Accepted), (3, Said::Accepted)]);
    assert_eq!(inside.calls().len(), 4);
}

#[tokio::test]
async fn one_that_hangs_is_left_alone_and_the_others_get_their_events() {
    let world = World::new().await;
    let (inside, outside) = (Actor::inside("inside"), Actor::outside("outside"));
    let relay = world.relay(&[&inside, &outside]).with_patience(Duration::from_millis(50));
    outside.be(Mood::Dies);
    world.fill(2).await;
    let report = pass(&relay).await;
    assert_eq!((report.published, report.retried), (0, 2));
    assert_eq!(inside.calls().len(), 2);
    assert_eq!(world.rows().await[0].error.as_deref(), Some("outside: timed_out"));
    // Nobody waits for it again so soon.
    outside.calls();
    world.fill(1).await;
    let began = std::time::Instant::now();
    assert_eq!(pass(&relay).await.retried, 1);
    assert!(began.elapsed() < Duration::from_millis(50) && outside.calls().is_empty());
    let row = world.rows().await.remove(2);
    assert_eq!(
        (row.error.as_deref(), row.attempts, row.next),
        (Some("outside: not_asked"), 0, Some(START + 30 * SECOND))
    );
    assert_eq!(inside.calls().len(), 1);
    // However often that is, it costs no attempt of ten.
    for _ in 0..12 {
        world.advance(HOUR);
        pass(&relay).await;
    }
    let rows = world.rows().await;
    assert_eq!(
        rows.iter().map(|row| (row.attempts, row.failed)).collect::<Vec<_>>(),
        [(1, None), (1, None), (0, None)]
    );
    assert!(outside.calls().is_empty() && inside.calls().is_empty());
}

#[tokio::test]
async fn one_that_hangs_does_not_hold_up_those_inside() {
    let world = World::new().await;
    let (inside, outside) = (Actor::inside("inside"), Actor::outside("outside"));
    let patience = Duration::from_secs(60);
    let relay = world.relay(&[&outside, &inside]).with_patience(patience);
    outside.be(Mood::Dies);
    world.fill(600).await;
    let stop = CancellationToken::new();
    let committed = async {
        // A page of them, the first.
        while world.column("SELECT CAST(event AS TEXT) FROM seen").await.len() < 500 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop.cancel();
    };
    let (report, committed) = tokio::join!(relay.run_once(&stop), tokio::time::timeout(patience / 2, committed));
    assert!(committed.is_ok(), "long before the one outside is given up");
    assert_eq!(report.unwrap(), Report::default());
    let row = world.rows().await.remove(0);
    assert_eq!((row.attempts, row.acceptances.as_str()), (0, "{\"inside\":1700000000000}"));
    outside.be(Mood::Takes);
    assert_eq!(pass(&relay).await.published, 600);
    assert_eq!(inside.calls().len(), 600, "each once");
}

#[tokio::test]
async fn what_those_inside_refuse_while_one_outside_hangs_is_one_attempt() {
    let world = World::new().await;
    let (inside, outside) = (Actor::inside("inside"), Actor::outside("outside"));
    let relay = world.relay(&[&inside, &outside]).with_patience(Duration::from_millis(300));
    inside.be(Mood::RefusesOdd);
    outside.be(Mood::Dies);
    world.fill(2).await;
    assert_eq!(pass(&relay).await.retried, 2);
    let rows = world.rows().await;
    assert_eq!((rows[0].attempts, rows[0].error.as_deref()), (1, Some("inside: no; outside: timed_out")));
    assert_eq!((rows[1].attempts, rows[1].error.as_deref()), (1, Some("outside: timed_out")));
    assert_eq!(inside.calls(), [(1, Said::Refused), (2, Said::Accepted)], "nobody is asked twice");
    assert_eq!(world.column("SELECT CAST(event AS TEXT) FROM seen").await, ["2"]);
}

#[tokio::test]
async fn an_event_that_makes_one_panic_spoils_no_other() {
    let world = World::new().await;
    let outside = Actor::outside("outside");
    let relay = world.relay(&[&outside]);
    outside.be(Mood::PanicsAt(2));
    world.fill(3).await;
    let report = pass(&relay).await;
    assert_eq!((report.published, report.retried), (2, 1));
    assert_eq!(world.rows().await[1].error.as_deref(), Some("outside: panicked"));
}

#[tokio::test]
async fn one_that_does_not_answer_for_an_event_has_refused_it() {
    let world = World::new().await;
    let outside = Actor::outside("outside");
    let relay = world.relay(&[&outside]);
    outside.be(Mood::Mute);
    world.fill(1).await;
    assert_eq!(pass(&relay).await.retried, 1);
    assert_eq!(world.rows().await[0].error.as_deref(), Some("outside: no_answer"));
}

#[tokio::test]
async fn a_busy_store_of_one_outside_is_no_attempt_either() {
    let world = World::new().await;
    let (inside, outside) = (Actor::inside("inside"), Actor::outside("outside"));
    let relay = world.relay(&[&inside, &outside]);
    outside.be(Mood::Busy);
    world.fill(1).await;
    let report = pass(&relay).await;
    assert_eq!((report.retried, report.next), (0, Some(START + SECOND)));
    let row = &world.rows().await[0];
    assert_eq!((row.attempts, row.acceptances.as_str()), (0, "{\"inside\":1700000000000}"));
}

/// Runs a pass whose consumer takes everything and never says so, and ends the process there.
async fn die_in_a_pass(world: World, relay: Relay, outside: &Actor) -> World {
    outside.be(Mood::Dies);
    tokio::select! {
        _ = pass(&relay) => panic!("the pass should hang"),
        () = outside.died.notified() => {}
    }
    drop(relay);
    outside.be(Mood::Takes);
    world.restart().await
}

#[tokio::test]
async fn a_crash_between_acceptance_and_record_hands_it_over_again() {
    let world = World::new().await;
    let (inside, outside) = (Actor::inside("inside"), Actor::outside("outside"));
    let relay = world.relay(&[&inside, &outside]);
    world.fill(1).await;
    let world = die_in_a_pass(world, relay, &outside).await;
    assert_eq!(pass(&world.relay(&[&inside, &outside])).await.published, 1);
    assert_eq!(outside.calls(), [(1, Said::Accepted), (1, Said::Accepted)], "at least once");
    assert_eq!(inside.calls(), [(1, Said::Accepted)], "exactly once");
    let events = outside.events();
    assert_eq!(events[0].event_id, events[1].event_id, "a repeat is known by its id");
}

#[tokio::test]
async fn a_stop_does_not_wait_for_one_that_hangs() {
    let world = World::new().await;
    let outside = Actor::outside("outside");
    let relay = world.relay(&[&outside]);
    outside.be(Mood::Dies);
    world.fill(1).await;
    let stop = CancellationToken::new();
    let (report, ()) = tokio::join!(relay.run_once(&stop), async {
        outside.died.notified().await;
        stop.cancel();
    });
    assert_eq!(report.unwrap(), Report::default());
    assert_eq!(world.rows().await[0].attempts, 0);
}
