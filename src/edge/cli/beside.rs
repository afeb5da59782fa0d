//! What the verbs beside a running server start from: the checked configuration and the open store.

use super::args::Place;
use crate::app::open_store;
use crate::config::{Config, Sources};
use crate::kernel::clock::Clock;
use crate::kernel::store::{Db, OpenError, Role};

impl Place {
    /// Everything that settings come from, with those of the command line over the others.
    pub(super) fn sources(&self, set: &[String]) -> Sources {
        let sources = Sources::from_process(self.config.clone(), set.to_vec());
        match &self.data_dir {
            Some(dir) => sources.with_flag("--data-dir", "store.data_dir", dir),
            None => sources,
        }
    }
}

/// Opens the store to read, and to write as a guest does.
///
/// # Errors
/// [`OpenError`], whose text says what to do.
pub(super) fn open(config: &Config) -> Result<Db, OpenError> {
    open_store(&config.store, Role::Guest, Clock::system())
}
