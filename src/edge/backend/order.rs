//! A page as the consumer takes it: whole subjects, each in the order of its ids.

use std::collections::HashMap;

use crate::kernel::contract::BotEvent;
use crate::kernel::store::{StoreError, Tx};
use crate::onboarding::{PageEvent, people};

/// Groups a page by subject, in the order in which the subjects came. A chat is its member's subject if the bot knows
/// the member, or if the page itself tells: an event that names both and is no preview.
pub(super) fn by_subject(tx: &Tx<'_>, events: Vec<BotEvent>) -> Result<Vec<PageEvent>, StoreError> {
    let told: HashMap<i64, i64> = events.iter().filter_map(binding).collect();
    let mut ranks: HashMap<String, usize> = HashMap::new();
    let mut page = Vec::with_capacity(events.len());
    for event in events {
        let subject = subject(tx, &told, &event)?;
        let next = ranks.len();
        let rank = *ranks.entry(subject.clone()).or_insert(next);
        page.push((rank, PageEvent { subject, event }));
    }
    page.sort_by_key(|(rank, entry)| (*rank, entry.event.id));
    Ok(page.into_iter().map(|(_, entry)| entry).collect())
}

fn subject(tx: &Tx<'_>, told: &HashMap<i64, i64>, event: &BotEvent) -> Result<String, StoreError> {
    let member = match (event.magnet_uid, event.telegram_id) {
        (None, Some(chat)) => people::find_member(tx, chat)?.or_else(|| told.get(&chat).copied()),
        (uid, _) => uid,
    };
    Ok(match (member, event.telegram_id) {
        (Some(uid), _) => format!("uid:{uid}"),
        (None, Some(chat)) => format!("tg:{chat}"),
        // Nobody's: it holds up nobody.
        (None, None) => format!("event:{}", event.id),
    })
}

fn binding(event: &BotEvent) -> Option<(i64, i64)> {
    let is_preview = |field: &serde_json::Value| field.as_bool() == Some(true);
    if event.payload.field("preview").is_some_and(is_preview) {
        return None;
    }
    Some((event.telegram_id?, event.magnet_uid?))
}
