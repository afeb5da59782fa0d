//! The verbs that only look: the list, one broadcast, whom a start would write to.

use serde::Serialize;

use super::args::OneArgs;
use crate::edge::cli::Exit;
use crate::edge::cli::args::{Page, Printed};
use crate::edge::cli::print::{Printer, Row, note_next, or_dash};
use crate::kernel::clock::rfc3339;
use crate::kernel::store::Db;
use crate::onboarding::broadcast::{self, Broadcast, Preview, report};
use crate::onboarding::content::Lang;

/// A broadcast as it is printed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BroadcastBody {
    id: i64,
    name: String,
    state: &'static str,
    pause_code: Option<String>,
    per_second: i64,
    total: i64,
    pending: i64,
    queued: i64,
    sent: i64,
    undeliverable: i64,
    unknown: i64,
    skipped: i64,
    /// Whom a cancel kept it from.
    not_sent: Option<i64>,
    is_frozen: bool,
    scheduled_at: Option<String>,
    started_at: Option<String>,
    finished_at: Option<String>,
    created_at: String,
}

impl From<Broadcast> for BroadcastBody {
    fn from(broadcast: Broadcast) -> Self {
        let counts = broadcast.counts;
        Self {
            id: broadcast.id,
            name: broadcast.name,
            state: broadcast.state.as_str(),
            pause_code: broadcast.pause_code,
            per_second: broadcast.per_second,
            total: counts.total,
            pending: counts.pending(),
            queued: counts.queued,
            sent: counts.sent,
            undeliverable: counts.undeliverable,
            unknown: counts.unknown,
            skipped: counts.skipped,
            not_sent: (broadcast.state == broadcast::State::Cancelled).then_some(counts.pending()),
            is_frozen: broadcast.frozen_at.is_some(),
            scheduled_at: broadcast.scheduled_at.map(rfc3339),
            started_at: broadcast.started_at.map(rfc3339),
            finished_at: broadcast.finished_at.map(rfc3339),
            created_at: rfc3339(broadcast.created_at),
        }
    }
}

impl Row for BroadcastBody {
    const HEADER: &'static [&'static str] =
        &["ID", "NAME", "STATE", "WHY", "TOTAL", "SENT", "UNDELIVERABLE", "UNKNOWN", "SKIPPED", "LEFT", "CREATED"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.id.to_string(),
            self.name.clone(),
            self.state.to_owned(),
            or_dash(self.pause_code.as_deref()),
            self.total.to_string(),
            self.sent.to_string(),
            self.undeliverable.to_string(),
            self.unknown.to_string(),
            self.skipped.to_string(),
            (self.pending + self.queued).to_string(),
            self.created_at.clone(),
        ]
    }
}

pub(super) async fn list(db: &Db, page: Page, printed: Printed) -> anyhow::Result<Exit> {
    let listed = db.read(move |tx| report::list(tx, page.after, page.limit)).await?;
    let bodies: Vec<BroadcastBody> = listed.into_iter().map(BroadcastBody::from).collect();
    Printer::stdout(printed).list(&bodies, "no broadcasts")?;
    note_next(bodies.len(), page.limit, bodies.last().map(|body| body.id));
    Ok(Exit::Ok)
}

pub(super) async fn status(db: &Db, one: OneArgs) -> anyhow::Result<Exit> {
    let body = BroadcastBody::from(db.read(move |tx| report::load(tx, one.id)).await?);
    let count = |count: i64| Some(count.to_string());
    let fields = [
        ("id", count(body.id)),
        ("name", Some(body.name.clone())),
        ("state", Some(body.state.to_owned())),
        ("paused because", body.pause_code.clone()),
        ("messages a second", count(body.per_second)),
        ("scheduled for", body.scheduled_at.clone()),
        ("started", body.started_at.clone()),
        ("finished", body.finished_at.clone()),
        ("recipients", count(body.total)),
        ("still to be sent", count(body.pending + body.queued).filter(|_| body.not_sent.is_none())),
        ("not sent", body.not_sent.and_then(count)),
        ("sent", count(body.sent)),
        ("undeliverable", count(body.undeliverable)),
        ("unknown", count(body.unknown)),
        ("skipped", count(body.skipped)),
    ];
    Printer::stdout(one.printed).fields(&body, &fields)?;
    Ok(Exit::Ok)
}

pub(super) async fn preview(db: &Db, one: OneArgs, default_lang: Lang) -> anyhow::Result<Exit> {
    let preview = broadcast::preview(db, one.id, default_lang).await?;
    let Preview { total, eligible, by_lang, skipped } = &preview;
    let lang = |lang: &str| by_lang.get(lang).map(ToString::to_string);
    let without = |why: &str| skipped.get(why).map(ToString::to_string);
    let fields = [
        ("audience", Some(total.to_string())),
        ("written to", Some(eligible.to_string())),
        ("in ru", lang("ru")),
        ("in en", lang("en")),
        ("not: blocked", without("blocked")),
        ("not: opted out", without("opted_out")),
        ("not: no text", without("no_text")),
    ];
    Printer::stdout(one.printed).fields(&preview, &fields)?;
    Ok(Exit::Ok)
}
