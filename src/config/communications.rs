//! `[communications]`: which chats are told of which events. Its rules are tables of the file, `[[communications.rule]]`,
//! and no key of [`KEYS`](super::KEYS): nothing else could say which of two rules a variable means.

use super::gather::{Entry, Written, nearest};
use super::keys::PREFIX;
use super::problem::{Origin, Place, Problem};
use super::sections::Checked;
use super::value::Value;
use crate::kernel::events::{CATALOGUE, Pattern};
use crate::kernel::secret::Secret;

/// `[communications]`: the operator's rules, and who is told when something is wrong.
#[derive(Clone, Debug)]
pub struct CommunicationsConfig {
    /// The rules, in the order of the file.
    pub rules: Vec<CommunicationRule>,
    /// The chat that is told of endpoints that fail: the text of an integer.
    pub alert_chat: Option<Secret>,
}

/// One `[[communications.rule]]`: an event of the installation becomes a message.
#[derive(Clone, Debug)]
pub struct CommunicationRule {
    /// Which events.
    pub event: Pattern,
    /// The content block that is sent.
    pub block: String,
    /// The chat it is sent to: the text of an integer.
    pub chat: Secret,
    /// Where the rule is written.
    pub origin: Origin,
}

impl CommunicationRule {
    /// A problem of this rule's, for whoever knows more than the file.
    pub(crate) fn problem(&self, field: &str, what: String, advice: String) -> Problem {
        let value = (field == "block").then(|| self.block.clone());
        Problem { key: Some(format!("{RULE}.{field}")), value, origin: self.origin.clone(), what, advice }
    }

    /// The rule on one line, fit to be shown.
    pub(crate) fn summary(&self) -> String {
        format!("{} sends {} to ***", self.event.as_str(), self.block)
    }

    fn is_same(&self, other: &Self) -> bool {
        (&self.event, &self.block, self.chat.expose()) == (&other.event, &other.block, other.chat.expose())
    }
}

/// The name that rules are written under.
pub(crate) const RULE: &str = "communications.rule";
/// What a rule has.
const FIELDS: [&str; 3] = ["event", "block", "chat"];
const HOW: &str = "write [[communications.rule]] into the configuration file, and event, block and chat below it";
/// A name that differs from a known one by no more than this is probably that one.
const SLIPS: usize = 2;

impl Checked {
    pub(super) fn communications(&self, rules: Vec<CommunicationRule>) -> CommunicationsConfig {
        CommunicationsConfig { rules, alert_chat: self.find_secret("communications.alert_chat") }
    }
}

/// Whether `entry` is about rules.
pub(super) fn is_about_rules(entry: &Entry) -> bool {
    let below = match &entry.place {
        Place::Variable(name) => name.strip_prefix(PREFIX).and_then(|name| name.strip_prefix("COMMUNICATIONS__RULE")),
        _ => entry.key.strip_prefix(RULE),
    };
    below.is_some_and(|below| below.is_empty() || below.starts_with(['.', '[', '_']))
}

/// The rules that `entry` holds; what is wrong with them goes to `problems`.
pub(super) fn read(entry: Entry, problems: &mut Vec<Problem>) -> Vec<CommunicationRule> {
    let refused = |what: &str| Problem {
        key: (!matches!(entry.place, Place::Variable(_))).then(|| RULE.to_owned()),
        value: None,
        origin: entry.place.clone().into(),
        what: what.to_owned(),
        advice: HOW.to_owned(),
    };
    match (&entry.place, entry.written) {
        (Place::File { .. }, Written::Tables(tables)) => read_tables(tables, problems),
        // An empty list is one of no rules.
        (Place::File { .. }, Written::List(text)) if text.is_empty() => Vec::new(),
        (Place::File { .. }, _) => {
            problems.push(refused("rules are a list of tables, and this is none"));
            Vec::new()
        }
        _ => {
            problems.push(refused("rules come from the configuration file only"));
            Vec::new()
        }
    }
}

fn read_tables(tables: Vec<(Place, Vec<Entry>)>, problems: &mut Vec<Problem>) -> Vec<CommunicationRule> {
    let mut rules: Vec<CommunicationRule> = Vec::new();
    for (place, fields) in tables {
        let Some(rule) = (Reading { place, problems }).rule(fields) else { continue };
        match rules.iter().find(|earlier| earlier.is_same(&rule)) {
            Some(earlier) => problems.push(Problem {
                value: None,
                ..rule.problem(
                    "event",
                    format!("the rule of [{}] says the same", earlier.origin),
                    "remove one".to_owned(),
                )
            }),
            None => rules.push(rule),
        }
    }
    rules
}

/// One table that is being read.
struct Reading<'a> {
    place: Place,
    problems: &'a mut Vec<Problem>,
}

