//! What the fake remembers, as the sum of its log: messages, the update queue, subscriptions, webhook, commands.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kernel::clock::UnixMs;

/// Update kinds that are not sent to a bot that did not ask for them by name.
const NOT_BY_DEFAULT: [&str; 3] = ["chat_member", "message_reaction", "message_reaction_count"];

/// One step; the log is a list of these.
#[derive(Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub(super) enum Entry {
    /// A message was sent or edited.
    Message(Arc<Accepted>),
    /// The list of messages was emptied; the messages themselves can still be edited.
    Forgotten,
    /// An update came; one whose kind the bot did not subscribe to is not `queued`, and only takes its number.
    Update {
        update_id: u64,
        queued: bool,
        update: Value,
        /// When the person did it, by the fake's clock.
        #[serde(default)]
        at: UnixMs,
    },
    /// `getUpdates` with an offset: all below are taken away.
    ConfirmedBelow {
        update_id: u64,
    },
    /// `getUpdates` with a negative offset: all but the last are taken away.
    KeptLast {
        count: usize,
    },
    /// The webhook took this one.
    Delivered {
        sequence: u64,
    },
    Subscribed {
        allowed: Vec<String>,
    },
    Webhook {
        webhook: Option<Webhook>,
    },
    Commands {
        scope: String,
        commands: Value,
    },
    /// A tap was answered: its button no longer spins.
    Answered(TapAnswer),
}

/// An answer to a tap as the fake accepted it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TapAnswer {
    pub(super) callback_query_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    pub(super) at: UnixMs,
}

/// A message as the fake accepted it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Accepted {
    /// Its place in the list of everything accepted, from 1; never given twice.
    pub(super) ordinal: u64,
    pub(super) chat_id: i64,
    pub(super) message_id: i64,
    /// `sendMessage` or `editMessageText`.
    pub(super) method: String,
    pub(super) content: Content,
    /// When the message appeared; an edit keeps it.
    pub(super) date: UnixMs,
    pub(super) sent_at: UnixMs,
}

/// What a person sees of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Content {
    pub(super) text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) entities: Vec<Value>,
    pub(super) reply_markup: Option<Value>,
}

/// Where updates go instead of `getUpdates`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Webhook {
    pub(super) url: String,
    pub(super) secret: Option<String>,
    pub(super) max_connections: i64,
}

/// An update that nobody has taken yet. `sequence` tells two apart that carry the same `update_id`.
pub(super) struct Queued {
    pub(super) sequence: u64,
    pub(super) update_id: u64,
    pub(super) update: Value,
}

#[derive(Default)]
pub(super) struct World {
    messages: u64,
    last_message_id: i64,
    last_update_id: u64,
    updates: u64,
    log: Vec<Arc<Accepted>>,
    /// The newest content of every message ever sent.
    contents: HashMap<(i64, i64), Arc<Accepted>>,
    pub(super) queue: VecDeque<Queued>,
    /// When each button was pressed.
    taps: HashMap<String, UnixMs>,
    answers: Vec<TapAnswer>,
    pub(super) allowed: Vec<String>,
    pub(super) webhook: Option<Webhook>,
    commands: HashMap<String, Value>,
}

impl World {
    /// Makes one step. Replaying the log calls nothing else, so what is not here does not survive.
    pub(super) fn apply(&mut self, entry: Entry) {
        match entry {
            Entry::Message(accepted) => self.keep(accepted),
            Entry::Forgotten => self.log.clear(),
            Entry::Update { update_id, queued, update, at } => self.enqueue(update_id, queued, update, at),
            Entry::ConfirmedBelow { update_id } => self.queue.retain(|queued| queued.update_id >= update_id),
            Entry::KeptLast { count } => {
                self.queue.drain(..self.queue.len().saturating_sub(count));
            }
            Entry::Delivered { sequence } => self.queue.retain(|queued| queued.sequence != sequence),
            Entry::Subscribed { allowed } => self.allowed = allowed,
            Entry::Webhook { webhook } => self.webhook = webhook,
            Entry::Commands { scope, commands } => {
                self.commands.insert(scope, commands);
            }
            Entry::Answered(answer) => self.answers.push(answer),
        }
    }

    fn keep(&mut self, accepted: Arc<Accepted>) {
        self.messages = self.messages.max(accepted.ordinal);
        self.last_message_id = self.last_message_id.max(accepted.message_id);
        self.contents.insert((accepted.chat_id, accepted.message_id), Arc::clone(&accepted));
        self.log.push(accepted);
    }

    fn enqueue(&mut self, update_id: u64, queued: bool, update: Value, at: UnixMs) {
        self.last_update_id = self.last_update_id.max(update_id);
        self.updates += 1;
        if let Some(id) = update.pointer("/callback_query/id").and_then(Value::as_str) {
            self.taps.insert(id.to_owned(), at);
        }
        if queued {
            self.queue.push_back(Queued { sequence: self.updates, update_id, update });
        }
    }

    pub(super) fn next_ordinal(&self) -> u64 {
        self.messages + 1
    }

    pub(super) fn next_message_id(&self) -> i64 {
        self.last_message_id + 1
    }

    pub(super) fn next_update_id(&self) -> u64 {
        self.last_update_id + 1
    }

    /// The newest form of a message, if it was ever sent.
    pub(super) fn find_message(&self, chat_id: i64, message_id: i64) -> Option<&Arc<Accepted>> {
        self.contents.get(&(chat_id, message_id))
    }

    /// What was accepted after the `after`th, oldest first, of one chat or of all.
    pub(super) fn accepted(&self, chat_id: Option<i64>, after: u64, limit: usize) -> Vec<Arc<Accepted>> {
        let start = self.log.partition_point(|accepted| accepted.ordinal <= after);
        let of_chat = |accepted: &&Arc<Accepted>| chat_id.is_none_or(|wanted| wanted == accepted.chat_id);
        self.log[start..].iter().filter(of_chat).take(limit).cloned().collect()
    }

    /// When a person pressed the button with this query id.
    pub(super) fn find_tap(&self, callback_query_id: &str) -> Option<UnixMs> {
        self.taps.get(callback_query_id).copied()
    }

    /// The taps that were answered, oldest first.
    pub(super) fn answers(&self) -> &[TapAnswer] {
        &self.answers
    }

    /// Whether the bot asked for this kind of update; the list stays until it is given anew, and empty means the default.
    pub(super) fn wants(&self, kind: &str) -> bool {
        match self.allowed.is_empty() {
            true => !NOT_BY_DEFAULT.contains(&kind),
            false => self.allowed.iter().any(|allowed| allowed == kind),
        }
    }

    pub(super) fn commands(&self, scope: &str) -> Value {
        self.commands.get(scope).cloned().unwrap_or_else(|| Value::Array(Vec::new()))
    }
}
