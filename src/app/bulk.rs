//! What the bot sends by itself to many: reminders, digests, broadcasts.

use std::sync::Arc;

use crate::config::{Config, RemindersConfig};
use crate::onboarding::content::Content;

/// What their passes need.
pub(super) struct Bulk {
    pub(super) content: Arc<Content>,
    pub(super) reminders: RemindersConfig,
}

/// What is sent to many by this configuration.
pub(super) fn open(config: &Config, content: &Arc<Content>) -> Bulk {
    Bulk { content: Arc::clone(content), reminders: config.reminders.clone() }
}
