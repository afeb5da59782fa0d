//! The table of keys as text for people: the commented file that `init` writes, and the tables of
//! `docs/configuration.md`.

use std::fmt::Write;

use super::amounts::{duration_text, size_text};
use super::keys::{Key, section_names};
use super::kind::Kind;
use super::table::KEYS;

use crate::kernel::secret::Secret;

/// Width of the comments in the file, so that it reads well in a terminal of 100 columns.
const COMMENT_WIDTH: usize = 96;

/// A configuration file in which every key is explained and commented out with its default, except
/// `bot.backend_secret`, which is `secret`. Loading it changes nothing else.
pub fn commented_file(secret: &Secret) -> String {
    let mut text = String::from(
        "# Configuration of Pillarbox. Every key is listed; a line that is commented out shows the default,\n\
         # or an example where it says that there is none.\n\
         # Environment variables (PILLARBOX_SECTION__KEY) and --set section.key=value override this file.\n\
         # Lengths of time are written \"250ms\", \"30s\", \"5m\", \"2h\", \"30d\"; sizes \"512KB\", \"64MB\", \"1GB\"\n\
         # (1 MB is 1024 x 1024 bytes). `pillarbox config check` tells what is wrong with it.\n",
    );
    for section in section_names() {
        write_line(&mut text, &format!("\n[{section}]"));
        let keys: Vec<_> = KEYS.iter().filter(|key| key.section == section).map(|key| paragraph(key, secret)).collect();
        text.push_str(&keys.join("\n"));
        if section == "communications" {
            text.push_str(RULE_EXAMPLE);
        }
    }
    text
}

/// A rule as it may be written; nobody takes it for a decision.
const RULE_EXAMPLE: &str = r#"
# A rule sends a message when something happens: for each event of this type (or of a prefix, such
# as "lead.*"), the content block of this name goes to this chat. As many as needed, each with its
# own [[communications.rule]]; they are written in this file only.
# [[communications.rule]]
# event = "lead.received"
# block = "event_lead_received"
# chat = -1001234567890
"#;

/// What a rule has, for `docs/configuration.md`.
const RULE_TABLE: &str = "
`[[communications.rule]]`, as many as needed, in the file only:

| key | value | what it does |
|---|---|---|
| `event` | a type, or a prefix with `.*` | The events of the installation that the rule is about. |
| `block` | name of a content block | The text that is sent, with the event's values in it. |
| `chat` | id of a chat | The chat that it is sent to. |
";

fn paragraph(key: &Key, secret: &Secret) -> String {
    let bounds = match (key.kind, rule(key.kind)) {
        (Kind::Choice(_), words) => format!(" One of: {words}."),
        (Kind::Integer { .. } | Kind::Duration { .. } | Kind::Size { .. }, range) => format!(" From {range}."),
        (Kind::SourceName, characters) => format!(" It has {characters}."),
        // The description says it all.
        _ => String::new(),
    };
    format!("{}\n{}", wrapped(&format!("{}{bounds}", plain(key.doc))), assignment(key, secret))
}

fn assignment(key: &Key, secret: &Secret) -> String {
    let name = key.name;
    match (key.section, name, key.default) {
        ("bot", "backend_secret", _) => {
            format!("{name} = \"{}\"\n# {name}_file = \"/path/of/a/file/with/it\"\n", secret.expose())
        }
        (_, _, Some(default)) => format!("# {name} = {}\n", toml_of(key.kind, default)),
        (_, _, None) if key.is_secret() => {
            format!("# {name} = \"\"  # no default\n# {name}_file = \"/path/of/a/file/with/it\"\n")
        }
        (_, _, None) => format!("# {name} = {}  # no default\n", example(key.kind)),
    }
}

/// What a value may look like; nobody takes it for a decision.
fn example(kind: Kind) -> &'static str {
    match kind {
        Kind::Integer { .. } => "365",
        Kind::Origins | Kind::Url | Kind::Page => "\"https://example.org\"",
        Kind::Username => "\"example_bot\"",
        _ => "\"\"",
    }
}

fn toml_of(kind: Kind, default: &str) -> String {
    match kind {
        Kind::Integer { .. } | Kind::Switch => default.to_owned(),
        Kind::Ports => format!("[{default}]"),
        _ => format!("\"{default}\""),
    }
}

/// Tables in Markdown, one per section: what `docs/configuration.md` holds between its two marks.
pub fn key_tables() -> String {
    let mut text = String::new();
    for section in section_names() {
        let head = "| key | value | default | environment variable | what it does |\n|---|---|---|---|---|";
        write_line(&mut text, &format!("### `[{section}]`\n\n{head}"));
        for key in KEYS.iter().filter(|key| key.section == section) {
            let default =
                key.default.map_or_else(|| "unset".to_owned(), |default| format!("`{}`", toml_of(key.kind, default)));
            let value = rule(key.kind);
            let row = format!("| `{}` | {value} | {default} | {} | {} |", key.name, variables(key), key.doc);
            write_line(&mut text, &row);
        }
        if section == "communications" {
            text.push_str(RULE_TABLE);
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn variables(key: &Key) -> String {
    match key.alias {
        Some(alias) => format!("`{}` or `{alias}`", key.variable()),
        None => format!("`{}`", key.variable()),
    }
}

/// What may be written, in a few words.
fn rule(kind: Kind) -> String {
    match kind {
        Kind::Choice(words) => words.join(", "),
        Kind::Integer { min, max } => format!("{min} to {max}"),
        Kind::Duration { min, max } => format!("{} to {}", duration_text(min), duration_text(max)),
        Kind::Size { min, max } => format!("{} to {}", size_text(min), size_text(max)),
        Kind::Secret(_) => "secret".to_owned(),
        Kind::SourceName => "1 to 32 of a-z, 0-9, _ and -, not local".to_owned(),
        Kind::Path => "path".to_owned(),
        Kind::Address => "IP address and port".to_owned(),
        Kind::Url | Kind::Page => "http or https address".to_owned(),
        Kind::Username => "name of a bot".to_owned(),
        Kind::Directives => "log levels".to_owned(),
        Kind::TimeZone => "IANA name".to_owned(),
        Kind::Switch => "true, false".to_owned(),
        Kind::Origins => "list of origins".to_owned(),
        Kind::Networks => "list of addresses and networks".to_owned(),
        Kind::Ports => "list of ports".to_owned(),
        Kind::Region => "two letters".to_owned(),
    }
}

/// A comment in TOML has no use for Markdown's marks.
fn plain(doc: &str) -> String {
    doc.replace('`', "")
}

fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > COMMENT_WIDTH {
            lines.push_str(&line);
            lines.push('\n');
            "#".clone_into(&mut line);
        }
        line.push(' ');
        line.push_str(word);
    }
    lines + &line
}

fn write_line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to a String does not fail");
}
