//! Members: who they are, which chat is theirs, and what each has reached.
//!
//! **What.** A member is a row of `members`, kept up to date by [`put()`] (over HTTP or from a file) or by another
//! program's SQL. What was reached for the first time is told of: by the transaction that stores it, or, for what others
//! wrote, by [`announce_all()`]. [`find_by_link`], [`find_by_chat`] and [`state_of`] are what a bot asks.
//!
//! **States.** Wallet, registration and the two levels of the NFT are each open → reached, which is marked once and for
//! ever: a field that is emptied and filled again is no second event.
//!
//! **Guarantees.**
//! - A change and the events of its difference are one transaction, and each is told of once:
//!   `src/edge/http/tests/v1/members.rs::the_difference_emits_once`, `tests/it/members.rs::a_rollback_takes_the_events`.
//! - What SQL wrote is told of like what came over HTTP: `tests/it/members.rs::sql_is_announced`; what somebody has told
//!   of by hand is not told again: `tests/it/members.rs::what_was_emitted_by_hand_is_not_announced`.
//! - A chat is one member's, and never moves silently: `src/edge/http/tests/v1/members.rs::what_is_taken_stays`.
//! - What is asked often does not depend on how many members there are:
//!   `src/backend/plan_tests.rs::every_repeated_statement_uses_the_index_made_for_it`.
//!
//! **Windows.** None: every change is one transaction, and so is the telling of what others wrote.
//!
//! **Not here.** Removing members: a program with access to the file can.

mod announce;
mod change;
mod difference;
pub(crate) mod import;
mod look;

pub(crate) use announce::announce_all;
pub(crate) use change::{Field, MemberChange, Put, put};
pub(super) use difference::announce_one;
pub(crate) use look::{find, find_by_chat, find_by_link, state_of};

use crate::kernel::clock::UnixMs;
use crate::kernel::contract::Chat;

/// A member as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    pub(crate) uid: i64,
    /// The code of the member's link.
    pub(crate) link: Option<String>,
    pub(crate) name: Option<String>,
    /// The chat that is bound.
    pub(crate) telegram_id: Option<i64>,
    /// The chat that has opened the site and has not confirmed yet.
    pub(crate) preview_telegram_id: Option<i64>,
    /// Under whom the member is.
    pub(crate) parent_uid: Option<i64>,
    /// The address of the wallet.
    pub(crate) addr: Option<String>,
    pub(crate) lp1: bool,
    pub(crate) lp2: bool,
    /// Until when the member is active.
    pub(crate) time_active: Option<UnixMs>,
    pub(crate) registration_confirmed: bool,
    pub(crate) told: Told,
    /// When a field last changed; `None` for what another program wrote.
    pub(crate) updated_at: Option<UnixMs>,
}

/// When each thing was told of for the first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) wallet_connected_at: Option<UnixMs>,
    pub(crate) registered_at: Option<UnixMs>,
    pub(crate) lp1_at: Option<UnixMs>,
    pub(crate) lp2_at: Option<UnixMs>,
}

impl Member {
    /// A member of whom nothing is known yet.
    fn new(uid: i64) -> Self {
        Self {
            uid,
            link: None,
            name: None,
            telegram_id: None,
            preview_telegram_id: None,
            parent_uid: None,
            addr: None,
            lp1: false,
            lp2: false,
            time_active: None,
            registration_confirmed: false,
            told: Told::default(),
            updated_at: None,
        }
    }

    /// The chat that the bot can write to.
    pub(crate) fn chat(&self) -> Option<Chat> {
        self.telegram_id.map(Chat::Bound).or_else(|| self.preview_telegram_id.map(Chat::Preview))
    }

    /// Whether a wallet is connected. Another program may have left an empty text where none is.
    pub(crate) fn has_wallet(&self) -> bool {
        self.addr.as_deref().is_some_and(|addr| !addr.is_empty())
    }
}
