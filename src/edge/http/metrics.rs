//! `/metrics` in Prometheus' text form. What others record is collected by the recorder; what only the store knows is
//! read when somebody asks. No label names a person, a chat or an address.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use metrics::{describe_counter, describe_gauge, describe_histogram, gauge};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use super::HttpState;
use super::openapi::refusals;
use crate::backend::inspect;
use crate::chat::inbox;
use crate::kernel::store::{Db, FILE_NAME, StoreError};
use crate::leads::NotificationStatus;
use crate::leads::health::{Health, Queue, health};
use crate::{outbox, webhooks};

/// Seconds, from a commit shared by many (0.1 ms) to a request that is about to be given up.
const SECONDS: [f64; 16] =
    [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0];
/// Members of a batch, in powers of two.
const SIZES: [f64; 12] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 4096.0];
/// How often samples are folded into their histograms when nobody asks; until then each one takes memory.
const TIDY_EVERY: Duration = Duration::from_secs(5);

/// Makes this process record metrics, from here on.
///
/// # Errors
/// The process records already.
pub(crate) fn install_metrics() -> Result<PrometheusHandle, BuildError> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
        .set_buckets_for_metric(Matcher::Suffix("_size".to_owned()), &SIZES)?
        .install_recorder()?;
    describe();
    gauge!("pillarbox_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    Ok(handle)
}

/// Folds samples for as long as it is polled, so that they do not pile up while nobody asks for them.
pub(crate) async fn keep_metrics_tidy(handle: PrometheusHandle) {
    let mut ticks = tokio::time::interval(TIDY_EVERY);
    loop {
        ticks.tick().await;
        handle.run_upkeep();
    }
}

fn describe() {
    describe_events();
    describe_updates();
    describe_counter!("pillarbox_http_requests_total", "Requests answered, by method, route and status");
    describe_histogram!("pillarbox_http_request_seconds", "Time until a request was answered");
    describe_gauge!("pillarbox_http_connections", "Connections open when the last one came; 512 is the most");
    describe_counter!(
        "pillarbox_leads_requests_total",
        "Requests to /leads, by outcome: stored, duplicate, preflight or the code of a refusal"
    );
    describe_histogram!("pillarbox_commit_batch_size", "Writes that shared one commit");
    describe_histogram!("pillarbox_commit_seconds", "Time of a batch of writes with its commit");
    describe_gauge!("pillarbox_write_queue", "Writes that wait");
    describe_counter!("pillarbox_bot_events_dead_lettered_total", "Bot events that became dead letters");
    describe_counter!("pillarbox_bot_events_abandoned_total", "Bot events that were abandoned");
    describe_counter!(
        "pillarbox_members_total",
        "Members put, by outcome: new, changed or unchanged; announced are those that other programs wrote"
    );
    describe_gauge!("pillarbox_bot_events_open", "Open bot events; the count stops at 10000");
    describe_gauge!("pillarbox_bot_events_oldest_open_age_seconds", "Age of the oldest open bot event, 0 without one");
    describe_gauge!("pillarbox_bot_events_waiting_subjects", "Subjects whose first event waits; stops at 10000");
    describe_gauge!("pillarbox_bot_events_dead", "Dead letters; the count stops at 10000");
    describe_gauge!("pillarbox_bot_events_abandoned", "Abandoned bot events; the count stops at 10000");
    describe_counter!(
        "pillarbox_lead_notifications_total",
        "Attempts to tell the broker's chat of a lead, by outcome: sent, failed, given_up or overtaken"
    );
    describe_gauge!("pillarbox_leads", "Leads by the status of their notification; counts stop at 10000");
    describe_gauge!(
        "pillarbox_leads_oldest_age_seconds",
        "How long the oldest lead has that status, as in /v1/leads/health; 0 without one"
    );
    describe_gauge!("pillarbox_leads_stale_sending", "Leads that are sending for over 15 minutes; stops at 10000");
    describe_gauge!("pillarbox_db_size_bytes", "Size of the database file");
    describe_gauge!("pillarbox_wal_size_bytes", "Size of its write-ahead log");
    describe_gauge!("pillarbox_disk_free_bytes", "Free space on the disk of the data directory");
    describe_gauge!("pillarbox_build_info", "1, with the version as label");
}

