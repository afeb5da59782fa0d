//! The check that a text passes before anybody is sent it: rendered with everything that its values may be, it is a text that
//! Telegram takes.

use std::collections::BTreeSet;

use minijinja::Environment;

use super::Values;
use super::blocks::{self, Block, Shape, Value};
use super::markup::{Flaw, LONGEST_LABEL, LONGEST_TEXT, check_length, check_line, visible};
use super::template::environment;
use crate::config::nearest;
use crate::kernel::events::CATALOGUE;

/// What Telegram's HTML gives a meaning to.
const MARKUP: &str = "<b>&\"";
/// A name of the greatest length that is kept, of the widest characters.
const WIDEST: (&str, usize) = ("🙂", 200);
/// Characters of a text in the file (CHECK of `content_blocks`).
const LONGEST_BODY: usize = 16_384;
/// Kinds of an event's fields that have a value in a text; lists and objects have none.
const SCALARS: [&str; 3] = ["string", "integer", "boolean"];

/// A text that has passed the check.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    key: &'static str,
    body: String,
}

impl Checked {
    /// Its block.
    pub(crate) fn key(&self) -> &'static str {
        self.key
    }

    /// The text.
    pub(crate) fn body(&self) -> &str {
        &self.body
    }
}

/// Checks a text as the one of this block, in whatever language.
///
/// # Errors
/// Everything that is wrong with it, each once.
pub(crate) fn check(key: &str, body: &str) -> Result<Checked, Vec<Flaw>> {
    let Some(block) = blocks::find(key) else {
        let known = blocks::BLOCKS.into_iter().flatten().map(|block| block.key);
        return Err(vec![Flaw::UnknownBlock { nearest: nearest(key, known).unwrap_or_default().to_owned() }]);
    };
    if body.chars().count() > LONGEST_BODY {
        let with = "as it is written".to_owned();
        return Err(vec![Flaw::TooLong { with, length: body.chars().count(), most: LONGEST_BODY }]);
    }
    let mut environment = environment();
    environment.add_template(block.key, body).map_err(|error| vec![no_template(&error)])?;
    let mut flaws = unknown_values(&environment, block);
    // A value that is not given fails at every rendering; that it is named is said once.
    if flaws.is_empty() {
        for (with, values) in trials(block) {
            if let Err(flaw) = check_rendered(&environment, block, &with, &values)
                && !flaws.iter().any(|known| is_alike(known, &flaw))
            {
                flaws.push(flaw);
            }
        }
    }
    if flaws.is_empty() { Ok(Checked { key: block.key, body: body.to_owned() }) } else { Err(flaws) }
}

/// How a text looks with an example of each of its values.
///
/// # Errors
/// Why it cannot be rendered.
pub(crate) fn example(key: &str, body: &str) -> Option<String> {
    let block = blocks::find(key)?;
    let mut environment = environment();
    environment.add_template(block.key, body).ok()?;
    environment.get_template(block.key).ok()?.render(given(block, Sample::Usual, None).0).ok()
}

/// What this block may name.
pub(crate) fn names(block: Block) -> Vec<&'static str> {
    values_of(block).iter().map(Value::name).collect()
}

fn no_template(error: &minijinja::Error) -> Flaw {
    Flaw::NoTemplate { line: error.line().unwrap_or(1), what: reason(error) }
}

fn reason(error: &minijinja::Error) -> String {
    error.detail().map_or_else(|| error.kind().to_string(), ToOwned::to_owned)
}

fn unknown_values(environment: &Environment<'_>, block: Block) -> Vec<Flaw> {
    let Ok(template) = environment.get_template(block.key) else { return Vec::new() };
    let known: BTreeSet<&str> = names(block).into_iter().collect();
    let mut named: Vec<String> = template.undeclared_variables(false).into_iter().collect();
    named.sort_unstable();
    let told =
        if known.is_empty() { "nothing".to_owned() } else { known.iter().copied().collect::<Vec<_>>().join(", ") };
    let unknown = named.into_iter().filter(|name| !known.contains(name.as_str()));
    unknown.map(|name| Flaw::UnknownValue { name, known: told.clone() }).collect()
}

