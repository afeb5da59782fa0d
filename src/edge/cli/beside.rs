//! What verbs start from: the settings of the command line over the others, and the store as a guest opens it.

use std::path::Path;

use super::args::{Location, ServeArgs};
use crate::app::open_store;
use crate::config::{Config, Sources};
use crate::dev::clock::open_clock;
use crate::kernel::clock::Clock;
use crate::kernel::store::{Db, OpenError, Role};

impl Location {
    /// Everything that settings come from, with those of the command line over the others.
    pub(super) fn sources(&self, set: &[String]) -> Sources {
        let sources = Sources::from_process(self.config.clone(), set.to_vec());
        match &self.data_dir {
            Some(dir) => sources.with_flag("--data-dir", "store.data_dir", dir),
            None => sources,
        }
    }
}

impl ServeArgs {
    /// The same, with the address to listen on.
    pub(super) fn sources(&self, location: &Location) -> Sources {
        let sources = location.sources(&self.overrides.set);
        match &self.listen {
            Some(listen) => sources.with_flag("--listen", "http.listen", listen),
            None => sources,
        }
    }
}

/// Opens the store to read, and to write as a guest does.
///
/// # Errors
/// [`OpenError`], whose text says what to do.
pub(super) fn open(config: &Config) -> Result<Db, OpenError> {
    open_store(&config.store, Role::Guest, clock_of(&config.store.data_dir))
}

/// Opens the store to read only: that needs neither room on the disk nor the right to write.
///
/// # Errors
/// [`OpenError`], whose text says what to do.
pub(super) fn open_to_read(config: &Config) -> Result<Db, OpenError> {
    open_store(&config.store, Role::Reader, clock_of(&config.store.data_dir))
}

/// The time in which a directory lives: that of `dev` may have been moved ahead.
pub(super) fn clock_of(data_dir: &Path) -> Clock {
    let moved = data_dir.join("dev");
    match moved.exists().then(|| open_clock(&moved)) {
        Some(Ok(clock)) => clock,
        Some(Err(_)) | None => Clock::system(),
    }
}
