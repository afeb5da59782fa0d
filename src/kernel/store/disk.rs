//! The disk under the store: what is free, a reserve to give up, and file systems on which SQLite's locks do not hold.
//!
//! A full disk cannot be freed from inside: even a DELETE needs room in the WAL. So a ballast file is kept, and given
//! up when the disk is full: acks and deletes then go on, while intake stays refused until there is room for the
//! ballast again. Without that last rule new work would eat the reserve as soon as it was given up.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const BALLAST_NAME: &str = "ballast";
/// The ballast is laid in pieces of this size, one per look, so that no commit waits for the whole of it.
const PIECE: u64 = 4 << 20;
/// A full disk has room again when so much more is free, whatever else is being written to it and removed.
const ROOM: u64 = 1 << 20;
/// Or when writes have succeeded for so long. A quota shows in no number of free bytes, and small writes may succeed
/// between large ones that do not.
const CALM: Duration = Duration::from_secs(5);

/// Who may lay the ballast and give it up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reserve {
    /// The owner of the directory.
    Kept,
    /// A guest leaves it to the owner.
    Foreign,
}

/// What became of the last write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LastWrite {
    Committed,
    Failed,
}

/// The space a store watches over. Sizes in bytes.
#[derive(Debug)]
pub(super) struct Disk {
    dir: PathBuf,
    min_free: u64,
    ballast: u64,
    reserve: Reserve,
    filled: Mutex<Option<Filled>>,
}

/// When a write last found the disk full, and what was free then.
#[derive(Debug)]
struct Filled {
    free: u64,
    at: Instant,
}

impl Disk {
    pub(super) fn new(dir: &Path, min_free: u64, ballast: u64, reserve: Reserve) -> Self {
        Self { dir: dir.to_path_buf(), min_free, ballast, reserve, filled: Mutex::default() }
    }

    /// A write has just found the disk full.
    pub(super) fn found_full(&self) {
        *self.filled() = Some(Filled { free: self.free().unwrap_or(u64::MAX), at: Instant::now() });
    }

    /// Whether the disk is to be taken for full still, because nothing has changed since a write found it so.
    pub(super) fn is_still_full(&self, last_write: LastWrite) -> bool {
        let mut filled = self.filled();
        let is_over = filled.as_ref().is_none_or(|found| {
            let calm = last_write == LastWrite::Committed && found.at.elapsed() >= CALM;
            calm || self.free().is_some_and(|free| free >= found.free.saturating_add(ROOM))
        });
        if is_over {
            *filled = None;
        }
        !is_over
    }

    fn filled(&self) -> MutexGuard<'_, Option<Filled>> {
        self.filled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Free bytes for this user, or `None` when the file system does not say.
    fn free(&self) -> Option<u64> {
        let stat = rustix::fs::statvfs(&self.dir).ok()?;
        stat.f_bavail.checked_mul(stat.f_frsize)
    }

    /// Whether new work must be refused. What the ballast holds counts as free, and room for all of it is asked for,
    /// so the answer is the same before and after it is laid. A disk that `was_low` must first have a little more.
    pub(super) fn is_low(&self, was_low: bool) -> bool {
        let asked = self.min_free.saturating_add(self.ballast);
        let asked = if was_low { asked.saturating_add(asked / 16) } else { asked };
        self.free().is_some_and(|free| free.saturating_add(self.laid().min(self.ballast)) < asked)
    }

    /// Lays the next piece of the ballast, if it is not whole.
    pub(super) fn lay_ballast(&self) -> io::Result<()> {
        let laid = self.laid();
        if self.reserve == Reserve::Foreign || laid >= self.ballast {
            return Ok(());
        }
        let path = self.ballast_path();
        // Opening a pipe would wait for its reader.
        if fs::symlink_metadata(&path).is_ok_and(|meta| !meta.is_file()) {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "what has its name is not a file"));
        }
        let mut file = OpenOptions::new().append(true).create(true).open(path)?;
        let size = usize::try_from((self.ballast - laid).min(PIECE)).unwrap_or(0);
        file.write_all(&incompressible(size, laid))
    }

    /// Whether nothing at all can be written.
    pub(super) fn is_read_only(&self) -> bool {
        is_read_only(&self.dir)
    }

    /// Gives the ballast up; whether there was one.
    pub(super) fn drop_ballast(&self) -> bool {
        self.reserve == Reserve::Kept && fs::remove_file(self.ballast_path()).is_ok()
    }

    fn laid(&self) -> u64 {
        fs::symlink_metadata(self.ballast_path()).map_or(0, |meta| if meta.is_file() { meta.len() } else { 0 })
    }

    fn ballast_path(&self) -> PathBuf {
        self.dir.join(BALLAST_NAME)
    }
}

