//! What the bot sends by itself to many: reminders, digests, broadcasts.

use std::sync::Arc;

use crate::config::Config;
use crate::onboarding::content::Content;

/// What their passes need. There is none yet: this build sends none of them.
pub(super) enum Bulk {}

/// What is sent to many by this configuration; nothing if the bot is off.
pub(super) fn open(_: &Config, _: &Arc<Content>) -> Option<Bulk> {
    None
}
