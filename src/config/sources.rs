//! Where settings come from, gathered before anything is checked. This is the only place that reads the process's
//! environment; tests and `dev` put their own sources together.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::keys::FILE_VARIABLE;

/// The file that is read when none is named and it exists in the working directory.
pub const DEFAULT_FILE: &str = "pillarbox.toml";

/// What [`Config::load`](super::Config::load) reads. Later kinds win: file, environment, `--set`, arguments of their own.
#[derive(Clone, Default)]
pub struct Sources {
    pub(super) file: Option<SourceFile>,
    pub(super) environment: Vec<(OsString, OsString)>,
    pub(super) set: Vec<String>,
    pub(super) flags: Vec<FlagValue>,
    /// Whether it is `dev` that is configured, which may do what production may not.
    pub(super) is_dev: bool,
}

#[derive(Clone)]
pub(super) struct SourceFile {
    pub(super) path: PathBuf,
    pub(super) bytes: Result<Vec<u8>, std::sync::Arc<io::Error>>,
}

#[derive(Clone)]
pub(super) struct FlagValue {
    pub(super) flag: &'static str,
    pub(super) key: &'static str,
    pub(super) value: OsString,
}

impl Sources {
    /// Nothing: every key has its default.
    pub fn empty() -> Self {
        Self::default()
    }

    /// The process's environment, the file, and `set` (each `section.key=value`).
    ///
    /// The file is `named` (`--config`), else the one that `PILLARBOX_CONFIG` names, else `pillarbox.toml` in the working
    /// directory if there is one. A named file that cannot be read is a problem that `Config::load` reports.
    #[expect(clippy::disallowed_methods, reason = "the one place where the raw environment is read")]
    pub fn from_process(named: Option<PathBuf>, set: Vec<String>) -> Self {
        Self::from_parts(named, std::env::vars_os(), set)
    }

    /// As [`Sources::from_process`], with this environment instead of the process's.
    pub fn from_parts(
        named: Option<PathBuf>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        set: Vec<String>,
    ) -> Self {
        let environment: Vec<_> = environment.into_iter().collect();
        let of_variable = || {
            let found = environment.iter().find(|(name, value)| name == FILE_VARIABLE && !value.is_empty());
            found.map(|(_, value)| PathBuf::from(value))
        };
        let of_directory = || Path::new(DEFAULT_FILE).exists().then(|| PathBuf::from(DEFAULT_FILE));
        let path = named.or_else(of_variable).or_else(of_directory);
        let file = path.map(|path| SourceFile { bytes: std::fs::read(&path).map_err(std::sync::Arc::new), path });
        Self { file, environment, set, ..Self::default() }
    }

    /// Without the file, whoever named it.
    #[must_use]
    pub fn without_file(mut self) -> Self {
        self.file = None;
        self
    }

    /// Uses `text` as the file of this path, which is not read.
    #[must_use]
    pub fn with_text(mut self, path: impl Into<PathBuf>, text: impl Into<Vec<u8>>) -> Self {
        self.file = Some(SourceFile { path: path.into(), bytes: Ok(text.into()) });
        self
    }

    /// Adds environment variables.
    #[must_use]
    pub fn with_variables<N: Into<OsString>, V: Into<OsString>>(
        mut self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        self.environment.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// Without the environment variable of this name.
    #[must_use]
    pub(crate) fn without_variable(mut self, name: &str) -> Self {
        self.environment.retain(|(known, _)| known != name);
        self
    }

    /// For `dev`, which may do what production may not.
    #[must_use]
    pub(crate) fn of_dev(mut self) -> Self {
        self.is_dev = true;
        self
    }

    /// Adds one `section.key=value`, as `--set` takes it; of two for one key the later wins.
    #[must_use]
    pub fn with_set(mut self, assignment: impl Into<String>) -> Self {
        self.set.push(assignment.into());
        self
    }

    /// Whether a `--set` names this key.
    pub(crate) fn has_set(&self, key: &str) -> bool {
        self.set.iter().any(|assignment| assignment.split_once('=').is_some_and(|(name, _)| name.trim() == key))
    }

    /// Sets `key` over everything else, in the name of an argument such as `--data-dir` or `--listen`.
    #[must_use]
    pub fn with_flag(mut self, flag: &'static str, key: &'static str, value: impl Into<OsString>) -> Self {
        self.flags.push(FlagValue { flag, key, value: value.into() });
        self
    }
}
