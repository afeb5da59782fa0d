//! The cabinet: a member's numbers, and the link that brings others.

use url::Url;

use super::{Error, sql};
use crate::kernel::store::Tx;
use crate::onboarding::dialog::{Facts, Reply};
use crate::onboarding::screens::menu::CABINET;
use crate::onboarding::screens::{Address, View};

pub(super) fn show(tx: &Tx<'_>, reply: &Reply<'_>, uid: i64, facts: &Facts) -> Result<(), Error> {
    let numbers = sql::metrics(tx, uid)?;
    let mut view = View::default();
    for (name, number) in [
        ("in_bot", numbers.in_bot),
        ("watched", numbers.watched),
        ("registered", numbers.registered),
        ("nft", numbers.nft),
    ] {
        view.values.set(name, &number.to_string());
    }
    let code = facts.state.as_ref().and_then(|state| state.own_link.as_deref()).unwrap_or_default();
    let invite = reply.addresses().username.as_deref().and_then(|bot| invite(bot, code));
    view.values.set("link", invite.as_deref().unwrap_or(code));
    if let Some(invite) = invite {
        view.addresses.insert(Address::Invite, invite);
    }
    reply.show(&CABINET, &view)
}

/// The bot's own address with a link's code (Bot API, deep linking); `None` without a code.
fn invite(bot: &str, code: &str) -> Option<String> {
    if code.is_empty() {
        return None;
    }
    let mut url = Url::parse("https://t.me/").ok()?.join(bot).ok()?;
    url.query_pairs_mut().append_pair("start", code);
    Some(url.into())
}

#[cfg(test)]
mod tests {
    use super::invite;

    #[test]
    fn a_code_is_part_of_the_address_whatever_it_is() {
        assert_eq!(invite("example_bot", "boris").as_deref(), Some("https://t.me/example_bot?start=boris"));
        assert_eq!(invite("example_bot", "a&b=<c>").as_deref(), Some("https://t.me/example_bot?start=a%26b%3D%3Cc%3E"));
        assert_eq!(invite("example_bot", ""), None);
    }
}
