//! The menu and what is behind its buttons.
//!
//! **What.** Each page of the menu is read in the transaction of the tap that asked for it, and shown by a screen of
//! `screens/menu.rs`. Whose structure somebody is in goes by under whom they registered, else by who brought them; a
//! leader's numbers go by who brought them.
//!
//! **States.** A request for help is open or not; what is on is on until it is turned off.
//!
//! **Guarantees.**
//! - Ten taps for help are one message to the leader: `src/onboarding/menu/tests/help.rs::ten_taps_are_one_message_to_the_leader`.
//! - A leader handles the requests of their own structure only:
//!   `src/onboarding/menu/tests/lists.rs::another_leaders_lead_is_left_alone`.
//! - A button that is pressed twice does not undo itself: `src/onboarding/menu/tests/pages.rs::a_switch_pressed_twice_stays`.
//!
//! **Windows.** None: what is changed and what is shown of it are one transaction.
//!
//! **Not here.** The steps of the way (`dialog`), and how a screen is drawn (`screens`).

mod cabinet;
mod console;
mod help;
mod hot;
mod numbers;
mod partners;
mod path;
mod settings;
mod sql;
#[cfg(test)]
mod tests;

pub(crate) use help::ask as ask_help;
pub(crate) use settings::set;
pub(crate) use sql::{Metrics, metrics};

use super::Error;
use super::dialog::{Facts, Page, Reply};
use super::people::short_name;
use super::screens::View;
use super::screens::menu::{HELP, MENU};
use super::screens::steps::NOT_A_MEMBER;
use super::sql::{Person, set_member};
use crate::kernel::store::Tx;

/// Shows a page.
///
/// # Errors
/// A text that cannot be rendered; the queue's; the store's.
pub(crate) fn open(tx: &Tx<'_>, reply: &Reply<'_>, person: &Person, facts: &Facts, page: Page) -> Result<(), Error> {
    let own = facts.account.or(person.magnet_uid);
    if let Some(uid) = own.filter(|_| own != person.magnet_uid) {
        set_member(tx, person.telegram_id, uid)?;
    }
    match (page, own) {
        (Page::Menu, _) => reply.show(&MENU, &View::default()),
        (Page::Path, _) => path::show(tx, reply, person),
        (Page::Console, _) => console::show(reply, facts),
        (Page::Settings, _) => settings::show(reply, person),
        (Page::Help, _) => reply.show(&HELP, &View::default()),
        (Page::Partners(page), Some(uid)) => partners::show(tx, reply, uid, page),
        (Page::Hot(page), Some(uid)) => hot::show(tx, reply, uid, page),
        (Page::Cabinet, Some(uid)) => cabinet::show(tx, reply, uid, facts),
        (Page::Partners(_) | Page::Hot(_) | Page::Cabinet, None) => reply.show(&NOT_A_MEMBER, &View::default()),
    }
}

/// Clears a lead's request for help if it is of this leader's structure, and shows the list again.
///
/// # Errors
/// As [`open`].
pub(crate) fn handled(tx: &Tx<'_>, reply: &Reply<'_>, person: &Person, lead: i64, page: i64) -> Result<(), Error> {
    let Some(uid) = person.magnet_uid else { return reply.show(&NOT_A_MEMBER, &View::default()) };
    sql::clear_request(tx, uid, lead)?;
    hot::show(tx, reply, uid, page)
}

/// A name as a line shows it; empty for who has none.
fn name_of(name: Option<&str>) -> String {
    short_name(name.unwrap_or_default()).trim().to_owned()
}
