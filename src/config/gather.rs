//! Brings the layers together: reads names, refuses unknown ones, lets the strongest layer win, and reads secrets that
//! are given as a file. A value that is overridden is not looked at; a key that nobody knows always is.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use super::communications::{self, CommunicationRule, RULE};
use super::file;
use super::keys::{FILE_VARIABLE, Key, PREFIX, section_names};
use super::problem::{Origin, Place, Problem};
use super::sources::Sources;
use super::table::KEYS;

/// How a value was written.
#[derive(Clone)]
pub(super) enum Written {
    /// In a variable or an argument, where everything is text.
    Plain(String),
    /// As a TOML string.
    Quoted(String),
    /// As a TOML integer, in base ten.
    Number(String),
    /// As a TOML boolean, by its word.
    Switch(&'static str),
    /// As a TOML list of strings, which are joined by commas: a list is written as text elsewhere.
    List(String),
    /// As a TOML list of integers, joined in the same way.
    Numbers(String),
    /// As a TOML list of tables, each with its place and its entries.
    Tables(Vec<(Place, Vec<Entry>)>),
    /// As something that no key takes; the name of its TOML type.
    Other(&'static str),
    /// As a TOML table at the root.
    Section,
}

/// One name with its value, in one layer. A section's own name ends in a dot.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) written: Written,
    pub(super) place: Place,
}

/// A key's effective value before it is checked.
pub(super) struct Found {
    pub(super) written: Written,
    pub(super) origin: Origin,
}

/// What the layers say, by dotted name; keys that nobody sets, and those with a problem of their own, are absent.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) found: BTreeMap<String, Found>,
    pub(super) broken: Vec<String>,
    pub(super) rules: Vec<CommunicationRule>,
}

/// Which of its two spellings a secret was given in.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Spelling {
    Itself,
    AsFile,
}

struct Target {
    key: &'static Key,
    spelling: Spelling,
}

pub(super) fn gather(sources: &Sources, problems: &mut Vec<Problem>) -> Gathered {
    let mut gathered = Gathered::default();
    let mut winners: BTreeMap<String, (Target, Entry)> = BTreeMap::new();
    // From the weakest to the strongest.
    let of_file = sources.file.as_ref().map(|file| file::entries(file, problems)).unwrap_or_default();
    let of_environment = environment_entries(&sources.environment, problems);
    let of_set = set_entries(&sources.set, problems);
    let of_flags = flag_entries(sources, problems);
    for layer in [of_file, of_environment, of_set, of_flags] {
        let mut seen: HashMap<String, (Spelling, String)> = HashMap::new();
        let mut unknown_sections = Vec::new();
        for entry in layer {
            if unknown_sections.iter().any(|section| entry.key.starts_with(section)) {
                continue;
            }
            if communications::is_about_rules(&entry) {
                gathered.rules.extend(communications::read(entry, problems));
                continue;
            }
            let Some(target) = target_of(&entry, &mut unknown_sections, problems) else { continue };
            let name = target.key.dotted();
            if let Some(problem) = clash(&target, &entry, &seen) {
                problems.push(problem);
                gathered.broken.push(name);
                continue;
            }
            seen.insert(name.clone(), (target.spelling, Origin::from(entry.place.clone()).to_string()));
            winners.insert(name, (target, entry));
        }
    }
    for (name, (target, entry)) in winners {
        match resolve(&target, entry) {
            Ok(found) => {
                gathered.found.insert(name, found);
            }
            Err(problem) => {
                problems.push(*problem);
                gathered.broken.push(name);
            }
        }
    }
    gathered
}

