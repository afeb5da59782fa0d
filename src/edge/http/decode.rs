//! From bytes to a typed body or query, or to a problem that names what is wrong with it.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri};
use futures_util::StreamExt;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::error::Category;

use super::HttpState;
use super::error::{Fault, Problem};

/// What is repeated to the client of its own input, in characters.
const LONGEST_DETAIL: usize = 200;

/// A JSON body of this form.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<Arc<HttpState>> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &Arc<HttpState>) -> Result<Self, Problem> {
        let text = read_json(request, state.limits.body_bytes, state.limits.body).await?;
        parse(&text).map(Self)
    }
}

/// A JSON body of this form, or none at all where every field may be missing.
pub(super) struct JsonOrNothing<T>(pub(super) T);

impl<T: DeserializeOwned + Default> FromRequest<Arc<HttpState>> for JsonOrNothing<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &Arc<HttpState>) -> Result<Self, Problem> {
        if request.body().is_end_stream() && !request.headers().contains_key(CONTENT_TYPE) {
            return Ok(Self(T::default()));
        }
        JsonBody::from_request(request, state).await.map(|JsonBody(form)| Self(form))
    }
}

/// The text of a body that is announced as JSON, of at most `limit` bytes.
pub(super) async fn read_json(request: Request, limit: usize, within: Duration) -> Result<String, Problem> {
    if !is_json(request.headers()) {
        return Err(Problem::wrong_content_type());
    }
    let bytes = read(request, limit, within).await.map_err(|unread| match unread {
        Unread::TooLarge => Problem::body_too_large(limit),
        Unread::TooSlow => Problem::body_too_slow(),
        Unread::BrokenOff => Problem::body_broken_off(),
    })?;
    String::from_utf8(bytes).map_err(|error| Problem::not_utf8(error.utf8_error().valid_up_to()))
}

/// `application/json`, or a type built on it (RFC 6839), in UTF-8.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else { return false };
    let Ok(text) = value.to_str() else { return false };
    let mut parts = text.split(';').map(|part| part.trim().to_ascii_lowercase());
    let named = parts.next().unwrap_or_default();
    let is_named = named == "application/json" || (named.starts_with("application/") && named.ends_with("+json"));
    is_named && parts.all(|parameter| !parameter.starts_with("charset=") || is_utf8_charset(&parameter))
}

fn is_utf8_charset(parameter: &str) -> bool {
    matches!(parameter, "charset=utf-8" | "charset=\"utf-8\"" | "charset=utf8")
}

/// Why a body was not read to its end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Unread {
    TooLarge,
    TooSlow,
    BrokenOff,
}

/// The body, if it has at most `limit` bytes and arrives in time. One that is announced larger is not waited for.
pub(super) async fn read(request: Request, limit: usize, within: Duration) -> Result<Vec<u8>, Unread> {
    let announced = request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| usize::try_from(length).map_or(true, |length| length > limit)) {
        return Err(Unread::TooLarge);
    }
    let gathering = gather(request.into_body(), limit);
    tokio::time::timeout(within, gathering).await.unwrap_or(Err(Unread::TooSlow))
}

async fn gather(body: Body, limit: usize) -> Result<Vec<u8>, Unread> {
    let mut bytes = Vec::new();
    let mut parts = body.into_data_stream();
    while let Some(part) = parts.next().await {
        let part = part.map_err(|_| Unread::BrokenOff)?;
        if bytes.len() + part.len() > limit {
            return Err(Unread::TooLarge);
        }
        bytes.extend_from_slice(&part);
    }
    Ok(bytes)
}

/// Parses `text`. Deep nesting ends at serde_json's limit of 128 levels, far from the end of the stack.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    let mut source = serde_json::Deserializer::from_str(text);
    let parsed = serde_path_to_error::deserialize(&mut source);
    let Object(value) = parsed.map_err(|error| refusal(text, &error.path().to_string(), error.inner()))?;
    source.end().map_err(|error| not_json(&error))?;
    Ok(value)
}

fn refusal(text: &str, path: &str, error: &serde_json::Error) -> Problem {
    // The form is checked while reading, so what comes after the fault may not be JSON at all.
    if let Err(broken) = serde_json::from_str::<IgnoredAny>(text) {
        return not_json(&broken);
    }
    let detail = shortened(&error.to_string());
    let fault = Fault::new(blamed(path, &detail), detail.clone());
    match error.classify() {
        Category::Data => Problem::invalid_body(vec![fault]),
        Category::Io | Category::Syntax | Category::Eof => Problem::not_json(detail, vec![fault]),
    }
}

