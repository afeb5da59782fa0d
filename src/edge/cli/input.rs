//! What a verb is given to read: a file, or stdin for `-`.

use std::io::{self, Read};
use std::path::Path;

use anyhow::Context;

/// All of it, byte for byte.
///
/// # Errors
/// The system's, with the file's name.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    if path != Path::new("-") {
        return std::fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    }
    let mut bytes = Vec::new();
    io::stdin().lock().read_to_end(&mut bytes).context("cannot read stdin")?;
    Ok(bytes)
}
