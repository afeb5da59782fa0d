//! Who handles updates: the worker of this configuration.

use std::sync::Arc;

use crate::chat::Reader;
use crate::kernel::store::Db;
use crate::onboarding::dialog::Dialog;

/// The worker of a process. There is none yet: this build stores no updates.
pub(super) enum Updates {}

/// The worker; none without a conversation, or without anybody who reads updates.
pub(super) fn open(_: &Db, _: Option<&Arc<Dialog>>, _: Option<Arc<dyn Reader>>) -> Option<Updates> {
    None
}
