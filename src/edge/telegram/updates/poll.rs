//! The long poll: fetch, store, fetch. Each fetch confirms what the one before brought, so it begins only when that is
//! in the file.

use std::time::{Duration, Instant};

use metrics::counter;
use serde_json::value::RawValue;
use teloxide::payloads::GetUpdates;
use tokio_util::sync::CancellationToken;

use super::backoff::IntakeError;
use super::store::count;
use super::{Link, WANTED, WATCHDOG_SLACK, envelope, webhook};
use crate::chat::FailureCode;
use crate::chat::inbox::Received;
use crate::kernel::store::StoreError;

/// As many as Telegram gives at once.
const MOST: u8 = 100;
/// A server that holds nothing is not asked more often than this.
const SHORTEST: Duration = Duration::from_secs(1);

/// Fetches until `stop`.
pub(super) async fn run(link: &Link, stop: &CancellationToken) {
    let (mut failures, mut is_clear) = (0, false);
    while !stop.is_cancelled() {
        match step(link, &mut is_clear, stop).await {
            Ok(()) => failures = 0,
            Err(error) => {
                counter!("pillarbox_telegram_polls_total", "outcome" => error.code()).increment(1);
                // Whoever has the bot now may have set a webhook.
                is_clear &= !matches!(error, IntakeError::Conflict);
                link.wait_after(&error, failures, stop).await;
                failures += 1;
            }
        }
    }
}

/// One fetch and what it brought.
async fn step(link: &Link, is_clear: &mut bool, stop: &CancellationToken) -> Result<(), IntakeError> {
    if !*is_clear {
        let Some(cleared) = stop.run_until_cancelled(webhook::clear(link)).await else { return Ok(()) };
        cleared?;
        *is_clear = true;
    }
    let offset = link.store.standing().await?.next_offset;
    let begun = Instant::now();
    // Only the waiting is given up at the end; what has come is stored.
    let Some(fetched) = stop.run_until_cancelled(fetch(link, offset)).await else { return Ok(()) };
    let raw = fetched?;
    link.heard();
    counter!("pillarbox_telegram_polls_total", "outcome" => "ok").increment(1);
    if raw.is_empty() {
        if begun.elapsed() < SHORTEST {
            let _ = stop.run_until_cancelled(tokio::time::sleep(SHORTEST)).await;
        }
        return Ok(());
    }
    take(link, &raw, stop).await
}

async fn fetch(link: &Link, offset: Option<i64>) -> Result<Vec<Box<RawValue>>, IntakeError> {
    let payload = GetUpdates {
        offset: offset.and_then(|offset| i32::try_from(offset).ok()),
        limit: Some(MOST),
        timeout: u32::try_from(link.poll_timeout.as_secs()).ok(),
        allowed_updates: Some(WANTED.to_vec()),
    };
    let patience = link.poll_timeout + WATCHDOG_SLACK;
    match tokio::time::timeout(patience, link.patient.call(&payload)).await {
        Ok(answered) => Ok(answered?),
        Err(_) => Err(IntakeError::Unreachable(FailureCode::Timeout)),
    }
}

/// Stores a batch, however long that takes: until then nothing further is fetched, which would confirm it.
async fn take(link: &Link, raw: &[Box<RawValue>], stop: &CancellationToken) -> Result<(), IntakeError> {
    let batch: Vec<Received> = raw.iter().filter_map(|raw| envelope::open(raw)).collect();
    if batch.len() < raw.len() {
        tracing::error!(count = raw.len() - batch.len(), "updates without a number came, and cannot be kept");
    }
    // Numbers of one answer rise; the highest confirms them all.
    let Some(newest) = batch.iter().map(|received| received.update_id).max() else {
        return Err(IntakeError::Unreachable(FailureCode::BrokenAnswer));
    };
    let mut failures = 0;
    loop {
        let error = match link.store.take(batch.clone(), Some(newest.saturating_add(1))).await {
            Ok(()) => return Ok(()),
            Err(StoreError::Closed) => return Ok(()),
            Err(error) => IntakeError::from(error),
        };
        count("other", "refused", batch.len() as u64);
        link.wait_after(&error, failures, stop).await;
        if stop.is_cancelled() {
            return Ok(());
        }
        failures += 1;
    }
}
