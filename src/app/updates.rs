//! Who handles updates: the worker of this configuration.

use std::sync::Arc;

use crate::chat::Reader;
use crate::kernel::store::Db;
use crate::onboarding::dialog::Dialog;
use crate::onboarding::updates::Worker;

/// The worker; none without a conversation, or without anybody who reads updates.
pub(super) fn open(db: &Db, dialog: Option<&Arc<Dialog>>, reader: Option<Arc<dyn Reader>>) -> Option<Worker> {
    Some(Worker::new(db.clone(), Arc::clone(dialog?), reader?))
}
