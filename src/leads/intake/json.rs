//! The body of a request as JSON that loses no lead: what cannot be stored is replaced before parsing, and a value of
//! an odd type is an absent one.
//!
//! Only the fields that are read are taken apart; the rest is skipped as it stands, so that a number no machine can hold
//! in a field nobody knows does no harm.

use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

/// A body that is not a JSON object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body is not a JSON object")]
pub(crate) struct NotJson;

/// How deep values may lie in one another: what `serde_json` reads, and less than what SQLite does.
const DEEPEST: usize = 127;

/// The bytes as JSON text in which every escape names a character that may be stored: one of U+0000 or of half a
/// surrogate pair becomes U+FFFD. A byte order mark before it is dropped.
///
/// # Errors
/// [`NotJson`] if they are not UTF-8, or lie in one another too deep. Whether they are JSON is found by reading them.
pub(super) fn storable(body: &[u8]) -> Result<String, NotJson> {
    let mut text = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body).to_vec();
    let (mut at, mut depth, mut is_string) = (0, 0_usize, false);
    while let Some(&byte) = text.get(at) {
        at += match byte {
            b'"' => {
                is_string = !is_string;
                1
            }
            b'\\' if is_string => settle_escape(&mut text, at),
            b'{' | b'[' if !is_string => {
                depth += 1;
                1
            }
            b'}' | b']' if !is_string => {
                depth = depth.saturating_sub(1);
                1
            }
            _ => 1,
        };
        if depth > DEEPEST {
            return Err(NotJson);
        }
    }
    String::from_utf8(text).map_err(|_| NotJson)
}

/// Replaces the escape at `at` if it must not be stored; how many bytes have been looked at.
fn settle_escape(text: &mut [u8], at: usize) -> usize {
    match unit_at(text, at) {
        None => 2,
        Some(0xD800..=0xDBFF) if matches!(unit_at(text, at + 6), Some(0xDC00..=0xDFFF)) => 12,
        Some(0 | 0xD800..=0xDFFF) => {
            text[at..at + 6].copy_from_slice(b"\\uFFFD");
            6
        }
        Some(_) => 6,
    }
}

/// The UTF-16 unit that an escape at this place names.
fn unit_at(text: &[u8], at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The named members of the JSON object that `text` is, in the order of the names; of one that comes twice the last.
///
/// # Errors
/// [`NotJson`] if it is not a JSON object.
pub(super) fn members<'a, const N: usize>(text: &'a str, names: [&str; N]) -> Result<[Member<'a>; N], NotJson> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let found = reader.deserialize_map(Wanted(names)).map_err(|_| NotJson)?;
    reader.end().map_err(|_| NotJson)?;
    Ok(found)
}

struct Wanted<'n, const N: usize>([&'n str; N]);

impl<'de, const N: usize> Visitor<'de> for Wanted<'_, N> {
    type Value = [Member<'de>; N];

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = [Member(None); N];
        while let Some(place) = map.next_key_seed(Name(&self.0))? {
            let value: &RawValue = map.next_value()?;
            if let Some(place) = place {
                found[place] = Member(Some(value.get()));
            }
        }
        Ok(found)
    }
}

/// Reads a key as its place among the names.
struct Name<'n>(&'n [&'n str]);

impl<'de> serde::de::DeserializeSeed<'de> for Name<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<Self::Value, D::Error> {
        key.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Option<usize>;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a name")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|name| *name == key))
    }
}

/// A member of an object as it was written, or none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member<'a>(Option<&'a str>);

impl<'a> Member<'a> {
    /// The text of a string, or of a number as it was written; of anything else the empty one.
    pub(super) fn text(self) -> String {
        match self.0 {
            Some(written) if written.starts_with('"') => serde_json::from_str(written).unwrap_or_default(),
            Some(written) if is_number(written) => written.to_owned(),
            _ => String::new(),
        }
    }

    /// The text of a string.
    pub(super) fn string(self) -> Option<String> {
        self.0.filter(|written| written.starts_with('"')).and_then(|written| serde_json::from_str(written).ok())
    }

    /// The values of an array, in its order; of anything else none.
    pub(super) fn items(self) -> Vec<Member<'a>> {
        let array = self.0.filter(|written| written.starts_with('['));
        let values: Option<Vec<&'a RawValue>> = array.and_then(|written| serde_json::from_str(written).ok());
        values.unwrap_or_default().into_iter().map(|value| Member(Some(value.get()))).collect()
    }

    /// Whether it is exactly `true`.
    pub(super) fn is_true(self) -> bool {
        self.0 == Some("true")
    }

    /// Whether it is exactly `false`.
    pub(super) fn is_false(self) -> bool {
        self.0 == Some("false")
    }

    /// A number without a fraction, from zero to what JavaScript counts exactly.
    pub(super) fn whole(self) -> Option<i64> {
        let number: f64 = self.0.filter(|written| is_number(written))?.parse().ok()?;
        let is_exact = number.fract() == 0.0 && (0.0..=9_007_199_254_740_991.0).contains(&number);
        if is_exact { format!("{:.0}", number.abs()).parse().ok() } else { None }
    }

    /// The members of an object; of anything else none.
    pub(super) fn members<const N: usize>(self, names: [&str; N]) -> [Member<'a>; N] {
        self.0.and_then(|written| members(written, names).ok()).unwrap_or([Member(None); N])
    }

    /// An object as it was written; `{}` for anything else.
    pub(super) fn object(self) -> String {
        self.0.filter(|written| written.starts_with('{')).unwrap_or("{}").to_owned()
    }
}

