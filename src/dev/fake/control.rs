//! `/dev/telegram/*`: see what was accepted, send updates as a person would, make the Bot API fail.

use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::Fake;
use super::faults::Fault;
use super::world::{Accepted, Entry};
use crate::dev::problem::{JsonBody, Problem, QueryOf};
use crate::kernel::clock::rfc3339;

const LONGEST_PAGE: usize = 1000;

pub(super) fn router() -> Router<Fake> {
    Router::new()
        .route("/dev/telegram/messages", get(messages).delete(forget))
        .route("/dev/telegram/answers", get(answers))
        .route("/dev/telegram/updates", get(queued).post(update))
        .route("/dev/telegram/faults", get(faults).post(arm).delete(disarm))
        .method_not_allowed_fallback(Problem::wrong_method)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    chat_id: Option<i64>,
    /// The ordinal of the last message that was seen.
    #[serde(default)]
    after: u64,
    limit: Option<usize>,
}

async fn messages(State(fake): State<Fake>, QueryOf(wanted): QueryOf<Wanted>) -> Result<Json<Value>, Problem> {
    let limit = wanted.limit.unwrap_or(LONGEST_PAGE);
    if !(1..=LONGEST_PAGE).contains(&limit) {
        return Err(Problem::unreadable(format!("limit: must be between 1 and {LONGEST_PAGE}")));
    }
    let found = fake.kept().world.accepted(wanted.chat_id, wanted.after, limit);
    let messages: Vec<_> = found.iter().map(|accepted| shown(accepted)).collect();
    Ok(Json(json!({"messages": messages})))
}

fn shown(accepted: &Accepted) -> Value {
    let mut shown = json!({
        "ordinal": accepted.ordinal,
        "chat_id": accepted.chat_id,
        "message_id": accepted.message_id,
        "text": accepted.content.text,
        "reply_markup": accepted.content.reply_markup,
        "method": accepted.method,
        "sent_at": rfc3339(accepted.sent_at),
    });
    if !accepted.content.entities.is_empty() {
        shown["entities"] = accepted.content.entities.clone().into();
    }
    shown
}

async fn forget(State(fake): State<Fake>) -> Result<Json<Value>, Problem> {
    fake.kept().commit(Entry::Forgotten).map_err(|error| Problem::not_written(&error))?;
    Ok(Json(json!({})))
}

/// The taps that were answered.
async fn answers(State(fake): State<Fake>) -> Json<Value> {
    let kept = fake.kept();
    let shown = kept.world.answers().iter().map(|answer| {
        json!({"callback_query_id": answer.callback_query_id, "text": answer.text, "answered_at": rfc3339(answer.at)})
    });
    Json(json!({"answers": shown.collect::<Vec<_>>()}))
}

/// The updates that nobody has taken yet.
async fn queued(State(fake): State<Fake>) -> Json<Value> {
    let kept = fake.kept();
    let updates: Vec<_> = kept.world.queue.iter().map(|queued| queued.update.clone()).collect();
    Json(json!({"updates": updates}))
}

async fn update(
    State(fake): State<Fake>,
    JsonBody(update): JsonBody<Map<String, Value>>,
) -> Result<Json<Value>, Problem> {
    let (update_id, queued) = fake.receive(update)?;
    Ok(Json(json!({"update_id": update_id, "queued": queued})))
}

async fn arm(State(fake): State<Fake>, JsonBody(fault): JsonBody<Fault>) -> Result<Json<Value>, Problem> {
    let fault = fault.checked()?;
    let shown = json!(fault);
    fake.faults().arm(fault);
    Ok(Json(shown))
}

async fn faults(State(fake): State<Fake>) -> Json<Value> {
    Json(json!({"faults": fake.faults().list()}))
}

async fn disarm(State(fake): State<Fake>) -> Json<Value> {
    fake.faults().clear();
    Json(json!({}))
}

impl Fake {
    /// The texts that were accepted for a chat, oldest first.
    pub(crate) fn texts(&self, chat_id: i64) -> Vec<String> {
        let found = self.kept().world.accepted(Some(chat_id), 0, LONGEST_PAGE);
        found.iter().map(|accepted| accepted.content.text.clone()).collect()
    }

    /// Queues an update as if Telegram had it from a person. One the bot did not subscribe to is dropped, as there.
    fn receive(&self, mut update: Map<String, Value>) -> Result<(u64, bool), Problem> {
        let given = match update.remove("update_id") {
            None | Some(Value::Null) => None,
            Some(id) => match id.as_u64() {
                Some(id @ 1..=0x7fff_ffff) => Some(id),
                _ => return Err(Problem::invalid("update_id: must be a whole number from 1 to 2147483647")),
            },
        };
        let mut kinds = update.iter();
        let kind = match (kinds.next(), kinds.next()) {
            (Some((kind, Value::Object(_))), None) => kind.clone(),
            (Some((kind, _)), None) => return Err(Problem::invalid(format!("{kind}: must be an object"))),
            _ => return Err(Problem::invalid("an update has exactly one field beside update_id, such as message")),
        };
        let mut kept = self.kept();
        let update_id = given.unwrap_or_else(|| kept.world.next_update_id());
        let queued = kept.world.wants(&kind);
        update.insert("update_id".into(), update_id.into());
        let entry = Entry::Update { update_id, queued, update: Value::Object(update), at: self.0.clock.now() };
        kept.commit(entry).map_err(|error| Problem::not_written(&error))?;
        drop(kept);
        self.wake();
        Ok((update_id, queued))
    }
}
