//! Help: a person asks, and their leader is told, however often they press.

use super::{Error, name_of, sql};
use crate::chat::{self, Format, Kind, NewMessage};
use crate::kernel::store::{StoreError, Tx};
use crate::onboarding::dialog::Reply;
use crate::onboarding::screens::menu::{HELP_ASKED, HELP_FOR_LEADER, HELP_NOTED};
use crate::onboarding::screens::{Drawn, View, draw};
use crate::onboarding::sql::{Person, find_person_of};

/// A leader hears of a person once in that time.
const PAUSE_MS: i64 = 60 * 60 * 1_000;

/// Notes that a person asks for help, and tells their leader, at most once an hour. Without a leader who can be told it
/// is noted all the same: it is among the hot leads of whoever the structure is.
///
/// # Errors
/// A text that cannot be rendered; the queue's; the store's.
pub(crate) fn ask(tx: &Tx<'_>, reply: &Reply<'_>, person: &Person) -> Result<(), Error> {
    sql::request_help(tx, person.telegram_id)?;
    let Some(leader) = find_leader(tx, person)? else { return reply.show(&HELP_NOTED, &View::default()) };
    if !is_told(tx, person) {
        sql::mark_told(tx, person.telegram_id)?;
        tell(tx, reply, person, &leader)?;
    }
    reply.show(&HELP_ASKED, &View::default())
}

/// The leader of the structure, if they can be written to and want it.
fn find_leader(tx: &Tx<'_>, person: &Person) -> Result<Option<Person>, StoreError> {
    let Some(uid) = person.structure_uid else { return Ok(None) };
    let leader = find_person_of(tx, uid)?;
    Ok(leader.filter(|leader| leader.is_reachable && leader.optin_urgent && leader.telegram_id != person.telegram_id))
}

/// An instant that is yet to come was noted by a clock that has been set back since: it is no reason to be silent.
fn is_told(tx: &Tx<'_>, person: &Person) -> bool {
    person.help_told_at.is_some_and(|at| at <= tx.now() && tx.now() - at < PAUSE_MS)
}

fn tell(tx: &Tx<'_>, reply: &Reply<'_>, person: &Person, leader: &Person) -> Result<(), Error> {
    let mut view = View::default();
    view.values.set("name", &name_of(person.first_name.as_deref()));
    view.values.set("username", &name_of(person.username.as_deref()));
    let Drawn { text, keyboard } = draw(tx, reply.content(), leader.lang, &HELP_FOR_LEADER, &view)?;
    let message = NewMessage {
        chat_id: leader.telegram_id,
        kind: Kind::Help,
        text,
        format: Format::Html,
        keyboard,
        edit: None,
        dedup_key: format!("help:{}:{}", person.telegram_id, tx.now()),
        due_at: None,
        fallback: None,
    };
    chat::enqueue(tx, &message)?;
    Ok(())
}
