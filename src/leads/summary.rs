//! What the broker is told of a lead: the contract's `broker_lead_notification_summary`, plain text.
//!
//! Only what is named here gets in: never bank history, comment, utm, tracking or the raw payload. It says what the
//! person has prepared and nothing of what a bank will decide. A line whose value is missing says «не указано»; its
//! label is always there, so that a reader finds every value at its place.

use super::sql;
use crate::kernel::store::{StoreError, Tx};

/// The most characters (contract: Unicode scalars).
const LONGEST: usize = 3500;
/// Telegram's limit of a message, in its own count: a character beyond the basic plane is two.
const LONGEST_UTF16: usize = 4096;
/// The most checks that are named, whatever another program wrote into the column.
const MOST_CHECKS: usize = 4;
const ABSENT: &str = "не указано";

/// Why there is no summary.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SummaryError {
    /// There is no such lead.
    #[error("broker_lead_not_found")]
    NotFound,
    /// There is nothing to say.
    #[error("notification_summary_empty")]
    Empty,
    /// The store did not do it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What the lines are made of, as it is stored. Of two, the second stands in where the first says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) id: [Option<String>; 2],
    pub(super) name: Option<String>,
    pub(super) phone: Option<String>,
    pub(super) city: Option<String>,
    pub(super) contact: [Option<String>; 2],
    pub(super) task: [Option<String>; 2],
    pub(super) object: [Option<String>; 2],
    pub(super) price: [Option<String>; 2],
    pub(super) down_payment: [Option<String>; 2],
    pub(super) income: [Option<String>; 2],
    pub(super) priority: Option<String>,
    pub(super) source: [Option<String>; 2],
    pub(super) preparation: Preparation,
}

/// What the person did before asking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Preparation {
    pub(super) journey_type: Option<String>,
    pub(super) stage: Option<String>,
    pub(super) scenario: Option<String>,
    pub(super) completed: Vec<String>,
    pub(super) questions: Option<String>,
}

/// The summary of a lead.
///
/// # Errors
/// [`SummaryError`].
pub(crate) fn summary(tx: &Tx<'_>, lead_id: &str) -> Result<String, SummaryError> {
    let row = sql::summary::find_row_of(tx, lead_id)?.ok_or(SummaryError::NotFound)?;
    of_row(tx, row)
}

/// The summary of the lead in that row.
pub(super) fn of_row(tx: &Tx<'_>, row: i64) -> Result<String, SummaryError> {
    let told = sql::summary::find_told(tx, row)?.ok_or(SummaryError::NotFound)?;
    let text = render(&told);
    if text.trim().is_empty() { Err(SummaryError::Empty) } else { Ok(text) }
}

/// The text. Every value is one line, and cut at the length that the intake lets in: a program that stores more in one
/// column does not push out the others.
pub(super) fn render(told: &Told) -> String {
    let one = |value: &Option<String>, longest| value.as_deref().and_then(|text| line(text, longest));
    let either = |values: &[Option<String>; 2], longest| values.iter().find_map(|value| one(value, longest));
    let lines = [
        ("ID", either(&told.id, 80)),
        ("Имя", one(&told.name, 80)),
        ("Телефон", one(&told.phone, 30)),
        ("Город", one(&told.city, 120)),
        ("Связь", either(&told.contact, 40)),
        ("Задача", either(&told.task, 200)),
        ("Объект", either(&told.object, 120)),
        ("Стоимость", either(&told.price, 80)),
        ("Взнос", either(&told.down_payment, 120)),
        ("Доход", either(&told.income, 120)),
        ("Приоритет", one(&told.priority, 80)),
        ("Источник", either(&told.source, 500)),
    ];
    let mut text = String::from("Новая заявка ипотечному брокеру");
    for (label, value) in lines {
        push(&mut text, label, value.as_deref().unwrap_or(ABSENT));
    }
    push_preparation(&mut text, &told.preparation);
    fit(text)
}

/// The section, if there is anything to say in it.
fn push_preparation(text: &mut String, preparation: &Preparation) {
    let one = |value: &Option<String>, longest| value.as_deref().and_then(|text| line(text, longest));
    let (journey_type, stage) = (one(&preparation.journey_type, 160), one(&preparation.stage, 200));
    let scenario = one(&preparation.scenario, 200);
    let labels = preparation.completed.iter().filter_map(|label| line(label, 180)).take(MOST_CHECKS);
    let completed = labels.collect::<Vec<_>>().join("; ");
    let questions = preparation.questions.as_deref().and_then(|text| paragraph(text, 700));
    let is_empty = [&journey_type, &stage, &scenario, &questions].into_iter().all(Option::is_none);
    if is_empty && completed.is_empty() {
        return;
    }
    text.push_str("\n\nПОДГОТОВКА ДО ОБРАЩЕНИЯ");
    push(text, "Тип маршрута", journey_type.as_deref().unwrap_or("не указан"));
    push(text, "Этап", stage.as_deref().unwrap_or("не указан"));
    push(text, "Сценарий", scenario.as_deref().unwrap_or("не указан"));
    push(text, "Что уже проверено", if completed.is_empty() { "не отмечено" } else { &completed });
    push(text, "Что осталось уточнить", questions.as_deref().unwrap_or(ABSENT));
}

fn push(text: &mut String, label: &str, value: &str) {
    for part in ["\n", label, ": ", value] {
        text.push_str(part);
    }
}

/// The value on one line, without control characters, cut; `None` if nothing is left.
fn line(value: &str, longest: usize) -> Option<String> {
    let mut clean = String::new();
    let mut length = 0;
    for word in value.split_whitespace() {
        let mut word = word.chars().filter(|c| !c.is_control()).peekable();
        if word.peek().is_none() {
            continue;
        }
        let space = (!clean.is_empty()).then_some(' ');
        for c in space.into_iter().chain(word) {
            if length == longest {
                return some_text(&clean);
            }
            clean.push(c);
            length += 1;
        }
    }
    some_text(&clean)
}

/// The value with its line breaks, each line clean; of empty lines in a row one is kept.
fn paragraph(value: &str, longest: usize) -> Option<String> {
    let value = value.replace("\r\n", "\n");
    let lines = value.split(['\n', '\r']).map(|text| line(text, longest).unwrap_or_default());
    let mut clean: Vec<String> = Vec::new();
    for text in lines.take(longest) {
        if !text.is_empty() || clean.last().is_some_and(|last| !last.is_empty()) {
            clean.push(text);
        }
    }
    let cut: String = clean.join("\n").chars().take(longest).collect();
    some_text(&cut)
}

fn some_text(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// The text within both limits; what is cut off is the end of the last line.
fn fit(text: String) -> String {
    let fits = |scalars: usize, units: usize| scalars <= LONGEST && units <= LONGEST_UTF16;
    if fits(text.chars().count(), text.encode_utf16().count()) {
        return text;
    }
    let (mut scalars, mut units) = (1, 1);
    let mut cut: String = text
        .chars()
        .take_while(|c| {
            scalars += 1;
            units += c.len_utf16();
            fits(scalars, units)
        })
        .collect();
    cut.truncate(cut.trim_end().len());
    cut.push('…');
    cut
}
