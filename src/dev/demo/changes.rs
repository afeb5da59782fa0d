//! What a step of the demo has changed, in the words of the one who watches: events, messages, notifications.
//!
//! A directory may have seen many demos, so everything is read from where it ended when this one began, a page at most.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Player;
use crate::backend::inspect::{self, EventRow, Filter, Shown};
use crate::chat::{self, Listed};
use crate::kernel::store::{StoreError, Tx};
use crate::leads::inspect::Listed as Lead;

/// More than the scenario makes, and a bound for a directory in which somebody else is at work meanwhile.
const PAGE: i64 = 500;

/// What this playing has told of so far.
pub(super) struct Told {
    messages_after: i64,
    events: BTreeMap<i64, String>,
    messages: BTreeMap<i64, String>,
    leads: BTreeMap<String, String>,
    notification: i64,
    /// The ordinal of the last text that the fake accepted.
    text: u64,
}

impl Told {
    /// Everything that is there already counts as told.
    pub(super) async fn begin(player: &Player<'_>) -> anyhow::Result<Self> {
        let ((_, notification), message) =
            player.stage.db.read(|tx| Ok::<_, StoreError>((inspect::newest(tx)?, chat::newest(tx)?))).await?;
        let mut text = 0;
        while let Some(last) = player.texts_after(text).await?.last() {
            text = ordinal(last);
        }
        let (events, messages, leads) = Default::default();
        Ok(Self { messages_after: message, events, messages, leads, notification, text })
    }

    /// Prints what is new since it was last called.
    pub(super) async fn tell(&mut self, player: &Player<'_>) -> anyhow::Result<()> {
        let (events_after, messages_after, notification) =
            (player.events_after, self.messages_after, self.notification);
        let look = move |tx: &Tx<'_>| {
            let events =
                Filter { shown: Shown::All, event_type: None, subject: None, after: events_after, limit: PAGE };
            let messages = chat::Filter { after: messages_after, limit: PAGE, ..chat::Filter::default() };
            let notifications = inspect::notifications(tx, notification)?;
            Ok::<_, chat::Error>((inspect::list(tx, &events)?, chat::list(tx, &messages)?, notifications))
        };
        let (events, messages, notifications) = player.stage.db.read(look).await?;
        for event in events {
            tell_once(&mut self.events, event.id, Some(describe(&event)));
        }
        for message in messages {
            tell_once(&mut self.messages, message.id, describe_message(&message));
        }
        for text in player.texts_after(self.text).await? {
            let mut lines = text["text"].as_str().unwrap_or_default().lines().filter(|line| !line.is_empty());
            println!("      Telegram, chat {}: {}", text["chat_id"], lines.next().unwrap_or_default());
            lines.for_each(|line| println!("        {line}"));
            self.text = ordinal(&text);
        }
        for lead in player.leads().await? {
            tell_once(&mut self.leads, lead.id.clone(), Some(describe_lead(&lead)));
        }
        for (id, uid, title) in notifications {
            println!("      web cabinet of member {uid}: {title}");
            self.notification = id;
        }
        Ok(())
    }
}

/// The place of a text in the fake's log.
fn ordinal(text: &Value) -> u64 {
    text["ordinal"].as_u64().unwrap_or(u64::MAX)
}

fn tell_once<I: Ord>(told: &mut BTreeMap<I, String>, id: I, line: Option<String>) {
    if let Some(line) = line
        && told.get(&id) != Some(&line)
    {
        println!("      {line}");
        told.insert(id, line);
    }
}

/// As `pillarbox leads list` shows it.
fn describe_lead(lead: &Lead) -> String {
    let id = lead.request_id.as_deref().unwrap_or(&lead.id);
    format!("lead {id}: {}, attempts {}", lead.notification_status, lead.notification_attempt_count)
}

fn describe(event: &EventRow) -> String {
    let subject = event.subject.as_deref().unwrap_or("-");
    let mut line = format!("event {} {} ({subject}): {}", event.id, event.event_type, event.state);
    if event.state == "open" && event.attempts == 0 {
        line.push_str(", waits behind an earlier one");
    }
    if event.attempts > 0 {
        line.push_str(&format!(" after {} attempts", event.attempts).replace(" 1 attempts", " 1 attempt"));
    }
    if let Some(error) = &event.last_error
        && event.state != "processed"
    {
        line.push_str(&format!(": {error}"));
    }
    if let Some(at) = &event.next_retry_at {
        line.push_str(&format!("; next try {at}"));
    }
    line
}

/// As `pillarbox messages list` shows it; `None` for one that went out at the first attempt, whose text says enough.
fn describe_message(message: &Listed) -> Option<String> {
    if message.status == "sent" && message.attempts <= 1 && message.unknown_count == 0 {
        return None;
    }
    let mut line = format!("message {} to chat {}: {}", message.id, message.chat_id, message.status);
    line.push_str(&format!(", attempts {}", message.attempts));
    if message.unknown_count > 0 {
        line.push_str(&format!(", unknownCount {}", message.unknown_count));
    }
    if let Some(code) = &message.error_code {
        line.push_str(&format!(", errorCode {code}"));
    }
    Some(line)
}
