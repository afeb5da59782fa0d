//! An append-only log of JSON lines that is replayed at start: how the fake and the sink survive a SIGKILL cheaply.
//!
//! One entry is one `write`, so a killed process leaves whole lines and at most one torn one at the end, which was never
//! acknowledged and is cut off. The open file is locked: two processes that append to one log would tear each other's.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Error;

/// A log that is open for appending, and locked until it is dropped.
pub(super) struct Journal {
    file: File,
    len: u64,
}

impl Journal {
    /// Opens or creates the log and hands every entry in it to `replay`, in order.
    ///
    /// # Errors
    /// [`Error::InUse`] while another process has it, [`Error::Journal`] for a whole line that is not an entry.
    pub(super) fn open<E: DeserializeOwned>(path: PathBuf, mut replay: impl FnMut(E)) -> Result<Self, Error> {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(&path)
            .map_err(|source| Error::File { path: path.clone(), source })?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::InUse { path }),
            Err(TryLockError::Error(source)) => return Err(Error::File { path, source }),
        }
        let mut lines = BufReader::new(&file);
        let (mut len, mut number, mut line) = (0, 0, Vec::new());
        loop {
            line.clear();
            let read =
                lines.read_until(b'\n', &mut line).map_err(|source| Error::File { path: path.clone(), source })?;
            if line.last() != Some(&b'\n') {
                break;
            }
            number += 1;
            let entry = serde_json::from_slice(&line);
            replay(entry.map_err(|source| Error::Journal { path: path.clone(), line: number, source })?);
            len += read as u64;
        }
        file.set_len(len).map_err(|source| Error::File { path, source })?;
        Ok(Self { file, len })
    }

    /// Adds one entry. When this fails nothing was added.
    pub(super) fn append<E: Serialize>(&mut self, entry: &E) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        if let Err(error) = self.file.write_all(&line) {
            // A full disk may have taken half of the line; the next entry must not be glued to it.
            self.file.set_len(self.len)?;
            return Err(error);
        }
        self.len += line.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &std::path::Path) -> Result<(Journal, Vec<u32>), Error> {
        let mut found = Vec::new();
        Ok((Journal::open(path.to_owned(), |entry| found.push(entry))?, found))
    }

    #[test]
    fn a_torn_last_line_is_cut_off_and_the_log_goes_on() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log.ndjson");
        std::fs::write(&path, "1\n2\n{\"thr").expect("written");
        let (mut journal, found) = open(&path).expect("opens");
        assert_eq!(found, [1, 2]);
        journal.append(&3).expect("appends");
        drop(journal);
        assert_eq!(open(&path).expect("opens again").1, [1, 2, 3]);
    }

    #[test]
    fn a_broken_line_in_the_middle_is_named_and_the_file_is_left_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log.ndjson");
        std::fs::write(&path, "1\nx\n3\n").expect("written");
        assert!(matches!(open(&path), Err(Error::Journal { line: 2, .. })));
        assert_eq!(std::fs::read(&path).expect("readable"), b"1\nx\n3\n");
    }

    #[test]
    fn a_second_opener_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log.ndjson");
        let _first = open(&path).expect("opens");
        assert!(matches!(open(&path), Err(Error::InUse { .. })));
    }
}