/// The key that `entry` names, or `None` after saying that there is none. `None` without a word for a known section.
fn target_of(entry: &Entry, unknown_sections: &mut Vec<String>, problems: &mut Vec<Problem>) -> Option<Target> {
    if let Written::Section = entry.written {
        let name = entry.key.trim_end_matches('.');
        if !section_names().contains(&name) {
            unknown_sections.push(entry.key.clone());
            let known = nearest(name, section_names()).unwrap_or_default();
            let what = format!("unknown section; the nearest known section is `{known}`");
            problems.push(unknown(entry, name, what));
        }
        return None;
    }
    let target = find_target(&entry.key);
    if target.is_none() {
        let what = match &entry.place {
            Place::Variable(variable) => {
                let known =
                    nearest(variable, variable_names().iter().map(String::as_str)).unwrap_or_default().to_owned();
                format!("unknown variable; the nearest known variable is `{known}`")
            }
            _ if section_names().contains(&entry.key.as_str()) => {
                format!("this is a section, not a key; its keys are written below `[{}]`", entry.key)
            }
            _ => format!("unknown key; the nearest known key is `{}`", nearest_key(&entry.key)),
        };
        problems.push(unknown(entry, &entry.key, what));
    }
    target
}

/// Never shows the value: the name may be a misspelt `token`.
fn unknown(entry: &Entry, key: &str, what: String) -> Problem {
    let origin = Origin::from(entry.place.clone());
    let key = (!matches!(entry.place, Place::Variable(_))).then(|| key.to_owned());
    Problem { key, value: None, origin, what, advice: "correct the name or remove it".to_owned() }
}

fn find_target(dotted: &str) -> Option<Target> {
    KEYS.iter().find_map(|key| {
        let rest = dotted.strip_prefix(key.section)?.strip_prefix('.')?.strip_prefix(key.name)?;
        match rest {
            "" => Some(Target { key, spelling: Spelling::Itself }),
            "_file" if key.is_secret() => Some(Target { key, spelling: Spelling::AsFile }),
            _ => None,
        }
    })
}

/// Within one layer nothing says which of two spellings is meant. (The same spelling twice is an argument given twice,
/// where the later wins, or a variable and its alias, which clash too.)
fn clash(target: &Target, entry: &Entry, seen: &HashMap<String, (Spelling, String)>) -> Option<Problem> {
    let (spelling, elsewhere) = seen.get(&target.key.dotted())?;
    let same = *spelling == target.spelling;
    if same && !matches!(entry.place, Place::Variable(_)) {
        return None;
    }
    let advice = match same {
        true => "keep one of the two variables",
        false => "keep either the secret or its file",
    };
    Some(Problem {
        key: Some(entry.key.clone()),
        value: None,
        origin: entry.place.clone().into(),
        what: format!("{} is set twice, here and in [{elsewhere}]", target.key.dotted()),
        advice: advice.to_owned(),
    })
}

/// Reads the file of a secret that was given as one.
fn resolve(target: &Target, entry: Entry) -> Result<Found, Box<Problem>> {
    let origin = Origin::from(entry.place);
    if target.spelling == Spelling::Itself {
        return Ok(Found { written: entry.written, origin });
    }
    let problem = |value: Option<String>, what: String, advice: &str| {
        let (key, origin) = (Some(entry.key.clone()), origin.clone());
        Box::new(Problem { key, value, origin, what, advice: advice.to_owned() })
    };
    let (Written::Plain(path) | Written::Quoted(path)) = &entry.written else {
        return Err(problem(None, "the path of a file is needed".to_owned(), "write the path in quotes"));
    };
    let shown = Some(path.clone());
    match std::fs::read(path) {
        Err(error) => {
            let what = format!("the secret's file cannot be read ({})", error.kind());
            Err(problem(shown, what, "write the path of a file that this user can read"))
        }
        Ok(bytes) => match std::str::from_utf8(&bytes).map(|text| text.trim_end_matches(['\r', '\n'])) {
            Err(_) => {
                Err(problem(shown, "the secret's file is not text".to_owned(), "write the secret into it, and no more"))
            }
            Ok("") => Err(problem(shown, "the secret's file is empty".to_owned(), "write the secret into it")),
            Ok(text) => {
                let content_of = Some(PathBuf::from(path));
                Ok(Found {
                    written: Written::Plain(text.to_owned()),
                    origin: Origin { place: origin.place, content_of },
                })
            }
        },
    }
}

