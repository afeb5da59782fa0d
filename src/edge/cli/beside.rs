//! What verbs start from: the settings of the command line over the others, and the store as a guest opens it.

use std::path::Path;

use super::args::{Location, ServeArgs};
use super::print::note;
use crate::app::open_store;
use crate::config::{Config, DEFAULT_FILE, Sources};
use crate::dev::clock::open_clock;
use crate::kernel::clock::Clock;
use crate::kernel::store::{Db, OpenError, Role, find_holder};

/// How `dev`, and whoever takes a directory over from it for a moment, calls itself in the process lock.
const OF_DEV: &str = "pillarbox dev";

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

    /// The same for `dev`, which promises to stay on this machine: a file that merely lies here, or that the environment
    /// names, is most likely production's, and is read only when `--config` says so.
    pub(super) fn dev_sources(&self, location: &Location) -> Sources {
        let sources = self.sources(location);
        if location.config.is_some() {
            return sources;
        }
        if Path::new(DEFAULT_FILE).exists() {
            note(&format!("dev does not read ./{DEFAULT_FILE}; name a file with --config if you mean it"));
        }
        sources.without_file()
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

/// Takes a directory that nobody serves, to do `verb` there.
///
/// # Errors
/// [`OpenError`], [`OpenError::Held`] if somebody does.
pub(super) fn take(config: &Config, verb: &'static str) -> Result<Db, OpenError> {
    let dir = &config.store.data_dir;
    // It stays a directory in the time of `dev` for whoever comes next.
    let name = if is_in_dev_time(dir) { "dev, for a command" } else { verb };
    open_store(&config.store, Role::Owner(name), clock_of(dir))
}

/// The time in which a directory lives: that of `dev` may have been moved ahead. A `serve` on the same directory is in
/// the system's time, and so is everything after it.
fn clock_of(data_dir: &Path) -> Clock {
    let moved = is_in_dev_time(data_dir).then(|| open_clock(&data_dir.join("dev")));
    moved.and_then(Result::ok).unwrap_or_else(Clock::system)
}

/// Whether `dev` serves the directory, or was the last to.
pub(super) fn is_in_dev_time(data_dir: &Path) -> bool {
    find_holder(data_dir).is_some_and(|holder| holder.starts_with(OF_DEV))
}
