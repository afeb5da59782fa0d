//! The bot's texts: content blocks by key and language, rendered for Telegram's HTML.
//!
//! **What.** Each block is shipped in ru and en, and a row of `content_blocks` takes its place. They are templates with
//! strict variables: a text that names what it was not given fails, instead of going out with a hole in it. Values are
//! escaped, the blocks themselves are not. A language that lacks a block falls back to ru.
//!
//! **States.** A block of a language is shipped, or overridden.
//!
//! **Guarantees.**
//! - A text that Telegram would refuse, or that names what it is not given, is refused when it is saved:
//!   `tests/it/content_blocks.rs::a_text_that_cannot_be_sent_is_refused_with_everything_that_is_wrong`.
//! - An override holds from its commit on, beside a running server too:
//!   `tests/it/content_blocks.rs::an_override_holds_from_its_commit_until_it_is_reset`.
//! - An override that cannot be rendered, whoever wrote it, does not cost the message:
//!   `tests/it/content_blocks.rs::a_flawed_override_falls_back_to_the_shipped_text`.
//!
//! **Windows.** None.
//!
//! **Not here.** Texts of leads (`leads`), and which screen shows which block (`screens`).

pub(crate) mod blocks;
mod check;
mod lang;
pub(crate) mod markup;
mod overrides;
mod sql;
mod template;

use std::collections::BTreeMap;

use minijinja::{Environment, Value};

use super::Error;
use crate::kernel::store::Tx;
pub(crate) use check::{check, example, names};
pub(crate) use lang::Lang;
use overrides::Compiled;
pub(crate) use overrides::{Override, list, reset, set};
use template::{block_name, environment, is_plain};

/// The shipped texts, a file for each part of the bot.
const FILES: [(Lang, [&str; 4]); 2] = [
    (
        Lang::Ru,
        [
            include_str!("ru/events.toml"),
            include_str!("ru/dialog.toml"),
            include_str!("ru/menu.toml"),
            include_str!("ru/bulk.toml"),
        ],
    ),
    (
        Lang::En,
        [
            include_str!("en/events.toml"),
            include_str!("en/dialog.toml"),
            include_str!("en/menu.toml"),
            include_str!("en/bulk.toml"),
        ],
    ),
];

/// What a block's placeholders stand for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values(BTreeMap<String, Value>);

impl Values {
    pub(crate) fn none() -> Self {
        Self::default()
    }

    pub(crate) fn new(name: &str, value: &str) -> Self {
        let mut values = Self::none();
        values.set(name, value);
        values
    }

    /// An empty text is one that a block's `if` passes by.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// A text that is written already, with its markup: its own values were escaped.
    pub(crate) fn set_written(&mut self, name: &str, html: String) {
        self.0.insert(name.to_owned(), Value::from_safe_string(html));
    }

    /// Adds what `others` stand for.
    #[cfg(test)]
    pub(crate) fn add(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    pub(crate) fn set_switch(&mut self, name: &str, is_on: bool) {
        self.0.insert(name.to_owned(), is_on.into());
    }
}

/// The texts, ready to be rendered.
pub(crate) struct Content {
    blocks: Environment<'static>,
    overrides: Compiled,
    default_lang: Lang,
}

impl Content {
    /// The texts that are shipped; people without a language get `default_lang`.
    ///
    /// # Errors
    /// [`Error::Content`] names a block that is not a valid template.
    pub(crate) fn shipped(default_lang: Lang) -> Result<Self, Error> {
        let mut blocks = environment();
        for (lang, files) in FILES {
            for (key, body) in read(lang, &files)? {
                let name = block_name(&key, lang);
                blocks.add_template_owned(name.clone(), body).map_err(|_| Error::Content(name))?;
            }
        }
        Ok(Self { blocks, overrides: Compiled::default(), default_lang })
    }

    /// The language of people who have not chosen one.
    pub(crate) fn default_lang(&self) -> Option<Lang> {
        Some(self.default_lang)
    }

