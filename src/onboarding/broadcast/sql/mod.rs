//! Statements on `broadcasts`; those on recipients and on people are beside it.

pub(crate) mod audience;
pub(crate) mod recipients;

use rusqlite::types::Type;
use rusqlite::{Row, named_params};

use super::draft::Draft;
use super::quiet::Quiet;
use super::state::State;
use super::{Audience, UnixMs};
use crate::kernel::store::{StoreError, Tx, lossy_text};
use crate::onboarding::content::Lang;

/// Recipients by status; whoever is in none of the others is pending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) total: i64,
    pub(crate) queued: i64,
    pub(crate) sent: i64,
    pub(crate) undeliverable: i64,
    pub(crate) unknown: i64,
    pub(crate) skipped: i64,
}

impl Counts {
    /// Recipients whose message is not in the send queue yet.
    pub(crate) fn pending(&self) -> i64 {
        self.total - self.queued - self.sent - self.undeliverable - self.unknown - self.skipped
    }
}

/// A broadcast, without what it says.
#[derive(Clone, Debug)]
pub(crate) struct Broadcast {
    pub(crate) id: i64,
    pub(crate) name: String,
    pub(crate) state: State,
    pub(crate) has_ru: bool,
    pub(crate) has_en: bool,
    pub(crate) audience: Audience,
    pub(crate) per_second: i64,
    pub(crate) quiet: Option<Quiet>,
    pub(crate) scheduled_at: Option<UnixMs>,
    pub(crate) started_at: Option<UnixMs>,
    pub(crate) freeze_after: Option<i64>,
    pub(crate) frozen_at: Option<UnixMs>,
    pub(crate) paced_until: Option<UnixMs>,
    pub(crate) pause_code: Option<String>,
    /// How the last sends ended: an empty text for one that arrived.
    pub(crate) recent: Vec<String>,
    pub(crate) finished_at: Option<UnixMs>,
    pub(crate) created_at: UnixMs,
    pub(crate) counts: Counts,
}

impl Broadcast {
    /// How many of its messages the send queue holds at most: ten seconds' worth.
    pub(crate) fn window(&self) -> i64 {
        (self.per_second * 10).clamp(50, 500)
    }

    fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let state: String = row.get("state")?;
        let recent: String = row.get("recent")?;
        let stages = (row.get::<_, Option<i64>>("stage_min")?, row.get::<_, Option<i64>>("stage_max")?);
        let lang: Option<String> = row.get("lang")?;
        Ok(Self {
            id: row.get("id")?,
            name: lossy_text(row, "name")?.unwrap_or_default(),
            state: State::parse(&state).ok_or_else(|| unreadable("state"))?,
            has_ru: row.get("has_ru")?,
            has_en: row.get("has_en")?,
            audience: Audience {
                stages: match stages {
                    (None, None) => None,
                    (min, max) => Some((min.unwrap_or(1), max.unwrap_or(9))),
                },
                lang: lang.as_deref().and_then(Lang::parse),
                leader_uid: row.get("leader_uid")?,
                active_within_s: row.get("active_within_s")?,
                has_nft: row.get("has_nft")?,
            },
            per_second: row.get("per_second")?,
            quiet: quiet(row)?,
            scheduled_at: row.get("scheduled_at")?,
            started_at: row.get("started_at")?,
            freeze_after: row.get("freeze_after")?,
            frozen_at: row.get("frozen_at")?,
            paced_until: row.get("paced_until")?,
            pause_code: row.get("pause_code")?,
            recent: serde_json::from_str(&recent).map_err(|_| unreadable("recent"))?,
            finished_at: row.get("finished_at")?,
            created_at: row.get("created_at")?,
            counts: Counts {
                total: row.get("total")?,
                queued: row.get("queued")?,
                sent: row.get("sent")?,
                undeliverable: row.get("undeliverable")?,
                unknown: row.get("unknown")?,
                skipped: row.get("skipped")?,
            },
        })
    }
}

fn quiet(row: &Row<'_>) -> rusqlite::Result<Option<Quiet>> {
    let from: Option<u32> = row.get("quiet_from")?;
    let to: Option<u32> = row.get("quiet_to")?;
    let zone: Option<String> = row.get("quiet_zone")?;
    let (Some(from), Some(to), Some(zone)) = (from, to, zone) else { return Ok(None) };
    Ok(Some(Quiet { from, to, zone: zone.parse().map_err(|_| unreadable("quiet_zone"))? }))
}

fn unreadable(column: &'static str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, Type::Text, format!("{column} has none of its values").into())
}

/// What a broadcast says.
#[derive(Clone, Debug)]
pub(crate) struct Words {
    pub(crate) text_ru: Option<String>,
    pub(crate) text_en: Option<String>,
    pub(crate) button_ru: Option<String>,
    pub(crate) button_en: Option<String>,
    pub(crate) button_url: Option<String>,
}

