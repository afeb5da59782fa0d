//! Lists: `{"items", "next"}`, `?limit=` and `?after=`.
//!
//! A cursor names a place in one list, so that rows that come meanwhile neither repeat nor hide others. It is opaque to
//! clients, who would otherwise build their own; it is no secret, and a place is nobody's: which rows stand behind it is
//! asked with the tenant.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::Required;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use crate::edge::http::error::{Fault, Problem};
use crate::webhooks::Page;

/// How many a page holds when nobody says.
const DEFAULT: usize = 50;
/// How many it holds at most.
const LONGEST: usize = 200;

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PageBody<T> {
    /// The rows.
    pub(super) items: Vec<T>,
    /// What `after` has to be for the next page; null behind the last one. A page may be short, even empty, and have one.
    pub(super) next: Option<String>,
}

impl<T> PageBody<T> {
    /// A page of the domain's, each row in its form.
    pub(super) fn of<R: Into<T>>(list: List, page: Page<R>) -> Self {
        let items = page.items.into_iter().map(R::into).collect();
        Self { items, next: page.next.map(|place| list.cursor(place)) }
    }
}

/// Which list a cursor belongs to. One of another list would name a place that means nothing there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    Attempts,
    Deliveries,
    Endpoints,
}

impl List {
    const fn letter(self) -> char {
        match self {
            Self::Attempts => 'a',
            Self::Deliveries => 'd',
            Self::Endpoints => 'p',
        }
    }

    /// The text of a cursor.
    pub(super) fn cursor(self, place: i64) -> String {
        URL_SAFE_NO_PAD.encode(format!("{}{place}", self.letter()))
    }

    /// The place that a cursor names. Only what [`List::cursor`] wrote is one.
    pub(super) fn place(self, cursor: &str) -> Option<i64> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let place: i64 = std::str::from_utf8(&bytes).ok()?.strip_prefix(self.letter())?.parse().ok()?;
        (place > 0 && self.cursor(place) == cursor).then_some(place)
    }
}

/// The parameters that every list takes, behind `own`, for the document.
pub(super) fn parameters(own: impl IntoIterator<Item = Parameter>) -> Vec<Parameter> {
    let number = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).maximum(Some(LONGEST));
    let limit = number.default(Some(DEFAULT.into())).build();
    let every = [
        parameter("limit", "How many rows a page holds at most.", limit),
        parameter("after", "`next` of the page before.", text()),
    ];
    own.into_iter().chain(every).collect()
}

/// A parameter that may be missing.
pub(super) fn parameter(name: &str, told: &str, form: Object) -> Parameter {
    let begun = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Query).required(Required::False);
    begun.description(Some(told)).schema(Some(form)).build()
}

/// The form of any text.
pub(super) fn text() -> Object {
    ObjectBuilder::new().schema_type(Type::String).build()
}

/// How many rows a page is to hold at most.
pub(super) fn limit(text: Option<&str>) -> Result<usize, Problem> {
    let Some(text) = text else { return Ok(DEFAULT) };
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(limit) if is_number && (1..=LONGEST).contains(&limit) => Ok(limit),
        _ => Err(Problem::bad_query(Fault::new("limit", format!("must be a whole number from 1 to {LONGEST}")))),
    }
}

/// Behind which place a page begins; `read` knows the places of its list.
pub(super) fn after<C>(text: Option<&str>, read: impl FnOnce(&str) -> Option<C>) -> Result<Option<C>, Problem> {
    let why = "is not the `next` of a page of this list";
    text.map(|text| read(text).ok_or_else(|| Problem::bad_query(Fault::new("after", why)))).transpose()
}

/// The one of `known` that a filter names.
pub(super) fn one_of<T>(name: &str, text: Option<&str>, known: &[(&'static str, T)]) -> Result<Option<T>, Problem>
where
    T: Copy,
{
    let find = |text| known.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    let words = || known.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    let find =
        |text| find(text).ok_or_else(|| Problem::bad_query(Fault::new(name, format!("must be one of {}", words()))));
    text.map(find).transpose()
}

#[cfg(test)]
mod tests {
    use super::{List, after, limit};

    #[test]
    fn a_cursor_is_read_back_by_its_own_list_only() {
        let all = [List::Attempts, List::Deliveries, List::Endpoints];
        for list in all {
            for place in [1, 9, 10, 1_000_000, i64::MAX] {
                let cursor = list.cursor(place);
                for other in all {
                    assert_eq!(other.place(&cursor), (other == list).then_some(place), "{cursor}");
                }
            }
        }
    }

    #[test]
    fn what_nobody_gave_out_is_no_cursor() {
        let good = List::Endpoints.cursor(12);
        for odd in ["", "x", "12", "p12", "cDEy=", &format!("{good}="), &good[1..], "cC0x", "cDA", "cCsx", "cDAx", "é"]
        {
            assert!(after(Some(odd), |text| List::Endpoints.place(text)).is_err(), "{odd}");
        }
    }

    #[test]
    fn a_page_has_one_to_two_hundred_rows() {
        for (text, rows) in [("1", 1), ("50", 50), ("200", 200), ("007", 7)] {
            assert_eq!(limit(Some(text)).unwrap(), rows);
        }
        assert_eq!(limit(None).unwrap(), 50);
        for odd in ["", "0", "201", "-1", "+1", "1.0", "1e2", "x", " 1", "99999999999999999999", "١"] {
            assert!(limit(Some(odd)).is_err(), "{odd}");
        }
    }
}
