//! What the bot sends by itself to many: reminders, digests, broadcasts.

use std::sync::Arc;

use crate::config::{self, Config, RemindersConfig};
use crate::onboarding::content::{Content, Lang};

/// What their passes need.
pub(super) struct Bulk {
    pub(super) content: Arc<Content>,
    pub(super) reminders: RemindersConfig,
    /// Of people who have not chosen one.
    pub(super) default_lang: Lang,
}

/// What is sent to many by this configuration.
pub(super) fn open(config: &Config, content: &Arc<Content>) -> Bulk {
    let default_lang = match config.bot.default_lang {
        config::Lang::Ru => Lang::Ru,
        config::Lang::En => Lang::En,
    };
    Bulk { content: Arc::clone(content), reminders: config.reminders.clone(), default_lang }
}
