//! The funnel: nine stages that a person only climbs.

use super::sql;
use crate::kernel::events::Event;
use crate::kernel::store::{StoreError, Tx};

/// A stage, by its number in the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    Started = 1,
    LanguageChosen = 2,
    IntroShown = 3,
    VideoOpened = 4,
    VideoWatched = 5,
    SiteOpened = 6,
    WalletConnected = 7,
    Registered = 8,
    NftActivated = 9,
}

impl Stage {
    /// Every stage, from the first to the last.
    pub(crate) const ALL: [Self; 9] = [
        Self::Started,
        Self::LanguageChosen,
        Self::IntroShown,
        Self::VideoOpened,
        Self::VideoWatched,
        Self::SiteOpened,
        Self::WalletConnected,
        Self::Registered,
        Self::NftActivated,
    ];
}

/// Lifts a person to a stage, unless they are there or beyond; publishes the rise.
///
/// # Errors
/// The store's.
pub(crate) fn advance(tx: &Tx<'_>, person: &sql::Person, to: Stage) -> Result<(), StoreError> {
    let stage = to as i64;
    if person.stage >= stage {
        return Ok(());
    }
    sql::set_stage(tx, person.telegram_id, stage)?;
    tx.publish(&Event::StageAdvanced {
        telegram_id: person.telegram_id,
        magnet_uid: person.magnet_uid,
        from: person.stage,
        to: stage,
    })
}
