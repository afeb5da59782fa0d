//! How a store is run: what the configuration decides, in the store's own terms.

use std::time::Duration;

/// How durable a commit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synchronous {
    /// A commit is on the disk when it is acknowledged.
    Full,
    /// A crash of the machine (not of the process) may lose the last commits; the file stays whole.
    Normal,
}

impl Synchronous {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Normal => "NORMAL",
        }
    }
}

/// How the store is run. Sizes in bytes.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How durable a commit is.
    pub synchronous: Synchronous,
    /// Connections that read.
    pub readers: u32,
    /// Writes that may wait before new ones are refused.
    pub queue: usize,
    /// How long another process's write lock is waited for.
    pub busy_timeout: Duration,
    /// The writer's page cache.
    pub cache: u64,
    /// Below this much free space new work is refused.
    pub min_free: u64,
    /// The reserve that is given up when the disk is full; 0 keeps none.
    pub ballast: u64,
}

#[cfg(test)]
impl Settings {
    /// What unit tests open: nothing to wait for, and no reserve.
    pub(crate) fn small() -> Self {
        Self {
            synchronous: Synchronous::Normal,
            readers: 1,
            queue: 64,
            busy_timeout: Duration::from_secs(1),
            cache: 1 << 20,
            min_free: 0,
            ballast: 0,
        }
    }
}
