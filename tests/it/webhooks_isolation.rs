//! Endpoints keep out of one another's way: a good one beside nine that hang, one that is held, one that is slow.

use std::time::Duration;

use serde_json::json;

use crate::harness::dev::Dev;
use crate::harness::file::value;
use crate::harness::receiver::{Receiver, Reply};
use crate::harness::{until, until_within};

/// How long an attempt at one that hangs takes: much longer than the good one needs for all that it gets.
const DEADLINE: Duration = Duration::from_secs(60);

fn ended(dev: &Dev) -> i64 {
    value(&dev.reader(), "SELECT count(*) FROM webhook_attempts WHERE error IS NOT NULL", [])
}

#[test]
fn a_good_endpoint_gets_everything_while_nine_others_hang() {
    let dev = Dev::start(&["store.ballast=0", &format!("webhooks.timeout={}s", DEADLINE.as_secs())]);
    let (good, bad) = (Receiver::start(|_| Reply::Status(200)), Receiver::start(|_| Reply::Hang));
    for number in 0..9 {
        dev.api.subscribe(&bad.url(&format!("/{number}")));
    }
    dev.api.subscribe(&good.url("/"));
    // Each of the nine has all the hands that one which has not answered yet may have, before and while the good one is to
    // be told of anything.
    for _ in 0..4 {
        dev.api.post_event("order.paid", "{}");
    }
    until("an attempt at each of the nine hangs", || (bad.count() == 9 && good.count() == 4).then_some(()));
    let before = good.count();
    let events: Vec<String> = (0..300).map(|n| dev.api.post_event("order.paid", &format!(r#"{{"n":{n}}}"#))).collect();
    until_within(DEADLINE / 2, "the good one has everything", || (good.count() == before + 300).then_some(()));
    assert_eq!(ended(&dev), 0, "and not because those that hang were given up meanwhile");
    assert_eq!(bad.count(), 9, "none of the nine takes more than one");
    let ids: Vec<String> = good.came().iter().map(|came| came.id().to_owned()).collect();
    assert!(events.iter().all(|event| ids.iter().filter(|id| *id == event).count() == 1), "each once");
}

#[test]
fn one_that_asks_for_time_gets_it_and_nobody_waits_with_it() {
    let dev = Dev::start(&["store.ballast=0"]);
    let busy = Receiver::start(|came| match came.earlier {
        0 => Reply::Whole(429, "Retry-After: 600\r\n", ""),
        _ => Reply::Status(200),
    });
    let good = Receiver::start(|_| Reply::Status(200));
    let endpoint = dev.api.subscribe(&busy.url("/"));
    dev.api.subscribe(&good.url("/"));
    let first = dev.api.post_event("order.paid", "{}");
    until("it has asked for time", || (busy.count() == 1).then_some(()));
    until("its attempt has ended", || {
        (dev.api.until_delivery(&endpoint, &first, "pending")["attempts"] == 1).then_some(())
    });
    let later: Vec<String> = (0..30).map(|_| dev.api.post_event("order.paid", "{}")).collect();
    until("the other one is not held", || (good.count() == 31).then_some(()));
    dev.advance(Duration::from_secs(500));
    dev.run_job("webhooks-deliver");
    assert_eq!(busy.count(), 1, "neither the event that was refused nor any other is sent before");
    // All of those are refused at their first attempt too, each for its own ten minutes.
    dev.advance(Duration::from_secs(110));
    for _ in 0..40 {
        let all: i64 = value(&dev.reader(), "SELECT count(*) FROM webhook_deliveries WHERE status <> 'delivered'", []);
        if all == 0 {
            break;
        }
        dev.advance(Duration::from_secs(601));
        dev.run_job("webhooks-deliver");
    }
    for event in later.iter().chain([&first]) {
        dev.api.until_delivery(&endpoint, event, "delivered");
    }
    assert_eq!(good.count(), 31, "the other one got each once");
}

#[test]
fn an_endpoint_is_sent_no_more_a_second_than_it_wants() {
    let dev = Dev::start(&["store.ballast=0"]);
    let receiver = Receiver::start(|_| Reply::Status(200));
    dev.api.create_endpoint(&json!({"url": receiver.url("/"), "rate_per_second": 2}));
    let free = Receiver::start(|_| Reply::Status(200));
    dev.api.subscribe(&free.url("/"));
    for _ in 0..60 {
        dev.api.post_event("order.paid", "{}");
    }
    until("the one without a rate has all", || (free.count() == 60).then_some(()));
    let few = receiver.count();
    assert!(few < 40, "{few} of 60 at two a second");
    dev.advance(Duration::from_secs(60));
    for _ in 0..60 {
        if receiver.count() == 60 {
            break;
        }
        dev.run_job("webhooks-deliver");
        dev.advance(Duration::from_secs(2));
    }
    until("the slow one has all too", || (receiver.count() == 60).then_some(()));
}

#[test]
fn an_attempt_under_way_is_not_begun_again_however_far_the_clock_goes() {
    let dev = Dev::start(&["store.ballast=0", "webhooks.timeout=20s"]);
    let slow = Receiver::start(|_| Reply::After(Duration::from_secs(3), 200));
    let endpoint = dev.api.subscribe(&slow.url("/"));
    let event = dev.api.post_event("order.paid", "{}");
    until("it is under way", || (slow.count() == 1).then_some(()));
    // Its lease is over, and what is due is looked at again and again.
    dev.advance(Duration::from_secs(86_400));
    let other = dev.api.post_event("order.paid", "{}");
    until("the other one is under way too", || (slow.count() == 2).then_some(()));
    for event in [&event, &other] {
        assert_eq!(dev.api.until_delivery(&endpoint, event, "delivered")["attempts"], 1);
    }
    assert_eq!(slow.count(), 2, "each came once");
}
