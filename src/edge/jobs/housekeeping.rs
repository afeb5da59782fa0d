//! The job that deletes what nobody needs any more, a batch at a time: what has ended, and ended long ago. It also holds
//! the lanes of bot events against the events, since both are open to other programs.

use serde_json::json;

use super::sql;
use crate::app::{Again, App, Pass};
use crate::kernel::batches::delete_in_batches;
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};
use crate::{backend, chat, leads, onboarding, webhooks};

const DAY_MS: i64 = 86_400_000;
/// Recorded runs and the requests for them: a month shows whether a fault is new, and nothing else asks for them.
const KEEP_RUNS_MS: i64 = 30 * DAY_MS;
/// Messages that are closed: a quarter is how far back a person may ask why something did or did not arrive, and longer
/// than whatever queued one might queue it again, which its key would then no longer stop.
const KEEP_MESSAGES_MS: i64 = 90 * DAY_MS;
/// Calls to a remote backend that are closed: as long as the messages they are about.
const KEEP_CALLS_MS: i64 = 90 * DAY_MS;
/// Deliveries that are finished: as long as the messages, for the same reason.
const KEEP_DELIVERIES_MS: i64 = 90 * DAY_MS;
/// Attempts of the test button: whoever tries an endpoint out looks at once.
const KEEP_TESTS_MS: i64 = 30 * DAY_MS;
/// Broadcasts that are over, with their recipients: whoever plans the next one looks at the last year's.
const KEEP_BROADCASTS_MS: i64 = 365 * DAY_MS;
/// Digests: longer than a year's turn, so that no day of the calendar is met again by a clock that was set back.
const KEEP_DIGESTS_MS: i64 = 400 * DAY_MS;
/// Counts of posts per visitor: nothing looks back further than an hour; a week shows a person what happened.
const KEEP_RATE_LIMITS_MS: i64 = 7 * DAY_MS;

/// Connect links that are over: a week shows a person why one did not work.
const KEEP_LINKS_MS: i64 = 7 * DAY_MS;
/// How far imports of members have come: nobody goes on with one that was cut off months ago.
const KEEP_IMPORTS_MS: i64 = 90 * DAY_MS;

/// Deletes up to so many rows from before an instant; how many.
type Delete = fn(&Tx<'_>, UnixMs, i64) -> Result<usize, StoreError>;

/// One pass. Requests go before runs: one whose run is gone would look as if it had none.
pub(super) async fn run(app: &App) -> anyhow::Result<Pass> {
    let lanes = backend::mend::run_once(app.db()).await?;
    let webhooks = prune_webhooks(app).await?;
    let counts = json!({
        "lanesMended": lanes.removed + lanes.added,
        "jobRequests": prune(app, KEEP_RUNS_MS, sql::delete_requests).await?,
        "jobRuns": prune(app, KEEP_RUNS_MS, sql::delete_runs).await?,
        "telegramMessages": prune(app, KEEP_MESSAGES_MS, chat::prune).await?,
        "telegramUpdates": prune_updates(app).await?,
        "backendCalls": prune(app, KEEP_CALLS_MS, onboarding::calls::prune).await?,
        "connectLinks": prune(app, KEEP_LINKS_MS, backend::connect::prune).await?,
        "memberImports": prune(app, KEEP_IMPORTS_MS, backend::members::import::prune).await?,
        "broadcasts": prune(app, KEEP_BROADCASTS_MS, onboarding::broadcast::prune).await?,
        "digests": prune(app, KEEP_DIGESTS_MS, onboarding::digest::prune).await?,
        "leadRateLimits": prune(app, KEEP_RATE_LIMITS_MS, leads::prune_rate_limits).await?,
        "leads": prune_leads(app).await?,
        "webhookDeliveries": webhooks.deliveries,
        "webhookTests": webhooks.tests,
    });
    Ok(Pass { counts, again: Again::Later })
}

/// Leads are kept until their policy says otherwise; an installation that has none decides by hand.
async fn prune_leads(app: &App) -> Result<u64, StoreError> {
    match app.leads_config().retention_days {
        Some(days) if days > 0 => prune(app, i64::from(days) * DAY_MS, leads::keep::delete_older_than).await,
        _ => Ok(0),
    }
}

/// Of handled updates only the numbers are there; dead ones are a person's.
async fn prune_updates(app: &App) -> Result<u64, StoreError> {
    let keep_ms = i64::try_from(app.updates_retention().as_millis()).unwrap_or(i64::MAX);
    prune(app, keep_ms, chat::inbox::prune).await
}

/// Deliveries with their journal, and attempts of the test button.
async fn prune_webhooks(app: &App) -> Result<webhooks::prune::Pruned, StoreError> {
    let now = app.db().clock().now();
    let deliveries = now.saturating_sub(KEEP_DELIVERIES_MS);
    let tests = now.saturating_sub(KEEP_TESTS_MS);
    webhooks::prune::run_once(app.db(), webhooks::prune::Cutoffs { deliveries, tests }, app.stop()).await
}

async fn prune(app: &App, keep_ms: i64, delete: Delete) -> Result<u64, StoreError> {
    let before = move |tx: &Tx<'_>, limit| delete(tx, tx.now().saturating_sub(keep_ms), limit);
    delete_in_batches(app.db(), app.stop(), before).await
}
