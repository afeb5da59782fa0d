//! The backend in this file, as the consumer knows it: claims with a lease, closes in the transaction of the effects.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use url::Url;

use crate::backend::{self, Acknowledged, Retry, connect, members, page};
use crate::kernel::contract::{Bound, ConnectLink, Leader, MemberState, WebNotification};
use crate::kernel::store::{Db, StoreError, Tx};
use crate::onboarding::{Backend, BackendError, Fate, Finished, PageEvent};

/// The ledger's name for events of this file.
pub(crate) const LOCAL: &str = "local";

pub(crate) struct LocalBackend {
    db: Db,
    /// What connect links lead to.
    site_url: Option<Url>,
}

impl LocalBackend {
    pub(crate) fn new(db: Db, site_url: Option<Url>) -> Self {
        Self { db, site_url }
    }
}

impl Backend for LocalBackend {
    fn source(&self) -> &str {
        LOCAL
    }

    fn next_page(&self, limit: i64) -> BoxFuture<'_, Result<Vec<PageEvent>, BackendError>> {
        async move {
            // Looking costs microseconds and no flush: an empty sweep writes nothing.
            let is_due = self.db.read(|tx| page::pending(tx, 1)).await?;
            if is_due.is_empty() {
                return Ok(Vec::new());
            }
            let served = self.db.settle(move |tx| page::claim(tx, limit)).await?;
            Ok(served.into_iter().map(|s| PageEvent { subject: s.subject.clone(), event: s.into_event() }).collect())
        }
        .boxed()
    }

    fn hold<'a>(&'a self, ids: &'a [i64]) -> BoxFuture<'a, Result<(), BackendError>> {
        let ids = ids.to_vec();
        async move { Ok(self.db.settle(move |tx| page::renew(tx, &ids)).await?) }.boxed()
    }

    fn may_apply(&self, tx: &Tx<'_>, id: i64) -> Result<bool, StoreError> {
        backend::is_head(tx, id)
    }

    fn close(&self, tx: &Tx<'_>, id: i64) -> Result<(), StoreError> {
        backend::close_handled(tx, id).map(|_| ())
    }

    fn put_off(&self, tx: &Tx<'_>, id: i64, error: &str) -> Result<Fate, StoreError> {
        let done = backend::put_off(tx, &Retry { id, error: Some(error.to_owned()) })?;
        Ok(match (done.newly_dead.is_empty(), done.newly_abandoned.is_empty()) {
            (false, _) => Fate::DeadLettered,
            (_, false) => Fate::Abandoned,
            _ => Fate::Waits,
        })
    }

    fn closes_at_once(&self) -> bool {
        true
    }

    fn finish<'a>(&'a self, page: &'a Finished) -> BoxFuture<'a, Result<(), BackendError>> {
        let of = |fate: Fate| page.failed.iter().filter(move |(_, _, f)| *f == fate).map(|(id, ..)| *id).collect();
        let given_up = Acknowledged {
            newly_dead: of(Fate::DeadLettered),
            newly_abandoned: of(Fate::Abandoned),
            ..Acknowledged::default()
        };
        given_up.report();
        let left = page.left.clone();
        async move {
            if left.is_empty() {
                return Ok(());
            }
            Ok(self.db.settle(move |tx| page::release(tx, &left)).await?)
        }
        .boxed()
    }

    fn notify(&self, tx: &Tx<'_>, notification: &WebNotification) -> Result<(), StoreError> {
        backend::store_notification(tx, notification)
    }

    fn find_leader<'a>(&'a self, code: &'a str) -> BoxFuture<'a, Result<Option<Leader>, BackendError>> {
        let code = code.to_owned();
        async move { Ok(self.db.read(move |tx| members::find_by_link(tx, &code)).await?) }.boxed()
    }

    fn find_account(&self, telegram_id: i64) -> BoxFuture<'_, Result<Option<i64>, BackendError>> {
        async move { Ok(self.db.read(move |tx| members::find_by_chat(tx, telegram_id)).await?) }.boxed()
    }

    fn find_state(&self, telegram_id: i64) -> BoxFuture<'_, Result<Option<MemberState>, BackendError>> {
        async move { Ok(self.db.read(move |tx| members::state_of(tx, telegram_id)).await?) }.boxed()
    }

    fn connect_link(&self, telegram_id: i64) -> BoxFuture<'_, Result<Option<ConnectLink>, BackendError>> {
        async move {
            let Some(site) = self.site_url.clone() else { return Ok(None) };
            Ok(Some(self.db.write(move |tx| connect::mint(tx, telegram_id, &site)).await?))
        }
        .boxed()
    }

    fn bind(&self, tx: &Tx<'_>, telegram_id: i64, uid: i64) -> Result<Option<Bound>, StoreError> {
        backend::bind(tx, telegram_id, uid).map(Some)
    }
}