fn describe_updates() {
    describe_counter!(
        "pillarbox_telegram_updates_total",
        "Updates that came, by kind and outcome: stored, known, or refused by the store"
    );
    describe_counter!("pillarbox_telegram_polls_total", "Calls that fetch updates, by outcome: ok or what failed");
    describe_counter!(
        "pillarbox_telegram_taps_total",
        "Answers to taps, by outcome: answered, too_old, failed or dropped"
    );
    describe_counter!("pillarbox_updates_handled_total", "Attempts at updates, by outcome: handled, again or dead");
    describe_histogram!("pillarbox_update_to_reply_seconds", "Time from an update's storing to its answer's queueing");
    describe_gauge!("pillarbox_updates", "Updates by state, pending or dead; counts stop at 10000");
    describe_gauge!("pillarbox_updates_age_seconds", "Age of the update that has waited for longest, 0 without one");
}

fn describe_events() {
    describe_counter!(
        "pillarbox_events_relayed_total",
        "Domain events that the relay was done with, by outcome: published, retried or failed"
    );
    describe_counter!("pillarbox_events_refused_total", "Hand-overs that a consumer refused, by consumer");
    describe_counter!(
        "pillarbox_webhook_attempts_total",
        "Attempts of webhooks by outcome: delivered, or the error's class"
    );
    describe_histogram!(
        "pillarbox_webhook_receipt_seconds",
        "Time from the delivery's making to its receipt at the first attempt"
    );
    describe_gauge!("pillarbox_events_pending", "Domain events that not every consumer has accepted; stops at 10000");
    describe_gauge!("pillarbox_events_refused", "Of those, the ones that a consumer has refused; stops at 10000");
    describe_gauge!("pillarbox_events_failed", "Domain events that the relay has given up; stops at 10000");
    describe_gauge!(
        "pillarbox_events_oldest_pending_age_seconds",
        "How long ago the oldest pending domain event was stored; 0 without one"
    );
    describe_gauge!(
        "pillarbox_webhook_deliveries",
        "Unfinished deliveries of webhooks by status; counts stop at 10000"
    );
    describe_gauge!(
        "pillarbox_webhook_overdue_seconds",
        "For how long the first webhook that may go has been due; 0 without one"
    );
    describe_gauge!("pillarbox_webhook_endpoints", "Endpoints by status");
    describe_gauge!("pillarbox_webhook_endpoints_failing", "Endpoints, not disabled, whose last attempt failed");
}

/// Shows counters and gauges in Prometheus' text form.
///
/// A store that cannot be read leaves its gauges at NaN; the rest is told all the same.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "metrics",
    tag = "monitoring",
    responses((status = 200, description = "The metrics.", body = String, content_type = "text/plain"), refusals::Any)
)]
pub(super) async fn show(State(state): State<Arc<HttpState>>) -> Response {
    let stats = state.db.read(inspect::stats).await;
    set_outbox_gauges(stats);
    set_lead_gauges(state.db.read(health).await);
    set_event_gauges(state.db.read(outbox::health::health).await);
    set_update_gauges(state.db.read(inbox::stats).await);
    set_webhook_gauges(state.db.read(webhooks::health::health).await);
    set_size_gauges(&state.db);
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], state.metrics.render()).into_response()
}

fn set_outbox_gauges(stats: Result<inspect::Stats, StoreError>) {
    let stats = stats.inspect_err(|error| tracing::debug!(%error, "the outbox could not be counted")).ok();
    let value = |of: fn(&inspect::Stats) -> f64| stats.as_ref().map_or(f64::NAN, of);
    gauge!("pillarbox_bot_events_open").set(value(|stats| number(stats.open)));
    gauge!("pillarbox_bot_events_waiting_subjects").set(value(|stats| number(stats.waiting_subjects)));
    gauge!("pillarbox_bot_events_dead").set(value(|stats| number(stats.dead)));
    gauge!("pillarbox_bot_events_abandoned").set(value(|stats| number(stats.abandoned)));
    let age = |stats: &inspect::Stats| number(stats.oldest_open_age_ms.unwrap_or(0).max(0)) / 1000.0;
    gauge!("pillarbox_bot_events_oldest_open_age_seconds").set(value(age));
}

