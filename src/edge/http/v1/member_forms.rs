//! Members as they travel, over HTTP and in the files that the command line imports.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::time::Instant;
use crate::backend::members::{Field, Member, MemberChange, Put};
use crate::edge::http::bot_event_forms::MemberUid;
use crate::edge::http::chat_id::ChatText;
use crate::edge::http::decode::check_text;
use crate::kernel::clock::rfc3339;

/// Characters of a link's code: what Telegram takes in a link that starts a bot.
const LONGEST_CODE: usize = 64;
/// Characters of a name, and of the address of a wallet.
const LONGEST_TEXT: usize = 200;

/// Every field of [`MemberBody`], and what it must be, in words that repeat nothing of a value.
pub(crate) const FIELDS: [(&str, &str); 10] = [
    ("link", "must be a text of 1 to 64 letters, digits, `_` or `-`"),
    ("name", "must be a text of 1 to 200 characters without control characters"),
    ("telegram_id", "must be a text of digits"),
    ("preview_telegram_id", "must be a text of digits"),
    ("parent_uid", "must be a whole number above 0"),
    ("addr", "must be a text of 1 to 200 characters without control characters"),
    ("lp1", "must be true or false"),
    ("lp2", "must be true or false"),
    ("time_active", "must be a time like 2027-01-15T08:00:00Z (RFC 3339)"),
    ("registration_confirmed", "must be true or false"),
];

/// What of a member is to be another. What is not there stays as it is, null clears, and clearing tells nobody.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = MemberChanges)]
#[serde(deny_unknown_fields)]
pub(super) struct MemberBody {
    /// The code of the member's link.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>, pattern = "^[A-Za-z0-9_-]{1,64}$")]
    link: Option<Option<Code>>,
    /// How the member is called.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 200, pattern = r"^[^\x00-\x1F\x7F-\x9F]+$")]
    name: Option<Option<ShortText>>,
    /// The chat that is the member's.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>, pattern = "^([1-8][0-9]{18}|[1-9][0-9]{0,17})$")]
    telegram_id: Option<Option<ChatText>>,
    /// The chat that has opened the site and has still to confirm.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>, pattern = "^([1-8][0-9]{18}|[1-9][0-9]{0,17})$")]
    preview_telegram_id: Option<Option<ChatText>>,
    /// Under whom the member is; that member is there already.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 9_223_372_036_854_775_807_i64)]
    parent_uid: Option<Option<MemberUid>>,
    /// The address of the wallet. The first one is `member.wallet_connected`.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 200, pattern = r"^[^\x00-\x1F\x7F-\x9F]+$")]
    addr: Option<Option<ShortText>>,
    /// Whether the first level of the status NFT is active. The first true is `member.nft_activated`.
    #[serde(default, deserialize_with = "present")]
    lp1: Option<Option<bool>>,
    /// The same of the second level.
    #[serde(default, deserialize_with = "present")]
    lp2: Option<Option<bool>>,
    /// Until when the member is active.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>, format = DateTime)]
    time_active: Option<Option<Instant>>,
    /// Whether the registration is confirmed. The first true is `member.registered`, and `partner.joined` of the parent.
    #[serde(default, deserialize_with = "present")]
    registration_confirmed: Option<Option<bool>>,
}

/// A field that is there, whatever it says: null is a value of its own.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// The code of a link.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Code(String);

impl TryFrom<String> for Code {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
        let is_code = (1..=LONGEST_CODE).contains(&text.len()) && text.bytes().all(is_fit);
        if is_code { Ok(Self(text)) } else { Err("must have 1 to 64 letters, digits, `_` or `-`") }
    }
}

/// A text of one line.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct ShortText(String);

impl TryFrom<String> for ShortText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        check_text(&text, LONGEST_TEXT, &[]).map(|()| Self(text))
    }
}

/// What a change says of a field.
fn field<B, T>(said: Option<Option<B>>, value: impl FnOnce(B) -> T) -> Field<T> {
    match said {
        None => Field::Keep,
        Some(None) => Field::Clear,
        Some(Some(said)) => Field::Set(value(said)),
    }
}

impl From<MemberBody> for MemberChange {
    fn from(body: MemberBody) -> Self {
        Self {
            link: field(body.link, |code| code.0),
            name: field(body.name, |text| text.0),
            telegram_id: field(body.telegram_id, |chat| chat.0),
            preview_telegram_id: field(body.preview_telegram_id, |chat| chat.0),
            parent_uid: field(body.parent_uid, |uid| uid.0),
            addr: field(body.addr, |text| text.0),
            lp1: field(body.lp1, |is_active| is_active),
            lp2: field(body.lp2, |is_active| is_active),
            time_active: field(body.time_active, |time| time.0),
            registration_confirmed: field(body.registration_confirmed, |is_confirmed| is_confirmed),
        }
    }
}

