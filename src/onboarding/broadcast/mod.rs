//! Broadcasts: one message to many people, frozen at the start and fed to the send queue a window at a time.

use crate::kernel::store::Wake;

/// A broadcast was started, changed, or has room for more in the send queue.
pub(crate) const BROADCASTS: Wake = Wake("broadcasts");
