//! What is known of an update before anybody looks at what it says: its number, its kind, its chat, the tap that waits.
//!
//! Nothing is dropped here. Whatever has a number can be stored and acknowledged; what it means is read when it is
//! handled, by then perhaps by a version that knows more.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::chat::inbox::{Received, UNREADABLE};

/// The longest kind that the file keeps; the Bot API's longest is 25.
const LONGEST_KIND: usize = 64;

/// The fields of an object in their order, unread.
pub(super) struct Fields<'a>(pub(super) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(InOrder)
    }
}

struct InOrder;

impl<'de> Visitor<'de> for InOrder {
    type Value = Fields<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some((name, value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
            fields.push((name.0, value));
        }
        Ok(Fields(fields))
    }
}

/// A field's name, borrowed where nothing in it is escaped.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct Body {
    /// Of a pressed button: what is answered.
    id: Option<serde_json::Value>,
    chat: Option<Named>,
    message: Option<Inner>,
    from: Option<Named>,
}

#[derive(Deserialize)]
struct Inner {
    chat: Option<Named>,
}

#[derive(Deserialize)]
struct Named {
    id: i64,
}

/// An update of the Bot API. `None` if it does not even have a number: then it can be neither known nor acknowledged.
pub(super) fn open(raw: &RawValue) -> Option<Received> {
    let Fields(fields) = serde_json::from_str(raw.get()).ok()?;
    let (_, number) = fields.iter().find(|(name, _)| name == "update_id")?;
    let update_id = serde_json::from_str(number.get()).ok()?;
    let content = fields.iter().find(|(name, _)| name != "update_id" && (1..=LONGEST_KIND).contains(&name.len()));
    let raw = raw.get().to_owned();
    let Some((kind, value)) = content else {
        return Some(Received { update_id, chat_id: 0, kind: UNREADABLE.to_owned(), raw, tap: None });
    };
    let body: Option<Body> = serde_json::from_str(value.get()).ok();
    let tap = body.as_ref().filter(|_| kind == "callback_query").and_then(Body::id);
    let chat_id = body.as_ref().and_then(Body::chat_id).unwrap_or_default();
    Some(Received { update_id, chat_id, kind: kind.clone().into_owned(), raw, tap })
}

impl Body {
    fn id(&self) -> Option<String> {
        self.id.as_ref()?.as_str().map(str::to_owned)
    }

    fn chat_id(&self) -> Option<i64> {
        let of_message = self.message.as_ref().and_then(|message| message.chat.as_ref());
        self.chat.as_ref().or(of_message).or(self.from.as_ref()).map(|named| named.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(text: &str) -> Option<Received> {
        open(&RawValue::from_string(text.to_owned()).unwrap())
    }

    fn seen(text: &str) -> (i64, i64, String, Option<String>) {
        let received = opened(text).unwrap();
        assert_eq!(received.raw, text, "as it came");
        (received.update_id, received.chat_id, received.kind, received.tap)
    }

    #[test]
    fn number_kind_chat_and_tap_are_found() {
        let cases = [
            (r#"{"update_id":7,"message":{"chat":{"id":5},"text":"hi"}}"#, (7, 5, "message", None)),
            (r#"{"message":{"chat":{"id":-5}},"update_id":7}"#, (7, -5, "message", None)),
            (
                r#"{"update_id":8,"callback_query":{"id":"77","from":{"id":5},"message":{"chat":{"id":-9}},"data":"x"}}"#,
                (8, -9, "callback_query", Some("77")),
            ),
            (r#"{"update_id":9,"callback_query":{"id":"78","from":{"id":5}}}"#, (9, 5, "callback_query", Some("78"))),
            (r#"{"update_id":9,"my_chat_member":{"chat":{"id":5},"from":{"id":6}}}"#, (9, 5, "my_chat_member", None)),
            (r#"{"update_id":10,"poll":{"id":"5"}}"#, (10, 0, "poll", None)),
        ];
        for (text, (number, chat, kind, tap)) in cases {
            assert_eq!(seen(text), (number, chat, kind.to_owned(), tap.map(str::to_owned)), "{text}");
        }
    }

    #[test]
    fn whatever_has_a_number_can_be_stored() {
        let long = format!(r#"{{"update_id":1,"{}":{{}}}}"#, "k".repeat(65));
        for (text, kind) in [
            (r#"{"update_id":1}"#, UNREADABLE),
            (r#"{"update_id":1,"":{}}"#, UNREADABLE),
            (&long, UNREADABLE),
            (r#"{"update_id":1,"message":5}"#, "message"),
            (r#"{"update_id":1,"message":{"chat":{"id":"5"}}}"#, "message"),
            (r#"{"update_id":1,"message":{"chat":null,"from":null}}"#, "message"),
            (r#"{"update_id":1,"callback_query":{"id":{},"from":{"id":1.5}}}"#, "callback_query"),
        ] {
            assert_eq!(seen(text), (1, 0, kind.to_owned(), None), "{text}");
        }
    }

    #[test]
    fn what_has_no_number_is_none() {
        for text in [r#"{}"#, "[]", "5", r#"{"update_id":"7"}"#, r#"{"update_id":1e40}"#, r#"{"message":{}}"#] {
            assert_eq!(opened(text), None, "{text}");
        }
    }
}
