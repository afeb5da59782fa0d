//! What is wrong with a configuration, said so that it can be mended in one go: which key, which value, from where,
//! and what to do. Everything that is done with a problem is printing it, hence sentences and no variants.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where a value was written.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Place {
    /// Nowhere: it is the key's default.
    Default,
    /// In the configuration file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1; 0 if it is the file as a whole.
        line: usize,
    },
    /// In the environment variable of this name.
    Variable(String),
    /// In a `--set`.
    Set,
    /// In an argument of its own, such as `--data-dir`.
    Flag(&'static str),
}

/// The origin of a value: where it was written, and the file it was read from if that place names one (`x_file`).
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Origin {
    /// Where it was written.
    pub place: Place,
    /// The secret's own file.
    pub content_of: Option<PathBuf>,
}

impl From<Place> for Origin {
    fn from(place: Place) -> Self {
        Self { place, content_of: None }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Place::Default => f.write_str("default")?,
            Place::File { path, line: 0 } => write!(f, "{}", shown_path(path))?,
            Place::File { path, line } => write!(f, "{}:{line}", shown_path(path))?,
            Place::Variable(name) => write!(f, "environment variable {name}")?,
            Place::Set => f.write_str("--set")?,
            Place::Flag(flag) => f.write_str(flag)?,
        }
        match &self.content_of {
            Some(path) => write!(f, " (content of {})", shown_path(path)),
            None => Ok(()),
        }
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Problem {
    /// The key as it was written, `section.name`; `None` if it is no single key's problem.
    pub key: Option<String>,
    /// The value that does not fit. `None` for secrets, unknown keys, and where the key is missing.
    pub value: Option<String>,
    /// Where it was written.
    pub origin: Origin,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub advice: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(key) = &self.key {
            write!(f, "{}", shown(key))?;
            if let Some(value) = &self.value {
                write!(f, " = {}", shown(value))?;
            }
            f.write_str(" ")?;
        }
        write!(f, "[{}]: {}; {}", self.origin, self.what, self.advice)
    }
}

/// Everything that is wrong with a configuration, at least one [`Problem`]. Printed as one line each.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", listed(.problems))]
pub struct ConfigErrors {
    problems: Vec<Problem>,
}

impl ConfigErrors {
    pub(crate) fn new(problems: Vec<Problem>) -> Self {
        Self { problems }
    }

    /// The problems: those of the file first, then environment, `--set`, arguments, and last those between keys.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

fn listed(problems: &[Problem]) -> String {
    let mut text = match problems.len() {
        1 => "the configuration has 1 problem:".to_owned(),
        n => format!("the configuration has {n} problems:"),
    };
    for problem in problems {
        text.push_str("\n  ");
        text.push_str(&problem.to_string());
    }
    text
}

/// Something that works but is probably not meant.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Warning {
    /// The key it is about.
    pub key: String,
    /// What it means, and what to do.
    pub text: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.key, self.text)
    }
}

/// More of a value than this tells nobody anything, and may be a whole file pasted in the wrong place.
const LONGEST_SHOWN: usize = 200;

/// `text` on one line of harmless characters, shortened.
fn shown(text: &str) -> String {
    let start: String = text.chars().take(LONGEST_SHOWN).collect();
    let end = if start.len() < text.len() { "…" } else { "" };
    one_line(&start) + end
}

/// `text` with its control characters escaped, so that it cannot move the cursor or fake a second line.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() { line.extend(c.escape_default()) } else { line.push(c) }
    }
    line
}

fn shown_path(path: &Path) -> String {
    one_line(&path.to_string_lossy())
}