/// The values of a block; of an event's block also the fields of its type.
fn values_of(block: Block) -> Vec<Value> {
    let is_of = |name: &str| block.key.strip_prefix("event_") == Some(name.replace('.', "_").as_str());
    let fields = CATALOGUE.iter().filter(|entry| is_of(entry.name)).flat_map(|entry| entry.fields);
    let scalars = fields.filter(|field| SCALARS.iter().any(|kind| field.kind.starts_with(kind)));
    let given = block.values.iter().copied();
    given.chain(scalars.map(|field| Value::Text { name: field.name, samples: &["7", "failing"] })).collect()
}

/// What a value is given in a trial.
#[derive(Clone, Copy)]
enum Sample {
    /// Its first sample.
    Usual,
    Nothing,
    Markup,
    Widest,
    /// Its sample of this number.
    Of(usize),
}

/// Every trial, with what to call it: all values as usual, all at their worst, and each by itself otherwise than the rest.
fn trials(block: Block) -> Vec<(String, Values)> {
    let mut trials = vec![
        ("with usual values".to_owned(), given(block, Sample::Usual, None)),
        ("with all values empty".to_owned(), given(block, Sample::Nothing, None)),
        ("with markup in all values".to_owned(), given(block, Sample::Markup, None)),
    ];
    if block.shape != Shape::Button {
        // A button that is too long with somebody's name is cut when it is shown.
        trials.push(("with the longest values".to_owned(), given(block, Sample::Widest, None)));
    }
    for value in values_of(block) {
        let samples = if let Value::Text { samples, .. } = value { samples } else { &[] };
        let own = (1..samples.len()).map(Sample::Of);
        for sample in own.chain([Sample::Nothing]) {
            let name = value.name();
            trials.push((format!("with another {name}"), given(block, Sample::Usual, Some((name, sample)))));
        }
        let alone = given(block, Sample::Nothing, Some((value.name(), Sample::Usual)));
        trials.push((format!("with {} only", value.name()), alone));
    }
    trials
}

/// Values for each name of the block, one of them otherwise than the rest.
fn given(block: Block, rest: Sample, other: Option<(&str, Sample)>) -> Values {
    let mut values = Values::none();
    for value in values_of(block) {
        let sample = other.filter(|(name, _)| *name == value.name()).map_or(rest, |(_, sample)| sample);
        match value {
            Value::Text { name, samples } => values.set(name, &text_of(sample, samples)),
            Value::Switch { name } => values.set_switch(name, !matches!(sample, Sample::Nothing)),
            Value::Items => values.set_written("items", lines_of(sample)),
        }
    }
    values
}

fn text_of(sample: Sample, samples: &[&str]) -> String {
    let first = samples.iter().find(|sample| !sample.is_empty()).copied().unwrap_or("x");
    match sample {
        Sample::Usual => first.to_owned(),
        Sample::Nothing => String::new(),
        Sample::Markup => MARKUP.to_owned(),
        Sample::Widest => WIDEST.0.repeat(WIDEST.1),
        Sample::Of(number) => samples.get(number).copied().unwrap_or(first).to_owned(),
    }
}

/// A list's lines. Of one that is too long the last lines are left out when it is shown.
fn lines_of(sample: Sample) -> String {
    match sample {
        Sample::Nothing => String::new(),
        _ => ["🆘 <b>Anna &lt;3</b>"; 10].join("\n"),
    }
}

fn check_rendered(environment: &Environment<'_>, block: Block, with: &str, values: &Values) -> Result<(), Flaw> {
    let rendered = environment.get_template(block.key).and_then(|template| template.render(values.0.clone()));
    let text = rendered.map_err(|error| Flaw::NotRendered { with: with.to_owned(), what: reason(&error) })?;
    match block.shape {
        Shape::Html => check_length(&visible(&text)?, LONGEST_TEXT, with),
        Shape::Plain(most) => check_plain(&text, most, with),
        Shape::Button => check_line(&text).and_then(|()| check_plain(&text, LONGEST_LABEL, with)),
    }
}

