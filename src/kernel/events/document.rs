//! The catalogue as a document for those who receive events: `docs/events.md` is what this writes.

use std::fmt::Write;

use super::catalogue::{CATALOGUE, Entry, KEPT_NAMES};

const HEAD: &str = "\
# Events

What Pillarbox itself publishes, written by `make bless` from the catalogue in the code; `pillarbox events catalogue`
prints the same. All of them belong to the tenant `default`. Other types are those that tenants post to `POST /v1/events`
or insert into `outbox_events`; what their data holds is theirs to say.

An event is handed over at least once, and the order is not promised: recognise a repeat by its id. Data is ids and
amounts, never a name, a phone number or a text that somebody wrote. A version says which fields there are; a field may be
added without a new version, so pass over those that you do not know.

";

/// The whole document.
pub fn catalogue_markdown() -> String {
    let mut text = HEAD.to_owned();
    text.push_str("| type | version | published by | what has happened |\n|---|---|---|---|\n");
    for entry in CATALOGUE {
        let Entry { name, version, source, meaning, .. } = entry;
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(text, "| [`{name}`](#{}) | {version} | {source} | {meaning} |", anchor(name));
    }
    let kept: Vec<String> = KEPT_NAMES.iter().map(|name| format!("`{name}`")).collect();
    let _ = writeln!(text, "\nNobody else may publish these types, nor {}.", kept.join(" and "));
    CATALOGUE.iter().for_each(|entry| section(&mut text, entry));
    text
}

fn section(text: &mut String, entry: &Entry) {
    let Entry { name, version, meaning, aggregate, source, fields, example, .. } = entry;
    let _ =
        writeln!(text, "\n## {name}\n\n{meaning} Version {version}, about a `{aggregate}`, published by {source}.\n");
    text.push_str("| field | type | meaning |\n|---|---|---|\n");
    for field in *fields {
        let _ = writeln!(text, "| `{}` | {} | {} |", field.name, field.kind, field.meaning);
    }
    let _ = writeln!(text, "\n```json\n{}\n```", example.trim_end());
}

/// How a heading is linked to: the sites that show such files drop its dots.
fn anchor(name: &str) -> String {
    name.replace('.', "")
}