    /// Whether there is such a block.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.blocks.get_template(&block_name(key, Lang::Ru)).is_ok()
    }

    /// The names of the blocks.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &str> {
        self.blocks.templates().filter_map(|(name, _)| name.strip_suffix(".ru"))
    }

    /// Whether a block's text is shown as it stands, without formatting.
    pub(crate) fn is_plain(&self, key: &str) -> bool {
        is_plain(key)
    }

    /// The shipped text of a block as it was written, if there is such a block.
    pub(crate) fn shipped_body(&self, key: &str, lang: Lang) -> Option<String> {
        self.blocks.get_template(&block_name(key, lang)).ok().map(|block| block.source().to_owned())
    }

    /// A block's text in the person's language (the default one for who has not chosen), else in ru; an override before
    /// what is shipped.
    ///
    /// # Errors
    /// [`Error::Content`] when there is no such block, or it names a value it was not given; the store's.
    pub(crate) fn render(&self, tx: &Tx<'_>, key: &str, lang: Option<Lang>, values: &Values) -> Result<String, Error> {
        let lang = lang.unwrap_or(self.default_lang);
        if let Some(body) = sql::find_body(tx, key, lang)?
            && let Some(text) = self.overrides.render(key, lang, &body, values)
        {
            return Ok(text);
        }
        self.render_shipped(key, Some(lang), values)
    }

    /// The same of the shipped block, for whoever has no transaction.
    ///
    /// # Errors
    /// [`Error::Content`], as [`Content::render`].
    pub(crate) fn render_shipped(&self, key: &str, lang: Option<Lang>, values: &Values) -> Result<String, Error> {
        let wanted = block_name(key, lang.unwrap_or(self.default_lang));
        let block = self.blocks.get_template(&wanted).or_else(|_| self.blocks.get_template(&block_name(key, Lang::Ru)));
        block.and_then(|block| block.render(values.0.clone())).map_err(|_| Error::Content(wanted))
    }
}

/// The blocks of a language, by key. A key of two files is an error: one of the two would never be seen.
fn read(lang: Lang, files: &[&str]) -> Result<BTreeMap<String, String>, Error> {
    let mut all = BTreeMap::new();
    for file in files {
        let texts: BTreeMap<String, String> =
            toml::from_str(file).map_err(|_| Error::Content(format!("{}/*.toml", lang.as_str())))?;
        for (key, body) in texts {
            if all.insert(key.clone(), body).is_some() {
                return Err(Error::Content(block_name(&key, lang)));
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::blocks::BLOCKS;
    use super::{Content, FILES, Lang, Values, check, read};

    #[test]
    fn both_languages_have_every_block_that_is_described_and_no_other() {
        let mut described: Vec<&str> = BLOCKS.iter().copied().flatten().map(|block| block.key).collect();
        described.sort_unstable();
        for (lang, files) in FILES {
            let texts = read(lang, &files).unwrap();
            assert_eq!(texts.keys().map(String::as_str).collect::<Vec<_>>(), described, "{lang:?}");
        }
    }

    #[test]
    fn every_shipped_text_passes_the_check_that_an_override_must_pass() {
        for (lang, files) in FILES {
            for (key, body) in read(lang, &files).unwrap() {
                if let Err(flaws) = check(&key, &body) {
                    panic!("{key}, {lang:?}: {flaws:?}");
                }
            }
        }
    }

    #[test]
    fn values_are_escaped_and_a_missing_one_is_refused() {
        let content = Content::shipped(Lang::En).unwrap();
        let text = content.render_shipped("new_partner", None, &Values::new("partner_name", "<b>A&B</b>")).unwrap();
        assert!(text.contains("&lt;b&gt;A&amp;B&lt;/b&gt;"), "{text}");
        let text = content.render_shipped("new_partner_body", None, &Values::new("partner_name", "A&B")).unwrap();
        assert!(text.contains("A&B"), "{text}");
        assert!(content.render_shipped("new_partner", None, &Values::none()).is_err());
        assert!(content.render_shipped("no_such_block", None, &Values::none()).is_err());
    }
}
