//! Connect links: the site is opened with a token, and its backend tells whose session that was.
//!
//! **What.** [`mint`] makes the address for a chat, or hands out the one that is unused and young. [`redeem`] uses its token
//! for a member, whose preview the chat becomes; the person then confirms it in the bot ([`super::bind()`]).
//!
//! **States.** unused → used, by one member · unused → over, 30 minutes after it was made.
//!
//! **Guarantees.**
//! - A link is handed out again while it is unused and young: `src/edge/http/tests/bot_links.rs::a_link_is_reused_while_young`.
//! - A token is used once: `src/edge/http/tests/bot_links.rs::of_many_redeems_at_once_one_wins`; the member who has used it may
//!   repeat that: `src/edge/http/tests/bot_links.rs::used_twice_is_over`.
//! - A token that is over does nothing: `src/edge/http/tests/bot_links.rs::an_expired_link_is_over`.
//!
//! **Windows.** None: each is one transaction.
//!
//! **Not here.** What the bot says about it (`onboarding`).

mod sql;

use serde_json::{Map, Value};
use url::Url;

use super::members::{self, announce_one};
use super::{Error, NewBotEvent, emit};
use crate::kernel::clock::{UnixMs, rfc3339};
use crate::kernel::contract::{BotEventType, ConnectLink};
use crate::kernel::id::uuid_v4;
use crate::kernel::store::{StoreError, Tx};

/// How long a token may be used (contract of the site).
const LIFETIME_MS: i64 = 30 * 60_000;
/// The parameter that the site looks for.
const PARAMETER: &str = "telegramConnect";

/// The event by which the bot is asked for the confirmation.
const WALLET: &str = "member.wallet_connected";

/// Whether a redeem did anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redeemed {
    /// The token is used now.
    Now,
    /// The same member had used it before.
    Before,
}

/// The way to the site for this chat: the one that is unused and young, else a new one.
///
/// # Errors
/// The store's.
pub(crate) fn mint(tx: &Tx<'_>, telegram_id: i64, site: &Url) -> Result<ConnectLink, StoreError> {
    let (token, expires_at) = match sql::find_unused(tx, telegram_id)? {
        Some(young) => young,
        None => {
            let made = (uuid_v4(), tx.now() + LIFETIME_MS);
            sql::insert(tx, &made.0, telegram_id, made.1)?;
            made
        }
    };
    let mut url = site.clone();
    url.query_pairs_mut().append_pair(PARAMETER, &token);
    Ok(ConnectLink { url: url.into(), token, expires_at: rfc3339(expires_at) })
}

/// Uses the token for this member: the token's chat becomes the member's preview, and nobody else's any more.
///
/// A member whose wallet is known already has no further event by which the bot would ask for the confirmation, so
/// the bot is told of the wallet once more.
///
/// # Errors
/// [`Error::NoMember`], [`Error::NoToken`], [`Error::TokenOver`], [`Error::MemberIsBound`], [`Error::ChatTaken`], none of
/// which uses the token once the transaction is taken back; else the store's.
pub(crate) fn redeem(tx: &Tx<'_>, token: &str, uid: i64) -> Result<Redeemed, Error> {
    let member = members::find(tx, uid)?.ok_or(Error::NoMember)?;
    let Some(chat) = sql::use_token(tx, token, uid)? else {
        return match sql::find_use(tx, token)? {
            None => Err(Error::NoToken),
            Some(Some(used_by)) if used_by == uid => Ok(Redeemed::Before),
            Some(_) => Err(Error::TokenOver),
        };
    };
    match (member.telegram_id, members::find_by_chat(tx, chat)?) {
        (Some(bound), _) if bound == chat => return Ok(Redeemed::Now),
        (Some(_), _) => return Err(Error::MemberIsBound),
        (None, Some(_)) => return Err(Error::ChatTaken),
        (None, None) => {}
    }
    super::sql::move_preview(tx, chat, uid)?;
    super::sql::set_preview(tx, chat, uid)?;
    let told = announce_one(tx, uid)?;
    let is_wallet_told = told.contains(&WALLET);
    if member.has_wallet() && !is_wallet_told {
        emit(tx, &wallet_again(token, chat, uid))?;
    }
    Ok(Redeemed::Now)
}

fn wallet_again(token: &str, chat: i64, uid: i64) -> NewBotEvent {
    NewBotEvent {
        event_type: BotEventType::WalletConnected,
        telegram_id: Some(chat),
        magnet_uid: Some(uid),
        payload: Map::from_iter([("preview".to_owned(), Value::Bool(true))]),
        dedup_key: Some(format!("connect:{token}")),
    }
}

/// Deletes up to `limit` links that were over before `cutoff`; how many.
///
/// # Errors
/// The store's.
pub(crate) fn prune(tx: &Tx<'_>, cutoff: UnixMs, limit: i64) -> Result<usize, StoreError> {
    sql::delete_expired(tx, cutoff, limit)
}

/// The repeated statements with the indexes they are meant to use, for the plan test.
#[cfg(test)]
pub(super) fn plans() -> Vec<(&'static str, &'static str, &'static [&'static str])> {
    sql::plans()
}
