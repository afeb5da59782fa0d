//! What the send queue asks and tells of a broadcast's messages, each in the queue's own transaction.

use super::finish::finish_if_over;
use super::sql::recipients::Ended;
use super::sql::{self, Broadcast};
use super::state::State;
use super::{BROADCASTS, feed};
use crate::chat::{Closed, End, FailureCode, Permit};
use crate::kernel::store::{StoreError, Tx};

/// How many sends a broadcast is judged by, and how many of those may fail alike (30 %).
const JUDGED: usize = 50;
const MAY_FAIL_ALIKE: usize = JUDGED * 3 / 10;
/// When a message is looked at again whose broadcast is held: the sweep has taken it back before.
const HELD_MS: i64 = 60_000;

/// The broadcast and the recipient that a message's key names.
fn parse(dedup_key: &str) -> Option<(i64, i64)> {
    let (id, chat) = dedup_key.strip_prefix("broadcast:")?.split_once(':')?;
    Some((id.parse().ok()?, chat.parse().ok()?))
}

/// Whether a message of a broadcast may go now.
///
/// # Errors
/// The store's.
pub(crate) fn permits(tx: &Tx<'_>, dedup_key: &str) -> Result<Permit, StoreError> {
    let Some((id, telegram_id)) = parse(dedup_key) else { return Ok(Permit::Granted) };
    let Some(broadcast) = sql::find(tx, id)? else { return Ok(Permit::Granted) };
    let held = Permit::NotYet(tx.now().saturating_add(HELD_MS));
    Ok(match broadcast.state {
        State::Running => match broadcast.quiet.and_then(|quiet| quiet.ends_after(tx.now())) {
            Some(end) => Permit::NotYet(end),
            None => Permit::Granted,
        },
        State::Draft | State::Scheduled | State::Paused => held,
        // What a person has taken up again by hand goes: its recipient was closed.
        State::Done => Permit::Granted,
        State::Cancelled => match sql::recipients::find_standing(tx, id, telegram_id)? {
            Some(recipient) if recipient.message_id.is_some() => held,
            _ => Permit::Granted,
        },
    })
}

/// Records what became of a broadcast's message. One that was closed before, and that a person took up again, moves from
/// one count to another.
///
/// # Errors
/// The store's.
pub(crate) fn record(tx: &Tx<'_>, closed: &Closed<'_>) -> Result<(), StoreError> {
    let Some((id, telegram_id)) = parse(closed.dedup_key) else { return Ok(()) };
    let Some(before) = sql::recipients::find_standing(tx, id, telegram_id)? else { return Ok(()) };
    if before.message_id.is_some_and(|message_id| message_id != closed.id) {
        return Ok(());
    }
    let code = code(&closed.end);
    let (status, message_id) = match closed.end {
        End::Sent { message_id } => ("sent", message_id),
        End::Undeliverable(_) => ("undeliverable", None),
        End::Unknown(_) => ("unknown", None),
        End::Skipped(_) => ("skipped", None),
    };
    sql::recipients::close(tx, id, telegram_id, &Ended { status, code: code.as_deref(), message_id })?;
    sql::move_count(tx, id, &before.status, status)?;
    // What a crash of ours cut off says nothing of the recipients, and there may be dozens of it at once.
    if !matches!(closed.end, End::Skipped(_) | End::Unknown(FailureCode::Crashed)) {
        judge(tx, id, code.unwrap_or_default())?;
    }
    if before.message_id.is_some() {
        go_on(tx, id)?;
    }
    Ok(())
}

/// Why the message did not arrive: nothing for one that did. People know one word for who blocked the bot.
fn code(end: &End) -> Option<String> {
    match end {
        End::Sent { .. } => None,
        End::Undeliverable(code) | End::Unknown(code) => Some(code.to_string()),
        End::Skipped(code) => Some(match code.to_string().as_str() {
            "unreachable" => "blocked".to_owned(),
            other => other.to_owned(),
        }),
    }
}

/// Pauses a running broadcast whose last sends failed for the same reason too often.
fn judge(tx: &Tx<'_>, id: i64, code: String) -> Result<(), StoreError> {
    let Some(Broadcast { state, mut recent, counts, .. }) = sql::find(tx, id)? else { return Ok(()) };
    recent.push(code);
    let surplus = recent.len().saturating_sub(JUDGED);
    recent.drain(..surplus);
    sql::set_recent(tx, id, &recent)?;
    let is_left = counts.pending() + counts.queued > 0;
    if state != State::Running || !is_left || recent.len() < JUDGED {
        return Ok(());
    }
    let alike = |code: &String| recent.iter().filter(|other| *other == code).count();
    let Some(code) = recent.iter().find(|code| !code.is_empty() && alike(code) > MAY_FAIL_ALIKE) else { return Ok(()) };
    sql::pause(tx, id, code)?;
    tracing::error!(broadcast.id = id, code, "a broadcast has paused itself: too many of its last sends failed alike");
    feed::take_back(tx, id)?;
    Ok(())
}

/// One message fewer is in the queue: more may be handed over, or nothing is left.
fn go_on(tx: &Tx<'_>, id: i64) -> Result<(), StoreError> {
    if finish_if_over(tx, id)? {
        return Ok(());
    }
    if sql::find(tx, id)?.is_some_and(|broadcast| broadcast.counts.queued < broadcast.window() / 2) {
        tx.wake(BROADCASTS);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn only_the_keys_of_broadcasts_name_a_recipient() {
        assert_eq!(parse("broadcast:3:99"), Some((3, 99)));
        assert_eq!(parse("broadcast:3:-100500"), Some((3, -100_500)));
        for other in ["broadcast_test:3:99:1", "digest:3:2026-11-30", "broadcast:3", "broadcast:x:1", "broadcast:3:1:2"]
        {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
