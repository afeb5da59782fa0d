//! An update of the Bot API as what a person did.
//!
//! The structs are our own and lenient: the types of a library refuse updates of newer Bot APIs, and a field that is
//! missing is no reason to keep somebody waiting. Only what has no chat, or is no object at all, cannot be read.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::envelope::Fields;
use crate::chat::{Author, Input, Membership, Place, Reader, Unreadable, What};

/// Fields of messages that nobody wrote: Telegram tells of a change of the chat.
const SERVICE: [&str; 22] = [
    "new_chat_members",
    "new_chat_member",
    "left_chat_member",
    "new_chat_title",
    "new_chat_photo",
    "delete_chat_photo",
    "group_chat_created",
    "supergroup_chat_created",
    "channel_chat_created",
    "message_auto_delete_timer_changed",
    "migrate_to_chat_id",
    "migrate_from_chat_id",
    "pinned_message",
    "users_shared",
    "chat_shared",
    "connected_website",
    "write_access_allowed",
    "proximity_alert_triggered",
    "boost_added",
    "chat_background_set",
    "forum_topic_created",
    "web_app_data",
];

/// Reads updates of the Bot API.
pub(crate) struct UpdateReader;

#[derive(Deserialize)]
struct Update<'a> {
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    edited_message: Option<Message>,
    edited_channel_post: Option<Message>,
    callback_query: Option<Tap>,
    my_chat_member: Option<Member>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    message_id: i64,
    /// 0 for a message that is too old to be shown.
    date: Option<i64>,
    chat: Chat,
    from: Option<User>,
    text: Option<String>,
}

#[derive(Deserialize)]
struct Chat {
    id: i64,
    r#type: Option<String>,
}

#[derive(Deserialize)]
struct User {
    id: i64,
    #[serde(default)]
    is_bot: bool,
    #[serde(default)]
    first_name: String,
    username: Option<String>,
    language_code: Option<String>,
}

#[derive(Deserialize)]
struct Tap {
    from: User,
    message: Option<Message>,
    inline_message_id: Option<String>,
    data: Option<String>,
    game_short_name: Option<String>,
}

#[derive(Deserialize)]
struct Member {
    chat: Chat,
    from: Option<User>,
    new_chat_member: Option<Status>,
}

#[derive(Deserialize)]
struct Status {
    #[serde(default)]
    status: String,
}

impl Reader for UpdateReader {
    fn read(&self, raw: &str) -> Result<Input, Unreadable> {
        let Fields(fields) = serde_json::from_str(raw).map_err(|_| Unreadable)?;
        if fields.iter().all(|(name, _)| name == "update_id") {
            return Err(Unreadable);
        }
        let update: Update<'_> = serde_json::from_str(raw).map_err(|_| Unreadable)?;
        let edited = update.edited_message.or(update.edited_channel_post);
        match (update.message, update.callback_query, update.my_chat_member, edited) {
            (Some(message), ..) => read_message(message),
            (None, Some(tap), ..) => Ok(tap.read()),
            (None, None, Some(member), _) => Ok(member.read()),
            (None, None, None, Some(edited)) => Ok(edited.into_input(What::Edited)),
            (None, None, None, None) => Ok(NOTHING),
        }
    }
}

/// Of a kind that this version has no use for.
const NOTHING: Input = Input { chat_id: 0, place: Place::Channel, author: None, what: What::Nothing };

fn read_message(raw: &RawValue) -> Result<Input, Unreadable> {
    let mut message: Message = serde_json::from_str(raw.get()).map_err(|_| Unreadable)?;
    let Fields(fields) = serde_json::from_str(raw.get()).map_err(|_| Unreadable)?;
    let message_id = message.message_id;
    let what = match message.text.take() {
        Some(text) => What::Text { message_id, text },
        None if fields.iter().any(|(name, _)| SERVICE.contains(&name.as_ref())) => What::Nothing,
        None => What::Thing { message_id },
    };
    Ok(message.into_input(what))
}

impl Message {
    fn into_input(self, what: What) -> Input {
        let Self { chat, from, .. } = self;
        Input { chat_id: chat.id, place: chat.place(), author: from.map(User::into_author), what }
    }
}

impl Chat {
    fn place(&self) -> Place {
        match self.r#type.as_deref() {
            Some("private") => Place::Private,
            Some("channel") => Place::Channel,
            Some("group" | "supergroup") => Place::Group,
            _ if self.id > 0 => Place::Private,
            _ => Place::Group,
        }
    }
}

impl User {
    fn into_author(self) -> Author {
        let Self { id, is_bot, first_name, username, language_code } = self;
        Author { id, is_bot, first_name, username, lang: language_code }
    }
}

impl Tap {
    fn read(self) -> Input {
        let is_inline = self.inline_message_id.is_some();
        let message = self.message.filter(|_| !is_inline);
        let (chat_id, place) = match &message {
            Some(message) => (message.chat.id, message.chat.place()),
            None => (self.from.id, Place::Private),
        };
        // Of a message that is too old only its number is shown, and it can no longer be changed.
        let message_id = message.filter(|message| message.date != Some(0)).map(|message| message.message_id);
        let message_id = message_id.filter(|id| *id > 0);
        let data = self.data.filter(|_| self.game_short_name.is_none());
        let author = Some(self.from.into_author());
        Input { chat_id, place, author, what: What::Tap { data, message_id } }
    }
}

impl Member {
    fn read(self) -> Input {
        let what = match self.new_chat_member.map(|member| member.status).as_deref() {
            Some("kicked" | "left") => What::Membership(Membership::Gone),
            Some("member" | "administrator" | "creator" | "restricted") => What::Membership(Membership::Member),
            _ => What::Nothing,
        };
        Input { chat_id: self.chat.id, place: self.chat.place(), author: self.from.map(User::into_author), what }
    }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
