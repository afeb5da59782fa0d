//! The arguments of a call: found by name in a body or a query, and read as PostgreSQL would read them.

use axum::extract::Request;
use axum::http::Uri;
use axum::http::header::CONTENT_TYPE;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::refusal::Refusal;
use crate::edge::http::Limits;
use crate::edge::http::decode::read;

/// What a `POST` says in its query is about the answer: columns, filters, order, range.
const WHOLE_ANSWER: [(&str, &str); 2] = [("select", "*"), ("offset", "0")];

/// The arguments as they were sent.
#[derive(Debug, Default)]
pub(super) struct Arguments(Map<String, Value>);

impl Arguments {
    /// Those of a body: JSON, or a form. No body is no arguments.
    pub(super) async fn of_body(request: Request, limits: &Limits) -> Result<Self, Refusal> {
        check_query(request.uri())?;
        let named =
            request.headers().get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let essence = named.as_deref().map_or("application/json", |text| text.split(';').next().unwrap_or(text).trim());
        let is_form = essence.eq_ignore_ascii_case("application/x-www-form-urlencoded");
        if !is_form && !essence.eq_ignore_ascii_case("application/json") {
            return Err(Refusal::wrong_content_type(essence));
        }
        let bytes = read(request, limits.body_bytes, limits.body).await?;
        if is_form {
            return Ok(Self::of_form(&bytes));
        }
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        match serde_json::from_slice(&bytes) {
            Ok(Value::Object(arguments)) => Ok(Self(arguments)),
            // Not an object: JSON without a name in it.
            Ok(_) => Ok(Self::default()),
            Err(_) => Err(Refusal::not_json()),
        }
    }

    /// Those of a query.
    pub(super) fn of_query(uri: &Uri) -> Result<Self, Refusal> {
        let Self(mut arguments) = Self::of_form(uri.query().unwrap_or_default().as_bytes());
        arguments.retain(|name, value| !is_whole_answer(name, value.as_str().unwrap_or_default()));
        Ok(Self(arguments))
    }

    fn of_form(text: &[u8]) -> Self {
        let pairs = url::form_urlencoded::parse(text);
        Self(pairs.map(|(name, value)| (name.into_owned(), Value::String(value.into_owned()))).collect())
    }

    /// Their names, in alphabetical order.
    pub(super) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.0.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// A `uuid` in lower case, as leads have theirs; `None` if null. The table is open to programs whose ids only look
    /// like one: what it takes is taken here.
    pub(super) fn uuid(&self, name: &str) -> Result<Option<String>, Refusal> {
        let Some(text) = self.raw(name) else { return Ok(None) };
        let is_taken = text.len() == 36 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-'));
        match Uuid::try_parse(text.trim()) {
            Ok(id) => Ok(Some(id.hyphenated().to_string())),
            Err(_) if is_taken => Ok(Some(text)),
            Err(_) => Err(Refusal::invalid_text("uuid", &text)),
        }
    }

    /// A `text`; `None` if null.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, Refusal> {
        match self.raw(name) {
            Some(text) if text.contains('\0') => Err(Refusal::nul_in_text()),
            found => Ok(found),
        }
    }

    /// A `boolean`; `None` if null.
    pub(super) fn boolean(&self, name: &str) -> Result<Option<bool>, Refusal> {
        let Some(text) = self.raw(name) else { return Ok(None) };
        match text.trim().to_ascii_lowercase().as_str() {
            "t" | "tr" | "tru" | "true" | "y" | "ye" | "yes" | "on" | "1" => Ok(Some(true)),
            "f" | "fa" | "fal" | "fals" | "false" | "n" | "no" | "of" | "off" | "0" => Ok(Some(false)),
            _ => Err(Refusal::invalid_text("boolean", &text)),
        }
    }

    /// An `integer`; `None` if null.
    pub(super) fn integer(&self, name: &str) -> Result<Option<i64>, Refusal> {
        let Some(text) = self.raw(name) else { return Ok(None) };
        let digits = text.trim();
        let is_number = digits.strip_prefix(['-', '+']).unwrap_or(digits).bytes().all(|byte| byte.is_ascii_digit());
        match digits.parse::<i32>() {
            Ok(number) => Ok(Some(i64::from(number))),
            Err(_) if is_number && digits.len() > 1 => Err(Refusal::out_of_range("integer", &text)),
            Err(_) => Err(Refusal::invalid_text("integer", &text)),
        }
    }

    /// The text that PostgreSQL would cast: a string as it is, everything else as it is written in JSON.
    fn raw(&self, name: &str) -> Option<String> {
        match self.0.get(name)? {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }
}

