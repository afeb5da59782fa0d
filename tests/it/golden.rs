//! Golden files: what the reviewer reads instead of the history. `make bless` writes them anew.

use std::path::Path;

use pillarbox::kernel::clock::Clock;
use pillarbox::kernel::store::{Db, Role};

use crate::harness::setting;

fn assert_golden(name: &str, now: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    if setting("PILLARBOX_BLESS").is_some() {
        std::fs::write(&path, now).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == now, "{name} is not what it should be; `make bless` writes it anew, then review the difference");
}

/// The sum of all migrations, as one picture.
#[tokio::test]
async fn golden_schema() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path(), Role::Owner("test"), &crate::data_dir::settings(), Clock::system(), vec![]).unwrap();
    let parts = db
        .read(|tx| {
            tx.query_all(
                "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'
                 ORDER BY tbl_name, type <> 'table', type, name",
                [],
                |row| row.get::<_, String>(0),
            )
        })
        .await
        .unwrap();
    db.close().await;
    let head = "-- The schema as the migrations leave it. Written by `make bless`; nothing reads it but people.\n\n";
    assert_golden("schema/current.sql", &format!("{head}{};\n", parts.join(";\n\n")));
}

/// What our own events are, for those who receive them.
#[test]
fn golden_events() {
    assert_golden("docs/events.md", &pillarbox::kernel::events::catalogue_markdown());
}