impl Reading<'_> {
    fn rule(mut self, fields: Vec<Entry>) -> Option<CommunicationRule> {
        let (mut event, mut block, mut chat) = (None, None, None);
        let mut written = Vec::new();
        for field in fields {
            written.push(field.key.clone());
            match field.key.as_str() {
                "event" => event = self.event(&field),
                "block" => block = self.block(&field),
                "chat" => chat = self.chat(&field),
                other => {
                    let known = nearest(other, FIELDS).unwrap_or_default();
                    let what = format!("unknown key; the nearest known key is `{known}`");
                    self.report(&field, None, &what, "correct the name or remove it");
                }
            }
        }
        for missing in FIELDS.into_iter().filter(|field| !written.iter().any(|name| name == field)) {
            self.problems.push(Problem {
                key: Some(format!("{RULE}.{missing}")),
                value: None,
                origin: self.place.clone().into(),
                what: "it is missing".to_owned(),
                advice: "a rule has event, block and chat".to_owned(),
            });
        }
        Some(CommunicationRule { event: event?, block: block?, chat: chat?, origin: self.place.into() })
    }

    fn event(&mut self, field: &Entry) -> Option<Pattern> {
        let text = self.text(field)?;
        let pattern = Pattern::parse(&text);
        if pattern.is_none() {
            let advice = match nearest(&text, CATALOGUE.iter().map(|entry| entry.name)) {
                Some(known) => format!("write a type such as \"{known}\", or a prefix such as \"lead.*\""),
                None => "write a type".to_owned(),
            };
            self.report(field, Some(text), "no event can be called so", &advice);
        }
        pattern
    }

    /// Whether there is such a block is known by whoever has the texts.
    fn block(&mut self, field: &Entry) -> Option<String> {
        let text = self.text(field)?;
        let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if text.is_empty() || !text.bytes().all(is_fit) {
            self.report(field, Some(text), "no content block can be called so", "write the name of a content block");
            return None;
        }
        Some(text)
    }

    /// Never shows the value, as with the other chats.
    fn chat(&mut self, field: &Entry) -> Option<Secret> {
        let (Written::Number(text) | Written::Quoted(text)) = &field.written else {
            self.report(field, None, "the id of a chat is needed", "write it as a number, such as -1001234567890");
            return None;
        };
        let chat = super::Kind::Secret(super::SecretForm::ChatId).parse(text);
        match chat {
            Ok(Value::Secret(chat)) => Some(chat),
            _ => {
                let advice = "write the whole number that Telegram gives it, with its minus";
                self.report(field, None, "this is not the id of a chat", advice);
                None
            }
        }
    }

    fn text(&mut self, field: &Entry) -> Option<String> {
        if let Written::Quoted(text) = &field.written {
            return Some(text.clone());
        }
        self.report(field, None, "text is needed", "write it in quotes");
        None
    }

    fn report(&mut self, field: &Entry, value: Option<String>, what: &str, advice: &str) {
        self.problems.push(Problem {
            key: Some(format!("{RULE}.{}", field.key)),
            value,
            origin: field.place.clone().into(),
            what: what.to_owned(),
            advice: advice.to_owned(),
        });
    }
}

/// Warns of what works and is probably not meant.
pub(super) fn warnings(communications: &CommunicationsConfig, has_token: bool, warn: &mut impl FnMut(&str, &str)) {
    let is_anybody_told = communications.alert_chat.is_some() || !communications.rules.is_empty();
    if is_anybody_told && !has_token {
        let key = if communications.rules.is_empty() { "communications.alert_chat" } else { RULE };
        warn(key, "telegram.token is unset, so messages are queued and not sent");
    }
    for rule in &communications.rules {
        if let Some(text) = doubt(&rule.event) {
            warn(RULE, &format!("[{}] {text}", rule.origin));
        }
    }
}

/// Why nothing may ever match; a type that nobody here publishes may still be posted.
fn doubt(event: &Pattern) -> Option<String> {
    if CATALOGUE.iter().any(|entry| event.matches(entry.name)) {
        return None;
    }
    let written = event.as_str();
    let words = |name: &'static str| match event.is_exact() {
        true => name.to_owned(),
        false => format!("{}.*", name.split('.').next().unwrap_or(name)),
    };
    let known: Vec<String> = CATALOGUE.iter().map(|entry| words(entry.name)).collect();
    let near = nearest(written, known.iter().map(String::as_str));
    let near = near.filter(|near| strsim::damerau_levenshtein(written, near) <= SLIPS);
    Some(match near {
        Some(near) => format!("nothing of pillarbox publishes {written}; is {near} meant?"),
        None => {
            format!("nothing of pillarbox publishes {written}, so it is only told of what the tenant default posts")
        }
    })
}
