//! Secrets: how long each signs, who is shown them, and that the file does not tell them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::harness::dev::Dev;
use crate::harness::receiver::{Came, Receiver, Reply};
use crate::harness::tenant::{Endpoint, tempting};
use crate::harness::until;

const HOUR: Duration = Duration::from_secs(3_600);

/// What the receiver gets for the next event.
fn next(dev: &Dev, receiver: &Receiver) -> Came {
    let event = dev.api.post_event("order.paid", tempting()[2]);
    until("the event arrives", || receiver.came().into_iter().find(|came| came.id() == event))
}

fn rotate(dev: &Dev, endpoint: &Endpoint, body: &serde_json::Value) -> String {
    let rotated = dev.api.done(&format!("{}/rotate-secret", endpoint.path()), body);
    rotated["secret"].as_str().expect("the new secret is shown").to_owned()
}

#[test]
fn the_old_secret_signs_beside_the_new_one_until_its_time_is_over() {
    let dev = Dev::start(&["store.ballast=0"]);
    let receiver = Receiver::start(|_| Reply::Status(200));
    let endpoint = dev.api.subscribe(&receiver.url("/"));
    let first = endpoint.secret.clone();
    let came = next(&dev, &receiver);
    assert!(came.is_signed_by(&first) && came.signatures().len() == 1, "{came:?}");

    let second = rotate(&dev, &endpoint, &json!({}));
    assert_ne!(first, second);
    let came = next(&dev, &receiver);
    assert!(came.is_signed_by(&first) && came.is_signed_by(&second), "each alone: {came:?}");
    let newest = standardwebhooks::Webhook::new(&second).unwrap();
    let newest = newest.sign(came.id(), came.timestamp(), &came.body).unwrap();
    assert_eq!(came.signatures()[0], newest, "the newest stands first");

    dev.advance(23 * HOUR);
    assert!(next(&dev, &receiver).is_signed_by(&first), "for a day, if nothing else was asked for");
    // Rotated again within that day: three sign, until the day of each is over.
    let third = rotate(&dev, &endpoint, &json!({"overlap_seconds": 7_200}));
    let came = next(&dev, &receiver);
    assert!([&first, &second, &third].into_iter().all(|secret| came.is_signed_by(secret)), "{came:?}");
    dev.advance(HOUR + Duration::from_secs(60));
    let came = next(&dev, &receiver);
    assert!(!came.is_signed_by(&first), "a later rotation gives the first one no more time");
    assert!(came.is_signed_by(&second) && came.is_signed_by(&third), "{came:?}");
    dev.advance(HOUR);
    let came = next(&dev, &receiver);
    assert!(!came.is_signed_by(&second) && came.is_signed_by(&third) && came.signatures().len() == 1, "{came:?}");
}

#[test]
fn a_secret_that_leaked_is_replaced_at_once_also_for_what_waits() {
    let dev = Dev::start(&["store.ballast=0"]);
    let receiver = Receiver::start(|came| if came.earlier == 0 { Reply::Status(500) } else { Reply::Status(200) });
    let endpoint = dev.api.subscribe(&receiver.url("/"));
    let event = dev.api.post_event("order.paid", "{}");
    until("the first attempt has failed", || (receiver.count() == 1).then_some(()));
    dev.api.until_delivery(&endpoint, &event, "pending");
    let own = format!("whsec_{}", STANDARD.encode([7_u8; 40]));
    let ask = json!({"overlap_seconds": 0, "secret": own});
    assert_eq!(rotate(&dev, &endpoint, &ask), own);
    dev.advance(Duration::from_secs(6));
    dev.api.until_delivery(&endpoint, &event, "delivered");
    let came = receiver.came();
    let [before, after] = &came[..] else { panic!("{came:?}") };
    assert!(before.is_signed_by(&endpoint.secret) && !after.is_signed_by(&endpoint.secret), "{came:?}");
    assert!(after.is_signed_by(&own) && after.signatures().len() == 1, "{after:?}");
    assert_eq!((before.id(), &before.body), (after.id(), &after.body));
}

#[test]
fn the_file_and_every_later_answer_keep_secrets_to_themselves() {
    let mut dev = Dev::start(&["store.ballast=0"]);
    let receiver = Receiver::start(|_| Reply::Status(200));
    let raw: Vec<u8> = (1..=32).map(|byte| byte * 7).collect();
    let own = format!("whsec_{}", STANDARD.encode(&raw));
    let endpoint = dev.api.create_endpoint(&json!({"url": receiver.url("/"), "secret": own}));
    assert_eq!(endpoint.secret, own);
    let made = dev.api.subscribe(&receiver.url("/made"));
    let rotated = rotate(&dev, &made, &json!({}));
    next(&dev, &receiver);
    for shown in [dev.api.load(&endpoint.path()), dev.api.load(&made.path()), dev.api.load("/v1/endpoints")] {
        for secret in [&own, &made.secret, &rotated] {
            assert!(!shown.to_string().contains(secret.trim_start_matches("whsec_")), "{shown}");
        }
    }
    // It goes on with the key that it keeps beside the file.
    dev.start_again();
    let came = next(&dev, &receiver);
    assert!(came.is_signed_by(&own) || came.is_signed_by(&rotated), "{came:?}");
    dev.process.stop();

    let key = dev.place.data().join("webhooks.key");
    assert_eq!(fs::metadata(&key).expect("the key has a file").permissions().mode() & 0o777, 0o600);
    let bytes: Vec<u8> = fs::read_dir(dev.place.data())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("pillarbox.db")))
        .flat_map(|path| fs::read(path).unwrap())
        .collect();
    let holds = |needle: &[u8]| bytes.windows(needle.len()).any(|window| window == needle);
    assert!(holds(endpoint.id.as_bytes()), "the search finds what is there");
    for secret in [&own, &made.secret, &rotated] {
        let digits = secret.trim_start_matches("whsec_");
        let decoded = STANDARD.decode(digits).unwrap();
        assert!(!holds(digits.as_bytes()) && !holds(&decoded), "a secret is in the file as it is");
        let hex: String = decoded.iter().map(|byte| format!("{byte:02x}")).collect();
        assert!(!holds(hex.as_bytes()) && !dev.process.log().contains(digits), "a secret is in the file or the log");
    }
}
