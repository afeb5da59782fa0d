//! What follows from an outcome: the whole policy of repeating, as one function without I/O.

use std::time::Duration;

use super::kind::{Kind, OnUnknown};
use super::limiter::{millis, pause_end};
use super::message::Format;
use super::outcome::{Class, FailureCode, Outcome, Reason};
use crate::kernel::clock::UnixMs;
use crate::kernel::retry;

/// The first wait after an attempt that may be repeated; it doubles with every attempt.
const FIRST_BACKOFF_MS: i64 = 1_000;

/// The longest such wait: after an outage a message is late by no more than this.
const LONGEST_BACKOFF_MS: i64 = 5 * 60_000;

/// How many doubtful attempts are repeated before the message is closed: a person then got at most this many copies,
/// and one more.
const MOST_REPEATS: i64 = 5;

/// How long everything waits after the token was refused, before it is tried again.
pub(crate) const UNAUTHORIZED_WAIT: Duration = Duration::from_secs(60);

/// What the policy looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    /// The message's kind.
    pub(crate) kind: Kind,
    /// How the text was to be read.
    pub(crate) format: Format,
    /// Whether a message was to be changed, and none added.
    pub(crate) is_edit: bool,
    /// The number of this attempt, from one.
    pub(crate) attempts: i64,
    /// How many attempts before this one ended in doubt.
    pub(crate) unknown_count: i64,
    /// Since when it is tried: its creation, its due time if that was later, or a person's retry.
    pub(crate) waiting_since: UnixMs,
}

/// What becomes of the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It arrived.
    Sent { message_id: Option<i64> },
    /// It is tried again.
    Again { due_at: UnixMs, code: FailureCode, doubt: Doubt, change: Change },
    /// It certainly did not arrive, and is given up.
    Undeliverable { code: FailureCode, reason: Option<Reason> },
    /// It may have arrived, and is given up.
    Unknown { code: FailureCode },
}

/// Whether the attempt may have delivered the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// It may have: a further attempt may be a second copy.
    MayHaveArrived,
    /// It certainly did not.
    None,
}

/// What is different about the next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing.
    None,
    /// It goes to this chat.
    Chat(i64),
    /// It goes as plain text.
    Plain,
    /// It adds a message: the one that it was to change is not there any more.
    Anew,
}

impl Verdict {
    /// The outcome's name in metrics and reports.
    pub(crate) const fn as_str(&self) -> &'static str {
        match self {
            Self::Sent { .. } => "sent",
            Self::Again { doubt: Doubt::None, .. } => "again",
            Self::Again { doubt: Doubt::MayHaveArrived, .. } => "doubtful",
            Self::Undeliverable { .. } => "undeliverable",
            Self::Unknown { .. } => "unknown",
        }
    }
}

/// Decides what becomes of a message after an attempt that ended at `now`.
pub(crate) fn decide(attempt: &Attempt, outcome: &Outcome, give_up_after: Duration, now: UnixMs) -> Verdict {
    match *outcome {
        Outcome::Delivered { message_id } => Verdict::Sent { message_id },
        Outcome::Unknown { code } => in_doubt(attempt, code, now),
        Outcome::Refused { class, code } => refused(attempt, class, code, Deadline::of(attempt, give_up_after, now)),
    }
}

fn in_doubt(attempt: &Attempt, code: FailureCode, now: UnixMs) -> Verdict {
    match attempt.kind.on_unknown() {
        OnUnknown::Repeat if attempt.unknown_count < MOST_REPEATS => Verdict::Again {
            due_at: now.saturating_add(backoff(attempt.attempts)),
            code,
            doubt: Doubt::MayHaveArrived,
            change: Change::None,
        },
        OnUnknown::Repeat | OnUnknown::Close => Verdict::Unknown { code },
    }
}

fn refused(attempt: &Attempt, class: Class, code: FailureCode, deadline: Deadline) -> Verdict {
    let now = deadline.now;
    let undeliverable = Verdict::Undeliverable { code, reason: None };
    match class {
        Class::Later => deadline.again_at(now.saturating_add(backoff(attempt.attempts)), code),
        Class::RateLimited { retry_after } => deadline.again_at(pause_end(now, retry_after), code),
        Class::Unauthorized => deadline.again_at(now.saturating_add(millis(UNAUTHORIZED_WAIT)), code),
        Class::Unreachable(reason) => Verdict::Undeliverable { code, reason: Some(reason) },
        Class::MovedTo(chat_id) => deadline.again(now, code, Change::Chat(chat_id)),
        Class::BadMarkup if attempt.format == Format::Html => deadline.again(now, code, Change::Plain),
        Class::NoSuchMessage if attempt.is_edit => deadline.again(now, code, Change::Anew),
        Class::BadMarkup | Class::NoSuchMessage | Class::Final => undeliverable,
    }
}

/// Until when refusals are repeated.
#[derive(Clone, Copy)]
struct Deadline {
    now: UnixMs,
    over: bool,
}

impl Deadline {
    fn of(attempt: &Attempt, give_up_after: Duration, now: UnixMs) -> Self {
        Self { now, over: now.saturating_sub(attempt.waiting_since) >= millis(give_up_after) }
    }

