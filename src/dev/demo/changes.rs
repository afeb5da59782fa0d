//! What a step of the demo has changed, in the words of the one who watches.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::backend::inspect::{self, EventRow, Filter, Shown};
use crate::kernel::store::Db;

/// What can be seen from outside at one moment.
pub(super) struct Changes {
    events: BTreeMap<i64, EventRow>,
    messages: Vec<Value>,
    notifications: Vec<(i64, i64, String)>,
}

impl Changes {
    pub(super) async fn load(db: &Db, messages: Value) -> anyhow::Result<Self> {
        let newest = Filter { shown: Shown::All, event_type: None, subject: None, after: 0, limit: 10_000 };
        let (events, notifications) = db
            .read(move |tx| {
                Ok::<_, crate::kernel::store::StoreError>((inspect::list(tx, &newest)?, inspect::notifications(tx)?))
            })
            .await?;
        let messages = messages["messages"].as_array().cloned().unwrap_or_default();
        Ok(Self { events: events.into_iter().map(|event| (event.id, event)).collect(), messages, notifications })
    }

    /// Prints what is different from before.
    pub(super) fn tell_since(&self, before: &Self) {
        for (id, event) in &self.events {
            let line = describe(event);
            if before.events.get(id).map(describe).as_ref() != Some(&line) {
                println!("      {line}");
            }
        }
        for message in self.messages.iter().skip(before.messages.len()) {
            let text = message["text"].as_str().unwrap_or_default();
            println!("      Telegram, chat {}: {text}", message["chat_id"]);
        }
        for (_, uid, title) in self.notifications.iter().skip(before.notifications.len()) {
            println!("      web cabinet of member {uid}: {title}");
        }
        println!();
    }
}

fn describe(event: &EventRow) -> String {
    let subject = event.subject.as_deref().unwrap_or("-");
    let mut line = format!("event {} {} ({subject}): {}", event.id, event.event_type, event.state);
    if event.state == "open" && event.attempts == 0 {
        line.push_str(", waits");
    }
    if event.attempts > 0 {
        line.push_str(&format!(", {} failed", event.attempts));
    }
    if let (Some(error), Some(at)) = (&event.last_error, &event.next_retry_at) {
        line.push_str(&format!(" ({error}), next try {at}"));
    }
    line
}
