//! The TOML file as a flat list of entries with their lines. Syntax is TOML's; what the keys mean is not known here.

use std::path::Path;

use toml::Spanned;
use toml::de::{DeArray, DeString, DeTable, DeValue};

use super::gather::{Entry, Written};
use super::problem::{Place, Problem};
use super::sources::SourceFile;

/// The entries of `file` in the order of their lines. A file that cannot be read or is not TOML has none, and problems.
pub(super) fn entries(file: &SourceFile, problems: &mut Vec<Problem>) -> Vec<Entry> {
    let whole = |line, what: String, advice: &str| Problem {
        key: None,
        value: None,
        origin: Place::File { path: file.path.clone(), line }.into(),
        what,
        advice: advice.to_owned(),
    };
    let bytes = match &file.bytes {
        Ok(bytes) => bytes,
        Err(error) => {
            let advice = "name a file that this user can read, or write one with `pillarbox init`";
            let what = match error.kind() {
                std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
                kind => format!("the file cannot be read ({kind})"),
            };
            problems.push(whole(0, what, advice));
            return Vec::new();
        }
    };
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let line = line_of(bytes, error.valid_up_to());
            problems.push(whole(line, "the file is not UTF-8".to_owned(), "save it as UTF-8"));
            return Vec::new();
        }
    };
    let (root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        problems.extend(syntax_problems(text, &errors, whole));
        return Vec::new();
    }
    let mut entries = Vec::new();
    flatten(&Reading { path: &file.path, bytes }, "", root.get_ref(), &mut entries);
    entries.sort_by_key(|entry| match &entry.place {
        Place::File { line, .. } => *line,
        _ => 0,
    });
    entries
}

/// One problem a line: what the parser says after its first stumble on a line is mostly an echo. Only the parser's
/// own words are used; its full message quotes the line, which may hold a secret.
fn syntax_problems(
    text: &str,
    errors: &[toml::de::Error],
    whole: impl Fn(usize, String, &str) -> Problem,
) -> Vec<Problem> {
    let mut seen = Vec::new();
    let mut problems = Vec::new();
    for error in errors {
        let line = error.span().map_or(0, |span| line_of(text.as_bytes(), span.start));
        if !seen.contains(&line) {
            seen.push(line);
            let advice = "text, lengths of time and sizes are written in quotes, numbers without";
            problems.push(whole(line, format!("this is not TOML ({})", error.message()), advice));
        }
    }
    problems
}

struct Reading<'a> {
    path: &'a Path,
    bytes: &'a [u8],
}

impl Reading<'_> {
    fn place(&self, offset: usize) -> Place {
        Place::File { path: self.path.to_path_buf(), line: line_of(self.bytes, offset) }
    }
}

fn flatten(reading: &Reading<'_>, prefix: &str, table: &DeTable<'_>, entries: &mut Vec<Entry>) {
    for (name, value) in table {
        let key = format!("{prefix}{}", name.get_ref());
        let place = reading.place(name.span().start);
        match value.get_ref() {
            // A section's name ends in a dot here, so that an empty or an unknown one is looked at too.
            DeValue::Table(inner) if prefix.is_empty() => {
                let section = format!("{key}.");
                entries.push(Entry { key: section.clone(), written: Written::Section, place });
                flatten(reading, &section, inner, entries);
            }
            value => entries.push(Entry { key, written: written(reading, value), place }),
        }
    }
}

fn written(reading: &Reading<'_>, value: &DeValue<'_>) -> Written {
    match value {
        DeValue::String(text) => Written::Quoted(text.to_string()),
        DeValue::Integer(number) => Written::Number(decimal(number.as_str(), number.radix())),
        DeValue::Boolean(is_on) => Written::Switch(if *is_on { "true" } else { "false" }),
        DeValue::Array(list) => {
            let texts = strings(list).map(Written::List);
            let list = texts.or_else(|| numbers(list).map(Written::Numbers)).or_else(|| tables(reading, list));
            list.unwrap_or(Written::Other("array"))
        }
        other => Written::Other(other.type_str()),
    }
}

/// The entries of each table of a list in which there is nothing else.
fn tables(reading: &Reading<'_>, list: &DeArray<'_>) -> Option<Written> {
    let entry = |(name, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| Entry {
        key: name.get_ref().to_string(),
        written: written(reading, value.get_ref()),
        place: reading.place(name.span().start),
    };
    let table = |value: &Spanned<DeValue<'_>>| match value.get_ref() {
        DeValue::Table(table) => Some((reading.place(value.span().start), table.iter().map(entry).collect())),
        _ => None,
    };
    list.iter().map(table).collect::<Option<_>>().map(Written::Tables)
}

/// The entries of a list in which there is nothing but strings.
fn strings(list: &DeArray<'_>) -> Option<String> {
    let texts: Option<Vec<&str>> = list.iter().map(|entry| entry.get_ref().as_str()).collect();
    texts.map(|texts| texts.join(", "))
}

/// The entries of a list in which there is nothing but integers.
fn numbers(list: &DeArray<'_>) -> Option<String> {
    let number = |value: &DeValue<'_>| match value {
        DeValue::Integer(number) => Some(decimal(number.as_str(), number.radix())),
        _ => None,
    };
    let numbers: Option<Vec<String>> = list.iter().map(|entry| number(entry.get_ref())).collect();
    numbers.map(|numbers| numbers.join(", "))
}

/// The number in base ten; one that does not fit stays as it was written and is refused by its kind.
fn decimal(digits: &str, radix: u32) -> String {
    i128::from_str_radix(digits, radix).map_or_else(|_| digits.to_owned(), |number| number.to_string())
}

fn line_of(bytes: &[u8], offset: usize) -> usize {
    bytes.iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
}
