//! Where an export goes: stdout, or a file that is there whole or not at all.
//!
//! Leads are personal data, so the file is its owner's only. It is written under a name of its own and renamed when it is
//! on the disk; whatever ends before that leaves the old file as it was, and nothing half-written beside it, except for
//! a SIGKILL.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

/// A file that is being written.
pub(in crate::edge::cli) struct NewFile {
    file: Option<BufWriter<File>>,
    partial: PathBuf,
    path: PathBuf,
}

impl NewFile {
    /// Begins what will be `path`.
    ///
    /// # Errors
    /// When it is no plain file, or nothing can be written beside it.
    pub(in crate::edge::cli) fn begin(path: &Path) -> anyhow::Result<Self> {
        if std::fs::symlink_metadata(path).is_ok_and(|there| !there.is_file()) {
            bail!("{} is not a plain file; to write into it, use stdout: > {}", path.display(), path.display());
        }
        let Some(name) = path.file_name() else { bail!("{} names no file", path.display()) };
        let mut beside = name.to_owned();
        beside.push(format!(".{}.partial", std::process::id()));
        let partial = path.with_file_name(beside);
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial);
        let file = opened.with_context(|| format!("cannot write {}", partial.display()))?;
        Ok(Self { file: Some(BufWriter::new(file)), partial, path: path.to_owned() })
    }

    /// Puts it in its place.
    ///
    /// # Errors
    /// The system's; then it is removed.
    pub(in crate::edge::cli) fn finish(mut self) -> io::Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        std::fs::rename(&self.partial, &self.path)
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().map_or(Ok(0), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // Once it is renamed there is none of this name.
        let _ = std::fs::remove_file(&self.partial);
    }
}