fn set_lead_gauges(health: Result<Health, StoreError>) {
    let health = health.inspect_err(|error| tracing::debug!(%error, "the leads could not be counted")).ok();
    let value = |of: fn(&Health) -> f64| health.as_ref().map_or(f64::NAN, of);
    for status in NotificationStatus::ALL {
        let queue = health.as_ref().and_then(|health| health.queues().into_iter().find(|(its, _)| *its == status));
        let value = |of: fn(&Queue) -> f64| queue.map_or(f64::NAN, |(_, queue)| of(queue));
        gauge!("pillarbox_leads", "status" => status.as_str()).set(value(|queue| number(queue.count)));
        let age = value(|queue| number(queue.oldest_age_ms.unwrap_or(0)) / 1000.0);
        gauge!("pillarbox_leads_oldest_age_seconds", "status" => status.as_str()).set(age);
    }
    gauge!("pillarbox_leads_stale_sending").set(value(|health| number(health.stale_sending)));
}

fn set_event_gauges(health: Result<outbox::health::Health, StoreError>) {
    let health = health.inspect_err(|error| tracing::debug!(%error, "the events could not be counted")).ok();
    let value = |of: fn(&outbox::health::Health) -> i64| health.as_ref().map_or(f64::NAN, |health| number(of(health)));
    gauge!("pillarbox_events_pending").set(value(|health| health.pending));
    gauge!("pillarbox_events_refused").set(value(|health| health.refused));
    gauge!("pillarbox_events_failed").set(value(|health| health.failed));
    let age = value(|health| health.oldest_pending_age_ms.unwrap_or(0).max(0)) / 1000.0;
    gauge!("pillarbox_events_oldest_pending_age_seconds").set(age);
}

fn set_update_gauges(stats: Result<inbox::Stats, StoreError>) {
    let stats = stats.inspect_err(|error| tracing::debug!(%error, "the updates could not be counted")).ok();
    let value = |of: fn(&inbox::Stats) -> i64| stats.as_ref().map_or(f64::NAN, |stats| number(of(stats)));
    gauge!("pillarbox_updates", "state" => "pending").set(value(|stats| stats.pending));
    gauge!("pillarbox_updates", "state" => "dead").set(value(|stats| stats.dead));
    gauge!("pillarbox_updates_age_seconds").set(value(|stats| stats.oldest_age_ms.unwrap_or(0)) / 1000.0);
}

fn set_webhook_gauges(health: Result<webhooks::health::Health, webhooks::Error>) {
    let health = health.inspect_err(|error| tracing::debug!(%error, "the webhooks could not be counted")).ok();
    let value =
        |of: fn(&webhooks::health::Health) -> i64| health.as_ref().map_or(f64::NAN, |health| number(of(health)));
    gauge!("pillarbox_webhook_deliveries", "status" => "pending").set(value(|health| health.pending));
    gauge!("pillarbox_webhook_deliveries", "status" => "sending").set(value(|health| health.sending));
    gauge!("pillarbox_webhook_overdue_seconds").set(value(|health| health.overdue_ms.unwrap_or(0)) / 1000.0);
    gauge!("pillarbox_webhook_endpoints", "status" => "active").set(value(|health| health.active));
    gauge!("pillarbox_webhook_endpoints", "status" => "paused").set(value(|health| health.paused));
    gauge!("pillarbox_webhook_endpoints", "status" => "disabled").set(value(|health| health.disabled));
    gauge!("pillarbox_webhook_endpoints_failing").set(value(|health| health.failing));
}

fn set_size_gauges(db: &Db) {
    // By name only: opening the file would, on closing, drop SQLite's locks on it.
    let size = |name: &str| std::fs::metadata(db.dir().join(name)).map_or(f64::NAN, |meta| bytes(meta.len()));
    gauge!("pillarbox_db_size_bytes").set(size(FILE_NAME));
    gauge!("pillarbox_wal_size_bytes").set(size(&format!("{FILE_NAME}-wal")));
    gauge!("pillarbox_disk_free_bytes").set(free(db.dir()).map_or(f64::NAN, bytes));
}

fn free(dir: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(dir).ok()?;
    stat.f_bavail.checked_mul(stat.f_frsize)
}

#[expect(clippy::cast_precision_loss, reason = "a gauge of 2^53 and more need not be exact")]
fn number(count: i64) -> f64 {
    count as f64
}

#[expect(clippy::cast_precision_loss, reason = "a gauge of 2^53 and more need not be exact")]
fn bytes(count: u64) -> f64 {
    count as f64
}
