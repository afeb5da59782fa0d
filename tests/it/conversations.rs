//! `fixtures/telegram`: conversations as people have them, through the real poller, queue and client, against the fake.
//!
//! `make bless` writes anew what came of each step; what a file looks like stands in `harness/conversation`.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::harness::{conversation, setting};

/// Files that are played at the same time: each is a server of its own.
const AT_ONCE: usize = 4;

fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/telegram");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

#[test]
fn golden_conversations_are_answered_as_they_say() {
    let bless = setting("PILLARBOX_BLESS").is_some();
    let all = fixtures();
    assert!(all.len() >= 25, "{} conversations", all.len());
    let (waiting, faults) = (Mutex::new(all), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                let found = play_all(&waiting, bless);
                faults.lock().unwrap().extend(found);
            });
        }
    });
    let faults = faults.into_inner().unwrap();
    assert!(faults.is_empty(), "{}\n{} of them are not as they say", faults.join("\n"), faults.len());
}

/// Plays what waits, one file after the other, until nothing does; what was wrong.
fn play_all(waiting: &Mutex<Vec<PathBuf>>, bless: bool) -> Vec<String> {
    let mut faults = Vec::new();
    let next = || waiting.lock().unwrap().pop();
    while let Some(path) = next() {
        let played = std::panic::catch_unwind(|| conversation::play(&path, bless));
        faults.extend(played.unwrap_or_else(|_| Some(format!("{}: it stopped, see above", path.display()))));
    }
    faults
}
