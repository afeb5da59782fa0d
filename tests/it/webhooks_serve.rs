//! `serve`, as it runs for real: https only, to receivers whose certificate is trusted, in networks that the operator
//! names.

use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::harness::file;
use crate::harness::http::Client;
use crate::harness::receiver::{Receiver, Reply};
use crate::harness::tenant::Endpoint;
use crate::harness::{Place, Process, text, until};

/// An authority that is made for one test.
struct Authority(Issuer<'static, KeyPair>);

impl Authority {
    /// One whose certificate is in this file of the place.
    fn new(place: &Place, file: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        std::fs::write(place.path(file), params.self_signed(&key).unwrap().pem()).unwrap();
        Self(Issuer::new(params, key))
    }

    /// A receiver with a certificate for this name.
    fn receiver(&self, name: &str) -> Receiver {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &self.0).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let config = config.with_single_cert(vec![certificate.der().clone()], key).unwrap();
        Receiver::start_tls(config, |_| Reply::Status(200))
    }
}

/// A `serve` with these settings, and a client with an admin's key of the tenant `default`.
fn serve(place: &Place, sets: &[&str]) -> (Process, Client) {
    let mut process = place.start_serve("http://127.0.0.1:1", sets);
    let url = process.serving_url();
    let data = place.data();
    let made = place.command(&["keys", "create", "--role", "admin", "--data-dir", text(&data)]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let key = String::from_utf8(made.stdout).unwrap();
    (process, Client::new(&url, Some(key.trim())))
}

/// The first attempt of an endpoint's delivery, once it has ended.
fn first_attempt(api: &Client, endpoint: &Endpoint) -> Value {
    until("the first attempt has ended", || {
        let delivery = api.list(&format!("/v1/deliveries?endpoint_id={}", endpoint.id)).pop()?;
        (delivery["status"] != "sending").then_some(())?;
        api.attempts(&delivery).into_iter().next()
    })
}

#[test]
fn in_production_it_is_https_with_a_trusted_certificate_to_a_network_that_is_allowed() {
    let place = Place::new();
    let (ours, theirs) = (Authority::new(&place, "ca.pem"), Authority::new(&place, "other.pem"));
    let (good, untrusted) = (ours.receiver("localhost"), theirs.receiver("localhost"));
    let misnamed = ours.receiver("elsewhere.example");
    let ports = [&good, &untrusted, &misnamed].map(|receiver| receiver.port().to_string()).join(",");
    let (ports, ca) = (format!("webhooks.ports={ports}"), format!("webhooks.ca_file={}", text(&place.path("ca.pem"))));
    let sets = ["store.ballast=0", "webhooks.allow_networks=127.0.0.0/8,::1/128", "webhooks.timeout=5s", &ports, &ca];
    let (mut process, api) = serve(&place, &sets);
    let at = |receiver: &Receiver| receiver.url("/hook?its=own").replace("127.0.0.1", "localhost");
    let endpoints = [&good, &untrusted, &misnamed].map(|receiver| api.subscribe(&at(receiver)));
    let event = api.post_event("order.paid", r#"{"total":0.10}"#);
    for (endpoint, class) in endpoints.iter().zip([json!(null), json!("tls"), json!("tls")]) {
        let attempt = first_attempt(&api, endpoint);
        assert_eq!(attempt["error"], class, "{attempt}");
    }
    let came = good.came();
    assert!(came.len() == 1 && came[0].id() == event && came[0].is_signed_by(&endpoints[0].secret), "{came:?}");
    assert_eq!(came[0].header("host"), format!("localhost:{}", good.port()));
    assert_eq!(came[0].path, "/hook?its=own");
    assert_eq!((untrusted.count(), misnamed.count()), (0, 0));
    // The official library, by the clock of this machine.
    let mut headers = reqwest::header::HeaderMap::new();
    for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
        headers.insert(name, came[0].header(name).parse().unwrap());
    }
    let verifier = standardwebhooks::Webhook::new(&endpoints[0].secret).unwrap();
    verifier.verify(&came[0].body, &headers).unwrap();
    assert!(verifier.verify(b"{}", &headers).is_err());
    process.stop();
}

#[test]
fn in_production_nothing_inside_is_reached_unless_it_is_named() {
    let place = Place::new();
    let ours = Authority::new(&place, "ca.pem");
    let inside = ours.receiver("localhost");
    let (ports, ca) =
        (format!("webhooks.ports={}", inside.port()), format!("webhooks.ca_file={}", text(&place.path("ca.pem"))));
    let (mut process, api) = serve(&place, &["store.ballast=0", "webhooks.timeout=5s", &ports, &ca]);
    let own = api.address().replace("127.0.0.1", "[::ffff:127.0.0.1]");
    for url in [
        inside.url("/"),
        "http://example.com/".to_owned(),
        format!("https://{own}/v1/events"),
        format!("https://2130706433:{}/", inside.port()),
        "https://169.254.169.254/latest".to_owned(),
    ] {
        let refused = api.post("/v1/endpoints", &json!({"url": url}));
        assert_eq!(refused.status, 422, "{url}: {}", refused.body);
    }
    // Whatever the file says by now, what is sent to is judged again: by the schedule and by the test button.
    let endpoint = api.subscribe("https://receiver.example/");
    let conn = file::writer(&place.data());
    let aim = |url: &str| {
        let sql = "UPDATE webhook_endpoints SET url = ?2 WHERE endpoint_id = ?1";
        assert_eq!(conn.execute(sql, [&endpoint.id, url]).unwrap(), 1);
    };
    for url in [
        inside.url("/"),
        inside.url("/").replace("127.0.0.1", "localhost"),
        inside.url("/").replace("127.0.0.1", "0x7f.1"),
    ] {
        aim(&url);
        let tried = api.done(&format!("{}/test", endpoint.path()), &json!({}));
        assert_eq!((&tried["delivered"], &tried["error"]), (&json!(false), &json!("blocked")), "{url}: {tried}");
        let told = format!("{}{}", tried["response"], tried["error"]);
        assert!(!told.contains("127.0.0.1"), "the refusal names no address: {told}");
    }
    api.post_event("order.paid", "{}");
    let attempt = first_attempt(&api, &endpoint);
    assert_eq!((&attempt["error"], &attempt["resolved_ip"]), (&json!("blocked"), &json!(null)), "{attempt}");
    assert_eq!(inside.count(), 0);
    process.stop();
    let allowed =
        place.start_serve("http://127.0.0.1:1", &["webhooks.allow_insecure=true"]).wait(crate::harness::PATIENCE);
    assert!(!allowed.success(), "serve does not start with what only dev may");
}
