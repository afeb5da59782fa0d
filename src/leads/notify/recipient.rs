//! The broker's chat: the configured one, where it has moved to, and when a person last saw a test message arrive in it.
//!
//! A chat's id is a secret of the installation, so what is learnt of it is kept in a file for its owner only, beside the
//! database and never in it. Another process (`leads smoke`) may write it at the same time: a change reads the file
//! again under a lock, and replaces it in one step.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::kernel::clock::UnixMs;
use crate::kernel::secret::Secret;

const FILE_NAME: &str = "lead-chat.json";
const NEW_FILE_NAME: &str = "lead-chat.json.new";
const LOCK_NAME: &str = "lead-chat.lock";
const FOR_THE_OWNER: u32 = 0o600;

/// Who is told of leads.
pub(crate) struct Recipient {
    dir: PathBuf,
    /// As it is configured.
    chat_id: i64,
    /// What was last read or written; it holds although the disk does not take it.
    known: Mutex<Known>,
}

/// What the file says, all of it about the configured chat.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Known {
    /// The configured chat when this was written: of another one it says nothing.
    chat_id: i64,
    /// The chat's id since it became a supergroup.
    #[serde(default)]
    moved_to: Option<i64>,
    #[serde(default)]
    smoke_passed_at: Option<UnixMs>,
}

impl Recipient {
    /// The chat of the configuration, with what the data directory knows of it. `None` if the text is no integer, which
    /// the configuration does not let pass.
    pub(crate) fn open(dir: &Path, chat_id: &Secret) -> Option<Self> {
        let chat_id = chat_id.expose().trim().parse().ok()?;
        let known = Mutex::new(Known { chat_id, ..Known::default() });
        let recipient = Self { dir: dir.to_owned(), chat_id, known };
        recipient.refresh();
        Some(recipient)
    }

    /// The chat that messages go to.
    pub(crate) fn chat_id(&self) -> i64 {
        self.known().moved_to.unwrap_or(self.chat_id)
    }

    /// When a test message arrived in this chat; `None` if that was never tried.
    pub(crate) fn smoke_passed_at(&self) -> Option<UnixMs> {
        self.known().smoke_passed_at
    }

    /// Reads the file again, which another process may have changed. What it does not say stays as it is known.
    pub(crate) fn refresh(&self) {
        let Some(found) = self.read() else { return };
        let mut known = self.known();
        known.moved_to = found.moved_to.or(known.moved_to);
        known.smoke_passed_at = found.smoke_passed_at.or(known.smoke_passed_at);
    }

