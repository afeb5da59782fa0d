//! The one table of configuration keys. Defaults, the unknown-key check, the file that `init` writes, `config show`
//! and `docs/configuration.md` are all read from it, so that none of them can say something else.

mod bot;
mod events;
mod leads;
mod server;

use std::time::Duration;

use super::keys::Key;
use super::kind::{Kind, SecretForm};

/// Every key, section by section in the order in which files and tables list them.
pub const KEYS: &[Key] = &joined::<{ count(PARTS) }>(PARTS);

const PARTS: &[&[Key]] = &[server::KEYS, bot::KEYS, leads::KEYS, events::KEYS];

const fn count(parts: &[&[Key]]) -> usize {
    let (mut part, mut keys) = (0, 0);
    while part < parts.len() {
        keys += parts[part].len();
        part += 1;
    }
    keys
}

/// The parts as one table; written with loops, since a constant has no iterators.
const fn joined<const COUNT: usize>(parts: &[&[Key]]) -> [Key; COUNT] {
    let mut all = [parts[0][0]; COUNT];
    let (mut part, mut filled) = (0, 0);
    while part < parts.len() {
        let mut at = 0;
        while at < parts[part].len() {
            all[filled] = parts[part][at];
            filled += 1;
            at += 1;
        }
        part += 1;
    }
    all
}

const KB: u64 = 1024;
const MB: u64 = 1024 * KB;
const GB: u64 = 1024 * MB;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const fn hours(n: u64) -> Duration {
    Duration::from_secs(n * 3600)
}

const fn duration(min: Duration, max: Duration) -> Kind {
    Kind::Duration { min, max }
}

const fn key(section: &'static str, name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Key {
    Key { section, name, kind, default: Some(default), doc, alias: None }
}

const fn secret(
    section: &'static str,
    name: &'static str,
    form: SecretForm,
    alias: Option<&'static str>,
    doc: &'static str,
) -> Key {
    Key { section, name, kind: Kind::Secret(form), default: None, doc, alias }
}

const fn unset(section: &'static str, name: &'static str, kind: Kind, doc: &'static str) -> Key {
    Key { section, name, kind, default: None, doc, alias: None }
}
