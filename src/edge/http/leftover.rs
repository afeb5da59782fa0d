//! Reads what an answered request left unread of its body, within bounds.
//!
//! A connection that is closed with bytes unread is reset by the system, and the client loses the answer that it was
//! refused with (RFC 9112 §9.6). So a refused upload is still taken in and thrown away for a moment.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::header::EXPECT;
use axum::middleware::Next;
use axum::response::Response;
use futures_util::{Stream, StreamExt};
use tokio::sync::oneshot;

/// More than this is not waited for: the client is not going to listen.
const MOST_BYTES: usize = 16 << 20;
const LONGEST: Duration = Duration::from_secs(2);

/// Lends the body to the handler and throws away what it did not read.
pub(super) async fn linger(request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    // Such a client sends nothing before it is told to, and must not be told to now.
    let waits_to_send = request.headers().contains_key(EXPECT);
    let (giver, mut rest) = oneshot::channel();
    let request =
        request.map(|body| Body::from_stream(Lent { rest: Some(body.into_data_stream()), giver: Some(giver) }));
    let response = next.run(request).await;
    if let (false, Ok(rest)) = (waits_to_send, rest.try_recv()) {
        // Whether it ended, failed or took too long: the answer goes out now.
        let _ = tokio::time::timeout(LONGEST, throw_away(rest)).await;
    }
    response
}

async fn throw_away(mut rest: BodyDataStream) {
    let mut left = MOST_BYTES;
    while let Some(Ok(part)) = rest.next().await {
        left = left.saturating_sub(part.len());
        if left == 0 {
            return;
        }
    }
}

/// A body that comes back when the handler drops it before its end.
struct Lent {
    rest: Option<BodyDataStream>,
    giver: Option<oneshot::Sender<BodyDataStream>>,
}

impl Stream for Lent {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(rest) = self.rest.as_mut() else { return Poll::Ready(None) };
        let part = ready!(rest.poll_next_unpin(context));
        if !matches!(part, Some(Ok(_))) {
            self.rest = None;
        }
        Poll::Ready(part)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let (Some(rest), Some(giver)) = (self.rest.take(), self.giver.take()) {
            // Nobody waits for it when the request itself was given up.
            let _ = giver.send(rest);
        }
    }
}
