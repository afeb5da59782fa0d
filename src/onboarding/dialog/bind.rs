//! The question "is this your account?", and its answer: a chat is bound to a member.

use super::sql::{self, Outcome};
use super::{Dialog, Reply};
use crate::chat::{self, Format, Kind, NewMessage};
use crate::kernel::contract::Bound;
use crate::kernel::store::{StoreError, Tx};
use crate::onboarding::Error;
use crate::onboarding::content::{Content, Lang, Values};
use crate::onboarding::screens::steps::{BIND_ASKED, BIND_CHANGED, BIND_DONE, BIND_EXPIRED, BIND_NO, BIND_PROMPT};
use crate::onboarding::screens::{Drawn, Flags, Item, Screen, View, draw};
use crate::onboarding::sql::{Person, find_person, set_member};

/// How long a question may be answered; a button in a chat lives as long as the chat does.
const STANDS_MS: i64 = 24 * 3_600_000;

/// What a remote backend said to a request to bind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// This.
    Is(Bound),
    /// Nothing, for a day.
    None,
}

/// Asks a chat whether it is this member's, from now on for a day; what is to be sent.
///
/// # Errors
/// A text that cannot be rendered; the store's.
pub(crate) fn ask(tx: &Tx<'_>, content: &Content, person: &Person, uid: i64) -> Result<Drawn, Error> {
    sql::prompt(tx, person.telegram_id, uid, tx.now().saturating_add(STANDS_MS))?;
    let values = of_member(uid);
    let item = Item { id: uid, line: String::new(), values: Values::none(), flags: Flags::new() };
    draw(tx, content, person.lang, &BIND_PROMPT, &View { values, items: vec![item], ..View::default() })
}

/// "Yes."
pub(super) fn confirm(tx: &Tx<'_>, dialog: &Dialog, reply: &Reply<'_>, person: &Person, uid: i64) -> Result<(), Error> {
    let chat = person.telegram_id;
    let Some(prompt) = sql::find_prompt(tx, chat, uid)? else { return super::odd::stale(reply) };
    let screen = match prompt.outcome {
        // The answer is on its way.
        Some(Outcome::Asked) => &BIND_ASKED,
        // The next link leads to a question of its own.
        Some(Outcome::Changed) => &BIND_CHANGED,
        // Said again, it is told again.
        Some(Outcome::Bound) => settle(tx, chat, uid, dialog.backend.bind(tx, chat, uid)?)?,
        _ if prompt.expires_at <= tx.now() => &BIND_EXPIRED,
        _ => settle(tx, chat, uid, dialog.backend.bind(tx, chat, uid)?)?,
    };
    show(reply, screen, uid)
}

/// "No."
pub(super) fn decline(tx: &Tx<'_>, reply: &Reply<'_>, person: &Person, uid: i64) -> Result<(), Error> {
    let chat = person.telegram_id;
    let Some(prompt) = sql::find_prompt(tx, chat, uid)? else { return super::odd::stale(reply) };
    let screen = match prompt.outcome {
        // A second prompt of an account that is bound by now: what is done is not undone by it.
        Some(Outcome::Bound) => &BIND_DONE,
        Some(Outcome::Asked) => &BIND_ASKED,
        _ => {
            sql::answer(tx, chat, uid, Outcome::Refused)?;
            &BIND_NO
        }
    };
    show(reply, screen, uid)
}

/// Tells the person of what a remote backend answered, in the transaction that records the answer.
///
/// # Errors
/// A text that cannot be rendered; the queue's; the store's.
pub(crate) fn answered(tx: &Tx<'_>, dialog: &Dialog, telegram_id: i64, uid: i64, answer: Answer) -> Result<(), Error> {
    let prompted_at = sql::find_prompt(tx, telegram_id, uid)?.map_or_else(|| tx.now(), |prompt| prompt.prompted_at);
    let screen = match answer {
        Answer::Is(bound) => settle(tx, telegram_id, uid, Some(bound))?,
        Answer::None => {
            sql::answer(tx, telegram_id, uid, Outcome::Changed)?;
            &BIND_EXPIRED
        }
    };
    let lang: Option<Lang> = find_person(tx, telegram_id)?.and_then(|person| person.lang);
    let view = View { values: of_member(uid), ..View::default() };
    let Drawn { text, keyboard } = draw(tx, &dialog.content, lang, screen, &view)?;
    let message = NewMessage {
        chat_id: telegram_id,
        kind: Kind::Reply,
        text,
        format: Format::Html,
        keyboard,
        edit: None,
        dedup_key: format!("bind:{telegram_id}:{uid}:{prompted_at}"),
        due_at: None,
        fallback: None,
    };
    chat::enqueue(tx, &message)?;
    Ok(())
}

/// Records what the backend said; what the person is shown of it.
fn settle(tx: &Tx<'_>, chat: i64, uid: i64, bound: Option<Bound>) -> Result<&'static Screen, StoreError> {
    let (outcome, screen) = match bound {
        Some(Bound::Now | Bound::Before) => {
            set_member(tx, chat, uid)?;
            (Outcome::Bound, &BIND_DONE)
        }
        Some(Bound::Refused) => (Outcome::Changed, &BIND_CHANGED),
        None => (Outcome::Asked, &BIND_ASKED),
    };
    sql::answer(tx, chat, uid, outcome)?;
    Ok(screen)
}

fn show(reply: &Reply<'_>, screen: &Screen, uid: i64) -> Result<(), Error> {
    reply.show(screen, &View { values: of_member(uid), ..View::default() })
}

fn of_member(uid: i64) -> Values {
    Values::new("uid", &uid.to_string())
}