    /// The chat goes on under this id. It does for this process even if that cannot be written.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn moved_to(&self, chat_id: i64) -> io::Result<()> {
        self.change(|known| known.moved_to = Some(chat_id).filter(|moved| *moved != known.chat_id))
    }

    /// A test message arrived.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn smoke_passed(&self, at: UnixMs) -> io::Result<()> {
        self.change(|known| known.smoke_passed_at = Some(at))
    }

    fn change(&self, change: impl Fn(&mut Known)) -> io::Result<()> {
        change(&mut self.known());
        // Held until the new file is in place; a file system without locks leaves the replacing alone to do it.
        let lock = self.lock()?;
        let _ = lock.lock();
        let mut latest = self.read().unwrap_or_else(|| *self.known());
        change(&mut latest);
        self.replace(&latest)?;
        *self.known() = latest;
        Ok(())
    }

    fn read(&self) -> Option<Known> {
        let text = std::fs::read(self.dir.join(FILE_NAME)).ok()?;
        serde_json::from_slice(&text).ok().filter(|known: &Known| known.chat_id == self.chat_id)
    }

    fn replace(&self, known: &Known) -> io::Result<()> {
        let beside = self.dir.join(NEW_FILE_NAME);
        // One that a crash left may have anybody's rights.
        match std::fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = self.create(NEW_FILE_NAME)?;
        file.write_all(&serde_json::to_vec(known)?)?;
        file.sync_all()?;
        std::fs::rename(&beside, self.dir.join(FILE_NAME))?;
        File::open(&self.dir)?.sync_all()
    }

    fn lock(&self) -> io::Result<File> {
        match self.create(LOCK_NAME) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                OpenOptions::new().write(true).open(self.dir.join(LOCK_NAME))
            }
            created => created,
        }
    }

    /// A new file. One that is there already is not taken for it: it may be a link, put there by whoever has the
    /// directory, to a file that root would then give away or write over.
    fn create(&self, name: &str) -> io::Result<File> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(FOR_THE_OWNER).open(self.dir.join(name))?;
        let (dir, own) = (self.dir.metadata()?, file.metadata()?);
        // Made by root, it would be closed to the server whose directory this is.
        if (dir.uid(), dir.gid()) != (own.uid(), own.gid()) {
            let _ = fchown(&file, Some(dir.uid()), Some(dir.gid()));
        }
        Ok(file)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Every change is one assignment.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;

    use super::*;

    fn open(dir: &Path, chat_id: &str) -> Recipient {
        Recipient::open(dir, &Secret::new(chat_id)).unwrap()
    }

    #[test]
    fn what_is_learnt_of_a_chat_outlives_the_process_and_is_for_its_owner_only() {
        let dir = tempfile::tempdir().unwrap();
        let recipient = open(dir.path(), "-42");
        assert_eq!((recipient.chat_id(), recipient.smoke_passed_at()), (-42, None));
        recipient.moved_to(-100_042).unwrap();
        recipient.smoke_passed(7).unwrap();
        let again = open(dir.path(), "-42");
        assert_eq!((again.chat_id(), again.smoke_passed_at()), (-100_042, Some(7)));
        for name in [FILE_NAME, LOCK_NAME] {
            let mode = std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, FOR_THE_OWNER, "{name}");
        }
        assert!(!dir.path().join(NEW_FILE_NAME).exists());
    }

    #[test]
    fn what_root_writes_belongs_to_whoever_has_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        if std::os::unix::fs::chown(dir.path(), Some(4711), Some(4711)).is_err() {
            // Only root gives files away, and only root needs to.
            return;
        }
        open(dir.path(), "-42").smoke_passed(7).unwrap();
        for name in [FILE_NAME, LOCK_NAME] {
            let owner = std::fs::metadata(dir.path().join(name)).unwrap();
            assert_eq!((owner.uid(), owner.gid()), (4711, 4711), "{name}");
        }
    }

    #[test]
    fn nothing_behind_a_link_is_given_away_or_written_over() {
        let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = elsewhere.path().join("file");
        std::fs::write(&file, "precious").unwrap();
        let owner = |path: &Path| std::fs::metadata(path).unwrap().uid();
        let before = owner(&file);
        // Only root gives files away; for anybody else the first half is true anyway.
        let _ = std::os::unix::fs::chown(dir.path(), Some(4711), Some(4711));
        for name in [FILE_NAME, NEW_FILE_NAME, LOCK_NAME] {
            std::os::unix::fs::symlink(&file, dir.path().join(name)).unwrap();
        }
        let recipient = open(dir.path(), "-42");
        recipient.smoke_passed(7).unwrap();
        assert_eq!((owner(&file), std::fs::read_to_string(&file).unwrap()), (before, "precious".to_owned()));
        assert_eq!(open(dir.path(), "-42").smoke_passed_at(), Some(7));
    }

    #[test]
    fn of_another_chat_the_file_says_nothing_and_a_broken_one_says_nothing_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let before = open(dir.path(), "-42");
        before.moved_to(-100_042).unwrap();
        before.smoke_passed(7).unwrap();
        let other = open(dir.path(), "-43");
        assert_eq!((other.chat_id(), other.smoke_passed_at()), (-43, None));
        std::fs::write(dir.path().join(FILE_NAME), b"{\"chat_id\": -42, \"moved").unwrap();
        assert_eq!(open(dir.path(), "-42").chat_id(), -42);
        before.refresh();
        assert_eq!(before.chat_id(), -100_042, "what is known already holds");
    }

    #[test]
    fn two_processes_that_write_lose_nothing_of_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let writers: Vec<_> = (0..8_i64)
            .map(|number| {
                // Each has a handle of its own, as another process would.
                let recipient = Arc::new(open(dir.path(), "-42"));
                std::thread::spawn(move || match number % 2 {
                    0 => recipient.moved_to(-100_042).unwrap(),
                    _ => recipient.smoke_passed(number).unwrap(),
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        let known = open(dir.path(), "-42");
        assert_eq!(known.chat_id(), -100_042);
        assert!(known.smoke_passed_at().is_some_and(|at| at % 2 == 1));
    }

    #[test]
    fn a_chat_that_moved_is_followed_although_the_disk_does_not_take_it() {
        let dir = tempfile::tempdir().unwrap();
        let recipient = open(dir.path(), "-42");
        drop(dir);
        assert!(recipient.moved_to(-100_042).is_err());
        assert_eq!(recipient.chat_id(), -100_042);
    }
}