fn check_plain(text: &str, most: usize, with: &str) -> Result<(), Flaw> {
    match text.chars().count() {
        _ if text.trim().is_empty() => Err(Flaw::Empty { with: with.to_owned() }),
        length if length > most => Err(Flaw::TooLong { with: with.to_owned(), length, most }),
        _ => Ok(()),
    }
}

/// Whether two are the same but for the values they came of: one of them is enough.
fn is_alike(a: &Flaw, b: &Flaw) -> bool {
    match (a, b) {
        (Flaw::NotRendered { what: a, .. }, Flaw::NotRendered { what: b, .. }) => a == b,
        (Flaw::Markup { what: a, .. }, Flaw::Markup { what: b, .. }) => a == b,
        (Flaw::Attribute { tag: a, .. }, Flaw::Attribute { tag: b, .. }) => a == b,
        (Flaw::Empty { .. }, Flaw::Empty { .. }) | (Flaw::TooLong { .. }, Flaw::TooLong { .. }) => true,
        _ => a == b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flaws(key: &str, body: &str) -> Vec<String> {
        check(key, body).err().into_iter().flatten().map(|flaw| flaw.to_string()).collect()
    }

    #[test]
    fn a_good_text_passes() {
        for (key, body) in [
            ("new_partner", "<b>{{ partner_name }}</b> & co"),
            ("new_partner", "Hello{% if partner_name %}, {{ partner_name|upper }}{% endif %}!"),
            ("new_partner_body", "{{ partner_name }} < 3, hello"),
            ("event_member_registered", "{{ uid }} under {{ parent_uid }}, {{ occurred_at }}"),
        ] {
            assert_eq!(flaws(key, body), Vec::<String>::new(), "{body}");
        }
    }

    #[test]
    fn everything_that_is_wrong_is_told_and_each_once() {
        for (key, body, told) in [
            ("new_partners", "x", "the nearest is `new_partner`"),
            ("new_partner", "{% if partner_name %}x", "this is no template"),
            ("new_partner", "{{ name }} and {{ partner_name }}", "it names `name`"),
            ("new_partner", "x{% if partner_name %}{{ other }}{% endif %}", "it names `other`"),
            ("new_partner", "{{ partner_name }}", "nothing is left"),
            ("new_partner", "<b>{{ partner_name }}", "never closed"),
            ("new_partner", "a{{ partner_name|safe }}", "never closed"),
            ("new_partner", "a{{ partner_name }}{{ partner_name|nope }}", "filter nope is unknown"),
            ("new_partner", "<font>a</font>", "no tag <font>"),
            ("new_partner", "{% include 'other' %}", "unknown statement include"),
            (
                "new_partner",
                "{% for n in range(9999) %}{% for m in range(9999) %}{% endfor %}{% endfor %}x",
                "it names `range`",
            ),
            ("bind_prompt_button", "two\nlines", "one line"),
            (
                "bind_prompt_button",
                "01234567890123456789012345678901234567890123456789012345678901234",
                "65 of at most 64",
            ),
            ("new_partner_title", "", "nothing is left"),
        ] {
            let flaws = flaws(key, body);
            assert!(flaws.len() == 1 && flaws[0].contains(told), "{body}: {flaws:?}");
        }
        assert!(flaws("new_partner", &"x".repeat(4_097))[0].contains("4097 of at most 4096"));
        // Short by itself, too long with the longest name there can be.
        assert!(
            flaws("new_partner", &format!("{}{{{{ partner_name }}}}", "x".repeat(4_000)))[0].contains("longest values")
        );
        assert!(flaws("new_partner", &"x".repeat(20_000))[0].contains("16384"));
    }
}
