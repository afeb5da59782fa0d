//! The analytics consumer on a real directory.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::super::Analytics;
use super::*;

struct Desk {
    world: World,
    relay: Relay,
    dir: PathBuf,
}

impl Desk {
    async fn new() -> Self {
        let world = World::new().await;
        let dir = world.dir.path().join("deep/analytics");
        let analytics = Analytics::new(dir.clone(), world.clock.clone());
        let relay = Relay::new(world.db.clone(), vec![Box::new(analytics)]);
        Self { world, relay, dir }
    }

    fn file(&self, day: &str) -> PathBuf {
        self.dir.join(format!("{day}.ndjson"))
    }

    fn lines(&self, day: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.file(day)).unwrap();
        assert!(text.ends_with('\n'));
        text.split_terminator('\n').map(str::to_owned).collect()
    }
}

const TODAY: &str = "2023-11-14";

#[tokio::test]
async fn every_event_is_a_line_of_its_day() {
    let desk = Desk::new().await;
    let odd = "{\"b\":1e400,\"a\":0.10,\"a\":\"\\/\u{2028}\",\r\n\"list\":[\n1]}";
    let aggregate_id = "a\"b\u{2028}c".to_owned();
    let ids = desk.world.post(posted(vec![NewEvent { aggregate_id, ..event("order.paid", odd) }])).await.unwrap();
    assert_eq!(pass(&desk.relay).await.published, 1);
    let expected = format!(
        "{{\"event_id\":\"{}\",\"type\":\"order.paid\",\"version\":1,\"tenant\":\"acme\",\"aggregate\":{{\"type\":\"order\",\
         \"id\":\"a\\\"b\u{2028}c\"}},\"occurred_at\":\"2023-11-14T22:13:20.000Z\",\
         \"data\":{{\"b\":1e400,\"a\":0.10,\"a\":\"\\/\u{2028}\",  \"list\":[ 1]}}}}",
        ids[0]
    );
    assert_eq!(desk.lines(TODAY), [expected]);
    desk.world.advance(2 * HOUR);
    desk.world.fill(1).await;
    pass(&desk.relay).await;
    assert_eq!((desk.lines(TODAY).len(), desk.lines("2023-11-15").len()), (1, 1));
    desk.world.fill(700).await;
    assert_eq!(pass(&desk.relay).await.published, 700);
    assert_eq!(desk.lines("2023-11-15").len(), 701);
}

#[tokio::test]
async fn the_files_are_nobody_elses_to_read() {
    let desk = Desk::new().await;
    desk.world.fill(1).await;
    pass(&desk.relay).await;
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&desk.dir), mode(&desk.file(TODAY))), (0o700, 0o600));
}

#[tokio::test]
async fn a_torn_line_is_left_alone_and_a_new_one_begun() {
    let desk = Desk::new().await;
    std::fs::create_dir_all(&desk.dir).unwrap();
    std::fs::write(desk.file(TODAY), "{\"event_id\":\"whole\"}\n{\"event_id\":\"to").unwrap();
    desk.world.fill(2).await;
    pass(&desk.relay).await;
    let lines = desk.lines(TODAY);
    assert_eq!((lines.len(), lines[1].as_str()), (4, "{\"event_id\":\"to"));
    assert!(lines[2..].iter().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
}

#[tokio::test]
async fn what_cannot_be_written_is_refused_with_its_reason_and_written_later() {
    let desk = Desk::new().await;
    std::fs::write(desk.world.dir.path().join("deep"), "a file in its way").unwrap();
    desk.world.fill(1).await;
    assert_eq!(pass(&desk.relay).await.retried, 1);
    assert_eq!(desk.world.rows().await[0].error.as_deref(), Some("analytics: not_a_directory"));
    std::fs::remove_file(desk.world.dir.path().join("deep")).unwrap();
    std::fs::create_dir_all(desk.file(TODAY)).unwrap();
    desk.world.advance(MINUTE);
    pass(&desk.relay).await;
    assert_eq!(desk.world.rows().await[0].error.as_deref(), Some("analytics: not_a_directory"));
    std::fs::remove_dir(desk.file(TODAY)).unwrap();
    desk.world.advance(MINUTE);
    assert_eq!(pass(&desk.relay).await.published, 1);
    // Whoever counts takes the file away.
    std::fs::rename(desk.file(TODAY), desk.dir.join("taken")).unwrap();
    desk.world.fill(1).await;
    assert_eq!(pass(&desk.relay).await.published, 1);
    assert_eq!(desk.lines(TODAY).len(), 1);
}

#[tokio::test]
async fn names_that_cannot_be_made_to_last_leave_no_line() {
    let desk = Desk::new().await;
    let relay = |names| {
        let analytics = Analytics::new(desk.dir.clone(), desk.world.clock.clone()).with_names(names);
        Relay::new(desk.world.db.clone(), vec![Box::new(analytics)])
    };
    desk.world.fill(1).await;
    let failing = relay(|_| Err(std::io::Error::other("the disk is tired")));
    for _ in 0..2 {
        assert_eq!(pass(&failing).await.retried, 1);
        assert_eq!(desk.world.rows().await[0].error.as_deref(), Some("analytics: io"));
        assert_eq!(std::fs::read(desk.file(TODAY)).unwrap(), b"", "the same line would come again");
        desk.world.advance(MINUTE);
    }
    // Where it cannot be asked for, nobody can do more.
    let unable = relay(|_| Err(std::io::Error::from(std::io::ErrorKind::InvalidInput)));
    assert_eq!(pass(&unable).await.published, 1);
    assert_eq!(desk.lines(TODAY).len(), 1);
}

/// `/dev/full` takes nothing: what a disk does that is full.
#[tokio::test]
async fn a_full_disk_refuses_and_leaves_no_part_of_a_line() {
    let desk = Desk::new().await;
    std::fs::create_dir_all(&desk.dir).unwrap();
    std::os::unix::fs::symlink("/dev/full", desk.file(TODAY)).unwrap();
    desk.world.fill(1).await;
    assert_eq!(pass(&desk.relay).await.retried, 1);
    assert_eq!(desk.world.rows().await[0].error.as_deref(), Some("analytics: disk_full"));
}
