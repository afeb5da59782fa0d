//! The bot's texts: content blocks by key and language, rendered for Telegram's HTML.
//!
//! They are templates with strict variables: a text that names what it was not given fails, instead of going out with
//! a hole in it. Values are escaped, the blocks themselves are not. A language that lacks a block falls back to ru.

#[expect(dead_code, reason = "texts are checked with it when they are saved, and none is saved yet")]
pub(crate) mod blocks;
mod lang;

use std::collections::BTreeMap;
use std::fmt::Write;

use minijinja::value::ValueKind;
use minijinja::{AutoEscape, Environment, Output, State, UndefinedBehavior, Value};

use super::Error;
use crate::kernel::store::Tx;
pub(crate) use lang::Lang;

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
    #[expect(dead_code, reason = "screens with lists need it, and none is shown yet")]
    pub(crate) fn set_written(&mut self, name: &str, html: String) {
        self.0.insert(name.to_owned(), Value::from_safe_string(html));
    }

    pub(crate) fn set_switch(&mut self, name: &str, is_on: bool) {
        self.0.insert(name.to_owned(), is_on.into());
    }
}

/// The texts, ready to be rendered.
pub(crate) struct Content {
    blocks: Environment<'static>,
    default_lang: Lang,
}

impl Content {
    /// The texts that are shipped; people without a language get `default_lang`.
    ///
    /// # Errors
    /// [`Error::Content`] names a block that is not a valid template.
    pub(crate) fn shipped(default_lang: Lang) -> Result<Self, Error> {
        let mut blocks = Environment::new();
        blocks.set_undefined_behavior(UndefinedBehavior::Strict);
        blocks.set_auto_escape_callback(|name| if is_plain(name) { AutoEscape::None } else { AutoEscape::Html });
        blocks.set_formatter(telegram_html);
        for (lang, files) in FILES {
            for (key, body) in read(lang, &files)? {
                let name = block_name(&key, lang);
                blocks.add_template_owned(name.clone(), body).map_err(|_| Error::Content(name))?;
            }
        }
        Ok(Self { blocks, default_lang })
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

    /// A block's text in the person's language (the default one for who has not chosen), else in ru.
    ///
    /// # Errors
    /// [`Error::Content`] when there is no such block, or it names a value it was not given; the store's.
    pub(crate) fn render(&self, _: &Tx<'_>, key: &str, lang: Option<Lang>, values: &Values) -> Result<String, Error> {
        self.render_shipped(key, lang, values)
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

fn block_name(key: &str, lang: Lang) -> String {
    format!("{key}.{}", lang.as_str())
}

/// Buttons and the web cabinet's notifications are shown as they stand.
fn is_plain(name: &str) -> bool {
    let key = name.split('.').next().unwrap_or(name);
    ["_button", "_title", "_body"].iter().any(|ending| key.ends_with(ending))
}

/// Escapes what Telegram's HTML gives a meaning to, and nothing else (Bot API, "HTML style").
fn telegram_html(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), minijinja::Error> {
    // A switch is written as in the event, not as the template language has it.
    let text = bool::try_from(value.clone()).ok().filter(|_| value.kind() == ValueKind::Bool);
    let text = text.map_or_else(|| value.to_string(), |is_on| is_on.to_string());
    if *state.auto_escape() == AutoEscape::None {
        return out.write_str(&text).map_err(minijinja::Error::from);
    }
    for character in text.chars() {
        match character {
            '&' => out.write_str("&amp;"),
            '<' => out.write_str("&lt;"),
            '>' => out.write_str("&gt;"),
            '"' => out.write_str("&quot;"),
            other => out.write_char(other),
        }
        .map_err(minijinja::Error::from)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Content, FILES, Lang, Values, read};
    use crate::kernel::events::CATALOGUE;

    #[test]
    fn both_languages_have_the_same_blocks_and_every_block_renders() {
        let [ru, en] = FILES.map(|(lang, files)| read(lang, &files).unwrap().into_keys().collect::<Vec<_>>());
        assert_eq!(ru, en);
        let content = Content::shipped(Lang::Ru).unwrap();
        let mut sample = Values::new("partner_name", "Анна");
        let digest = ["in_bot", "watched", "registered", "nft"];
        for name in ["type", "aggregate_type", "aggregate_id", "occurred_at"].into_iter().chain(digest) {
            sample.set(name, "x");
        }
        for field in CATALOGUE.iter().flat_map(|entry| entry.fields) {
            sample.set(field.name, "7");
        }
        for key in &ru {
            for lang in Lang::ALL {
                let text = content.render_shipped(key, Some(lang), &sample).unwrap();
                assert!(!text.is_empty() && text.encode_utf16().count() <= 4096, "{key}");
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
