//! The disk under the store: what is free, a reserve to give up, and file systems on which SQLite's locks do not hold.
//!
//! A full disk cannot be freed from inside: even a DELETE needs room in the WAL. So a ballast file is kept, and given
//! up when the disk is full: acks and deletes then go on, while intake stays refused until there is room again.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const BALLAST_NAME: &str = "ballast";

/// The space a store watches over. Sizes in bytes.
#[derive(Debug)]
pub(super) struct Disk {
    dir: PathBuf,
    min_free: u64,
    ballast: u64,
}

impl Disk {
    pub(super) fn new(dir: &Path, min_free: u64, ballast: u64) -> Self {
        Self { dir: dir.to_path_buf(), min_free, ballast }
    }

    /// Free bytes for this user, or `None` when the file system does not say.
    pub(super) fn free(&self) -> Option<u64> {
        let stat = rustix::fs::statvfs(&self.dir).ok()?;
        stat.f_bavail.checked_mul(stat.f_frsize)
    }

    /// Whether new work must be refused.
    pub(super) fn is_low(&self) -> bool {
        self.free().is_some_and(|free| free < self.min_free)
    }

    /// Lays the ballast down if it is not there and there is ample room for it.
    pub(super) fn lay_ballast(&self) -> io::Result<()> {
        let path = self.ballast_path();
        let there = fs::metadata(&path).map(|meta| meta.len()).unwrap_or(0);
        if self.ballast == 0 || there >= self.ballast {
            return Ok(());
        }
        let ample = self.min_free.saturating_add(self.ballast.saturating_mul(2));
        if self.free().is_none_or(|free| free < ample) {
            return Ok(());
        }
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(&path)?;
        let chunk = vec![0_u8; 1 << 16];
        let mut left = self.ballast;
        while left > 0 {
            let part = usize::try_from(left).unwrap_or(usize::MAX).min(chunk.len());
            file.write_all(&chunk[..part])?;
            left -= part as u64;
        }
        Ok(())
    }

    /// Gives the ballast up; whether there was one.
    pub(super) fn drop_ballast(&self) -> bool {
        fs::remove_file(self.ballast_path()).is_ok()
    }

    fn ballast_path(&self) -> PathBuf {
        self.dir.join(BALLAST_NAME)
    }
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
    use super::name_of_network;

    #[test]
    fn network_mounts_are_told_from_local_ones() {
        for (magic, name) in [(0x6969, "NFS"), (0xFF53_4D42, "CIFS"), (0xFE53_4D42, "SMB2"), (0x0102_1997, "9P")] {
            assert_eq!(name_of_network(magic), Some(name));
        }
        let local = [0xEF53, 0x0102_1994, 0x5846_5342, 0x9123_683E, 0x794C_7630, 0x2FC1_2FC1]; // ext4 tmpfs xfs btrfs overlay zfs
        assert!(local.into_iter().all(|magic| name_of_network(magic).is_none()));
    }
}
