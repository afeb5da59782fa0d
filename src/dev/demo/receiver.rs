//! The receiver of webhooks in the demo: an endpoint of the installation whose address is the built-in sink, made over
//! `/v1` as a tenant makes one, and what has come of it.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Player;
use crate::kernel::clock::parse_rfc3339;

/// By this the endpoints of earlier playings are known, and removed.
const DESCRIPTION: &str = "the receiver of pillarbox dev's demo";
const SINK: &str = "crm";

/// What a step does with the receiver.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    /// Subscribes it to these types.
    subscribe: Option<Vec<String>>,
    /// What it answers from here on.
    status: Option<u16>,
}

/// The receiver, once a step has made it.
#[derive(Default)]
pub(super) struct Receiver {
    endpoint: Option<Endpoint>,
    /// The ordinal of the last request that was told of.
    came: u64,
    /// Every `webhook-id` that has come.
    ids: BTreeSet<String>,
    /// What was told of each delivery last.
    deliveries: BTreeMap<String, String>,
}

struct Endpoint {
    id: String,
    secret: String,
}

impl Receiver {
    /// Does what the step wants.
    pub(super) async fn change(&mut self, player: &Player<'_>, change: &Change) -> anyhow::Result<()> {
        if !player.stage.sends_here {
            println!("      (left out: webhooks.allow_insecure is off, so nothing is sent to this machine)");
            return Ok(());
        }
        if let Some(types) = &change.subscribe {
            self.subscribe(player, types).await?;
        }
        match (&self.endpoint, change.status) {
            (Some(endpoint), Some(status)) => {
                player.program_sink(SINK, &json!({ "status": status, "secret": endpoint.secret })).await?;
                println!("      PUT /dev/sink/{SINK} {{\"status\": {status}}}");
            }
            (None, Some(_)) => bail!("no step before has subscribed the receiver"),
            (_, None) => {}
        }
        Ok(())
    }

    async fn subscribe(&mut self, player: &Player<'_>, types: &[String]) -> anyhow::Result<()> {
        for old in player.items("/v1/endpoints").await? {
            if old["description"] == DESCRIPTION {
                player.api_delete(&format!("/v1/endpoints/{}", text(&old, "id")?)).await?;
            }
        }
        let url = format!("{}/dev/sink/{SINK}", player.stage.fake);
        let body = json!({ "url": url, "description": DESCRIPTION, "event_types": types });
        let made = player.api_post("/v1/endpoints", &body).await?;
        println!(
            "      POST /v1/endpoints {} -> 201, and a secret that is shown this once",
            json!({ "event_types": types })
        );
        let endpoint = Endpoint { id: text(&made, "id")?, secret: text(&made, "secret")? };
        player.program_sink(SINK, &json!({ "secret": endpoint.secret })).await?;
        for request in player.sink_requests(SINK, 0).await? {
            self.came = request["ordinal"].as_u64().unwrap_or(self.came);
        }
        self.endpoint = Some(endpoint);
        Ok(())
    }

    /// Whether nothing is on its way there and nothing is due.
    pub(super) async fn is_at_rest(&self, player: &Player<'_>) -> anyhow::Result<bool> {
        let Some(endpoint) = &self.endpoint else { return Ok(true) };
        let is_quiet = |delivery: &Value| match delivery["status"].as_str() {
            Some("sending") => false,
            Some("pending") => next_attempt(delivery).is_some_and(|due| due > player.stage.db.clock().now()),
            _ => true,
        };
        let events = player.items("/v1/events?status=pending").await?;
        // Events that no consumer has refused are under way.
        let is_relayed = events.iter().all(|event| event["attempts"].as_i64().unwrap_or(0) > 0);
        Ok(is_relayed && self.deliveries(player, endpoint).await?.iter().all(is_quiet))
    }

    /// The instant of the next attempt, if one waits for it.
    pub(super) async fn next_attempt(&self, player: &Player<'_>) -> anyhow::Result<Option<i64>> {
        let Some(endpoint) = &self.endpoint else { return Ok(None) };
        let deliveries = self.deliveries(player, endpoint).await?;
        Ok(deliveries.iter().filter(|delivery| delivery["status"] == "pending").filter_map(next_attempt).min())
    }

    /// Prints what has come, and how the deliveries stand, where that is new.
    pub(super) async fn tell(&mut self, player: &Player<'_>) -> anyhow::Result<()> {
        let Some(endpoint) = &self.endpoint else { return Ok(()) };
        for request in player.sink_requests(SINK, self.came).await? {
            self.came = request["ordinal"].as_u64().unwrap_or(self.came);
            let is_known = !self.ids.insert(request["headers"]["webhook-id"].to_string());
            println!("      /dev/sink/{SINK} has received {}", describe(&request, is_known));
        }
        for delivery in self.deliveries(player, endpoint).await? {
            let line = describe_delivery(&delivery);
            if self.deliveries.insert(text(&delivery, "id")?, line.clone()).as_ref() != Some(&line) {
                println!("      {line}");
            }
        }
        Ok(())
    }

    /// The oldest first.
    async fn deliveries(&self, player: &Player<'_>, endpoint: &Endpoint) -> anyhow::Result<Vec<Value>> {
        let mut deliveries = player.items(&format!("/v1/deliveries?endpoint_id={}&limit=100", endpoint.id)).await?;
        deliveries.reverse();
        Ok(deliveries)
    }
}

fn text(value: &Value, field: &str) -> anyhow::Result<String> {
    Ok(value[field].as_str().with_context(|| format!("the answer has no {field}"))?.to_owned())
}

fn next_attempt(delivery: &Value) -> Option<i64> {
    parse_rfc3339(delivery["next_attempt_at"].as_str()?)
}

fn describe(request: &Value, is_known: bool) -> String {
    let body: Value = serde_json::from_str(request["body"].as_str().unwrap_or_default()).unwrap_or_default();
    let signature = if request["verified"] == true { "the signature fits" } else { "the signature does NOT fit" };
    let again = if is_known { ", and it bears the webhook-id of the attempt before" } else { "" };
    format!("{}: {signature}{again}", body["type"].as_str().unwrap_or_default())
}

fn describe_delivery(delivery: &Value) -> String {
    let word = |field: &str| delivery[field].as_str().unwrap_or_default().to_owned();
    let mut line = format!("delivery of {}: {}, attempts {}", word("event_type"), word("status"), delivery["attempts"]);
    if word("status") == "pending" && !word("last_error").is_empty() {
        line.push_str(&format!(", last error {}; next attempt {}", word("last_error"), word("next_attempt_at")));
    }
    line
}
