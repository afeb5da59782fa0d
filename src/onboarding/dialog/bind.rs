//! The answer to "is this your account?": a chat is bound to a member.

use super::Dialog;
use crate::kernel::contract::Bound;
use crate::kernel::store::Tx;
use crate::onboarding::Error;

/// What a remote backend said to a request to bind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// This.
    Is(Bound),
    /// Nothing, for a day.
    None,
}

/// Tells the person of what a remote backend answered, in the transaction that records the answer.
///
/// # Errors
/// [`Error`].
pub(crate) fn answered(_: &Tx<'_>, _: &Dialog, _telegram_id: i64, _uid: i64, _: Answer) -> Result<(), Error> {
    Ok(())
}
