//! Texts that take the place of shipped ones: stored, and rendered from a cache that knows what it was compiled from.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use minijinja::Environment;

use super::check::Checked;
use super::lang::Lang;
use super::template::{block_name, environment};
use super::{Values, sql};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::{StoreError, Tx};

/// A text that takes the place of a shipped one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Override {
    /// Its block.
    pub(crate) key: String,
    /// Its language.
    pub(crate) lang: Lang,
    /// The text.
    pub(crate) body: String,
    /// Since when.
    pub(crate) updated_at: UnixMs,
}

/// Has a text that was checked take the place of its block's, from this commit on.
///
/// # Errors
/// The store's.
pub(crate) fn set(tx: &Tx<'_>, text: &Checked, lang: Lang) -> Result<(), StoreError> {
    sql::put(tx, text.key(), lang, text.body())
}

/// Has the shipped text back; whether there was another.
///
/// # Errors
/// The store's.
pub(crate) fn reset(tx: &Tx<'_>, key: &str, lang: Lang) -> Result<bool, StoreError> {
    Ok(sql::delete(tx, key, lang)? > 0)
}

/// Every override, by key; also those that another program wrote, of whatever key.
///
/// # Errors
/// The store's.
pub(crate) fn list(tx: &Tx<'_>) -> Result<Vec<Override>, StoreError> {
    sql::all(tx)
}

/// Overrides as templates. An entry holds the text that it was compiled from, so a text that was changed beside us is
/// compiled anew, and one that was not is compiled once.
#[derive(Default)]
pub(super) struct Compiled(Mutex<HashMap<String, Entry>>);

struct Entry {
    body: String,
    /// `None` for a text that is no template.
    template: Option<Environment<'static>>,
    /// Whether somebody was told that it cannot be used.
    is_told: bool,
}

impl Compiled {
    /// The text, or `None` if it cannot be rendered or nothing would be seen: then it was not checked, or by another
    /// version, and what is shipped is better than silence. That is said once.
    pub(super) fn render(&self, key: &str, lang: Lang, body: &str, values: &Values) -> Option<String> {
        let name = block_name(key, lang);
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.get(&name).is_none_or(|entry| entry.body != body) {
            entries.insert(name.clone(), Entry::of(&name, body));
        }
        let entry = entries.get_mut(&name)?;
        let text = entry.render(&name, values);
        if text.is_none() && !entry.is_told {
            entry.is_told = true;
            tracing::warn!(block = name, "a text of content_blocks cannot be used; see `pillarbox content check`");
        }
        text
    }
}

impl Entry {
    fn of(name: &str, body: &str) -> Self {
        let mut template = environment();
        let added = template.add_template_owned(name.to_owned(), body.to_owned());
        Self { body: body.to_owned(), template: added.is_ok().then_some(template), is_told: false }
    }

    fn render(&self, name: &str, values: &Values) -> Option<String> {
        let text = self.template.as_ref()?.get_template(name).ok()?.render(values.0.clone()).ok()?;
        (!text.trim().is_empty()).then_some(text)
    }
}