    fn again_at(self, due_at: UnixMs, code: FailureCode) -> Verdict {
        if self.over {
            return Verdict::Undeliverable { code: FailureCode::Expired, reason: None };
        }
        Verdict::Again { due_at, code, doubt: Doubt::None, change: Change::None }
    }

    fn again(self, due_at: UnixMs, code: FailureCode, change: Change) -> Verdict {
        match self.again_at(due_at, code) {
            Verdict::Again { due_at, code, doubt, .. } => Verdict::Again { due_at, code, doubt, change },
            given_up => given_up,
        }
    }
}

/// The wait after the `attempts`-th attempt, in milliseconds: 1 s, 2 s, 4 s and so on.
fn backoff(attempts: i64) -> i64 {
    retry::doubled(FIRST_BACKOFF_MS, attempts.saturating_sub(1), LONGEST_BACKOFF_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);
    const NOW: UnixMs = 1_000_000;

    fn attempt(kind: Kind) -> Attempt {
        Attempt { kind, format: Format::Html, is_edit: false, attempts: 1, unknown_count: 0, waiting_since: NOW }
    }

    fn refusal(class: Class) -> Outcome {
        Outcome::Refused { class, code: FailureCode::Http(400) }
    }

    fn again(due_at: UnixMs, change: Change) -> Verdict {
        Verdict::Again { due_at, code: FailureCode::Http(400), doubt: Doubt::None, change }
    }

    #[test]
    fn a_doubtful_bulk_send_is_closed_and_any_other_is_repeated() {
        let outcome = Outcome::Unknown { code: FailureCode::Timeout };
        for kind in Kind::ALL {
            let verdict = decide(&attempt(kind), &outcome, DAY, NOW);
            match kind.on_unknown() {
                OnUnknown::Close => assert_eq!(verdict, Verdict::Unknown { code: FailureCode::Timeout }),
                OnUnknown::Repeat => assert!(matches!(
                    verdict,
                    Verdict::Again { due_at, doubt: Doubt::MayHaveArrived, .. } if due_at == NOW + 1_000
                )),
            }
        }
    }

    #[test]
    fn the_sixth_doubt_is_the_last() {
        let outcome = Outcome::Unknown { code: FailureCode::Timeout };
        let sixth = Attempt { unknown_count: 5, attempts: 6, ..attempt(Kind::Reply) };
        assert_eq!(decide(&sixth, &outcome, DAY, NOW), Verdict::Unknown { code: FailureCode::Timeout });
    }

    #[test]
    fn each_class_of_refusal_has_its_consequence() {
        let one = attempt(Kind::Event);
        let cases = [
            (Class::Later, again(NOW + 1_000, Change::None)),
            (Class::RateLimited { retry_after: Some(Duration::from_secs(7)) }, again(NOW + 7_500, Change::None)),
            (Class::RateLimited { retry_after: None }, again(NOW + 5_500, Change::None)),
            (Class::Unauthorized, again(NOW + 60_000, Change::None)),
            (Class::MovedTo(-100_500), again(NOW, Change::Chat(-100_500))),
            (Class::BadMarkup, again(NOW, Change::Plain)),
            (Class::Final, Verdict::Undeliverable { code: FailureCode::Http(400), reason: None }),
            (
                Class::Unreachable(Reason::Blocked),
                Verdict::Undeliverable { code: FailureCode::Http(400), reason: Some(Reason::Blocked) },
            ),
        ];
        for (class, expected) in cases {
            assert_eq!(decide(&one, &refusal(class), DAY, NOW), expected, "{class:?}");
        }
    }

    #[test]
    fn markup_that_is_refused_as_plain_text_is_given_up() {
        let plain = Attempt { format: Format::Plain, ..attempt(Kind::Event) };
        let verdict = decide(&plain, &refusal(Class::BadMarkup), DAY, NOW);
        assert!(matches!(verdict, Verdict::Undeliverable { .. }));
    }

    #[test]
    fn a_message_that_is_gone_is_answered_with_a_new_one() {
        let edit = Attempt { is_edit: true, ..attempt(Kind::Reply) };
        assert_eq!(decide(&edit, &refusal(Class::NoSuchMessage), DAY, NOW), again(NOW, Change::Anew));
        let verdict = decide(&attempt(Kind::Reply), &refusal(Class::NoSuchMessage), DAY, NOW);
        assert!(matches!(verdict, Verdict::Undeliverable { .. }), "there was nothing to change: {verdict:?}");
    }

    #[test]
    fn refusals_are_repeated_until_the_message_is_too_old() {
        let expired = Verdict::Undeliverable { code: FailureCode::Expired, reason: None };
        let classes = [Class::Later, Class::RateLimited { retry_after: None }, Class::Unauthorized, Class::MovedTo(-1)];
        for class in classes {
            let at = |now| decide(&attempt(Kind::Event), &refusal(class), DAY, now);
            assert!(matches!(at(NOW + 86_399_999), Verdict::Again { .. }), "{class:?}");
            assert_eq!(at(NOW + 86_400_000), expired, "{class:?}");
        }
    }

    #[test]
    fn the_wait_doubles_up_to_five_minutes() {
        let waits: Vec<i64> = (1..=11).map(backoff).collect();
        assert_eq!(waits[..4], [1_000, 2_000, 4_000, 8_000]);
        assert_eq!(waits[9..], [300_000, 300_000]);
        assert_eq!(backoff(i64::MAX), 300_000);
    }
}
