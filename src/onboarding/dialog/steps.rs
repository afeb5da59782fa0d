//! The steps of the way: language, introduction, video, site.

use super::command::Step;
use super::{Addresses, Facts, Page, Reply, sql};
use crate::kernel::clock::parse_rfc3339;
use crate::kernel::store::{StoreError, Tx};
use crate::onboarding::content::{Lang, Values};
use crate::onboarding::funnel::{Stage, advance};
use crate::onboarding::people::short_name;
use crate::onboarding::screens::steps::{INTRO, INTRO_ALONE, INTRO_TO_SITE, LANGUAGE, NO_SITE, SITE, SITE_LINK, VIDEO};
use crate::onboarding::screens::{Address, View};
use crate::onboarding::sql::{Person, find_person, find_person_of};
use crate::onboarding::{Error, menu};

const MINUTE_MS: i64 = 60_000;

/// The data of the button that takes a person of this stage a step further, in a message of its own: what a reminder
/// offers.
pub(crate) const fn next_data(stage: i64) -> &'static str {
    match stage {
        ..=2 => "+f:intro",
        3 | 4 => "+f:video",
        5 => "+f:watched",
        6 | 7 => "+f:site",
        _ => "+m:menu",
    }
}

/// Which language?
pub(super) fn ask_language(reply: &Reply<'_>, person: &Person) -> Result<(), Error> {
    let name = short_name(person.first_name.as_deref().unwrap_or_default());
    reply.show(&LANGUAGE, &View { values: Values::new("name", &name), ..View::default() })
}

/// The language is chosen; the way goes on in it.
pub(super) fn choose(tx: &Tx<'_>, reply: &Reply<'_>, person: &Person, lang: Lang) -> Result<(), Error> {
    sql::set_lang(tx, person.telegram_id, lang)?;
    reply.speak(Some(lang));
    advance(tx, person, Stage::LanguageChosen)?;
    match find_person(tx, person.telegram_id)? {
        Some(person) => go_on(tx, reply, &person),
        None => Ok(()),
    }
}

/// Shows where a person is: the step that comes next, or the menu once there is none.
pub(super) fn go_on(tx: &Tx<'_>, reply: &Reply<'_>, person: &Person) -> Result<(), Error> {
    if person.lang.is_none() {
        return ask_language(reply, person);
    }
    match person.stage {
        ..=3 => show_intro(tx, reply, person),
        4 => show_video(tx, reply, person),
        5..=7 => show_site(reply, person),
        _ => menu::open(tx, reply, person, &Facts::default(), Page::Menu),
    }
}

/// A button of the way. Pressed again it shows the same, and lifts nothing.
pub(super) fn step(tx: &Tx<'_>, reply: &Reply<'_>, person: &Person, step: Step, facts: &Facts) -> Result<(), Error> {
    match step {
        Step::Intro => show_intro(tx, reply, person),
        Step::Video => show_video(tx, reply, person),
        Step::Watched => {
            advance(tx, person, Stage::VideoWatched)?;
            show_site(reply, person)
        }
        Step::Site => show_link(tx, reply, person, facts),
    }
}

fn show_intro(tx: &Tx<'_>, reply: &Reply<'_>, person: &Person) -> Result<(), Error> {
    advance(tx, person, Stage::IntroShown)?;
    let leader = leader_name(tx, person)?;
    let screen = match reply.addresses() {
        Addresses { video: Some(_), .. } => &INTRO,
        Addresses { has_site: true, .. } => &INTRO_TO_SITE,
        _ => &INTRO_ALONE,
    };
    reply.show(screen, &View { values: Values::new("leader_name", &leader), ..View::default() })
}

/// As the backend called them, else as they call themselves; empty if nobody brought the person, or nobody knows.
fn leader_name(tx: &Tx<'_>, person: &Person) -> Result<String, StoreError> {
    let Some(uid) = person.leader_uid else { return Ok(String::new()) };
    if let Some(name) = sql::find_leader_name(tx, person.telegram_id)?.filter(|name| !name.is_empty()) {
        return Ok(name);
    }
    let leader = find_person_of(tx, uid)?;
    Ok(short_name(&leader.and_then(|leader| leader.first_name).unwrap_or_default()))
}

fn show_video(tx: &Tx<'_>, reply: &Reply<'_>, person: &Person) -> Result<(), Error> {
    let Some(video) = &reply.addresses().video else {
        // A button of a time when there was one.
        return show_intro(tx, reply, person);
    };
    advance(tx, person, Stage::VideoOpened)?;
    let mut view = View::default();
    view.addresses.insert(Address::Video, video.clone());
    reply.show(&VIDEO, &view)
}

fn show_site(reply: &Reply<'_>, person: &Person) -> Result<(), Error> {
    if !reply.addresses().has_site {
        return reply.show(&NO_SITE, &View::default());
    }
    let mut view = View::default();
    // The wallet is half of what is to be done there.
    view.values.set_switch("has_wallet", person.stage >= Stage::WalletConnected as i64);
    reply.show(&SITE, &view)
}

fn show_link(tx: &Tx<'_>, reply: &Reply<'_>, person: &Person, facts: &Facts) -> Result<(), Error> {
    let Some(link) = &facts.link else { return reply.show(&NO_SITE, &View::default()) };
    advance(tx, person, Stage::SiteOpened)?;
    let mut view = View::default();
    // A link is handed out again while it is young: what is left of its time is told, and not how long it is made for.
    let left_ms = parse_rfc3339(&link.expires_at).map_or(0, |at| at.saturating_sub(tx.now()));
    let minutes = left_ms.saturating_add(MINUTE_MS - 1) / MINUTE_MS;
    view.values.set("minutes", &Some(minutes).filter(|n| *n > 0).map_or_else(String::new, |n| n.to_string()));
    view.addresses.insert(Address::Site, link.url.clone());
    reply.show(&SITE_LINK, &view)
}
