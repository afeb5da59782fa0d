//! Settings: the language, and what a person wants to be sent.

use super::Error;
use super::sql::{self, OptIns};
use crate::kernel::store::Tx;
use crate::onboarding::dialog::sql::set_lang;
use crate::onboarding::dialog::{Reply, Setting};
use crate::onboarding::funnel::{Stage, advance};
use crate::onboarding::screens::menu::SETTINGS;
use crate::onboarding::screens::{Flag, View};
use crate::onboarding::sql::{Person, find_person};

pub(super) fn show(reply: &Reply<'_>, person: &Person) -> Result<(), Error> {
    let mut view = View::default();
    for (is_on, flag) in [
        (person.optin_urgent, Flag::OptinUrgent),
        (person.optin_digest, Flag::OptinDigest),
        (person.optin_broadcast, Flag::OptinBroadcast),
    ] {
        if is_on {
            view.flags.insert(flag);
        }
    }
    reply.show(&SETTINGS, &view)
}

/// Gives a setting this value, and shows the settings.
///
/// # Errors
/// A text that cannot be rendered; the queue's; the store's.
pub(crate) fn set(tx: &Tx<'_>, reply: &Reply<'_>, person: &Person, setting: Setting) -> Result<(), Error> {
    let id = person.telegram_id;
    match setting {
        Setting::Lang(lang) => {
            set_lang(tx, id, lang)?;
            advance(tx, person, Stage::LanguageChosen)?;
            reply.speak(Some(lang));
        }
        Setting::Urgent(is_on) => sql::set_optins(tx, id, OptIns { urgent: Some(is_on), ..OptIns::default() })?,
        Setting::Digest(is_on) => sql::set_optins(tx, id, OptIns { digest: Some(is_on), ..OptIns::default() })?,
        Setting::Broadcast(is_on) => sql::set_optins(tx, id, OptIns { broadcast: Some(is_on), ..OptIns::default() })?,
    }
    match find_person(tx, id)? {
        Some(person) => show(reply, &person),
        None => Ok(()),
    }
}
