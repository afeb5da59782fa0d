//! Statements of the conversation on people and on bind prompts.

use rusqlite::named_params;

use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx, lossy_text};
use crate::onboarding::content::Lang;

/// A person as they are seen.
pub(super) struct Seen<'a> {
    pub(super) telegram_id: i64,
    pub(super) name: &'a str,
    pub(super) username: Option<&'a str>,
    /// When what they did came in, however long it waited then.
    pub(super) at: UnixMs,
}

/// A person was here: who they are now, and when. Their row is made if there is none.
pub(super) fn see(tx: &Tx<'_>, seen: &Seen<'_>) -> Result<(), StoreError> {
    let sql = "
        INSERT INTO bot_users (telegram_id, first_name, username, stage_since, last_activity_at, created_at)
        VALUES (:telegram_id, :name, :username, :now, :at, :now)
        ON CONFLICT (telegram_id) DO UPDATE SET
          first_name = excluded.first_name, username = excluded.username,
          -- A clock that is set back takes nobody's activity back.
          last_activity_at = MAX(COALESCE(last_activity_at, 0), excluded.last_activity_at)";
    let params = named_params! {
        ":telegram_id": seen.telegram_id, ":name": seen.name, ":username": seen.username, ":at": seen.at,
        ":now": tx.now(),
    };
    tx.execute(sql, params).map(|_| ())
}

/// A person can be written to again. Nobody's row is made for that.
pub(super) fn set_reachable(tx: &Tx<'_>, telegram_id: i64) -> Result<(), StoreError> {
    let sql = "
        UPDATE bot_users SET reachable = 'ok', reachable_since = :now
        WHERE telegram_id = :telegram_id AND reachable <> 'ok'";
    tx.execute(sql, named_params! { ":telegram_id": telegram_id, ":now": tx.now() }).map(|_| ())
}

/// Who brought a person, if nobody did before: the first stays.
pub(super) fn touch_first(tx: &Tx<'_>, telegram_id: i64, uid: i64, name: Option<&str>) -> Result<(), StoreError> {
    let sql = "
        UPDATE bot_users SET leader_uid = :uid, leader_name = :name
        WHERE telegram_id = :telegram_id AND leader_uid IS NULL";
    tx.execute(sql, named_params! { ":telegram_id": telegram_id, ":uid": uid, ":name": name }).map(|_| ())
}

/// What the leader of a person was called when their link was followed.
pub(super) fn find_leader_name(tx: &Tx<'_>, telegram_id: i64) -> Result<Option<String>, StoreError> {
    let sql = "SELECT leader_name FROM bot_users WHERE telegram_id = :telegram_id";
    let found =
        tx.query_opt(sql, named_params! { ":telegram_id": telegram_id }, |row| lossy_text(row, "leader_name"))?;
    Ok(found.flatten())
}

/// The language a person has chosen.
pub(in crate::onboarding) fn set_lang(tx: &Tx<'_>, telegram_id: i64, lang: Lang) -> Result<(), StoreError> {
    let sql = "UPDATE bot_users SET lang = :lang WHERE telegram_id = :telegram_id";
    tx.execute(sql, named_params! { ":telegram_id": telegram_id, ":lang": lang.as_str() }).map(|_| ())
}

/// A person wants nothing that they did not ask for.
pub(super) fn opt_out(tx: &Tx<'_>, telegram_id: i64) -> Result<(), StoreError> {
    let sql = "
        UPDATE bot_users SET optin_urgent = 0, optin_digest = 0, optin_broadcast = 0 WHERE telegram_id = :telegram_id";
    tx.execute(sql, named_params! { ":telegram_id": telegram_id }).map(|_| ())
}

/// A person was told now that they are not understood.
pub(super) fn mark_puzzled(tx: &Tx<'_>, telegram_id: i64) -> Result<(), StoreError> {
    let sql = "UPDATE bot_users SET puzzled_at = :now WHERE telegram_id = :telegram_id";
    tx.execute(sql, named_params! { ":telegram_id": telegram_id, ":now": tx.now() }).map(|_| ())
}

/// A question whether a chat is a member's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prompt {
    pub(super) prompted_at: UnixMs,
    pub(super) expires_at: UnixMs,
    pub(super) outcome: Option<Outcome>,
}

/// What came of the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The backend elsewhere was asked.
    Asked,
    /// The chat is bound.
    Bound,
    /// The person said no.
    Refused,
    /// The backend said no.
    Changed,
}

impl Outcome {
    const ALL: [Self; 4] = [Self::Asked, Self::Bound, Self::Refused, Self::Changed];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Bound => "bound",
            Self::Refused => "refused",
            Self::Changed => "changed",
        }
    }
}

/// The question is asked now, and stands until `expires_at`; what was answered before is over.
pub(super) fn prompt(tx: &Tx<'_>, telegram_id: i64, uid: i64, expires_at: UnixMs) -> Result<(), StoreError> {
    let sql = "
        INSERT INTO bot_bind_prompts (telegram_id, magnet_uid, prompted_at, expires_at)
        VALUES (:telegram_id, :uid, :now, :expires_at)
        ON CONFLICT (telegram_id, magnet_uid) DO UPDATE SET
          prompted_at = excluded.prompted_at, expires_at = excluded.expires_at, answered_at = NULL, outcome = NULL";
    let params =
        named_params! { ":telegram_id": telegram_id, ":uid": uid, ":now": tx.now(), ":expires_at": expires_at };
    tx.execute(sql, params).map(|_| ())
}

/// Where the question stands; `None` if it was never asked.
pub(super) fn find_prompt(tx: &Tx<'_>, telegram_id: i64, uid: i64) -> Result<Option<Prompt>, StoreError> {
    let sql = "
        SELECT prompted_at, expires_at, outcome FROM bot_bind_prompts
        WHERE telegram_id = :telegram_id AND magnet_uid = :uid";
    tx.query_opt(sql, named_params! { ":telegram_id": telegram_id, ":uid": uid }, |row| {
        let outcome: Option<String> = row.get("outcome")?;
        Ok(Prompt {
            prompted_at: row.get("prompted_at")?,
            expires_at: row.get("expires_at")?,
            // The schema holds it to be one of ours.
            outcome: outcome.and_then(|text| Outcome::ALL.into_iter().find(|outcome| outcome.as_str() == text)),
        })
    })
}

/// The question was answered now.
pub(super) fn answer(tx: &Tx<'_>, telegram_id: i64, uid: i64, outcome: Outcome) -> Result<(), StoreError> {
    let sql = "
        UPDATE bot_bind_prompts SET answered_at = :now, outcome = :outcome
        WHERE telegram_id = :telegram_id AND magnet_uid = :uid";
    let params =
        named_params! { ":telegram_id": telegram_id, ":uid": uid, ":now": tx.now(), ":outcome": outcome.as_str() };
    tx.execute(sql, params).map(|_| ())
}
