//! What an update needs to know of the backend, asked before its transaction.

use super::command::Command;
use crate::kernel::contract::{ConnectLink, Leader, MemberState};
use crate::onboarding::{Backend, BackendError};

/// What the backend said. Nothing of what was not asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// Whose link brought the person.
    pub(crate) leader: Option<Leader>,
    /// Which member this chat is bound to.
    pub(crate) account: Option<i64>,
    /// What that member has done.
    pub(crate) state: Option<MemberState>,
    /// The way to the site.
    pub(crate) link: Option<ConnectLink>,
}

/// Asks what `command` needs.
///
/// # Errors
/// The backend's.
pub(crate) async fn gather(_: &dyn Backend, _: &Command, _chat_id: i64) -> Result<Facts, BackendError> {
    Ok(Facts::default())
}