/// Bytes that a file system which compresses cannot store in less than their number: zeros would reserve nothing.
fn incompressible(size: usize, seed: u64) -> Vec<u8> {
    // Xorshift: quick, and random enough for any compressor.
    let mut state = seed ^ 0x9E37_79B9_7F4A_7C15;
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(size).collect()
}

/// Whether the file system that `path` is on is mounted read-only. SQLite reports that as a failing disk.
pub(super) fn is_read_only(path: &Path) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|stat| stat.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
}

/// The name of the network file system that `dir` is on, if it is on one.
pub(super) fn network_file_system(dir: &Path) -> Option<&'static str> {
    let stat = rustix::fs::statfs(dir).ok()?;
    #[expect(clippy::cast_possible_truncation, reason = "the kernel's magic numbers are 32 bits wide")]
    #[expect(clippy::cast_sign_loss, reason = "the same bits, read as the header files write them")]
    name_of_network(stat.f_type as u32)
}

/// Magic numbers as in Linux' `include/uapi/linux/magic.h` and the file systems' own headers.
fn name_of_network(magic: u32) -> Option<&'static str> {
    match magic {
        0x0000_6969 => Some("NFS"),
        0x0000_517B => Some("SMB"),
        0xFE53_4D42 => Some("SMB2"),
        0xFF53_4D42 => Some("CIFS"),
        0x0102_1997 => Some("9P"),
        0x5346_414F | 0x6B41_4653 => Some("AFS"),
        0x00C3_6400 => Some("Ceph"),
        0x7375_7245 => Some("Coda"),
        0x0BD0_0BD0 => Some("Lustre"),
        0x0116_1970 => Some("GFS2"),
        0x7461_636F => Some("OCFS2"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::{CALM, Disk, Filled, LastWrite, PIECE, Reserve, name_of_network};

    #[test]
    fn the_ballast_is_laid_piece_by_piece_and_changes_no_answer() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::new(dir.path(), 0, PIECE + 5, Reserve::Kept);
        for laid in [PIECE, PIECE + 5, PIECE + 5] {
            disk.lay_ballast().unwrap();
            assert_eq!(disk.laid(), laid);
            assert!(!disk.is_low(false));
        }
        assert!(disk.drop_ballast() && !disk.drop_ballast());
    }

    #[test]
    fn a_disk_found_full_stays_so_until_writes_have_succeeded_for_a_while() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::new(dir.path(), 0, 0, Reserve::Kept);
        assert!(!disk.is_still_full(LastWrite::Failed));
        // As a quota has it: no number of free bytes tells of it.
        let found = |at| *disk.filled() = Some(Filled { free: u64::MAX, at });
        found(Instant::now());
        assert!(disk.is_still_full(LastWrite::Failed) && disk.is_still_full(LastWrite::Committed));
        found(Instant::now().checked_sub(CALM).unwrap());
        assert!(disk.is_still_full(LastWrite::Failed));
        assert!(!disk.is_still_full(LastWrite::Committed));
        assert!(!disk.is_still_full(LastWrite::Failed), "it is over");
        *disk.filled() = Some(Filled { free: 0, at: Instant::now() });
        assert!(!disk.is_still_full(LastWrite::Failed), "much more is free");
    }

    #[test]
    fn a_guest_neither_lays_nor_drops_the_ballast() {
        let dir = tempfile::tempdir().unwrap();
        Disk::new(dir.path(), 0, 10, Reserve::Kept).lay_ballast().unwrap();
        let guest = Disk::new(dir.path(), 0, 20, Reserve::Foreign);
        guest.lay_ballast().unwrap();
        assert!(!guest.drop_ballast());
        assert_eq!(guest.laid(), 10);
    }

    #[test]
    fn network_mounts_are_told_from_local_ones() {
        for (magic, name) in [(0x6969, "NFS"), (0xFF53_4D42, "CIFS"), (0xFE53_4D42, "SMB2"), (0x0102_1997, "9P")] {
            assert_eq!(name_of_network(magic), Some(name));
        }
        let local = [0xEF53, 0x0102_1994, 0x5846_5342, 0x9123_683E, 0x794C_7630, 0x2FC1_2FC1]; // ext4 tmpfs xfs btrfs overlay zfs
        assert!(local.into_iter().all(|magic| name_of_network(magic).is_none()));
    }
}
