//! What the player of the demo asks of the server, as its users do: over HTTP.

use anyhow::{Context, bail};
use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use super::Player;

impl Player<'_> {
    /// A page of what the fake has accepted after this ordinal.
    pub(super) async fn texts_after(&self, ordinal: u64) -> anyhow::Result<Vec<Value>> {
        let url = format!("{}/dev/telegram/messages?after={ordinal}", self.stage.fake);
        let mut page: Value = self.http.get(url).send().await?.error_for_status()?.json().await?;
        Ok(page["messages"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }

    pub(super) async fn post(&self, url: &str, body: &Value) -> anyhow::Result<(u16, String)> {
        let mut request = self.http.post(url).header("content-type", "application/json");
        // The form's page is known by its origin, every other caller by the secret.
        request = match self.stage.leads.allowed_origins.first().filter(|_| url.ends_with("/leads")) {
            Some(origin) => request.header("origin", origin),
            None => request.bearer_auth(self.stage.bot_secret),
        };
        let answer = request.body(body.to_string()).send().await?;
        let (status, text) = (answer.status(), answer.text().await?);
        if !status.is_success() {
            bail!("{url} answered {status}: {text}");
        }
        Ok((status.as_u16(), text))
    }

    /// The items of the first page of a list of `/v1`.
    pub(super) async fn items(&self, path: &str) -> anyhow::Result<Vec<Value>> {
        let mut page = self.api(Method::GET, path, None).await?;
        Ok(page["items"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }

    pub(super) async fn api_post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.api(Method::POST, path, Some(body)).await
    }

    pub(super) async fn api_delete(&self, path: &str) -> anyhow::Result<()> {
        self.api(Method::DELETE, path, None).await.map(|_| ())
    }

    async fn api(&self, method: Method, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        let request = self.http.request(method, format!("{}{path}", self.stage.url)).bearer_auth(self.stage.api_key);
        let text = sent(path, with_body(request, body)).await?;
        // Whatever was deleted has nothing more to say.
        if text.is_empty() { Ok(Value::Null) } else { Ok(serde_json::from_str(&text)?) }
    }

    /// Tells the receiver of that name how to answer.
    pub(super) async fn program_sink(&self, name: &str, program: &Value) -> anyhow::Result<()> {
        let url = format!("{}/dev/sink/{name}", self.stage.fake);
        sent(&url, with_body(self.http.put(&url), Some(program))).await.map(|_| ())
    }

    /// A page of what the receiver of that name was sent after this ordinal.
    pub(super) async fn sink_requests(&self, name: &str, after: u64) -> anyhow::Result<Vec<Value>> {
        let url = format!("{}/dev/sink/{name}/requests?after={after}", self.stage.fake);
        let mut page: Value = serde_json::from_str(&sent(&url, self.http.get(&url)).await?)?;
        Ok(page["requests"].as_array_mut().map(std::mem::take).unwrap_or_default())
    }
}

fn with_body(request: RequestBuilder, body: Option<&Value>) -> RequestBuilder {
    match body {
        Some(body) => request.header("content-type", "application/json").body(body.to_string()),
        None => request,
    }
}

/// The text of an answer of success.
async fn sent(place: &str, request: RequestBuilder) -> anyhow::Result<String> {
    let answer = request.send().await.with_context(|| format!("{place} did not answer"))?;
    let (status, text) = (answer.status(), answer.text().await?);
    if !status.is_success() {
        bail!("{place} answered {status}: {text}");
    }
    Ok(text)
}
