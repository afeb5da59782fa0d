//! A method's parameters, whichever way they came: JSON body, form, multipart or query, in that order of precedence.
//!
//! As on the real server every parameter is a text first: `"42"` is a number, and a string may hold JSON.

use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest, Multipart, Query, Request};
use axum::http::{StatusCode, header};
use serde_json::{Map, Value};

use super::refusal::Refusal;
use crate::dev::problem::BODY_LIMIT;

/// The named parameters of one call.
pub(super) struct Params(Map<String, Value>);

impl Params {
    /// Reads them out of a request. A body of another content type is ignored, as by the real server.
    pub(super) async fn read(request: Request) -> Result<Self, Refusal> {
        let mut params = Self(Map::new());
        if let Ok(Query(pairs)) = Query::<Vec<(String, String)>>::try_from_uri(request.uri()) {
            params.add(pairs);
        }
        let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim().to_lowercase();
        match content_type.as_str() {
            "application/json" => params.add_json(&whole(request.into_body()).await?)?,
            "application/x-www-form-urlencoded" => params.add_form(&whole(request.into_body()).await?)?,
            "multipart/form-data" => params.add_parts(request).await?,
            _ => {}
        }
        Ok(params)
    }

    fn add(&mut self, pairs: Vec<(String, String)>) {
        self.0.extend(pairs.into_iter().map(|(name, value)| (name, Value::String(value))));
    }

    fn add_json(&mut self, body: &[u8]) -> Result<(), Refusal> {
        if body.is_empty() {
            return Ok(());
        }
        match serde_json::from_slice(body) {
            Ok(Value::Object(fields)) => self.0.extend(fields.into_iter().filter(|(_, value)| !value.is_null())),
            Ok(_) => return Err(Refusal::bad_request("object expected as the request body")),
            Err(_) => return Err(unreadable()),
        }
        Ok(())
    }

    fn add_form(&mut self, body: &[u8]) -> Result<(), Refusal> {
        // A form is a query that travels in the body, so the query's reader reads it.
        let text = std::str::from_utf8(body).map_err(|_| unreadable())?;
        let uri = format!("/?{text}").parse().map_err(|_| unreadable())?;
        let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(&uri).map_err(|_| unreadable())?;
        self.add(pairs);
        Ok(())
    }

    async fn add_parts(&mut self, request: Request) -> Result<(), Refusal> {
        let mut parts = Multipart::from_request(request, &()).await.map_err(|_| unreadable())?;
        while let Some(part) = parts.next_field().await.map_err(|_| unreadable())? {
            let name = part.name().unwrap_or_default().to_owned();
            let content = part.bytes().await.map_err(|_| unreadable())?;
            // A file (setWebhook's certificate) may be any bytes; the fake looks into none.
            self.0.insert(name, Value::String(String::from_utf8_lossy(&content).into_owned()));
        }
        Ok(())
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        match self.0.get(name)? {
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    /// A whole number, or the text of one.
    pub(super) fn integer(&self, name: &str) -> Option<i64> {
        self.text(name)?.trim().parse().ok()
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.text(name).is_some_and(|text| matches!(text.to_lowercase().as_str(), "true" | "yes" | "y" | "1"))
    }

    /// A parameter that is an object or a list, or the text of one; `None` also for an empty text.
    pub(super) fn json(&self, name: &str) -> Result<Option<Value>, Refusal> {
        match self.0.get(name) {
            None => Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
            Some(Value::String(text)) => serde_json::from_str(text).map(Some).map_err(|_| not_json(name)),
            Some(other) => Ok(Some(other.clone())),
        }
    }

    /// A list of texts; anything else in it is refused.
    pub(super) fn texts(&self, name: &str) -> Result<Option<Vec<String>>, Refusal> {
        let Some(list) = self.json(name)? else { return Ok(None) };
        serde_json::from_value(list).map(Some).map_err(|_| not_json(name))
    }

    /// The chat, for a method that needs one. Names (`@channel`) lead nowhere: the fake knows no names.
    pub(super) fn chat_id(&self) -> Result<i64, Refusal> {
        match self.text("chat_id") {
            None => Err(Refusal::bad_request("chat_id is empty")),
            Some(text) if text.trim().is_empty() => Err(Refusal::bad_request("chat_id is empty")),
            Some(_) => match self.integer("chat_id") {
                Some(id) if id != 0 => Ok(id),
                _ => Err(Refusal::bad_request("chat not found")),
            },
        }
    }
}

async fn whole(body: Body) -> Result<axum::body::Bytes, Refusal> {
    let too_large = || Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "Request Entity Too Large");
    to_bytes(body, BODY_LIMIT).await.map_err(|_| too_large())
}

fn unreadable() -> Refusal {
    Refusal::bad_request("can't parse the request body")
}

fn not_json(name: &str) -> Refusal {
    Refusal::bad_request(format!("can't parse {} JSON object", name.replace('_', " ")))
}
