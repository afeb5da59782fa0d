//! The conversation of this configuration: its texts, whom it asks, and where its buttons lead.

use std::sync::Arc;

use crate::config::{BotConfig, EventSource};
use crate::onboarding::Backend;
use crate::onboarding::content::Content;
use crate::onboarding::dialog::{Addresses, Dialog};

/// The conversation of a bot whose members this backend knows.
pub(super) fn open(bot: &BotConfig, content: &Arc<Content>, backend: &Arc<dyn Backend>) -> Arc<Dialog> {
    // A backend elsewhere has an address of its own.
    let has_site = bot.site_url.is_some() || matches!(bot.event_source, EventSource::Remote(_));
    let addresses = Addresses {
        video: bot.video_url.as_ref().map(ToString::to_string),
        console: bot.console_url.as_ref().map(ToString::to_string),
        username: bot.username.clone(),
        has_site,
    };
    Arc::new(Dialog { content: Arc::clone(content), backend: Arc::clone(backend), addresses })
}
