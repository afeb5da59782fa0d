//! Statements of the menu on people: lists, numbers, requests for help, opt-ins.

use rusqlite::{Row, named_params};

use super::numbers::{COUNTED, PER_PAGE};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx, lossy_text};

/// Somebody of a leader's structure, as a list shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Partner {
    pub(super) telegram_id: i64,
    pub(super) first_name: Option<String>,
    pub(super) username: Option<String>,
    pub(super) stage: i64,
    pub(super) is_asking: bool,
}

/// What came of a leader's work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Metrics {
    /// People whom the leader brought.
    pub(crate) in_bot: i64,
    /// Of those, who have watched the video.
    pub(crate) watched: i64,
    /// Who are registered.
    pub(crate) registered: i64,
    /// Whose NFT is active.
    pub(crate) nft: i64,
}

fn partner(row: &Row<'_>) -> rusqlite::Result<Partner> {
    Ok(Partner {
        telegram_id: row.get("telegram_id")?,
        first_name: lossy_text(row, "first_name")?,
        username: lossy_text(row, "username")?,
        stage: row.get("stage")?,
        is_asking: row.get("help_requested")?,
    })
}

/// The numbers of this leader: those whom they brought, by how far they have come.
///
/// # Errors
/// The store's.
pub(crate) fn metrics(tx: &Tx<'_>, leader_uid: i64) -> Result<Metrics, StoreError> {
    tx.query_one(METRICS, named_params! { ":leader": leader_uid }, |row| {
        Ok(Metrics {
            in_bot: row.get("in_bot")?,
            watched: row.get("watched")?,
            registered: row.get("registered")?,
            nft: row.get("nft")?,
        })
    })
}

pub(super) const METRICS: &str = "
    SELECT COUNT(*) AS in_bot, COUNT(*) FILTER (WHERE stage >= 5) AS watched,
           COUNT(*) FILTER (WHERE stage >= 8) AS registered, COUNT(*) FILTER (WHERE stage = 9) AS nft
    FROM bot_users INDEXED BY bot_users_by_leader WHERE leader_uid = :leader";

/// How many are in this leader's structure, counted a little further than [`COUNTED`].
pub(super) fn count_partners(tx: &Tx<'_>, leader_uid: i64) -> Result<i64, StoreError> {
    let params = named_params! { ":leader": leader_uid, ":most": COUNTED + 1 };
    tx.query_one(COUNT_PARTNERS, params, |row| row.get("total"))
}

pub(super) const COUNT_PARTNERS: &str = "
    SELECT COUNT(*) AS total FROM (
      SELECT 1 FROM bot_users INDEXED BY bot_users_by_structure WHERE structure_uid = :leader LIMIT :most)";

/// A page of a leader's structure, who came last first.
pub(super) fn partners(tx: &Tx<'_>, leader_uid: i64, before: i64) -> Result<Vec<Partner>, StoreError> {
    let params = named_params! { ":leader": leader_uid, ":limit": PER_PAGE, ":before": before };
    tx.query_all(PARTNERS, params, partner)
}

pub(super) const PARTNERS: &str = "
    SELECT telegram_id, first_name, username, stage, help_requested
    FROM bot_users INDEXED BY bot_users_by_structure WHERE structure_uid = :leader
    ORDER BY created_at DESC, telegram_id DESC LIMIT :limit OFFSET :before";

/// How many of this structure ask for help.
pub(super) fn count_asking(tx: &Tx<'_>, leader_uid: i64) -> Result<i64, StoreError> {
    let params = named_params! { ":leader": leader_uid, ":most": COUNTED + 1 };
    tx.query_one(COUNT_ASKING, params, |row| row.get("total"))
}

pub(super) const COUNT_ASKING: &str = "
    SELECT COUNT(*) AS total FROM (
      SELECT 1 FROM bot_users INDEXED BY bot_users_asking
      WHERE structure_uid = :leader AND help_requested = 1 LIMIT :most)";

/// Who asks for help, who has waited longest first.
pub(super) fn asking(tx: &Tx<'_>, leader_uid: i64, limit: i64, before: i64) -> Result<Vec<Partner>, StoreError> {
    let params = named_params! { ":leader": leader_uid, ":limit": limit, ":before": before };
    tx.query_all(ASKING, params, partner)
}

