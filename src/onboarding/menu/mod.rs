//! The menu and what is behind its buttons.

use super::Error;
use super::dialog::{Facts, Page, Reply, Setting};
use super::sql::Person;
use crate::kernel::store::{StoreError, Tx};

/// What came of a leader's work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Metrics {
    /// People whom the leader brought.
    pub(crate) in_bot: i64,
    /// Of those, who have watched the video.
    pub(crate) watched: i64,
    /// Who are registered.
    pub(crate) registered: i64,
    /// Whose NFT is active.
    pub(crate) nft: i64,
}

/// Shows a page.
///
/// # Errors
/// [`Error`].
pub(crate) fn open(_: &Tx<'_>, _: &Reply<'_>, _: &Person, _: &Facts, _: Page) -> Result<(), Error> {
    Ok(())
}

/// Clears a lead's request for help if it is of this leader's structure, and shows the list again.
///
/// # Errors
/// [`Error`].
pub(crate) fn handled(_: &Tx<'_>, _: &Reply<'_>, _: &Person, _lead: i64, _page: i64) -> Result<(), Error> {
    Ok(())
}

/// Gives a setting this value, and shows the settings.
///
/// # Errors
/// [`Error`].
pub(crate) fn set(_: &Tx<'_>, _: &Reply<'_>, _: &Person, _: Setting) -> Result<(), Error> {
    Ok(())
}

/// Asks the person's leader for help, at most once an hour.
///
/// # Errors
/// [`Error`].
pub(crate) fn ask_help(_: &Tx<'_>, _: &Reply<'_>, _: &Person) -> Result<(), Error> {
    Ok(())
}

/// The numbers of this leader.
///
/// # Errors
/// The store's.
pub(crate) fn metrics(_: &Tx<'_>, _leader_uid: i64) -> Result<Metrics, StoreError> {
    Ok(Metrics::default())
}