/// The change that these fields say, as `PUT /v1/members/{uid}` would read them.
///
/// # Errors
/// The field at fault with what it must be, from [`FIELDS`]; `None` for one that members do not have.
pub(crate) fn read_member(fields: Map<String, Value>) -> Result<MemberChange, Option<(&'static str, &'static str)>> {
    if fields.keys().any(|name| FIELDS.iter().all(|(known, _)| known != name)) {
        return Err(None);
    }
    let read = |fields: Map<String, Value>| serde_json::from_value::<MemberBody>(Value::Object(fields));
    let is_at_fault = |name: &str| {
        let alone = fields.get(name).map(|value| Map::from_iter([(name.to_owned(), value.clone())]));
        alone.is_some_and(|alone| read(alone).is_err())
    };
    match read(fields.clone()) {
        Ok(body) => Ok(body.into()),
        Err(_) => Err(FIELDS.into_iter().find(|(name, _)| is_at_fault(name))),
    }
}

/// A member as it is stored. The command line prints the same form.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Member)]
pub(crate) struct MemberForm {
    /// The member's id.
    #[schema(minimum = 1)]
    pub(crate) uid: i64,
    /// The code of the member's link.
    #[schema(required)]
    pub(crate) link: Option<String>,
    /// How the member is called.
    #[schema(required)]
    pub(crate) name: Option<String>,
    /// The chat that is the member's.
    #[schema(required)]
    pub(crate) telegram_id: Option<String>,
    /// The chat that has opened the site and has still to confirm.
    #[schema(required)]
    pub(crate) preview_telegram_id: Option<String>,
    /// Under whom the member is.
    #[schema(required)]
    pub(crate) parent_uid: Option<i64>,
    /// The address of the wallet.
    #[schema(required)]
    pub(crate) addr: Option<String>,
    /// Whether the first level of the status NFT is active.
    pub(crate) lp1: bool,
    /// The same of the second level.
    pub(crate) lp2: bool,
    /// Until when the member is active.
    #[schema(required, format = DateTime)]
    pub(crate) time_active: Option<String>,
    /// Whether the registration is confirmed.
    pub(crate) registration_confirmed: bool,
    /// When anything of it last changed; null if another program has written it.
    #[schema(required, format = DateTime)]
    pub(crate) updated_at: Option<String>,
}

impl From<Member> for MemberForm {
    fn from(member: Member) -> Self {
        Self {
            uid: member.uid,
            link: member.link,
            name: member.name,
            telegram_id: member.telegram_id.map(|id| id.to_string()),
            preview_telegram_id: member.preview_telegram_id.map(|id| id.to_string()),
            parent_uid: member.parent_uid,
            addr: member.addr,
            lp1: member.lp1,
            lp2: member.lp2,
            time_active: member.time_active.map(rfc3339),
            registration_confirmed: member.registration_confirmed,
            updated_at: member.updated_at.map(rfc3339),
        }
    }
}

/// A member that was just put.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = PutMember)]
pub(super) struct PutBody {
    #[serde(flatten)]
    member: MemberForm,
    /// The events that were published with it, in their order.
    published: Vec<&'static str>,
}

impl From<Put> for PutBody {
    fn from(put: Put) -> Self {
        Self { member: put.member.into(), published: put.published }
    }
}

/// A token that came back from the site, and whose session that was.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = RedeemedConnectLink)]
#[serde(deny_unknown_fields)]
pub(super) struct RedeemBody {
    /// The token.
    #[schema(max_length = 64)]
    pub(super) token: String,
    /// The member.
    pub(super) uid: MemberUid,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::{Map, Value, json};
    use utoipa::PartialSchema;

    use super::{FIELDS, MemberBody, read_member};

    fn fields(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(fields) => fields,
            other => panic!("{other}"),
        }
    }

    #[test]
    fn every_field_of_a_member_has_its_words() {
        let schema = serde_json::to_value(MemberBody::schema()).unwrap();
        let described: BTreeSet<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(described, FIELDS.iter().map(|(name, _)| *name).collect());
    }

    #[test]
    fn the_first_field_at_fault_is_told_and_nothing_of_its_value() {
        let bad = read_member(fields(json!({"name": "Anna", "lp1": "maybe", "telegram_id": "x-17"})));
        assert_eq!(bad, Err(Some(("telegram_id", "must be a text of digits"))));
        assert_eq!(read_member(fields(json!({"secret": 1}))), Err(None));
        assert!(read_member(fields(json!({"lp1": null, "name": "Anna"}))).is_ok());
    }
}
