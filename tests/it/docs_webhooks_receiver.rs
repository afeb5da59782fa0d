//! The receiver in Rust of `docs/webhooks.md`: what stands below the line is on that page as it is here.

// ---
use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use standardwebhooks::Webhook;

/// A handler of axum: `Bytes` is the raw body.
async fn hook(webhook: &Webhook, headers: HeaderMap, body: Bytes) -> StatusCode {
    if webhook.verify(&body, &headers).is_err() {
        return StatusCode::BAD_REQUEST;
    }
    let Ok(event) = serde_json::from_slice::<serde_json::Value>(&body) else { return StatusCode::BAD_REQUEST };
    println!("{} {}", event["type"], event["id"]); // your work; see "What is guaranteed" for repeats
    StatusCode::NO_CONTENT
}
// ---

/// The handler, for the test beside.
pub(crate) async fn answer(secret: &str, headers: HeaderMap, body: Bytes) -> StatusCode {
    hook(&Webhook::new(secret).expect("a secret"), headers, body).await
}

/// What is on the page.
pub(crate) fn on_the_page() -> &'static str {
    include_str!("docs_webhooks_receiver.rs").split("// ---\n").nth(1).expect("two lines").trim_end()
}
