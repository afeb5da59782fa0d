//! Endpoints that want less, or nothing.

use super::*;

#[tokio::test]
async fn a_rate_is_kept_to_by_the_injected_clock() {
    let world = World::new();
    let receiver = Receiver::that(Play::Answer("200 X")).await;
    let endpoint = world.endpoint(&receiver.url).await;
    world.execute("UPDATE webhook_endpoints SET rate_per_second = 3", vec![]).await;
    world.events(endpoint, 10).await;
    let report = stopped_after(&world, &receiver, 3).await;
    assert_eq!((receiver.count(), report.next), (3, Some(START + 1000)));
    world.clock.advance(Duration::from_millis(999));
    assert_eq!(stopped_after(&world, &receiver, 3).await.next, Some(START + 1000));
    world.clock.advance(Duration::from_millis(1));
    stopped_after(&world, &receiver, 6).await;
    assert_eq!(receiver.count(), 6);
}

/// A pass that is stopped once so many requests have come and have been recorded, as it would wait for the clock.
async fn stopped_after(world: &World, receiver: &Receiver, requests: usize) -> Report {
    let stop = CancellationToken::new();
    let pass = {
        let (worker, stop) = (Arc::clone(&world.worker), stop.clone());
        tokio::spawn(async move { worker.run_once(&stop).await })
    };
    receiver.got_so_many(requests).await;
    let pass = tokio::time::timeout(Duration::from_secs(10), pass).await.expect("nothing is in hand, so it ends");
    pass.unwrap().unwrap()
}

#[tokio::test]
async fn a_receiver_that_asks_for_a_pause_is_left_alone_for_it() {
    let world = World::new();
    let receiver = Receiver::that(Play::Answer("429 X\r\nretry-after: 120")).await;
    let endpoint = world.endpoint(&receiver.url).await;
    let first = world.delivery(endpoint).await;
    world.run().await;
    assert_eq!(world.row(first).await.next_attempt_at, Some(START + 120_000), "not after five seconds");
    receiver.will(Play::Answer("200 X"));
    let second = world.event("evt_second", "{}", &[endpoint]).await[0];
    let report = world.run().await;
    assert_eq!((report.is_empty(), report.next), (true, Some(START + 120_000)), "others of the endpoint wait too");
    world.clock.advance(Duration::from_secs(120));
    assert_eq!(world.run().await.delivered, 2);
    assert_eq!([world.status(first).await, world.status(second).await], ["delivered", "delivered"]);
}

#[tokio::test]
async fn a_pause_of_absurd_length_is_a_day() {
    let world = World::new();
    let receiver = Receiver::that(Play::Answer("503 X\r\nretry-after: 99999999999999999999")).await;
    let endpoint = world.endpoint(&receiver.url).await;
    let delivery = world.delivery(endpoint).await;
    world.run().await;
    assert_eq!(world.row(delivery).await.next_attempt_at, Some(START + 86_400_000));
}

#[tokio::test]
async fn after_a_410_nothing_more_is_sent() {
    let world = World::with(DeliverSettings { per_endpoint: 1, ..World::new().settings });
    let receiver = Receiver::that(Play::Answer("410 X")).await;
    let endpoint = world.endpoint(&receiver.url).await;
    let deliveries = world.events(endpoint, 20).await;
    let report = world.run().await;
    assert_eq!((report.failed, receiver.count()), (1, 1));
    let row = world.row(deliveries[0]).await;
    assert_eq!((row.status.as_str(), row.last_error.as_deref()), ("failed", Some("http_410")));
    world.clock.advance(Duration::from_secs(30 * 24 * 3600));
    world.run().await;
    assert_eq!(receiver.count(), 1);
}

#[tokio::test]
async fn what_is_paused_or_disabled_waits() {
    let world = World::new();
    let receiver = Receiver::that(Play::Answer("200 X")).await;
    let endpoint = world.endpoint(&receiver.url).await;
    world.events(endpoint, 3).await;
    world.execute("UPDATE webhook_endpoints SET status = 'paused'", vec![]).await;
    assert_eq!(world.run().await, Report::default());
    world.execute("UPDATE webhook_endpoints SET status = 'disabled', disabled_reason = 'manual'", vec![]).await;
    assert_eq!(world.run().await, Report::default());
    assert_eq!(receiver.count(), 0);
    world.execute("UPDATE webhook_endpoints SET status = 'active', disabled_reason = NULL", vec![]).await;
    assert_eq!(world.run().await.delivered, 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pausing_takes_effect_between_two_attempts() {
    let world = World::with(DeliverSettings { per_endpoint: 1, ..World::new().settings });
    let receiver = Receiver::that(Play::Hang).await;
    let endpoint = world.endpoint(&receiver.url).await;
    let deliveries = world.events(endpoint, 5).await;
    let passes = world.drive();
    receiver.got_so_many(1).await;
    world.execute("UPDATE webhook_endpoints SET status = 'paused'", vec![]).await;
    receiver.release(5);
    world.becomes(deliveries[0], "delivered").await;
    world.stop.cancel();
    passes.await.unwrap();
    world.worker.drain().await;
    assert_eq!((receiver.count(), world.count("pending").await), (1, 4));
}

#[tokio::test]
async fn an_address_that_the_rules_forbid_by_now_is_not_dialled() {
    let world = World::new();
    for url in ["http://10.0.0.1/", "http://[::ffff:169.254.169.254]/", "http://0.0.0.0/", "ftp://a.example/"] {
        let endpoint = world.endpoint(url).await;
        let delivery = world.event(&format!("evt_{endpoint}"), "{}", &[endpoint]).await[0];
        assert_eq!(world.run().await.again, 1, "{url}");
        assert_eq!(world.row(delivery).await.last_error.as_deref(), Some("blocked"), "{url}");
    }
}
