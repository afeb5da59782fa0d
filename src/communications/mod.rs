//! Communications: a domain event becomes a Telegram message, because one of the operator's rules says so.
//!
//! **What.** A consumer of the relay that accepts inside its transaction. For each rule of `[[communications.rule]]` that an
//! event of the installation matches, the rule's content block is written with the event's values and queued for the rule's
//! chat. Of an endpoint that fails for long, and of one that was disabled, `communications.alert_chat` is told without a rule.
//!
//! **States.** None of its own: what was queued is the send queue's (`chat`), what was accepted the relay's (`outbox`).
//!
//! **Guarantees.**
//! - A message is queued in the transaction that records the acceptance, once for an event and a rule, however often the
//!   event is handed over: `src/communications/tests.rs::an_event_that_is_handed_over_again_queues_nothing_new`.
//! - Rules see events of the installation only, never another tenant's:
//!   `src/communications/tests.rs::events_of_other_tenants_tell_nobody_anything`.
//! - Values are escaped, and a block that cannot be written for an event is a refusal with a code, by which the other rules
//!   are taken back too: `src/communications/tests.rs::a_block_that_cannot_be_written_is_a_refusal_with_a_code`.
//! - A rule that could never be written is refused at the start, with its line:
//!   `src/communications/tests.rs::rules_that_cannot_be_written_are_found_at_the_start`.
//!
//! **Windows.** None of its own. A doubtful send is repeated, as with every message about one event (`chat`). After the send
//! queue has forgotten a message (90 days) the same event, retried by a person, would be told of again.
//!
//! **Not here.** Messages to the person whom an event is about: those are `onboarding`'s, from the bot's own outbox.

mod rule;
#[cfg(test)]
mod tests;
mod values;

use std::sync::Arc;

use crate::chat::{self, Format, Keyboard, Kind, NewMessage};
use crate::config::{CommunicationsConfig, ConfigErrors};
use crate::kernel::store::Tx;
use crate::onboarding::content::Content;
use crate::outbox::consumer::{Consumer, Inside, Refusal, Shape, StoredEvent};
use rule::Rule;

/// Events that the alert chat is told of, whatever the rules say.
const ALERTS: [&str; 2] = ["webhook.endpoint_failing", "webhook.endpoint_disabled"];

/// The consumer.
pub(crate) struct Communications {
    rules: Vec<Rule>,
    alert_chat: Option<i64>,
    content: Arc<Content>,
}

impl Communications {
    /// The consumer of these rules; none if nobody is to be told of anything.
    ///
    /// # Errors
    /// Every rule whose block there is not, or cannot be written for its events.
    pub(crate) fn open(config: &CommunicationsConfig, content: Arc<Content>) -> Result<Option<Self>, ConfigErrors> {
        let rules = rule::read(config, &content)?;
        let alert_chat = config.alert_chat.as_ref().and_then(rule::chat_id);
        let is_anybody_told = !rules.is_empty() || alert_chat.is_some();
        Ok(is_anybody_told.then_some(Self { rules, alert_chat, content }))
    }

    fn tell(&self, tx: &Tx<'_>, event: &StoredEvent, rule: &Rule) -> Result<(), Refusal> {
        let dedup_key = format!("communication:{}:{}", event.event_id, rule.name());
        self.queue(tx, event, Letter { chat_id: rule.chat, kind: Kind::Communication, block: &rule.block, dedup_key })
    }

    fn alert(&self, tx: &Tx<'_>, event: &StoredEvent, chat_id: i64) -> Result<(), Refusal> {
        let (block, dedup_key) = (block_of(&event.event_type), format!("alert:{}", event.event_id));
        self.queue(tx, event, Letter { chat_id, kind: Kind::Alert, block: &block, dedup_key })
    }

    fn queue(&self, tx: &Tx<'_>, event: &StoredEvent, letter: Letter<'_>) -> Result<(), Refusal> {
        let Letter { chat_id, kind, block, dedup_key } = letter;
        let text = values::render(&self.content, tx, block, event)?;
        let format = if self.content.is_plain(block) { Format::Plain } else { Format::Html };
        let message = NewMessage {
            chat_id,
            kind,
            text,
            format,
            keyboard: Keyboard::default(),
            edit: None,
            dedup_key,
            due_at: None,
            fallback: None,
        };
        match chat::enqueue(tx, &message) {
            Ok(_) => Ok(()),
            Err(chat::Error::Store(error)) => Err(error.into()),
            Err(_) => Err(Refusal::Code("message_invalid")),
        }
    }
}

/// A message before its text.
struct Letter<'a> {
    chat_id: i64,
    kind: Kind,
    block: &'a str,
    dedup_key: String,
}

/// The shipped block for events of this type.
fn block_of(event_type: &str) -> String {
    format!("event_{}", event_type.replace('.', "_"))
}

impl Consumer for Communications {
    fn name(&self) -> &'static str {
        "communications"
    }

    fn shape(&self) -> Shape<'_> {
        Shape::Inside(self)
    }
}

impl Inside for Communications {
    fn accept(&self, tx: &Tx<'_>, event: &StoredEvent) -> Result<(), Refusal> {
        if !event.tenant.is_installation() {
            return Ok(());
        }
        for rule in self.rules.iter().filter(|rule| rule.event.matches(&event.event_type)) {
            self.tell(tx, event, rule)?;
        }
        match self.alert_chat.filter(|_| ALERTS.contains(&event.event_type.as_str())) {
            Some(chat_id) => self.alert(tx, event, chat_id),
            None => Ok(()),
        }
    }
}
