//! F: how often a second this disk takes 8 KiB over old ones and flushes them. What every ratio is to.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

const BLOCK: usize = 8 << 10;
/// Laid down beforehand: a file that grows makes the file system commit its journal with every flush.
const BLOCKS: u64 = 512;
const WINDOW: Duration = Duration::from_millis(300);

/// The floor, and every value it has had in this run.
pub(crate) struct Floor {
    file: File,
    at: u64,
    seen: Vec<f64>,
}

impl Floor {
    pub(crate) fn lay(dir: &Path) -> anyhow::Result<Self> {
        let file = OpenOptions::new().create(true).truncate(true).write(true).open(dir.join("floor"))?;
        for block in 0..BLOCKS {
            file.write_all_at(&[1; BLOCK], block * BLOCK as u64)?;
        }
        file.sync_all()?;
        Ok(Self { file, at: 0, seen: Vec::new() })
    }

    /// Flushes a second, now.
    pub(crate) fn measure(&mut self) -> anyhow::Result<f64> {
        let started = Instant::now();
        let mut flushes = 0_u32;
        while started.elapsed() < WINDOW {
            self.at = (self.at + 1) % BLOCKS;
            self.file.write_all_at(&[2; BLOCK], self.at * BLOCK as u64)?;
            self.file.sync_data()?;
            flushes += 1;
        }
        let floor = f64::from(flushes) / started.elapsed().as_secs_f64();
        self.seen.push(floor);
        Ok(floor)
    }

    /// The least and the greatest of this run; none if it was never asked for.
    pub(crate) fn range(&self) -> Option<(f64, f64)> {
        let least = self.seen.iter().copied().min_by(f64::total_cmp)?;
        Some((least, self.seen.iter().copied().max_by(f64::total_cmp)?))
    }
}
