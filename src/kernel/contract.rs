//! The contract between a backend and the bot: the forms that both sides and the wire share.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::kernel::clock::UnixMs;

/// The header of a page of events by which a backend says that the `retryIds` of an acknowledgement may also be
/// `{"id", "error"}`. The contract's own form is plain ids, and a strict backend refuses a whole acknowledgement for
/// anything else, so reasons are sent only where they are asked for.
pub const TAKES_REASONS: &str = "pillarbox-takes-reasons";

/// The six types of the contract. They are stored and sent as these words and are not versioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BotEventType {
    /// A wallet was connected to the member.
    WalletConnected,
    /// The member's registration was confirmed.
    Registered,
    /// Somebody registered under the member.
    NewPartner,
    /// The member's status NFT was activated.
    StatusNftActivated,
    /// Reserved: handled, but nothing emits it by itself yet.
    Reactivation,
    /// Reserved: handled, but nothing emits it by itself yet.
    StructOvertake,
}

impl BotEventType {
    /// All of them, in the contract's order.
    pub const ALL: [Self; 6] = [
        Self::WalletConnected,
        Self::Registered,
        Self::NewPartner,
        Self::StatusNftActivated,
        Self::Reactivation,
        Self::StructOvertake,
    ];

    /// The contract's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WalletConnected => "wallet_connected",
            Self::Registered => "registered",
            Self::NewPartner => "new_partner",
            Self::StatusNftActivated => "status_nft_activated",
            Self::Reactivation => "reactivation",
            Self::StructOvertake => "struct_overtake",
        }
    }

    /// The type of that word; `None` for a word the contract does not have.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// A Telegram chat of a member: bound, or only known from a connect link that was not confirmed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chat {
    /// The chat is tied to the member.
    Bound(i64),
    /// The chat has opened the member's connect link; the person has still to confirm.
    Preview(i64),
}

/// What an event carries besides its subject.
#[derive(Clone, Debug, Default)]
pub enum Payload {
    /// `null`, or nothing.
    #[default]
    None,
    /// An object.
    Fields(Map<String, Value>),
    /// JSON by its grammar that this program cannot take apart: a number out of range, half a surrogate pair, a hundred
    /// levels. Handed on as it is; handling the event fails, and its row says why.
    Unreadable(Box<RawValue>),
}

impl PartialEq for Payload {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Fields(ours), Self::Fields(theirs)) => ours == theirs,
            (Self::Unreadable(ours), Self::Unreadable(theirs)) => ours.get() == theirs.get(),
            _ => false,
        }
    }
}

impl Payload {
    /// Reads the text of a column that the schema holds to be an object.
    pub fn read(text: Option<String>) -> Self {
        let Some(text) = text else { return Self::None };
        if let Ok(fields) = serde_json::from_str(&text) {
            return Self::Fields(fields);
        }
        Self::Unreadable(RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }

    /// A field, if there are fields and it is one of them.
    pub fn field(&self, name: &str) -> Option<&Value> {
        match self {
            Self::Fields(fields) => fields.get(name),
            Self::None | Self::Unreadable(_) => None,
        }
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => to.serialize_none(),
            Self::Fields(fields) => fields.serialize(to),
            Self::Unreadable(raw) => raw.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Some(raw) = Option::<Box<RawValue>>::deserialize(from)? else { return Ok(Self::None) };
        match serde_json::from_str::<Value>(raw.get()) {
            Ok(Value::Object(fields)) => Ok(Self::Fields(fields)),
            Ok(Value::Null) => Ok(Self::None),
            Ok(_) => Err(D::Error::custom("must be an object")),
            Err(_) => Ok(Self::Unreadable(raw)),
        }
    }
}

/// One event as `GET /bot/events/pending` shows it. The type is text: an unknown one must be told, not lost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BotEvent {
    /// The outbox id; order within a subject.
    pub id: i64,
    /// One of [`BotEventType`], or a word that a co-writer made up.
    pub event_type: String,
    /// The chat, as text in JSON: it does not fit a JavaScript number.
    #[serde(with = "chat_as_text")]
    pub telegram_id: Option<i64>,
    /// The member's id.
    pub magnet_uid: Option<i64>,
    /// The type's own fields.
    pub payload: Payload,
    /// When it was emitted; RFC 3339 in JSON.
    #[serde(with = "instant_as_text")]
    pub created_at: UnixMs,
    /// Failed attempts so far.
    pub attempts: i64,
}

/// A notification for the member's web cabinet (contract: `POST /bot/notification`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WebNotification {
    /// Whose cabinet.
    pub magnet_uid: i64,
    /// A short word for what it is about.
    pub kind: String,
    /// Its headline.
    pub title: String,
    /// Its text.
    pub body: String,
    /// Names the cause; a second notification of the same cause is not stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dedup_key: Option<String>,
}

/// A member as whoever follows their link sees them (contract: `GET /bot/leader/resolve`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Leader {
    /// The member's id.
    pub uid: i64,
    /// The code of their link.
    pub link: String,
    /// How they are called.
    pub name: Option<String>,
}

/// What a member has done (contract: `GET /bot/user/state`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MemberState {
    /// Whether the registration is confirmed.
    pub is_registration_confirmed: bool,
    /// Whether the first level of the status NFT is active.
    pub lp1: bool,
    /// Whether the second level is.
    pub lp2: bool,
    /// The address of the wallet.
    pub addr: Option<String>,
    /// Until when the member is active; RFC 3339.
    pub time_active: Option<String>,
    /// The code of the member's own link.
    pub own_link: Option<String>,
}

/// The way to the site for one chat (contract: `POST /bot/telegram/connect-link`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectLink {
    /// The site's address with the token in it.
    pub url: String,
    /// The token, a UUID.
    pub token: String,
    /// When the token is over; RFC 3339.
    pub expires_at: String,
}

/// Which member a chat is bound to (contract: `GET /auth/check-account-by-telegram/{id}`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Whether there is one.
    pub exists: bool,
    /// Its id.
    pub uid: Option<i64>,
}

/// What became of binding a chat to a member (contract: `POST /bot/telegram/bind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// It is bound.
    Now,
    /// It was bound before, to this very chat.
    Before,
    /// It is not, and will not be: the preview is another, the member or the chat is taken. The contract's 409.
    Refused,
}

mod chat_as_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::ref_option, reason = "the signature serde's `with` asks for")]
    pub(super) fn serialize<S: Serializer>(id: &Option<i64>, to: S) -> Result<S::Ok, S::Error> {
        match id {
            Some(id) => to.serialize_some(&id.to_string()),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
        let text: Option<String> = Option::deserialize(from)?;
        text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
    }
}

mod instant_as_text {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::kernel::clock::{UnixMs, parse_rfc3339, rfc3339};

    pub(super) fn serialize<S: Serializer>(at: &UnixMs, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&rfc3339(*at))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<UnixMs, D::Error> {
        let text = String::deserialize(from)?;
        parse_rfc3339(&text).ok_or_else(|| D::Error::custom("not an RFC 3339 time"))
    }
}
