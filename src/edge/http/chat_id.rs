//! A person's chat as it travels: text, since its id may not fit a JavaScript number.

use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::openapi::{RefOr, schema};
use utoipa::{PartialSchema, ToSchema};

use super::decode::Whole;

/// One chat has one spelling. A person's chat is above 0; groups are below, and no member is one.
const PATTERN: &str = "^([1-8][0-9]{18}|[1-9][0-9]{0,17})$";
/// The largest number that JavaScript can say.
const LARGEST_NUMBER: i64 = 9_007_199_254_740_991;

/// The id of that text.
pub(super) fn parse(text: &str) -> Option<i64> {
    let is_digits = !text.is_empty() && text.len() <= 19 && text.bytes().all(|byte| byte.is_ascii_digit());
    let id: i64 = if is_digits { text.parse().ok()? } else { return None };
    (id > 0 && id.to_string() == text).then_some(id)
}

/// The id as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[schema(value_type = String, pattern = "^([1-8][0-9]{18}|[1-9][0-9]{0,17})$")]
#[serde(try_from = "String")]
pub(super) struct ChatText(pub(super) i64);

impl TryFrom<String> for ChatText {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        parse(&text).map(Self).ok_or("must be a text of digits")
    }
}

impl Serialize for ChatText {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

/// The id as bots send it: as text, or as the number that Telegram has it as.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChatTextOrNumber(pub(super) i64);

impl<'de> Deserialize<'de> for ChatTextOrNumber {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct TextOrNumber;

        impl TextOrNumber {
            fn checked<E: serde::de::Error>(id: i64) -> Result<ChatTextOrNumber, E> {
                let is_whole = (1..=LARGEST_NUMBER).contains(&id);
                is_whole.then_some(ChatTextOrNumber(id)).ok_or_else(|| E::custom("must be the id of a person's chat"))
            }
        }

        impl Visitor<'_> for TextOrNumber {
            type Value = ChatTextOrNumber;

            fn expecting(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                to.write_str("a text of digits")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
                parse(text).map(ChatTextOrNumber).ok_or_else(|| E::custom("must be a text of digits"))
            }

            fn visit_i64<E: serde::de::Error>(self, id: i64) -> Result<Self::Value, E> {
                Self::checked(id)
            }

            fn visit_u64<E: serde::de::Error>(self, id: u64) -> Result<Self::Value, E> {
                Self::checked(i64::try_from(id).unwrap_or(i64::MAX))
            }

            fn visit_f64<E: serde::de::Error>(self, id: f64) -> Result<Self::Value, E> {
                Whole::of_double::<E>(id).and_then(|Whole(id)| Self::checked(id))
            }
        }

        from.deserialize_any(TextOrNumber)
    }
}

impl PartialSchema for ChatTextOrNumber {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some(PATTERN)).build();
        let number = ObjectBuilder::new()
            .schema_type(schema::Type::Integer)
            .minimum(Some(1))
            .maximum(Some(LARGEST_NUMBER))
            .description(Some("Taken too; every answer has the text."))
            .build();
        Schema::OneOf(OneOfBuilder::new().item(text).item(number).build()).into()
    }
}

impl ToSchema for ChatTextOrNumber {
    fn name() -> std::borrow::Cow<'static, str> {
        "TelegramId".into()
    }
}

#[cfg(test)]
mod tests {
    use super::{ChatTextOrNumber, parse};

    #[test]
    fn a_chat_has_one_spelling() {
        assert_eq!(parse("9007199254740993"), Some(9_007_199_254_740_993));
        assert_eq!(parse("9223372036854775807"), Some(i64::MAX));
        for text in ["", "0", "01", "+1", "-1", "1 ", "1.0", "x", "9223372036854775808", "٣"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn bots_send_text_or_a_number_that_is_whole() {
        let read = |text: &str| serde_json::from_str::<ChatTextOrNumber>(text).ok().map(|chat| chat.0);
        assert_eq!((read("\"7\""), read("7"), read("7.0")), (Some(7), Some(7), Some(7)));
        for text in ["0", "-7", "\"-7\"", "7.5", "9007199254740993", "18446744073709551615", "null", "[7]"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