/// A new draft; its id.
pub(crate) fn insert(tx: &Tx<'_>, draft: &Draft) -> Result<i64, StoreError> {
    let sql = "
        INSERT INTO broadcasts
            (name, text_ru, text_en, button_ru, button_en, button_url, stage_min, stage_max, lang, leader_uid,
             active_within_s, has_nft, per_second, quiet_from, quiet_to, quiet_zone, created_at)
        VALUES
            (:name, :text_ru, :text_en, :button_ru, :button_en, :button_url, :stage_min, :stage_max, :lang, :leader_uid,
             :active_within_s, :has_nft, :per_second, :quiet_from, :quiet_to, :quiet_zone, :now)
        RETURNING id";
    let Draft { audience, button, quiet, .. } = draft;
    let params = named_params! {
        ":name": draft.name,
        ":text_ru": draft.ru,
        ":text_en": draft.en,
        ":button_ru": button.as_ref().and_then(|button| button.ru.as_deref()),
        ":button_en": button.as_ref().and_then(|button| button.en.as_deref()),
        ":button_url": button.as_ref().map(|button| button.url.as_str()),
        ":stage_min": audience.stages.map(|(min, _)| min),
        ":stage_max": audience.stages.map(|(_, max)| max),
        ":lang": audience.lang.map(Lang::as_str),
        ":leader_uid": audience.leader_uid,
        ":active_within_s": audience.active_within_s,
        ":has_nft": audience.has_nft,
        ":per_second": draft.per_second,
        ":quiet_from": quiet.map(|quiet| quiet.from),
        ":quiet_to": quiet.map(|quiet| quiet.to),
        ":quiet_zone": quiet.map(|quiet| quiet.zone.name()),
        ":now": tx.now(),
    };
    tx.query_one(sql, params, |row| row.get("id"))
}

/// The broadcast with this id.
pub(crate) fn find(tx: &Tx<'_>, id: i64) -> Result<Option<Broadcast>, StoreError> {
    let sql = "
        SELECT id, name, state, text_ru IS NOT NULL AS has_ru, text_en IS NOT NULL AS has_en, stage_min, stage_max, lang,
               leader_uid, active_within_s, has_nft, per_second, quiet_from, quiet_to, quiet_zone, scheduled_at,
               started_at, freeze_after, frozen_at, paced_until, pause_code, recent, finished_at, created_at, total,
               queued, sent, undeliverable, unknown, skipped
        FROM broadcasts WHERE id = :id";
    tx.query_opt(sql, named_params! { ":id": id }, Broadcast::from_row)
}

/// Broadcasts behind an id, by id.
pub(crate) fn list(tx: &Tx<'_>, after: i64, limit: i64) -> Result<Vec<Broadcast>, StoreError> {
    let sql = "
        SELECT id, name, state, text_ru IS NOT NULL AS has_ru, text_en IS NOT NULL AS has_en, stage_min, stage_max, lang,
               leader_uid, active_within_s, has_nft, per_second, quiet_from, quiet_to, quiet_zone, scheduled_at,
               started_at, freeze_after, frozen_at, paced_until, pause_code, recent, finished_at, created_at, total,
               queued, sent, undeliverable, unknown, skipped
        FROM broadcasts WHERE id > :after ORDER BY id LIMIT :limit";
    tx.query_all(sql, named_params! { ":after": after, ":limit": limit }, Broadcast::from_row)
}

/// What the broadcast with this id says.
pub(crate) fn load_words(tx: &Tx<'_>, id: i64) -> Result<Words, StoreError> {
    let sql = "SELECT text_ru, text_en, button_ru, button_en, button_url FROM broadcasts WHERE id = :id";
    tx.query_one(sql, named_params! { ":id": id }, |row| {
        Ok(Words {
            text_ru: row.get("text_ru")?,
            text_en: row.get("text_en")?,
            button_ru: row.get("button_ru")?,
            button_en: row.get("button_en")?,
            button_url: row.get("button_url")?,
        })
    })
}

/// The statement behind [`open`]; a test looks at its plan. It repeats the condition of the index.
pub(crate) const OPEN: &str = "
    SELECT id FROM broadcasts INDEXED BY broadcasts_open
    WHERE state IN ('scheduled', 'running') OR queued > 0 ORDER BY id";

/// Broadcasts of which something may be done.
pub(crate) fn open(tx: &Tx<'_>) -> Result<Vec<i64>, StoreError> {
    tx.query_all(OPEN, [], |row| row.get("id"))
}

/// A draft, or a scheduled one, is running.
pub(crate) fn start(tx: &Tx<'_>, id: i64) -> Result<usize, StoreError> {
    let sql = "UPDATE broadcasts SET state = 'running', started_at = :now WHERE id = :id";
    tx.execute(sql, named_params! { ":id": id, ":now": tx.now() })
}

/// A draft starts by itself at this instant.
pub(crate) fn schedule(tx: &Tx<'_>, id: i64, at: UnixMs) -> Result<usize, StoreError> {
    let sql = "UPDATE broadcasts SET state = 'scheduled', scheduled_at = :at WHERE id = :id";
    tx.execute(sql, named_params! { ":id": id, ":at": at })
}

