//! Tenants and keys on a real file.

mod keys;
mod plan;

use crate::kernel::clock::Clock;
use crate::kernel::store::{Db, Role as Opening, Settings, StoreError, Tx};
use crate::kernel::tenant::TenantId;

/// 2027-01-15T08:00:00Z.
const START: i64 = 1_800_000_000_000;

struct World {
    db: Db,
    clock: Clock,
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = Clock::stopped_at(START);
        let db = Db::open(dir.path(), Opening::Owner("test"), &Settings::small(), clock.clone(), vec![]).unwrap();
        Self { db, clock, dir }
    }

    async fn write<T: Send + 'static>(&self, work: impl FnOnce(&Tx<'_>) -> T + Send + 'static) -> T {
        self.db.write(move |tx| Ok::<_, StoreError>(work(tx))).await.unwrap()
    }
}

fn tenant(name: &str) -> TenantId {
    TenantId::parse(name).unwrap()
}
