//! Work that ends something is seen through by a task of its own, whether or not its caller is still there.

use std::time::Duration;

use tracing::Instrument;

/// What `work` answers. A client that goes away in the middle must not cut it off; the limit keeps such tasks from piling
/// up while the store cannot write. `None` if it took longer, or the process ends.
pub(super) async fn see_through<T: Send + 'static>(
    limit: Duration,
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    let done = tokio::spawn(tokio::time::timeout(limit, work).in_current_span()).await;
    match done {
        Ok(within) => within.ok(),
        Err(failed) => match failed.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => None,
        },
    }
}