fn is_number(written: &str) -> bool {
    written.starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::{DEEPEST, NotJson, members, storable};

    fn stored(text: &str) -> String {
        storable(text.as_bytes()).unwrap()
    }

    #[test]
    fn escapes_that_must_not_be_stored_are_replaced_and_no_others() {
        let cases = [
            (r#"{"a":"\u0000"}"#, r#"{"a":"\uFFFD"}"#),
            (r#"{"a":"\\u0000"}"#, r#"{"a":"\\u0000"}"#),
            (r#"{"a":"\\\u0000"}"#, r#"{"a":"\\\uFFFD"}"#),
            (r#"{"a":"\u00001"}"#, r#"{"a":"\uFFFD1"}"#),
            (r#"{"a":"\ud83d\uDE00"}"#, r#"{"a":"\ud83d\uDE00"}"#),
            (r#"{"a":"\uD83d"}"#, r#"{"a":"\uFFFD"}"#),
            (r#"{"a":"\udE00\ud83D"}"#, r#"{"a":"\uFFFD\uFFFD"}"#),
            (r#"{"a":"\ud83d\ud83d\ude00"}"#, r#"{"a":"\uFFFD\ud83d\ude00"}"#),
            (r#"{"a":"\ud83d\n"}"#, r#"{"a":"\uFFFD\n"}"#),
            (r#"{"\u0000":"\u0041\u00e9\uFFFF"}"#, r#"{"\uFFFD":"\u0041\u00e9\uFFFF"}"#),
            (r#"{"a":"\"\u0000"}"#, r#"{"a":"\"\uFFFD"}"#),
        ];
        for (sent, expected) in cases {
            assert_eq!(stored(sent), expected);
            assert!(members(expected, ["a"]).is_ok(), "{expected}");
        }
    }

    #[test]
    fn what_is_no_json_object_is_refused() {
        let deep = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
        for sent in [
            "",
            "[]",
            "null",
            "\"a\"",
            "{",
            "{}x",
            "{\"a\":}",
            "{'a':1}",
            "{\"a\":\"\u{1}\"}",
            "\0{}",
            r#"{"a":"\u00zz"}"#,
        ] {
            assert_eq!(members(&stored(sent), ["a"]).err(), Some(NotJson), "{sent:?}");
        }
        assert_eq!(storable(b"{\"a\":\"\xff\"}"), Err(NotJson));
        assert_eq!(storable(deep(DEEPEST + 1).as_bytes()), Err(NotJson));
        assert!(members(&stored(&deep(DEEPEST)), ["a"]).is_ok());
        assert!(serde_json::from_str::<serde_json::Value>(&deep(DEEPEST)).is_ok(), "and serde_json reads it whole");
        assert!(serde_json::from_str::<serde_json::Value>(&deep(DEEPEST + 1)).is_err());
        assert_eq!(stored("\u{feff}{}"), "{}");
        assert!(members(&stored("{\"a\":\"[[[[\"}"), ["a"]).is_ok());
    }

    #[test]
    fn a_member_of_an_odd_type_is_absent_and_of_two_the_last_counts() {
        let text = r#"{"text":"\u0430\n", "number": -1e400, "zero":0, "yes": true, "no":false, "null":null, "list":[1],
                       "object" : {"a":1, "a" : 2} , "t\u0065xt2":"x", "twice":"1","twice":null, "odd": 1.5, "whole": 15e2}"#;
        let names = ["text", "number", "zero", "yes", "no", "null", "list", "object", "text2", "twice", "odd", "whole"];
        let found = members(text, names).unwrap();
        let texts: Vec<String> = found.iter().map(|member| member.text()).collect();
        assert_eq!(texts, ["а\n", "-1e400", "0", "", "", "", "", "", "x", "", "1.5", "15e2"]);
        let wholes: Vec<Option<i64>> = found.iter().map(|member| member.whole()).collect();
        assert_eq!(wholes[1..4], [None, Some(0), None]);
        assert_eq!(wholes[10..], [None, Some(1500)]);
        assert!(found[3].is_true() && !found[0].is_true() && found[4].is_false() && !found[5].is_false());
        assert_eq!((found[7].object(), found[6].object()), (r#"{"a":1, "a" : 2}"#.to_owned(), "{}".to_owned()));
        assert_eq!(found[7].members(["a"])[0].text(), "2");
        assert_eq!(found[6].members(["a"])[0].text(), "");
    }
}
