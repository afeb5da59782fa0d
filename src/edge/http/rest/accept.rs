//! The `Accept` header as PostgREST reads it: the best of the media types that a function's answer can be given in.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;

use super::refusal::Refusal;

/// The form in which the answer is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Rows as a list, a scalar as it is.
    Rows(Nulls),
    /// The one row as an object: `.single()` of the client libraries.
    One(Nulls),
}

/// Whether keys that are null may be left out. None of ours ever is; the answer repeats what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Nulls {
    Kept,
    Stripped,
}

impl Wanted {
    /// What these headers ask for; everything will do if they do not say.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Refusal> {
        let lines = headers.get_all(ACCEPT).iter().map(|line| String::from_utf8_lossy(line.as_bytes()));
        let text = lines.collect::<Vec<_>>().join(",");
        let mut ranges: Vec<(&str, f32)> =
            text.split(',').map(str::trim).filter(|range| !range.is_empty()).map(weighed).collect();
        if ranges.is_empty() {
            return Ok(Self::Rows(Nulls::Kept));
        }
        // The order among equals stays.
        ranges.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        let found = ranges.iter().filter(|(_, weight)| *weight > 0.0).find_map(|(range, _)| Self::named(range));
        found.ok_or_else(|| Refusal::not_acceptable(ranges.iter().map(|(range, _)| *range)))
    }

    fn named(range: &str) -> Option<Self> {
        let mut parts = range.split(';').map(|part| part.trim().to_ascii_lowercase());
        let name = parts.next()?;
        let nulls = if parts.any(|parameter| parameter == "nulls=stripped") { Nulls::Stripped } else { Nulls::Kept };
        match name.as_str() {
            "application/json" | "application/*" | "*/*" => Some(Self::Rows(Nulls::Kept)),
            "application/vnd.pgrst.array+json" | "application/vnd.pgrst.array" => Some(Self::Rows(nulls)),
            "application/vnd.pgrst.object+json" | "application/vnd.pgrst.object" => Some(Self::One(nulls)),
            _ => None,
        }
    }

    pub(super) fn is_one(self) -> bool {
        matches!(self, Self::One(_))
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Rows(Nulls::Kept) => "application/json; charset=utf-8",
            Self::Rows(Nulls::Stripped) => "application/vnd.pgrst.array+json;nulls=stripped; charset=utf-8",
            Self::One(Nulls::Kept) => "application/vnd.pgrst.object+json; charset=utf-8",
            Self::One(Nulls::Stripped) => "application/vnd.pgrst.object+json;nulls=stripped; charset=utf-8",
        }
    }
}

/// A media range with its quality, which is 1 if none is given; one that is no number is as good as none.
fn weighed(range: &str) -> (&str, f32) {
    let quality = range.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then(|| value.trim().parse().ok())?
    });
    (range, quality.unwrap_or(1.0))
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue};

    use super::{ACCEPT, Nulls, Wanted};

    fn wanted(accept: &str) -> Option<Wanted> {
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_str(accept).unwrap())]);
        Wanted::of(&headers).ok()
    }

    #[test]
    fn the_best_of_the_ranges_is_taken() {
        let (rows, one) = (Some(Wanted::Rows(Nulls::Kept)), Some(Wanted::One(Nulls::Kept)));
        assert_eq!(Wanted::of(&HeaderMap::new()).ok(), rows);
        for (accept, expected) in [
            ("", rows),
            ("*/*", rows),
            ("application/json", rows),
            ("Application/JSON; charset=utf-8", rows),
            ("application/vnd.pgrst.array+json", rows),
            ("application/vnd.pgrst.object+json", one),
            ("ApplicatIon/vnd.PgRsT.object+json", one),
            ("application/vnd.pgrst.object", one),
            ("application/vnd.pgrst.object+json;nulls=stripped", Some(Wanted::One(Nulls::Stripped))),
            ("application/vnd.pgrst.array+json; nulls=stripped", Some(Wanted::Rows(Nulls::Stripped))),
            ("text/html, application/json;q=0.9, application/vnd.pgrst.object+json;q=0.8", rows),
            ("application/json;q=0.1, application/vnd.pgrst.object+json;q=0.8", one),
            ("text/csv, */*;q=0.1", rows),
            ("text/csv", None),
            ("text/*", None),
            ("application/json;q=0", None),
            ("application/vnd.pgrst.plan+json", None),
            (";;;,q=1,/", None),
            ("application/json;q=NaN, text/csv;q=1", None),
        ] {
            assert_eq!(wanted(accept), expected, "{accept}");
        }
    }
}
