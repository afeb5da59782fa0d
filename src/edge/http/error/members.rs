//! What went wrong with members, their chats and the bot's events, as the client is told.

use axum::http::StatusCode;

use super::{Fault, Problem};
use crate::backend::Error;

impl Problem {
    /// A chat that is not what the member's link was last opened from, or one of the two is bound elsewhere.
    pub(in crate::edge::http) fn not_previewed() -> Self {
        let detail =
            "this chat is not the one that last opened the member's link, or one of the two is bound elsewhere";
        Self::new(StatusCode::CONFLICT, "not_previewed", detail)
    }

    pub(in crate::edge::http) fn no_site_url() -> Self {
        let detail = "bot.site_url is not set, so there is no way to the site";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "site_url_not_set", detail)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let why = error.to_string();
        let taken = |code, field| Self::new(StatusCode::CONFLICT, code, why.clone()).at(vec![Fault::new(field, &*why)]);
        match error {
            Error::NoSubject => {
                let faults = vec![Fault::new("telegramId", &*why), Fault::new("magnetUid", &*why)];
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "no_subject", why).at(faults)
            }
            Error::OwnParent | Error::NoParent => Self::invalid_body(vec![Fault::new("parent_uid", why)]),
            Error::LinkTaken => taken("link_taken", "link"),
            Error::ChatTaken => taken("chat_taken", "telegram_id"),
            Error::MemberIsBound => taken("member_is_bound", "uid"),
            Error::NoMember => Self::no_such("member"),
            Error::NoToken => Self::no_such("connect link"),
            Error::TokenOver => Self::new(StatusCode::GONE, "connect_link_over", why),
            Error::Store(error) => error.into(),
        }
    }
}
