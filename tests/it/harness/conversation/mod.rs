//! Conversations as text: what people do, and what the bot shows them. Adding one needs no Rust.
//!
//! ```text
//! # text                    a comment; the first one says what the conversation is about
//! ! set KEY=VALUE           before the start; also: sql STATEMENT · wait 25h · job NAME · emit JSON · fault JSON ·
//!                           mend (no faults) · put PATH JSON · post PATH JSON; {uuid} stands for the last one that was shown
//! person NAME ID "First name" [@username] [language tag]
//! > NAME: text              a message; also: NAME edits: text · NAME sends sticker|photo|voice|contact
//! > NAME taps "Label" [N times]          the newest button that says so; N updates at once
//! > NAME taps data x:y [on an old message]
//! > NAME blocks             my_chat_member, and every send is refused; also: NAME unblocks
//! > NAME in group -100500: text
//! < NAME | < NAME, edited | < NAME, unchanged | < nothing        all that came of it, person by person
//!   | line of the text, its entities as <b>…</b>
//!   [Label · data] [Label · address]     one line a row
//! ```
//! `unchanged`: a message was to be changed into what it says already.

mod act;
mod seen;

use std::fmt::Write;
use std::path::Path;

use super::dev::Dev;
use act::Stage;
use seen::Seen;

/// Somebody of a conversation.
#[derive(Clone, Debug)]
struct Person {
    name: String,
    id: i64,
    first_name: String,
    username: Option<String>,
    lang: Option<String>,
}

/// A file, taken apart.
struct Script {
    sets: Vec<String>,
    people: Vec<Person>,
    parts: Vec<Part>,
}

/// Something that is done, with the lines that stand for it, and what is to come of it.
struct Part {
    /// As it stands in the file, comments and blank lines before it included.
    lines: Vec<String>,
    /// The last of them without its mark; `None` for lines at which nothing happens.
    act: Option<Act>,
    expected: String,
}

enum Act {
    /// `! …`: it may be silent about coming to nothing.
    Stage(String),
    /// `> …`: it says what came of it.
    Person(String),
}

/// Settings under which nothing but the conversation is heard, whatever the hour is: nobody is reminded, and it is an
/// hour after midnight, so that no noon with its digests comes before the conversation is over.
fn quiet() -> Vec<String> {
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let ahead = i64::try_from(since_epoch.as_secs() / 3_600 % 24).unwrap() - 1;
    // Of these zones those to the west have the plus (POSIX).
    let west = if ahead > 12 { ahead - 24 } else { ahead };
    let zone = if west == 0 { "Etc/GMT".to_owned() } else { format!("Etc/GMT{west:+}") };
    let reminders = (1..=8).map(|stage| format!("reminders.stage_{stage}=0s"));
    ["telegram.chat_interval=0s".to_owned(), format!("jobs.time_zone={zone}")].into_iter().chain(reminders).collect()
}

/// Plays a file. What was not as it says, or nothing; with `bless` the file is written anew and nothing is wrong.
pub(crate) fn play(path: &Path, bless: bool) -> Option<String> {
    let source = std::fs::read_to_string(path).expect("a fixture can be read");
    let mut script = read(&source);
    let quiet = quiet();
    let sets: Vec<&str> = quiet.iter().chain(&script.sets).map(String::as_str).collect();
    let dev = Dev::start(&sets);
    let mut stage = Stage::new(&dev, &script.people);
    let mut faults = String::new();
    for part in &mut script.parts {
        let Some(act) = &part.act else { continue };
        match act {
            Act::Stage(act) => stage.stage(act),
            Act::Person(act) => stage.person(act),
        }
        stage.rest();
        let seen = stage.look();
        let shown = match (seen.is_empty(), act) {
            (true, Act::Person(_)) => "< nothing\n".to_owned(),
            (true, Act::Stage(_)) if part.expected != "< nothing\n" => String::new(),
            (true, Act::Stage(_)) => "< nothing\n".to_owned(),
            (false, _) => seen,
        };
        if shown != part.expected {
            let line = part.lines.last().expect("an act has a line");
            writeln!(faults, "{line}\n--- expected\n{}--- shown\n{shown}", part.expected).expect("into a text");
        }
        part.expected = shown;
    }
    if bless {
        std::fs::write(path, script.to_string()).expect("a fixture can be written");
        return None;
    }
    (!faults.is_empty()).then(|| format!("{}:\n{faults}{}", path.display(), stage.queue()))
}

impl std::fmt::Display for Script {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for part in &self.parts {
            for line in &part.lines {
                writeln!(out, "{line}")?;
            }
            out.write_str(&part.expected)?;
        }
        Ok(())
    }
}

fn read(source: &str) -> Script {
    let mut script = Script { sets: Vec::new(), people: Vec::new(), parts: Vec::new() };
    let mut lines = Vec::new();
    for line in source.lines() {
        if line.starts_with("< ") || line.starts_with("  ") {
            let part = script.parts.last_mut().filter(|_| lines.is_empty());
            let part = part.unwrap_or_else(|| panic!("nothing is done before this: {line}"));
            part.expected.push_str(line);
            part.expected.push('\n');
            continue;
        }
        lines.push(line.to_owned());
        let act = match line.split_once(' ') {
            Some(("!", set)) if set.starts_with("set ") => {
                script.sets.push(set["set ".len()..].to_owned());
                None
            }
            Some(("!", act)) => Some(Act::Stage(act.to_owned())),
            Some((">", act)) => Some(Act::Person(act.to_owned())),
            Some(("person", person)) => {
                script.people.push(read_person(person));
                None
            }
            _ if line.is_empty() || line.starts_with('#') => continue,
            _ => panic!("this line says nothing: {line}"),
        };
        script.parts.push(Part { lines: std::mem::take(&mut lines), act, expected: String::new() });
    }
    if !lines.is_empty() {
        script.parts.push(Part { lines, act: None, expected: String::new() });
    }
    script
}

/// `NAME ID "First name" [@username] [language tag]`
fn read_person(text: &str) -> Person {
    let mut quoted = text.splitn(3, '"');
    let (head, first_name) = (quoted.next().unwrap_or_default(), quoted.next().expect("a first name in quotes"));
    let (name, id) = head.trim().split_once(' ').expect("a name and an id");
    let rest: Vec<&str> = quoted.next().unwrap_or_default().split_whitespace().collect();
    Person {
        name: name.to_owned(),
        id: id.trim().parse().expect("an id"),
        // A line has no other way to hold these.
        first_name: first_name.replace("\\u202e", "\u{202e}").replace("\\n", "\n"),
        username: rest.iter().find_map(|word| word.strip_prefix('@')).map(str::to_owned),
        lang: rest.iter().find(|word| !word.starts_with('@')).map(|word| (*word).to_owned()),
    }
}
