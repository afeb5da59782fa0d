//! The states of a broadcast and the table of what leads from one to another.

use super::finish::finish_if_over;
use super::{BROADCASTS, Error, feed, sql};
use crate::kernel::clock::UnixMs;
use crate::kernel::store::Tx;

/// Where a broadcast stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// It was made, and nothing has come of it.
    Draft,
    /// It starts by itself at an instant.
    Scheduled,
    /// It is sent.
    Running,
    /// It is held, by a person or by itself, until a person says otherwise.
    Paused,
    /// Every recipient has had their turn.
    Done,
    /// A person ended it.
    Cancelled,
}

impl State {
    /// Every state.
    pub(crate) const ALL: [Self; 6] =
        [Self::Draft, Self::Scheduled, Self::Running, Self::Paused, Self::Done, Self::Cancelled];

    /// Its name in the file and on the command line.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Draft => "draft",
            Self::Scheduled => "scheduled",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Done => "done",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state of that name.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// What a person may do with a broadcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Sends it from now on.
    Start,
    /// Sends it from this instant on.
    StartAt(UnixMs),
    /// Holds it.
    Pause,
    /// Lets it go on.
    Resume,
    /// Ends it.
    Cancel,
}

/// Where a change leads from a state; `None` if it does not.
const fn next(is: State, change: Change) -> Option<State> {
    match (is, change) {
        (State::Draft | State::Scheduled, Change::Start) => Some(State::Running),
        (State::Draft | State::Scheduled, Change::StartAt(_)) => Some(State::Scheduled),
        (State::Running, Change::Pause) => Some(State::Paused),
        (State::Paused, Change::Resume) => Some(State::Running),
        (State::Draft | State::Scheduled | State::Running | State::Paused, Change::Cancel) => Some(State::Cancelled),
        _ => None,
    }
}

/// Changes a broadcast; its new state. What waits in the send queue is taken back by a pause and by a cancel.
///
/// # Errors
/// [`Error::NotFound`], [`Error::WrongState`]; the store's.
pub(crate) fn change(tx: &Tx<'_>, id: i64, to: Change) -> Result<State, Error> {
    let broadcast = sql::find(tx, id)?.ok_or(Error::NotFound(id))?;
    let state = next(broadcast.state, to).ok_or(Error::WrongState { is: broadcast.state })?;
    match to {
        Change::Start => sql::start(tx, id)?,
        Change::StartAt(at) => sql::schedule(tx, id, at)?,
        Change::Pause => sql::pause(tx, id, "manual")?,
        Change::Resume => sql::resume(tx, id)?,
        Change::Cancel => sql::cancel(tx, id)?,
    };
    if matches!(to, Change::Pause | Change::Cancel) {
        feed::take_back(tx, id)?;
    }
    if to == Change::Cancel {
        finish_if_over(tx, id)?;
    }
    tx.wake(BROADCASTS);
    Ok(state)
}

#[cfg(test)]
mod tests {
    use super::{Change, State, next};

    #[test]
    fn what_is_over_stays_over_and_a_state_is_found_by_its_name() {
        for change in [Change::Start, Change::StartAt(1), Change::Pause, Change::Resume, Change::Cancel] {
            assert_eq!(next(State::Done, change), None);
            assert_eq!(next(State::Cancelled, change), None);
        }
        for state in State::ALL {
            assert_eq!(State::parse(state.as_str()), Some(state));
            let can_be_cancelled = !matches!(state, State::Done | State::Cancelled);
            assert_eq!(next(state, Change::Cancel).is_some(), can_be_cancelled);
            assert_eq!(next(state, Change::Start).is_some(), matches!(state, State::Draft | State::Scheduled));
        }
    }
}
