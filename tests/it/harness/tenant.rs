//! A tenant at work through `/v1`: posts events, has endpoints, looks at deliveries.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::http::{Answer, Client};
use super::until;

/// Objects as JSON text that whoever parses and writes them again changes, one a line. Lines end in LF only: one of them
/// has other separators in it.
static TEMPTING: LazyLock<Vec<&str>> =
    LazyLock::new(|| include_str!("../../../fixtures/webhooks/tempting.ndjson").trim_end().split('\n').collect());

/// The texts of `fixtures/webhooks/tempting.ndjson`.
pub(crate) fn tempting() -> &'static [&'static str] {
    &TEMPTING
}

/// An endpoint as its maker knows it.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) id: String,
    pub(crate) secret: String,
}

impl Endpoint {
    pub(crate) fn path(&self) -> String {
        format!("/v1/endpoints/{}", self.id)
    }
}

/// The body of `POST /v1/events`, whose data is this text and no other.
pub(crate) fn event_text(event_type: &str, data: &str) -> String {
    format!(r#"{{"type": "{event_type}", "version": 1, "aggregate": {{"type": "order", "id": "7"}}, "data": {data}}}"#)
}

impl Client {
    /// One request that is answered.
    pub(crate) fn call(&self, method: &str, path: &str, body: Option<&Value>) -> Answer {
        self.try_call(method, path, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// An endpoint that this body asks for.
    pub(crate) fn create_endpoint(&self, body: &Value) -> Endpoint {
        let made = self.done("/v1/endpoints", body);
        let word = |name: &str| made[name].as_str().unwrap_or_else(|| panic!("{name}: {made}")).to_owned();
        Endpoint { id: word("id"), secret: word("secret") }
    }

    /// An endpoint that wants everything.
    pub(crate) fn subscribe(&self, url: &str) -> Endpoint {
        self.create_endpoint(&json!({"url": url}))
    }

    /// Sets what `PATCH` may set of an endpoint.
    pub(crate) fn change(&self, endpoint: &Endpoint, body: &Value) -> Value {
        let answer = self.call("PATCH", &endpoint.path(), Some(body));
        assert_eq!(answer.status, 200, "PATCH {body}: {}", answer.body);
        answer.json()
    }

    /// Posts an event with this text as its data; its id.
    pub(crate) fn post_event(&self, event_type: &str, data: &str) -> String {
        let posted = self.send("POST", "/v1/events", Some(&event_text(event_type, data)));
        let answer = posted.unwrap_or_else(|error| panic!("POST /v1/events: {error}"));
        assert_eq!(answer.status, 202, "{data}: {}", answer.body);
        answer.json()["event_id"].as_str().expect("an id").to_owned()
    }

    /// What must be there.
    pub(crate) fn load(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "GET {path}: {}", answer.body);
        answer.json()
    }

    /// Every item of a list, page by page.
    pub(crate) fn list(&self, path: &str) -> Vec<Value> {
        let (mut all, mut after) = (Vec::new(), String::new());
        let joint = if path.contains('?') { '&' } else { '?' };
        loop {
            let mut page = self.load(&format!("{path}{joint}limit=200{after}"));
            all.append(page["items"].as_array_mut().expect("items"));
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return all,
            }
        }
    }

    /// The only delivery of an event to an endpoint, once there is one.
    pub(crate) fn until_delivery(&self, endpoint: &Endpoint, event_id: &str, status: &str) -> Value {
        let path = format!("/v1/deliveries?endpoint_id={}", endpoint.id);
        until(&format!("the delivery of {event_id} is {status}"), || {
            let mut all = self.list(&path);
            all.retain(|delivery| delivery["event_id"] == event_id);
            assert!(all.len() <= 1, "one event has one delivery to an endpoint: {all:?}");
            all.pop().filter(|delivery| delivery["status"] == status)
        })
    }

    /// The attempts of a delivery, the first one first.
    pub(crate) fn attempts(&self, delivery: &Value) -> Vec<Value> {
        let path = format!("/v1/deliveries/{}/attempts", delivery["id"].as_str().expect("an id"));
        let mut all = self.list(&path);
        all.sort_by_key(|attempt| attempt["number"].as_i64());
        all
    }
}

/// An instant of `/v1`, in unix milliseconds.
pub(crate) fn instant(shown: &Value) -> i64 {
    let text = shown.as_str().unwrap_or_else(|| panic!("not an instant: {shown}"));
    chrono::DateTime::parse_from_rfc3339(text).unwrap_or_else(|error| panic!("{error}: {text}")).timestamp_millis()
}