pub(super) const ASKING: &str = "
    SELECT telegram_id, first_name, username, stage, help_requested
    FROM bot_users INDEXED BY bot_users_asking WHERE structure_uid = :leader AND help_requested = 1
    ORDER BY help_requested_at, telegram_id LIMIT :limit OFFSET :before";

/// How many of this structure are on the way to the site, were here since then, and do not ask.
pub(super) fn count_warm(tx: &Tx<'_>, leader_uid: i64, since: UnixMs) -> Result<i64, StoreError> {
    let params = named_params! { ":leader": leader_uid, ":since": since, ":most": COUNTED + 1 };
    tx.query_one(COUNT_WARM, params, |row| row.get("total"))
}

pub(super) const COUNT_WARM: &str = "
    SELECT COUNT(*) AS total FROM (
      SELECT 1 FROM bot_users INDEXED BY bot_users_warm
      WHERE structure_uid = :leader AND stage BETWEEN 5 AND 7 AND last_activity_at > :since AND help_requested = 0
      LIMIT :most)";

/// Those, who was here last first.
pub(super) fn warm(tx: &Tx<'_>, leader_uid: i64, since: UnixMs, page: (i64, i64)) -> Result<Vec<Partner>, StoreError> {
    let (limit, before) = page;
    let params = named_params! { ":leader": leader_uid, ":since": since, ":limit": limit, ":before": before };
    tx.query_all(WARM, params, partner)
}

pub(super) const WARM: &str = "
    SELECT telegram_id, first_name, username, stage, help_requested
    FROM bot_users INDEXED BY bot_users_warm
    WHERE structure_uid = :leader AND stage BETWEEN 5 AND 7 AND last_activity_at > :since AND help_requested = 0
    ORDER BY last_activity_at DESC, telegram_id LIMIT :limit OFFSET :before";

/// A lead was seen to, if they are of this leader's structure.
pub(super) fn clear_request(tx: &Tx<'_>, leader_uid: i64, lead: i64) -> Result<(), StoreError> {
    let sql = "
        UPDATE bot_users SET help_requested = 0, help_requested_at = NULL
        WHERE telegram_id = :lead AND structure_uid = :leader";
    tx.execute(sql, named_params! { ":lead": lead, ":leader": leader_uid }).map(|_| ())
}

/// A person asks for help; who asks already waits on since they did.
pub(super) fn request_help(tx: &Tx<'_>, telegram_id: i64) -> Result<(), StoreError> {
    let sql = "
        UPDATE bot_users SET help_requested = 1, help_requested_at = COALESCE(help_requested_at, :now)
        WHERE telegram_id = :telegram_id";
    tx.execute(sql, named_params! { ":telegram_id": telegram_id, ":now": tx.now() }).map(|_| ())
}

/// Their leader is written to now.
pub(super) fn mark_told(tx: &Tx<'_>, telegram_id: i64) -> Result<(), StoreError> {
    let sql = "UPDATE bot_users SET help_told_at = :now WHERE telegram_id = :telegram_id";
    tx.execute(sql, named_params! { ":telegram_id": telegram_id, ":now": tx.now() }).map(|_| ())
}

/// What a person wants to be sent; what is absent stays.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OptIns {
    pub(super) urgent: Option<bool>,
    pub(super) digest: Option<bool>,
    pub(super) broadcast: Option<bool>,
}

/// A person's wishes are these from now on.
pub(super) fn set_optins(tx: &Tx<'_>, telegram_id: i64, wanted: OptIns) -> Result<(), StoreError> {
    let sql = "
        UPDATE bot_users SET
          optin_urgent = COALESCE(:urgent, optin_urgent), optin_digest = COALESCE(:digest, optin_digest),
          optin_broadcast = COALESCE(:broadcast, optin_broadcast)
        WHERE telegram_id = :telegram_id";
    let params = named_params! {
        ":telegram_id": telegram_id,
        ":urgent": wanted.urgent,
        ":digest": wanted.digest,
        ":broadcast": wanted.broadcast,
    };
    tx.execute(sql, params).map(|_| ())
}
