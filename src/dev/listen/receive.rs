//! What happens to a delivery that comes: it is verified, handed on, answered and told.

use std::sync::Arc;
use std::time::Instant;

use axum::body::{Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use tokio::sync::oneshot;

use super::{Answer, Arrival, Office};
use crate::dev::problem::{BODY_LIMIT, Problem};
use crate::dev::signature::Moment;
use crate::dev::sink::receive::signed;

/// The one handler. The work is a task of its own, since a sender that hangs up ends the handler but not what the
/// program has been given.
pub(super) async fn receive(State(office): State<Arc<Office>>, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, BODY_LIMIT).await.map_err(|_| Problem::too_large())?;
    let (answered, answer) = oneshot::channel();
    tokio::spawn(work(office, parts, body, answered));
    let cut_off = |_| Problem::unavailable("the receiver is ending");
    answer.await.map_err(cut_off)
}

async fn work(office: Arc<Office>, parts: Parts, body: Bytes, answered: oneshot::Sender<Response>) {
    let began = Instant::now();
    let signed = signed(&parts.headers);
    let at = office.desk.clock.now();
    let mut arrival = Arrival {
        at,
        id: signed.id.map(str::to_owned),
        event_type: event_type(&body),
        attempt: signed.id.map_or(1, |id| office.count(id)),
        fault: signed.check(&office.desk.key, &body, Moment::usual(at)).err(),
        took: began.elapsed(),
        answer: Answer::Own,
        is_late: false,
        body: body.clone(),
    };
    let response = match &office.desk.forward {
        None => StatusCode::OK.into_response(),
        Some(forward) => {
            let (answer, response) = forward.hand_on(parts, body).await;
            arrival.answer = answer;
            response
        }
    };
    arrival.took = began.elapsed();
    arrival.is_late = answered.send(response).is_err();
    // Nobody listens any more while the command ends.
    let _ = office.desk.told.send(arrival).await;
}

fn event_type(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Typed {
        r#type: String,
    }
    serde_json::from_slice::<Typed>(body).ok().map(|typed| typed.r#type)
}
