//! What endpoints have to do with one another: nothing.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nine_endpoints_that_hang_do_not_delay_a_good_one() {
    let world = World::new();
    let mut hanging = Vec::new();
    for _ in 0..9 {
        let receiver = Receiver::that(Play::Hang).await;
        let endpoint = world.endpoint(&receiver.url).await;
        world.events(endpoint, 10).await;
        hanging.push(receiver);
    }
    let good = Receiver::that(Play::Answer("200 X")).await;
    let endpoint = world.endpoint(&good.url).await;
    let deliveries = world.events(endpoint, 100).await;
    let passes = world.drive();
    good.got_so_many(100).await;
    for delivery in deliveries {
        world.becomes(delivery, "delivered").await;
    }
    assert_eq!(world.count("delivered").await, 100, "and none of those that hang");
    assert!(hanging.iter().all(|receiver| receiver.busiest() == 1 && receiver.count() == 1));
    // What comes while they hang does not wait either.
    let late = world.event("evt_late", "{}", &[endpoint]).await[0];
    world.becomes(late, "delivered").await;
    // Once they answer, their deliveries go on.
    hanging.iter().for_each(|receiver| receiver.release(100));
    for receiver in &hanging {
        receiver.got_so_many(10).await;
    }
    world.stop.cancel();
    passes.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_endpoints_that_hang_leave_slots_to_one_that_has_answered() {
    let world = World::new();
    let (good, hanging) = (Receiver::that(Play::Answer("200 X")).await, Receiver::that(Play::Hang).await);
    let endpoint = world.proven(&good).await;
    for number in 0..50 {
        let endpoint = world.endpoint(&format!("{}?{number}", hanging.url)).await;
        world.events(endpoint, 10).await;
    }
    let passes = world.drive();
    hanging.got_so_many(48).await;
    let deliveries = world.events(endpoint, 100).await;
    for delivery in deliveries {
        world.becomes(delivery, "delivered").await;
    }
    assert_eq!((hanging.count(), hanging.busiest()), (48, 48), "three quarters of the slots, and not one more");
    world.stop.cancel();
    hanging.release(1000);
    passes.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endpoint_never_has_more_than_its_share_under_way() {
    let world = World::with(DeliverSettings { max_in_flight: 6, per_endpoint: 4, policy: exact() });
    let (one, other) = (Receiver::that(Play::Hang).await, Receiver::that(Play::Hang).await);
    let (first, second) = (world.proven(&one).await, world.proven(&other).await);
    world.events(first, 50).await;
    let passes = world.drive();
    one.got_so_many(PROVEN + 4).await;
    world.events(second, 50).await;
    other.got_so_many(PROVEN + 2).await;
    assert_eq!(world.count("sending").await, 6, "nothing is claimed without a slot");
    for _ in 0..100 {
        one.release(1);
        other.release(1);
    }
    one.got_so_many(PROVEN + 50).await;
    other.got_so_many(PROVEN + 50).await;
    assert!(one.busiest() <= 4 && other.busiest() <= 4, "{} {}", one.busiest(), other.busiest());
    world.stop.cancel();
    passes.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_queue_is_nobody_elses_delay() {
    let world = World::with(DeliverSettings { max_in_flight: 4, per_endpoint: 2, policy: exact() });
    let (long, short) = (Receiver::that(Play::Hang).await, Receiver::that(Play::Answer("200 X")).await);
    let (first, second) = (world.proven(&long).await, world.endpoint(&short.url).await);
    world.events(first, 300).await;
    let passes = world.drive();
    long.got_so_many(PROVEN + 2).await;
    let delivery = world.delivery(second).await;
    world.becomes(delivery, "delivered").await;
    assert_eq!(long.count(), PROVEN + 2);
    world.stop.cancel();
    long.release(1000);
    passes.await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pass_leaves_what_hangs_to_itself_and_the_next_one_counts_it() {
    let world = World::new();
    let receiver = Receiver::that(Play::Hang).await;
    let endpoint = world.endpoint(&receiver.url).await;
    let delivery = world.delivery(endpoint).await;
    let report = world.run().await;
    assert!(report.is_empty(), "{report:?}");
    assert_eq!(world.status(delivery).await, "sending");
    receiver.release(1);
    world.becomes(delivery, "delivered").await;
    world.worker.drain().await;
    assert_eq!(world.run().await.delivered, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_an_attempt_wakes_a_worker_that_waits_for_a_slot() {
    let world = World::with(DeliverSettings { max_in_flight: 1, per_endpoint: 1, policy: exact() });
    let receiver = Receiver::that(Play::Hang).await;
    let endpoint = world.endpoint(&receiver.url).await;
    world.events(endpoint, 2).await;
    // A pass that is stopped while its attempt hangs, and something else waits.
    let pass = {
        let (worker, stop) = (Arc::clone(&world.worker), world.stop.clone());
        tokio::spawn(async move { worker.run_once(&stop).await })
    };
    receiver.got_so_many(1).await;
    world.stop.cancel();
    pass.await.unwrap().unwrap();
    let woken = world.db.subscribe(crate::webhooks::DELIVERIES);
    receiver.release(1);
    tokio::time::timeout(PATIENCE, woken.notified()).await.expect("it is woken");
}
