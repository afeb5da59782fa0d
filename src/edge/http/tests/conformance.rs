//! Holds every answer that any test of this edge gets to the document: the status, the media type, and the form. So what no
//! generator of requests reaches (a full disk, a slow body, a rate limit) is held to it too.

use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::OnceCell;

use super::{Answer, TestServer};

/// The document is made of code only, so the first server's is everyone's.
static DOCUMENT: OnceCell<Value> = OnceCell::const_new();

/// Panics if the document has this operation and says nothing of such an answer.
pub(super) async fn check(server: &TestServer, method: &str, target: &str, answer: &Answer) {
    let document = DOCUMENT.get_or_init(|| fetch(server)).await;
    let path = target.split('?').next().unwrap_or(target);
    let Some(operation) = find(document, path, method) else { return };
    let at = format!("{method} {path}: {answer:?}");
    let response = resolved(document, &operation["responses"][answer.status.to_string()]);
    assert!(response.is_object(), "a status that is not in the document: {at}");
    let content = response["content"].as_object();
    let Some(kind) = answer.find_header("content-type") else {
        assert!(content.is_none() && answer.body.is_empty(), "an answer without a type: {at}");
        return;
    };
    let kind = kind.split(';').next().unwrap_or(kind);
    let media = content.and_then(|content| content.get(kind)).unwrap_or_else(|| panic!("another media type: {at}"));
    if !kind.ends_with("json") {
        return;
    }
    // What a tenant posts comes back as it was, with numbers in it that no double can hold; then only the grammar is left.
    let text = serde_json::from_slice::<&RawValue>(&answer.body).unwrap_or_else(|error| panic!("{error}: {at}"));
    let Ok(value) = serde_json::from_str(text.get()) else { return };
    if let Err(why) = fits(document, &media["schema"], &value, "body") {
        panic!("{why}: {at}");
    }
}

async fn fetch(server: &TestServer) -> Value {
    let raw = b"GET /openapi.json HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
    server.raw(raw).await.json()
}

/// The operation of this address; one that is spelt out counts over one with a parameter.
fn find<'a>(document: &'a Value, path: &str, method: &str) -> Option<&'a Value> {
    let paths = document["paths"].as_object().unwrap();
    let matches = |known: &str| {
        let (known, path): (Vec<_>, Vec<_>) = (known.split('/').collect(), path.split('/').collect());
        known.len() == path.len()
            && known.iter().zip(path).all(|(known, part)| known.starts_with('{') || *known == part)
    };
    let item = paths.get(path).or_else(|| paths.iter().find(|(known, _)| matches(known)).map(|(_, item)| item));
    item?.get(method.to_lowercase())
}

/// What a reference refers to.
pub(super) fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(at) => document.pointer(at.trim_start_matches('#')).unwrap_or_else(|| panic!("there is no {at}")),
        None => value,
    }
}

/// Whether a value has the form, as far as forms of answers go here.
fn fits(document: &Value, form: &Value, value: &Value, at: &str) -> Result<(), String> {
    let form = resolved(document, form);
    let each = |name: &str| form[name].as_array().into_iter().flatten();
    if !each("oneOf").chain(each("anyOf")).all(|_| false) {
        let mut tried = each("oneOf").chain(each("anyOf")).map(|one| fits(document, one, value, at));
        return match tried.any(|fit| fit.is_ok()) {
            true => Ok(()),
            false => Err(format!("{at} has none of the forms it may have")),
        };
    }
    if form["allOf"].is_array() {
        return members_fit(document, &together(document, form), value, at);
    }
    let kinds: Vec<&str> = match &form["type"] {
        Value::String(kind) => vec![kind],
        kinds => kinds.as_array().into_iter().flatten().filter_map(Value::as_str).collect(),
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| is_of(kind, value)) {
        return Err(format!("{at} is not {kinds:?}"));
    }
    let words: Vec<&Value> = each("enum").collect();
    if !words.is_empty() && !words.contains(&value) {
        return Err(format!("{at} is not one of {words:?}"));
    }
    for item in value.as_array().into_iter().flatten() {
        fits(document, &form["items"], item, &format!("{at}[]"))?;
    }
    members_fit(document, form, value, at)
}

/// The members of all parts of a form, and which of them must be there.
fn together(document: &Value, form: &Value) -> Value {
    let (mut properties, mut required) = (serde_json::Map::new(), Vec::new());
    for part in form["allOf"].as_array().into_iter().flatten() {
        let part = resolved(document, part);
        properties.extend(part["properties"].as_object().into_iter().flatten().map(|(k, v)| (k.clone(), v.clone())));
        required.extend(part["required"].as_array().into_iter().flatten().cloned());
    }
    serde_json::json!({"properties": properties, "required": required})
}

/// An object has what it must have, and nothing that is not described.
fn members_fit(document: &Value, form: &Value, value: &Value, at: &str) -> Result<(), String> {
    let (Some(members), Some(known)) = (value.as_object(), form["properties"].as_object()) else { return Ok(()) };
    for name in form["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !members.contains_key(name) {
            return Err(format!("{at}.{name} is missing"));
        }
    }
    for (name, member) in members {
        let Some(form) = known.get(name) else { return Err(format!("{at}.{name} is not described")) };
        fits(document, form, member, &format!("{at}.{name}"))?;
    }
    Ok(())
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}