/// Our variables. An empty one is as good as none, since compose files and unit files hand on unset variables so; its
/// name is still checked.
fn environment_entries(environment: &[(OsString, OsString)], problems: &mut Vec<Problem>) -> Vec<Entry> {
    let names = names_by_variable();
    let mut entries = Vec::new();
    for (name, value) in environment {
        let name = name.to_string_lossy().into_owned();
        let key = match names.get(&name) {
            Some(_) if value.is_empty() => continue,
            Some(key) => key.clone(),
            None if name == FILE_VARIABLE || !name.starts_with(PREFIX) => continue,
            None => name.clone(),
        };
        let place = Place::Variable(name);
        if let Some(value) = text_or_problem(value, &key, &place, problems) {
            entries.push(Entry { key, written: Written::Plain(value), place });
        }
    }
    entries.sort_by(|a, b| a.key.cmp(&b.key));
    entries
}

fn set_entries(set: &[String], problems: &mut Vec<Problem>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (index, assignment) in set.iter().enumerate() {
        match assignment.split_once('=') {
            Some((key, value)) => {
                let written = Written::Plain(value.to_owned());
                entries.push(Entry { key: key.trim().to_owned(), written, place: Place::Set });
            }
            // What was meant is unknown, so the text may be a secret and is not shown.
            None => problems.push(Problem {
                key: None,
                value: None,
                origin: Place::Set.into(),
                what: format!("number {} has no `=`", index + 1),
                advice: "write --set section.key=value".to_owned(),
            }),
        }
    }
    entries
}

fn flag_entries(sources: &Sources, problems: &mut Vec<Problem>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for flag in &sources.flags {
        let place = Place::Flag(flag.flag);
        if let Some(value) = text_or_problem(&flag.value, flag.key, &place, problems) {
            entries.push(Entry { key: flag.key.to_owned(), written: Written::Plain(value), place });
        }
    }
    entries
}

fn text_or_problem(value: &OsStr, key: &str, place: &Place, problems: &mut Vec<Problem>) -> Option<String> {
    let text = value.to_str().map(str::to_owned);
    if text.is_none() {
        problems.push(Problem {
            key: Some(key.to_owned()),
            value: None,
            origin: place.clone().into(),
            what: "the value is not UTF-8".to_owned(),
            advice: "write it in UTF-8".to_owned(),
        });
    }
    text
}

/// Every variable that sets a key, with the dotted name it stands for.
fn names_by_variable() -> HashMap<String, String> {
    let mut names = HashMap::new();
    for key in KEYS {
        let aliases = key.alias.map(str::to_owned);
        for variable in std::iter::once(key.variable()).chain(aliases) {
            if key.is_secret() {
                names.insert(format!("{variable}_FILE"), format!("{}_file", key.dotted()));
            }
            names.insert(variable, key.dotted());
        }
    }
    names
}

fn variable_names() -> Vec<String> {
    let mut names: Vec<_> = names_by_variable().into_keys().chain([FILE_VARIABLE.to_owned()]).collect();
    names.sort();
    names
}

/// The known key that `dotted` most probably stands for: one of the same name in another section, else the nearest.
fn nearest_key(dotted: &str) -> String {
    let mut known = vec![RULE.to_owned()];
    for key in KEYS {
        known.push(key.dotted());
        if key.is_secret() {
            known.push(format!("{}_file", key.dotted()));
        }
    }
    let last = dotted.rsplit('.').next().unwrap_or(dotted);
    let namesake = known.iter().find(|name| name.rsplit('.').next() == Some(last));
    match namesake {
        Some(name) => name.clone(),
        None => nearest(dotted, known.iter().map(String::as_str)).unwrap_or_default().to_owned(),
    }
}

/// The candidate with the fewest slips from `name`; case, and `-` for `_`, are no slips.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = |text: &str| text.to_lowercase().replace('-', "_");
    // A name that long is a mistake of another kind, and the distance costs its length for every candidate.
    let name: String = folded(name).chars().take(100).collect();
    let distance = |candidate: &&str| strsim::damerau_levenshtein(&name, &folded(candidate));
    candidates.into_iter().min_by_key(distance)
}