/// Refuses what would change the answer if it did anything.
fn check_query(uri: &Uri) -> Result<(), Refusal> {
    let query = uri.query().unwrap_or_default();
    match url::form_urlencoded::parse(query.as_bytes()).find(|(name, value)| !is_whole_answer(name, value)) {
        Some((name, _)) => Err(Refusal::not_implemented(&name)),
        None => Ok(()),
    }
}

/// Whether this asks for the one row or the scalar that there is.
fn is_whole_answer(name: &str, value: &str) -> bool {
    WHOLE_ANSWER.contains(&(name, value)) || name == "limit" && value.parse::<u64>().is_ok_and(|limit| limit > 0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Arguments;

    fn of(value: &Value) -> Arguments {
        Arguments(json!({"p": value}).as_object().unwrap().clone())
    }

    #[test]
    fn values_are_read_as_postgresql_reads_them() {
        let id = "018f3f3e-9a1b-7c3d-8e4f-0123456789ab";
        for text in [id, &id.to_uppercase(), &id.replace('-', ""), &format!("{{{id}}}"), &format!(" {id} ")] {
            assert_eq!(of(&json!(text)).uuid("p").unwrap().as_deref(), Some(id), "{text}");
        }
        let loose = "abc-def0-1234567890abcdef-----------";
        assert_eq!(of(&json!(loose)).uuid("p").unwrap().as_deref(), Some(loose));
        for value in [json!(true), json!("t"), json!("YES"), json!(" on "), json!(1), json!("1")] {
            assert_eq!(of(&value).boolean("p").unwrap(), Some(true), "{value}");
        }
        for value in [json!(false), json!("off"), json!("of"), json!("N"), json!(0)] {
            assert_eq!(of(&value).boolean("p").unwrap(), Some(false), "{value}");
        }
        for (value, number) in [(json!(3), 3), (json!("3"), 3), (json!(-1), -1), (json!(" +7 "), 7)] {
            assert_eq!(of(&value).integer("p").unwrap(), Some(number), "{value}");
        }
        for (value, text) in [(json!("a"), "a"), (json!(""), ""), (json!(5), "5"), (json!({"a": [1]}), r#"{"a":[1]}"#)]
        {
            assert_eq!(of(&value).text("p").unwrap().as_deref(), Some(text), "{value}");
        }
    }

    #[test]
    fn null_and_nothing_are_null() {
        for arguments in [of(&Value::Null), Arguments::default()] {
            assert_eq!(arguments.uuid("p").unwrap(), None);
            assert_eq!(arguments.text("p").unwrap(), None);
            assert_eq!(arguments.boolean("p").unwrap(), None);
            assert_eq!(arguments.integer("p").unwrap(), None);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_postgresqls_code() {
        let code = |refused: Result<(), super::Refusal>| refused.unwrap_err().code();
        for value in [json!(""), json!("x"), json!(7), json!({}), json!("018f3f3e-9a1b-7c3d-8e4f-0123456789a")] {
            assert_eq!(code(of(&value).uuid("p").map(drop)), "22P02", "{value}");
        }
        for value in [json!(""), json!("o"), json!(2), json!([])] {
            assert_eq!(code(of(&value).boolean("p").map(drop)), "22P02", "{value}");
        }
        for value in [json!(""), json!("-"), json!(1.5), json!("1e3"), json!("x"), json!(true)] {
            assert_eq!(code(of(&value).integer("p").map(drop)), "22P02", "{value}");
        }
        for value in [json!(2_147_483_648_i64), json!("-99999999999999999999")] {
            assert_eq!(code(of(&value).integer("p").map(drop)), "22003", "{value}");
        }
        assert_eq!(code(of(&json!("a\u{0}")).text("p").map(drop)), "22P05");
    }
}
