//! What a configuration key is, and how it is called in every layer.

use super::kind::Kind;
use super::table::KEYS;

/// One key of the configuration.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Key {
    /// The TOML table it is in.
    pub section: &'static str,
    /// Its name in that table.
    pub name: &'static str,
    /// What its value may be.
    pub kind: Kind,
    /// Its value when nobody sets it, as one would write it; `None` means unset.
    pub default: Option<&'static str>,
    /// What it does, in one sentence.
    pub doc: &'static str,
    /// A second environment variable that sets it, by the name the contracts know.
    pub alias: Option<&'static str>,
}

impl Key {
    /// `section.name`, as `--set` and the messages write it.
    pub fn dotted(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }

    /// `PILLARBOX_SECTION__NAME`.
    pub fn variable(&self) -> String {
        format!("{PREFIX}{}__{}", self.section, self.name).to_ascii_uppercase()
    }

    /// Whether its value is never shown. Such a key `x` may also be given as `x_file`, the path of a file with the value.
    pub fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Secret(_))
    }
}

/// What every environment variable of ours begins with.
pub(super) const PREFIX: &str = "PILLARBOX_";

/// The variable that names the configuration file; the only one of ours that is no key.
pub(super) const FILE_VARIABLE: &str = "PILLARBOX_CONFIG";

/// The names of the sections, in the order of [`KEYS`].
pub(super) fn section_names() -> Vec<&'static str> {
    let mut names: Vec<_> = KEYS.iter().map(|key| key.section).collect();
    names.dedup();
    names
}