/// A running one is held.
pub(crate) fn pause(tx: &Tx<'_>, id: i64, code: &str) -> Result<usize, StoreError> {
    let sql = "UPDATE broadcasts SET state = 'paused', pause_code = :code WHERE id = :id";
    tx.execute(sql, named_params! { ":id": id, ":code": code })
}

/// A paused one goes on; what it was judged by is forgotten.
pub(crate) fn resume(tx: &Tx<'_>, id: i64) -> Result<usize, StoreError> {
    let sql = "
        UPDATE broadcasts SET state = 'running', pause_code = NULL, recent = '[]', paced_until = NULL WHERE id = :id";
    tx.execute(sql, named_params! { ":id": id })
}

/// One that was not over is ended by a person.
pub(crate) fn cancel(tx: &Tx<'_>, id: i64) -> Result<usize, StoreError> {
    let sql = "UPDATE broadcasts SET state = 'cancelled', pause_code = NULL, finished_at = :now WHERE id = :id";
    tx.execute(sql, named_params! { ":id": id, ":now": tx.now() })
}

/// A running one is over.
pub(crate) fn finish(tx: &Tx<'_>, id: i64) -> Result<usize, StoreError> {
    let sql = "UPDATE broadcasts SET state = 'done', finished_at = :now WHERE id = :id";
    tx.execute(sql, named_params! { ":id": id, ":now": tx.now() })
}

/// What a range added to the recipients.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frozen {
    /// The range's last person; none if it was the last range.
    pub(crate) upto: Option<i64>,
    pub(crate) total: i64,
    pub(crate) skipped: i64,
}

/// A range of people is frozen.
pub(crate) fn note_frozen(tx: &Tx<'_>, id: i64, frozen: Frozen) -> Result<usize, StoreError> {
    let sql = "
        UPDATE broadcasts
        SET total = total + :total, skipped = skipped + :skipped, freeze_after = :upto,
            frozen_at = CASE WHEN :upto IS NULL THEN :now END
        WHERE id = :id";
    let params = named_params! {
        ":id": id, ":total": frozen.total, ":skipped": frozen.skipped, ":upto": frozen.upto, ":now": tx.now(),
    };
    tx.execute(sql, params)
}

/// What was handed to the send queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paced {
    pub(crate) queued: i64,
    /// Whose key was used already.
    pub(crate) unknown: i64,
    /// When the last of them is due.
    pub(crate) until: UnixMs,
}

/// Messages are in the send queue.
pub(crate) fn note_fed(tx: &Tx<'_>, id: i64, paced: Paced) -> Result<usize, StoreError> {
    let sql = "
        UPDATE broadcasts SET queued = queued + :queued, unknown = unknown + :unknown, paced_until = :until
        WHERE id = :id";
    let Paced { queued, unknown, until } = paced;
    tx.execute(sql, named_params! { ":id": id, ":queued": queued, ":unknown": unknown, ":until": until })
}

/// Messages are not in the send queue any more, and were not sent.
pub(crate) fn note_taken_back(tx: &Tx<'_>, id: i64, taken: i64) -> Result<usize, StoreError> {
    let sql = "UPDATE broadcasts SET queued = queued - :taken, paced_until = NULL WHERE id = :id";
    tx.execute(sql, named_params! { ":id": id, ":taken": taken })
}

/// A recipient went from one status to another.
pub(crate) fn move_count(tx: &Tx<'_>, id: i64, from: &str, to: &str) -> Result<usize, StoreError> {
    let sql = "
        UPDATE broadcasts SET
            queued = queued - (:from = 'queued') + (:to = 'queued'),
            sent = sent - (:from = 'sent') + (:to = 'sent'),
            undeliverable = undeliverable - (:from = 'undeliverable') + (:to = 'undeliverable'),
            unknown = unknown - (:from = 'unknown') + (:to = 'unknown'),
            skipped = skipped - (:from = 'skipped') + (:to = 'skipped')
        WHERE id = :id";
    tx.execute(sql, named_params! { ":id": id, ":from": from, ":to": to })
}

/// How its last sends ended.
pub(crate) fn set_recent(tx: &Tx<'_>, id: i64, recent: &[String]) -> Result<usize, StoreError> {
    let recent = serde_json::Value::from(recent).to_string();
    let sql = "UPDATE broadcasts SET recent = :recent WHERE id = :id";
    tx.execute(sql, named_params! { ":id": id, ":recent": recent })
}

/// Deletes broadcasts that were finished before an instant and have no recipients any more; how many.
pub(crate) fn delete_finished(tx: &Tx<'_>, cutoff: UnixMs, limit: i64) -> Result<usize, StoreError> {
    let sql = "
        DELETE FROM broadcasts WHERE id IN (
          SELECT b.id FROM broadcasts AS b INDEXED BY broadcasts_finished_at
          WHERE b.finished_at IS NOT NULL AND b.finished_at < :cutoff
            AND NOT EXISTS (SELECT 1 FROM broadcast_recipients AS r WHERE r.broadcast_id = b.id)
          LIMIT :limit)";
    tx.execute(sql, named_params! { ":cutoff": cutoff, ":limit": limit })
}
