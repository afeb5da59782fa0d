//! A rule that is known to work: its block is there and can be written for every event that pillarbox itself publishes and
//! the rule means. What tenants post has whatever fields they like, so that is seen when it comes.

use crate::config::{CommunicationRule, CommunicationsConfig, ConfigErrors, Problem, nearest};
use crate::kernel::events::{CATALOGUE, Entry, Pattern};
use crate::kernel::secret::Secret;
use crate::kernel::tenant::TenantId;
use crate::onboarding::content::Content;
use crate::outbox::consumer::StoredEvent;

use super::values;

/// One rule.
pub(super) struct Rule {
    pub(super) event: Pattern,
    pub(super) block: String,
    pub(super) chat: i64,
}

impl Rule {
    /// What makes it this rule, wherever in the file it stands: moved up or down, it is the same.
    pub(super) fn name(&self) -> String {
        format!("{}:{}:{}", self.event.as_str(), self.block, self.chat)
    }
}

/// The rules of `config`.
///
/// # Errors
/// Everything that is wrong with them.
pub(super) fn read(config: &CommunicationsConfig, content: &Content) -> Result<Vec<Rule>, ConfigErrors> {
    let mut problems = Vec::new();
    let mut rules = Vec::new();
    for written in &config.rules {
        problems.extend(fault(written, content));
        let (event, block) = (written.event.clone(), written.block.clone());
        rules.extend(chat_id(&written.chat).map(|chat| Rule { event, block, chat }));
    }
    if problems.is_empty() { Ok(rules) } else { Err(ConfigErrors::new(problems)) }
}

/// The id, which the configuration has seen to be one.
pub(super) fn chat_id(chat: &Secret) -> Option<i64> {
    chat.expose().parse().ok()
}

fn fault(rule: &CommunicationRule, content: &Content) -> Option<Problem> {
    if !content.has(&rule.block) {
        let known = nearest(&rule.block, content.blocks()).unwrap_or_default();
        let what = format!("there is no such content block; the nearest is `{known}`");
        return Some(rule.problem("block", what, "correct the name".to_owned()));
    }
    let meant = CATALOGUE.iter().filter(|entry| rule.event.matches(entry.name));
    let unfit =
        meant.into_iter().find(|entry| values::render_shipped(content, &rule.block, &sample(entry)).is_err())?;
    let what = format!("this block names something that {} does not have", unfit.name);
    let fields: Vec<_> = unfit.fields.iter().map(|field| field.name).collect();
    let advice = format!(
        "it may name type, event_id, aggregate_type, aggregate_id, occurred_at, {}; choose another block or event",
        fields.join(", ")
    );
    Some(rule.problem("block", what, advice))
}

/// An event as this row of the catalogue has it.
fn sample(entry: &Entry) -> StoredEvent {
    StoredEvent {
        row: 1,
        tenant: TenantId::installation(),
        event_id: "00000000-0000-7000-8000-000000000000".to_owned(),
        event_type: entry.name.to_owned(),
        version: entry.version,
        aggregate_type: entry.aggregate.to_owned(),
        aggregate_id: "1".to_owned(),
        occurred_at: 0,
        payload: entry.example.to_owned(),
        attempts: 0,
    }
}
