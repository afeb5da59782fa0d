//! The port to the messenger: what is sent, and the three things that can have become of it.
//!
//! "Certainly not delivered" and "nobody knows" are different answers, because only the first may be repeated freely.

use std::fmt;
use std::time::Duration;

use futures_util::future::BoxFuture;

use super::message::Rendered;

/// Whoever can bring one message to one chat. One call is one attempt: an implementation never repeats by itself.
pub(crate) trait Messenger: Send + Sync {
    /// Tries to deliver the message once.
    fn send<'a>(&'a self, message: &'a Rendered) -> BoxFuture<'a, Outcome>;

    /// Asks who we are: whether the token is accepted, without telling anybody anything. An answer is a delivery of no
    /// message.
    fn introduce(&self) -> BoxFuture<'_, Outcome>;
}

/// What became of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The messenger accepted it. The id is absent when the acceptance did not name one.
    Delivered {
        /// The message's id within its chat.
        message_id: Option<i64>,
    },
    /// It was certainly not delivered.
    Refused {
        /// What can be done about it.
        class: Class,
        /// The reason, fit to be stored.
        code: FailureCode,
    },
    /// The request left, and no answer that can be trusted came back.
    Unknown {
        /// How the answer was lost.
        code: FailureCode,
    },
}

/// What a certain refusal means for the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Nothing is wrong with the message; later it may succeed.
    Later,
    /// Too much was sent; the messenger may say how long to wait at least.
    RateLimited {
        /// The wait it asked for.
        retry_after: Option<Duration>,
    },
    /// This person or group cannot be written to.
    Unreachable(Reason),
    /// The chat goes on under another id.
    MovedTo(i64),
    /// The formatting was not understood; as plain text it may pass.
    BadMarkup,
    /// The message that was to be changed is not there, or cannot be changed any more.
    NoSuchMessage,
    /// The token is not accepted: no message can be sent at all.
    Unauthorized,
    /// This message will never be accepted.
    Final,
}

/// Why a person cannot be written to; the values of `bot_users.reachable`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The person stopped the bot, or removed it from the group.
    Blocked,
    /// The account is gone.
    Deactivated,
    /// The person never opened a chat with the bot.
    NeverStarted,
}

impl Reason {
    /// The reason's name in the file.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Deactivated => "deactivated",
            Self::NeverStarted => "never_started",
        }
    }
}

/// The short code that is stored and counted for a failure. Never free text: an answer's body may hold personal data
/// and an error of the transport the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum FailureCode {
    /// `blocked`: the person stopped the bot.
    Blocked,
    /// `deactivated`: the account is gone.
    Deactivated,
    /// `cant_initiate`: the person never started the bot.
    CantInitiate,
    /// `not_member`: the bot is not, or no longer, in the group.
    NotMember,
    /// `chat_deleted`: the group was deleted.
    ChatDeleted,
    /// `chat_not_found`: the messenger knows no such chat.
    ChatNotFound,
    /// `is_bot`: the addressee is a bot.
    IsBot,
    /// `forbidden`: another text that begins with `Forbidden:`.
    Forbidden,
    /// `migrated`: the group has another id now.
    Migrated,
    /// `bad_markup`: the formatting was not understood.
    BadMarkup,
    /// `too_long`: over the length that a message may have.
    TooLong,
    /// `empty`: nothing to show.
    Empty,
    /// `button_invalid`: a button was not accepted.
    ButtonInvalid,
    /// `no_rights`: the bot may not write in this group.
    NoRights,
    /// `thread_not_found`: the topic does not exist.
    ThreadNotFound,
    /// `not_modified`: an edit that changes nothing.
    NotModified,
    /// `no_such_message`: a message that cannot be changed any more.
    NoSuchMessage,
    /// `query_too_old`: a button press that cannot be answered any more.
    QueryTooOld,
    /// `method_not_found`: the server does not know the method.
    MethodNotFound,
    /// `rate_limited`: too much was sent.
    RateLimited,
    /// `unauthorized`: the token is not accepted.
    Unauthorized,
    /// `conflict`: another process reads this bot's updates.
    Conflict,
    /// `connect`: no connection could be made.
    Connect,
    /// `timeout`: no answer in time.
    Timeout,
    /// `broken_connection`: the connection ended before the answer did.
    BrokenConnection,
    /// `broken_answer`: an answer that is not the messenger's.
    BrokenAnswer,
    /// `crashed`: this process ended, or the send panicked, before its outcome was recorded.
    Crashed,
    /// `expired`: given up after being tried for too long.
    Expired,
    /// `unreachable`: known before the attempt to be unreachable.
    Unreachable,
    /// `opted_out`: the person does not want this kind.
    OptedOut,
    /// `http_NNN`: any other status.
    Http(u16),
}

impl FailureCode {
    /// The status that the messenger's answer had, or has with such a text; `None` if there was no answer.
    pub(crate) const fn http_status(self) -> Option<u16> {
        match self {
            Self::Blocked
            | Self::Deactivated
            | Self::CantInitiate
            | Self::NotMember
            | Self::ChatDeleted
            | Self::Forbidden => Some(403),
            Self::ChatNotFound
            | Self::IsBot
            | Self::Migrated
            | Self::BadMarkup
            | Self::TooLong
            | Self::Empty
            | Self::ButtonInvalid
            | Self::NoRights
            | Self::ThreadNotFound
            | Self::NotModified
            | Self::NoSuchMessage
            | Self::QueryTooOld => Some(400),
            Self::MethodNotFound => Some(404),
            Self::RateLimited => Some(429),
            Self::Unauthorized => Some(401),
            Self::Conflict => Some(409),
            Self::Http(status) => Some(status),
            Self::Connect
            | Self::Timeout
            | Self::BrokenConnection
            | Self::BrokenAnswer
            | Self::Crashed
            | Self::Expired
            | Self::Unreachable
            | Self::OptedOut => None,
        }
    }
}

impl fmt::Display for FailureCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Blocked => "blocked",
            Self::Deactivated => "deactivated",
            Self::CantInitiate => "cant_initiate",
            Self::NotMember => "not_member",
            Self::ChatDeleted => "chat_deleted",
            Self::ChatNotFound => "chat_not_found",
            Self::IsBot => "is_bot",
            Self::Forbidden => "forbidden",
            Self::Migrated => "migrated",
            Self::BadMarkup => "bad_markup",
            Self::TooLong => "too_long",
            Self::Empty => "empty",
            Self::ButtonInvalid => "button_invalid",
            Self::NoRights => "no_rights",
            Self::ThreadNotFound => "thread_not_found",
            Self::NotModified => "not_modified",
            Self::NoSuchMessage => "no_such_message",
            Self::QueryTooOld => "query_too_old",
            Self::MethodNotFound => "method_not_found",
            Self::RateLimited => "rate_limited",
            Self::Unauthorized => "unauthorized",
            Self::Conflict => "conflict",
            Self::Connect => "connect",
            Self::Timeout => "timeout",
            Self::BrokenConnection => "broken_connection",
            Self::BrokenAnswer => "broken_answer",
            Self::Crashed => "crashed",
            Self::Expired => "expired",
            Self::Unreachable => "unreachable",
            Self::OptedOut => "opted_out",
            Self::Http(status) => return write!(f, "http_{status}"),
        };
        f.write_str(text)
    }
}
