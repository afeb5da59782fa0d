//! Between the recipients and the send queue: handing over what it has room for, and taking back what it has not sent.

use super::sql::{self, Broadcast, Words};
use super::{Error, Quiet};
use crate::chat::{self, Action, Button, Enqueued, Format, Keyboard, Kind, NewMessage};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};
use crate::onboarding::content::Lang;

/// Recipients of one write: few enough that whoever writes beside it does not notice.
const BATCH: i64 = 50;
/// Recipients of one write that takes back; the queue never holds more of a broadcast ([`Broadcast::window`]).
const TAKEN_BACK: i64 = 500;
/// A pace further ahead than any window reaches is of a clock that was set back since.
const LONGEST_PACE_MS: i64 = 120_000;

/// What one write handed over.
#[derive(Debug, Default)]
pub(super) struct Fed {
    pub(super) queued: i64,
    /// Whether the queue may have room for more, and there may be more.
    pub(super) more: bool,
    /// When the quiet hours end that stopped it.
    pub(super) quiet_until: Option<UnixMs>,
}

/// Queues messages for the next recipients, each a little after the one before.
pub(super) fn feed_some(tx: &Tx<'_>, broadcast: &Broadcast) -> Result<Fed, Error> {
    let room = (broadcast.window() - broadcast.counts.queued).clamp(0, BATCH);
    let words = sql::load_words(tx, broadcast.id)?;
    let mut pace = Pace::of(tx.now(), broadcast);
    let (mut fed, mut unknown) = (Fed::default(), 0);
    let next = sql::recipients::pending(tx, broadcast.id, room)?;
    fed.more = room == BATCH && i64::try_from(next.len()).is_ok_and(|found| found == room);
    for recipient in next {
        let due_at = match pace.next() {
            Ok(due_at) => due_at,
            Err(quiet_until) => {
                fed.quiet_until = Some(quiet_until);
                fed.more = false;
                break;
            }
        };
        let message = NewMessage {
            dedup_key: format!("broadcast:{}:{}", broadcast.id, recipient.telegram_id),
            due_at: Some(due_at),
            ..message(recipient.telegram_id, Kind::Broadcast, &words, recipient.lang)?
        };
        match chat::enqueue(tx, &message)? {
            Enqueued::New(message_id) => {
                fed.queued += 1;
                sql::recipients::mark_queued(tx, broadcast.id, recipient.telegram_id, message_id)?;
            }
            // Its key was used by something that is not ours to judge: it may have been sent.
            Enqueued::Known(_) => {
                unknown += 1;
                let end = sql::recipients::Ended { status: "unknown", code: Some("known_key"), message_id: None };
                sql::recipients::close(tx, broadcast.id, recipient.telegram_id, &end)?;
            }
        }
    }
    sql::note_fed(tx, broadcast.id, sql::Paced { queued: fed.queued, unknown, until: pace.at })?;
    Ok(fed)
}

/// A message of a broadcast in a language; key and time are the caller's.
pub(super) fn message(chat_id: i64, kind: Kind, words: &Words, lang: Lang) -> Result<NewMessage, Error> {
    let (text, label) = match lang {
        Lang::Ru => (&words.text_ru, &words.button_ru),
        Lang::En => (&words.text_en, &words.button_en),
    };
    let button = words.button_url.clone().zip(label.clone());
    let row = button.map(|(url, text)| vec![Button { text, action: Action::Url(url) }]);
    Ok(NewMessage {
        chat_id,
        kind,
        text: text.clone().ok_or(Error::NoText(lang))?,
        format: Format::Html,
        keyboard: Keyboard(row.into_iter().collect()),
        edit: None,
        dedup_key: String::new(),
        due_at: None,
        fallback: None,
    })
}

/// When each message is due: one behind the other, as fast as the broadcast may be.
struct Pace {
    at: UnixMs,
    step_ms: i64,
    quiet: Option<Quiet>,
}

impl Pace {
    fn of(now: UnixMs, broadcast: &Broadcast) -> Self {
        let ahead = broadcast.paced_until.filter(|until| (now..=now.saturating_add(LONGEST_PACE_MS)).contains(until));
        Self { at: ahead.unwrap_or(now), step_ms: (1000 / broadcast.per_second.max(1)).max(1), quiet: broadcast.quiet }
    }

    /// The next instant, or the end of the quiet hours that it is in.
    fn next(&mut self) -> Result<UnixMs, UnixMs> {
        let at = self.at.saturating_add(self.step_ms);
        match self.quiet.and_then(|quiet| quiet.ends_after(at)) {
            Some(end) => Err(end),
            None => {
                self.at = at;
                Ok(at)
            }
        }
    }
}

/// Takes messages of a broadcast out of the queue that certainly were not sent; their recipients wait again. How many.
pub(super) fn take_back(tx: &Tx<'_>, id: i64) -> Result<u64, StoreError> {
    let waiting = sql::recipients::queued(tx, id, TAKEN_BACK)?;
    let taken = chat::withdraw(tx, &waiting)?;
    let back = sql::recipients::mark_pending(tx, id, &taken)?;
    sql::note_taken_back(tx, id, i64::try_from(back).unwrap_or(i64::MAX))?;
    Ok(back as u64)
}