fn not_json(error: &serde_json::Error) -> Problem {
    let detail = shortened(&error.to_string());
    Problem::not_json(detail.clone(), vec![Fault::new("body", detail)])
}

/// The field at fault. That a field is missing, unknown or doubled serde tells in words, at the object around it.
fn blamed(path: &str, detail: &str) -> String {
    let told = ["missing field `", "unknown field `", "duplicate field `"];
    let name = told.iter().find_map(|words| detail.strip_prefix(words)?.split('`').next());
    match (path, name) {
        // The root has no name of its own.
        (".", None) => "body".to_owned(),
        (".", Some(name)) => name.to_owned(),
        (path, Some(name)) if path != name && !path.ends_with(&format!(".{name}")) => format!("{path}.{name}"),
        (path, _) => path.to_owned(),
    }
}

/// An object of JSON, and no list: serde's derived forms would take their fields from a list too, by position.
#[derive(Debug)]
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Fields<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Fields<T> {
            type Value = T;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }

        from.deserialize_map(Fields(PhantomData)).map(Self)
    }
}

/// A whole number in any of JSON's spellings: `7`, `7.0` and `70e-1` are one number, and JSON Schema calls them all integers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Whole(pub(super) i64);

impl Whole {
    /// Where doubles stop being every whole number: behind it, what was written may be another one than what was read.
    const LARGEST_DOUBLE: f64 = 9_007_199_254_740_991.0;

    pub(super) fn of_double<E: serde::de::Error>(number: f64) -> Result<Self, E> {
        let is_exact = number.fract() == 0.0 && number.abs() <= Self::LARGEST_DOUBLE;
        let found = if is_exact { format!("{number:.0}").parse().ok() } else { None };
        found.map(Self).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Float(number), &"a whole number"))
    }
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Number;

        impl Visitor<'_> for Number {
            type Value = Whole;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("a whole number")
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Whole, E> {
                Ok(Whole(number))
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Whole, E> {
                i64::try_from(number).map(Whole).map_err(|_| E::custom("does not fit 64 bits with a sign"))
            }

            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Whole, E> {
                Whole::of_double(number)
            }
        }

        from.deserialize_any(Number)
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_DETAIL) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The query of an address that takes no parameters.
pub(super) struct NoQuery;

impl FromRequestParts<Arc<HttpState>> for NoQuery {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<HttpState>) -> Result<Self, Problem> {
        parameters(&parts.uri, []).map(|[]| Self)
    }
}

/// The values of these parameters. One that is not known, or given twice, is refused: it would do nothing unnoticed.
pub(super) fn parameters<const N: usize>(uri: &Uri, known: [&str; N]) -> Result<[Option<String>; N], Problem> {
    let mut values = [const { None }; N];
    for (name, value) in url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
        let refused = |why: &str| Problem::bad_query(Fault::new(shortened(&name), why));
        let at = known.iter().position(|known| *known == name).ok_or_else(|| refused("is not a parameter here"))?;
        if values[at].replace(value.into_owned()).is_some() {
            return Err(refused("is given more than once"));
        }
    }
    Ok(values)
}

/// A list of at most `MOST` entries.
#[derive(Debug)]
pub(super) struct AtMost<const MOST: usize, T>(pub(super) Vec<T>);

impl<const MOST: usize, T> Default for AtMost<MOST, T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, const MOST: usize, T: Deserialize<'de>> Deserialize<'de> for AtMost<MOST, T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let list = Vec::deserialize(from)?;
        if list.len() > MOST {
            let why = format_args!("has {} entries; at most {MOST} are taken", list.len()).to_string();
            return Err(serde::de::Error::custom(why));
        }
        Ok(Self(list))
    }
}

/// Refuses a text that is empty, too long (in characters), or has control characters other than `allowed`.
pub(super) fn check_text(text: &str, longest: usize, allowed: &[char]) -> Result<(), String> {
    let length = text.chars().count();
    if length == 0 || length > longest {
        return Err(format!("must have 1 to {longest} characters, has {length}"));
    }
    match text.chars().find(|sign| sign.is_control() && !allowed.contains(sign)) {
        Some(sign) => Err(format!("must not have the control character U+{:04X}", u32::from(sign))),
        None => Ok(()),
    }
}
