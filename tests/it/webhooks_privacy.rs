//! What the log and the metrics do not tell, however much is asked for: payloads, secrets, keys, the query of an address,
//! what receivers answer.

use std::time::Duration;

use serde_json::json;

use crate::harness::dev::Dev;
use crate::harness::receiver::{Receiver, Reply};
use crate::harness::until;

const PAYLOAD: &str = "Qwertyla-Distinctova-of-the-payload";
const QUERY: &str = "token-of-the-query-xyzzy";
const ANSWER: &str = "an-answer-of-xyzzy";
const DESCRIPTION: &str = "a-description-of-xyzzy";
const LOCATION: &str = "a-location-of-xyzzy";

/// Posts that are refused, each with something that nobody is to be told of.
fn post_badly(dev: &Dev) {
    let id = "0192f3a4-0000-7000-8000-000000000001";
    let event = |more: &str| {
        format!(
            r#"{{"type": "order.paid", "version": 1, "aggregate": {{"type": "o", "id": "1"}}, "event_id": "{id}", {more}}}"#
        )
    };
    let data = format!(r#""data": {{"secret": "{PAYLOAD}"}}"#);
    let other = format!(r#""data": {{"other": "{PAYLOAD}"}}"#);
    let unknown = format!(r#"{data}, "{PAYLOAD}": 1"#);
    let cut = format!(r#""data": {{"secret": "{PAYLOAD}"#);
    let no_object = format!(r#""data": "{PAYLOAD}""#);
    for (body, status) in [
        (event(&data), 202),
        (event(&data), 202),
        (event(&other), 409),
        (event(&unknown), 422),
        (event(&cut), 400),
        (event(&no_object), 422),
        (event(&data).replace("order.paid", "lead.received"), 422),
    ] {
        let answer = dev.api.send("POST", "/v1/events", Some(&body)).unwrap();
        assert!(
            answer.status == status || status >= 400 && matches!(answer.status, 400 | 422),
            "{body}: {}",
            answer.body
        );
    }
    for url in
        [format!("http://user:{QUERY}@example.com/"), format!("https://10.0.0.1/?{QUERY}"), format!("ftp://{QUERY}/")]
    {
        let answer = dev.api.post("/v1/endpoints", &json!({"url": url}));
        assert!((400..500).contains(&answer.status), "{url}: {}", answer.body);
        assert!(!answer.body.contains(QUERY), "{}", answer.body);
    }
    let stranger = crate::harness::http::Client::new(dev.http.url(), Some("pbx_not-a-key-of-anybody-xyzzy"));
    assert_eq!(stranger.get("/v1/events").status, 401);
}

#[test]
fn nothing_personal_and_no_secret_is_in_the_log_at_trace_or_in_the_metrics() {
    let dev = Dev::start(&["store.ballast=0", "log.level=trace", "webhooks.timeout=2s"]);
    let replies = [
        Reply::Status(200),
        Reply::Whole(500, "X-Say: an-answer-of-xyzzy\r\n", ANSWER),
        Reply::Whole(302, "Location: /a-location-of-xyzzy\r\n", ANSWER),
        Reply::Whole(503, "Retry-After: 5\r\n", ANSWER),
        Reply::Hang,
        Reply::Reset,
        Reply::Bytes(b"an-answer-of-xyzzy\r\n\r\n"),
        Reply::Whole(410, "", ANSWER),
    ];
    let count = replies.len();
    let receiver = Receiver::start(move |came| {
        let number: usize =
            came.path.split(['/', '?']).nth(1).and_then(|number| number.parse().ok()).unwrap_or_default();
        replies[number].clone()
    });
    let mut secrets = vec![dev.api.secret().to_owned(), "pbx_not-a-key-of-anybody-xyzzy".to_owned()];
    let mut endpoints = Vec::new();
    for number in 0..count {
        let url = receiver.url(&format!("/{number}/path?key={QUERY}"));
        let endpoint = dev.api.create_endpoint(&json!({"url": url, "description": DESCRIPTION}));
        let rotated = dev.api.done(&format!("{}/rotate-secret", endpoint.path()), &json!({}));
        secrets.extend([endpoint.secret.clone(), rotated["secret"].as_str().unwrap().to_owned()]);
        endpoints.push(endpoint);
    }
    post_badly(&dev);
    // They are told of the one that is gone, too.
    until("all endpoints have been tried", || (receiver.count() >= count).then_some(()));
    dev.api.done(&format!("{}/test", endpoints[1].path()), &json!({}));
    dev.advance(Duration::from_secs(400));
    dev.run_job("webhooks-deliver");
    let again = || receiver.came().iter().filter(|came| came.earlier > 0).count();
    until("some were tried again", || (again() > 3).then_some(()));
    let metrics = dev.http.get("/metrics").body;
    let ready = dev.http.get("/readyz").body;
    let mut dev = dev;
    dev.process.stop();
    let log = dev.process.log();
    assert!(log.contains("TRACE") || log.contains("DEBUG"), "the log tells as much as it can");
    assert!(log.contains(&endpoints[1].id), "deliveries are in it at all");
    for (place, text) in [("log", &log), ("metrics", &metrics), ("readyz", &ready)] {
        for told in [PAYLOAD, QUERY, ANSWER, DESCRIPTION, LOCATION] {
            let line = text.lines().find(|line| line.contains(told));
            assert_eq!(line, None, "{told} is in the {place}");
        }
        for secret in &secrets {
            let digits = secret.split_once('_').map_or(secret.as_str(), |(_, digits)| digits);
            let line = text.lines().find(|line| line.contains(digits));
            assert_eq!(line, None, "a secret is in the {place}");
        }
    }
    assert!(metrics.contains("webhook"), "deliveries are counted: {metrics}");
}

#[test]
fn a_lead_reaches_receivers_as_ids_and_as_nothing_that_tells_who_it_was() {
    let dev = Dev::start(&["store.ballast=0", "leads.delivery=off", "leads.allow_originless=true"]);
    let receiver = Receiver::start(|_| Reply::Status(200));
    let endpoint = dev.api.create_endpoint(&json!({"url": receiver.url("/"), "event_types": ["lead.*"]}));
    let personal = ["Qwertyla Distinctova", "79987766554", "a comment of xyzzy", "Xyzzygrad"];
    let lead = json!({
        "schema_version": 1, "request_id": "IP-20261130-PRIVATE", "form_version": "1", "form_fill_ms": 9000,
        "client": {"name": personal[0], "phone": personal[1], "city": personal[3]},
        "mortgage": {"scenario": "x", "comment": personal[2]},
        "consent": true, "personal_data_consent": "yes", "spam_check": {"likely_bot": false},
    });
    let answer = crate::harness::http::Client::new(dev.http.url(), None).post("/leads", &lead);
    assert_eq!(answer.status, 201, "{}", answer.body);
    let came = until("the event of the lead arrives", || receiver.came().pop());
    assert!(came.is_signed_by(&endpoint.secret), "{came:?}");
    let body: serde_json::Value = serde_json::from_str(came.text()).unwrap();
    assert_eq!((&body["type"], &body["tenant"]), (&json!("lead.received"), &json!("default")), "{body}");
    assert!(body["data"]["lead_id"].is_string(), "{body}");
    for told in personal {
        assert!(!came.text().contains(told), "{told}: {body}");
    }
    let posted = dev.api.send("POST", "/v1/events", Some(&crate::harness::tenant::event_text("lead.received", "{}")));
    let refused = posted.unwrap();
    assert_eq!((refused.status, &refused.json()["code"]), (422, &json!("reserved_type")), "nobody else says so");
}
