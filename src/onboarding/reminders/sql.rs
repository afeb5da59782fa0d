//! Statements of reminders.

use rusqlite::named_params;

use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};
use crate::onboarding::content::Lang;

/// Somebody who is silent at a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) telegram_id: i64,
    pub(crate) lang: Option<Lang>,
    pub(crate) last_activity_at: UnixMs,
}

/// The statement behind [`silent`]; a test looks at its plan. It repeats the terms of the index literally, without which
/// SQLite cannot use it.
pub(crate) const SILENT: &str = "
    SELECT telegram_id, lang, last_activity_at FROM bot_users INDEXED BY bot_users_to_remind
    WHERE reminded_stage < stage AND optin_urgent = 1 AND reachable = 'ok' AND last_activity_at IS NOT NULL
      AND stage = :stage AND last_activity_at < :silent_since
      AND (last_activity_at, telegram_id) > (:after_at, :after_id)
    ORDER BY last_activity_at, telegram_id LIMIT :limit";

/// Who is at a stage, has not been reminded of it and was last heard of before `silent_since`; the longest silent first,
/// behind `after`.
pub(super) fn silent(
    tx: &Tx<'_>,
    stage: i64,
    silent_since: UnixMs,
    after: Option<Candidate>,
    limit: u32,
) -> Result<Vec<Candidate>, StoreError> {
    let (after_at, after_id) =
        after.map_or((i64::MIN, i64::MIN), |candidate| (candidate.last_activity_at, candidate.telegram_id));
    let params = named_params! {
        ":stage": stage, ":silent_since": silent_since, ":after_at": after_at, ":after_id": after_id, ":limit": limit,
    };
    tx.query_all(SILENT, params, |row| {
        let lang: Option<String> = row.get("lang")?;
        Ok(Candidate {
            telegram_id: row.get("telegram_id")?,
            lang: lang.as_deref().and_then(Lang::parse),
            last_activity_at: row.get("last_activity_at")?,
        })
    })
}

/// Notes that a person is reminded; false if they were already.
pub(super) fn insert_once(tx: &Tx<'_>, telegram_id: i64, key: &str) -> Result<bool, StoreError> {
    let sql = "
        INSERT INTO bot_reminders_sent (telegram_id, reminder_key, queued_at) VALUES (:telegram_id, :key, :now)
        ON CONFLICT (telegram_id, reminder_key) DO NOTHING";
    Ok(tx.execute(sql, named_params! { ":telegram_id": telegram_id, ":key": key, ":now": tx.now() })? > 0)
}

/// A person's row says what `bot_reminders_sent` says of them.
pub(super) fn mark_reminded(tx: &Tx<'_>, telegram_id: i64, stage: i64) -> Result<usize, StoreError> {
    let sql =
        "UPDATE bot_users SET reminded_stage = :stage WHERE telegram_id = :telegram_id AND reminded_stage < :stage";
    tx.execute(sql, named_params! { ":telegram_id": telegram_id, ":stage": stage })
}
