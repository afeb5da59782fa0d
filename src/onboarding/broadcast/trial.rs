//! A broadcast as its recipients will see it, sent to one chat on the way that they are sent it.

use super::feed::message;
use super::{Error, sql};
use crate::chat::{self, Enqueued, Kind, NewMessage};
use crate::kernel::store::Tx;
use crate::onboarding::content::Lang;

/// Queues the broadcast for a chat, whatever that chat has opted out of; the message's id.
///
/// # Errors
/// [`Error::NotFound`], [`Error::NoText`]; the send queue's and the store's.
pub(crate) fn send_test(tx: &Tx<'_>, id: i64, chat_id: i64, lang: Lang) -> Result<i64, Error> {
    sql::find(tx, id)?.ok_or(Error::NotFound(id))?;
    let words = sql::load_words(tx, id)?;
    let message = NewMessage {
        dedup_key: format!("broadcast_test:{id}:{chat_id}:{}", tx.now()),
        ..message(chat_id, Kind::BroadcastTest, &words, lang)?
    };
    match chat::enqueue(tx, &message)? {
        Enqueued::New(id) | Enqueued::Known(id) => Ok(id),
    }
}
