//! What went wrong with domain events, as the client is told.

use axum::http::StatusCode;

use super::{Fault, Problem};
use crate::outbox::Error;

/// How events came, and so where a fault of one is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::edge::http) enum Posting {
    /// The body is the event.
    One,
    /// The body has a list of them.
    Batch,
}

impl Posting {
    fn field(self, index: usize, field: &str) -> String {
        match self {
            Self::One => field.to_owned(),
            Self::Batch => format!("events[{index}].{field}"),
        }
    }
}

impl Problem {
    /// Why events that came so were not stored.
    pub(in crate::edge::http) fn refused_events(error: Error, posting: Posting) -> Self {
        let at = |status, code, index, field: &str| {
            let fault = Fault::new(posting.field(index, field), error.to_string());
            Self::new(status, code, error.to_string()).at(vec![fault])
        };
        match &error {
            Error::ReservedType { index, .. } => at(StatusCode::UNPROCESSABLE_ENTITY, "reserved_type", *index, "type"),
            Error::UnregisteredType { index, .. } => {
                at(StatusCode::UNPROCESSABLE_ENTITY, "unregistered_type", *index, "type")
            }
            Error::EventIdConflict { index, .. } => at(StatusCode::CONFLICT, "event_conflict", *index, "event_id"),
            Error::Invalid { index: Some(index), field, what } => {
                Self::invalid_body(vec![Fault::new(posting.field(*index, field), *what)])
            }
            _ => error.into(),
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let why = error.to_string();
        match error {
            Error::ReservedType { .. }
            | Error::UnregisteredType { .. }
            | Error::EventIdConflict { .. }
            | Error::Invalid { index: Some(_), .. } => Self::refused_events(error, Posting::One),
            Error::KeyConflict => {
                let faults = vec![Fault::new("Idempotency-Key", &*why)];
                Self::new(StatusCode::CONFLICT, "idempotency_conflict", why).at(faults)
            }
            Error::Invalid { field: "events", what, .. } => Self::invalid_body(vec![Fault::new("events", what)]),
            Error::Invalid { field, what, .. } => Self::bad_query(Fault::new(field, what)),
            Error::NotFound => Self::no_such("event"),
            Error::UnknownTenant => Self::no_such("tenant"),
            Error::AlreadyPublished => Self::new(StatusCode::CONFLICT, "already_published", why),
            Error::Store(error) => error.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_called_by_its_name() {
        let told = |error: Error| {
            let problem = Problem::from(error);
            assert_eq!(problem.status(), StatusCode::NOT_FOUND);
            problem.detail.into_owned()
        };
        assert!(told(Error::NotFound).contains("event"));
        assert!(told(Error::UnknownTenant).contains("tenant"));
    }
}
