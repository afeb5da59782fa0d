//! What a visitor has prepared, cleaned as the trigger `sync_broker_lead_preparation` cleans it for other programs.
//!
//! It is the same work done twice, since the trigger costs the one writer as much as all the rest of storing a lead: done
//! here it costs the writer nothing, and the trigger leaves rows alone that come announced and with their preparation.
//! `src/leads/intake/tests/preparation.rs` holds the two against each other.

use serde::Serialize;
use serde_json::json;

use super::json::Member;

/// The columns of a preparation. `None` is an empty one.
#[derive(Clone, Debug)]
pub(crate) struct Preparation {
    pub(crate) journey_type: Option<String>,
    pub(crate) journey_stage: Option<String>,
    pub(crate) scenario_slug: Option<&'static str>,
    pub(crate) remaining_questions: Option<String>,
    /// All of it as a JSON object.
    pub(crate) whole: String,
    /// A label for each check that was completed, as a JSON array.
    pub(crate) completed: String,
}

/// The JSON object, in the order in which the trigger writes it.
#[derive(Serialize)]
struct Whole<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    journey_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    journey_stage: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scenario_slug: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining_questions: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    completed_checks: Vec<&'a str>,
}

const SCENARIOS: [&str; 4] = [
    "otkazali-v-ipoteke",
    "ipoteka-s-plohoy-kreditnoy-istoriey",
    "ipoteka-bez-oficialnogo-dohoda",
    "ipoteka-bez-pervonachalnogo-vznosa",
];
/// Checks and how we call them.
const CHECKS: [(&str, &str); 4] =
    [("diagnosis", "Диагностика"), ("finances", "Финансы"), ("documents", "Документы"), ("next_step", "Следующий шаг")];
/// So many entries of the two lists are looked at.
const MOST_CHECKS: usize = 4;

impl Preparation {
    /// Reads the member of the request.
    pub(super) fn read(preparation: Member<'_>) -> Self {
        let names = [
            "journey_type",
            "journey_stage",
            "scenario_slug",
            "remaining_questions",
            "completed_checks",
            "completed_labels",
        ];
        let [journey_type, stage, slug, questions, checks, labels] = preparation.members(names);
        let (journey_type, journey_stage) = (clean(journey_type, 160, Breaks::Gone), clean(stage, 200, Breaks::Gone));
        let remaining_questions = clean(questions, 700, Breaks::Kept);
        let slug = clean(slug, 80, Breaks::Gone);
        let scenario_slug = SCENARIOS.into_iter().find(|known| slug.as_deref() == Some(known));
        let (mut kept, mut completed) = (Vec::new(), Vec::new());
        let labels = labels.items();
        for (place, check) in checks.items().into_iter().take(MOST_CHECKS).enumerate() {
            let check = clean(check, 80, Breaks::Gone);
            let known = CHECKS.into_iter().find(|(known, _)| check.as_deref() == Some(known));
            if let Some((check, own)) = known.filter(|(check, _)| !kept.contains(check)) {
                let label = labels.get(place).and_then(|label| clean(*label, 180, Breaks::Gone));
                kept.push(check);
                completed.push(label.unwrap_or_else(|| own.to_owned()));
            }
        }
        let whole = Whole {
            journey_type: journey_type.as_deref(),
            journey_stage: journey_stage.as_deref(),
            scenario_slug,
            remaining_questions: remaining_questions.as_deref(),
            completed_checks: kept,
        };
        // Nothing in it can fail to be JSON.
        let whole = serde_json::to_string(&whole).unwrap_or_else(|_| "{}".to_owned());
        let completed = json!(completed).to_string();
        Self { journey_type, journey_stage, scenario_slug, remaining_questions, whole, completed }
    }
}

/// What becomes of line breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Breaks {
    /// They are spaces.
    Gone,
    /// Each stays, as LF and without spaces around it.
    Kept,
}

/// A JSON string with its white space collapsed and trimmed, at most `most` characters; `None` if nothing is left, and
/// for anything else. The characters are those that the trigger knows.
fn clean(member: Member<'_>, most: usize, breaks: Breaks) -> Option<String> {
    let text = member.string()?;
    let mut kept = String::with_capacity(text.len());
    let mut has_gap = false;
    // The trigger writes breaks and pairs of spaces as these.
    let mut rest = text.chars().filter(|c| !matches!(c, '\u{1}'..='\u{3}')).peekable();
    while let Some(c) = rest.next() {
        let c = match c {
            '\r' if rest.peek() == Some(&'\n') => continue,
            '\r' => '\n',
            other => other,
        };
        match c {
            '\n' if breaks == Breaks::Kept => {
                has_gap = false;
                kept.push('\n');
            }
            ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{a0}' | '\u{2028}' | '\u{2029}' | '\u{202f}'
            | '\u{3000}' => has_gap = true,
            other => {
                let is_within = !kept.is_empty() && !kept.ends_with('\n');
                kept.extend((has_gap && is_within).then_some(' '));
                kept.push(other);
                has_gap = false;
            }
        }
    }
    let around = [' ', '\n'];
    let trimmed = kept.trim_matches(around);
    let end = trimmed.char_indices().nth(most).map_or(trimmed.len(), |(at, _)| at);
    let cut = trimmed[..end].trim_end_matches(around);
    (!cut.is_empty()).then(|| cut.to_owned())
}
