//! Statements that choose the recipients among people. The one that counts them and the one that freezes them are made of
//! the same text: what is shown before the start is what the start does.

use rusqlite::named_params;

use super::Broadcast;
use crate::kernel::store::{StoreError, Tx};
use crate::onboarding::content::Lang;

/// People of a range who are in an audience, with why they are not written to.
macro_rules! audience {
    () => {
        "
        SELECT telegram_id, COALESCE(lang, :default_lang) AS lang,
               CASE WHEN reachable <> 'ok' THEN 'blocked'
                    WHEN optin_broadcast = 0 THEN 'opted_out'
                    WHEN NOT CASE COALESCE(lang, :default_lang) WHEN 'ru' THEN :has_ru ELSE :has_en END THEN 'no_text'
               END AS why
        FROM bot_users
        WHERE telegram_id > :after AND telegram_id <= :upto AND created_at <= :started_at
          AND (:stage_min IS NULL OR stage BETWEEN :stage_min AND :stage_max)
          AND (:lang IS NULL OR COALESCE(lang, :default_lang) = :lang)
          AND (:leader_uid IS NULL OR leader_uid = :leader_uid)
          AND (:active_since IS NULL OR last_activity_at >= :active_since)
          AND (:has_nft IS NULL OR (stage = 9) = :has_nft)"
    };
}

const FREEZE: &str = concat!(
    "INSERT INTO broadcast_recipients (broadcast_id, telegram_id, lang, status, code, finished_at)
     SELECT :id, telegram_id, lang, CASE WHEN why IS NULL THEN 'pending' ELSE 'skipped' END, why,
            CASE WHEN why IS NULL THEN NULL ELSE :now END FROM (",
    audience!(),
    ") WHERE true RETURNING status = 'skipped' AS is_skipped"
);

const COUNT: &str = concat!(
    "SELECT lang, why, COUNT(*) AS people, :id AS broadcast_id, :now AS counted_at FROM (",
    audience!(),
    ") GROUP BY lang, why"
);

/// Which people are looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    pub(crate) after: i64,
    pub(crate) upto: i64,
    /// Of people without one.
    pub(crate) default_lang: Lang,
}

/// How many people of a range are alike.
#[derive(Clone, Debug)]
pub(crate) struct Count {
    pub(crate) lang: String,
    pub(crate) why: Option<String>,
    pub(crate) people: i64,
}

/// The last of the next so many people; none if there are no more behind them.
pub(crate) fn last_of_range(tx: &Tx<'_>, after: i64, people: i64) -> Result<Option<i64>, StoreError> {
    let sql =
        "SELECT telegram_id FROM bot_users WHERE telegram_id > :after ORDER BY telegram_id LIMIT 1 OFFSET :people";
    tx.query_opt(sql, named_params! { ":after": after, ":people": people - 1 }, |row| row.get("telegram_id"))
}

/// Makes recipients of a range of people; for each whether they are skipped.
pub(crate) fn freeze(tx: &Tx<'_>, broadcast: &Broadcast, range: Range) -> Result<Vec<bool>, StoreError> {
    with_params(tx, broadcast, range, |params| tx.query_all(FREEZE, params, |row| row.get("is_skipped")))
}

/// Counts a range of people as [`freeze`] would take them.
pub(crate) fn count(tx: &Tx<'_>, broadcast: &Broadcast, range: Range) -> Result<Vec<Count>, StoreError> {
    with_params(tx, broadcast, range, |params| {
        tx.query_all(COUNT, params, |row| {
            Ok(Count { lang: row.get("lang")?, why: row.get("why")?, people: row.get("people")? })
        })
    })
}

fn with_params<T>(
    tx: &Tx<'_>,
    broadcast: &Broadcast,
    range: Range,
    run: impl FnOnce(&[(&str, &dyn rusqlite::ToSql)]) -> T,
) -> T {
    let audience = broadcast.audience;
    let started_at = broadcast.started_at.unwrap_or_else(|| tx.now());
    let active_since = audience.active_within_s.map(|seconds| started_at.saturating_sub(seconds.saturating_mul(1000)));
    run(named_params! {
        ":id": broadcast.id,
        ":default_lang": range.default_lang.as_str(),
        ":has_ru": broadcast.has_ru,
        ":has_en": broadcast.has_en,
        ":after": range.after,
        ":upto": range.upto,
        ":started_at": started_at,
        ":stage_min": audience.stages.map(|(min, _)| min),
        ":stage_max": audience.stages.map(|(_, max)| max),
        ":lang": audience.lang.map(Lang::as_str),
        ":leader_uid": audience.leader_uid,
        ":active_since": active_since,
        ":has_nft": audience.has_nft,
        ":now": tx.now(),
    })
}
