//! Updates, handled: each chat's in its order, each update in one transaction.

use super::dialog::Facts;
use crate::chat::Input;
use crate::kernel::clock::UnixMs;

/// An update as it is handled: what a person did, and what was found out about them before the transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived<'a> {
    /// Its row in the inbox, which makes the keys of what is answered.
    pub(crate) update: i64,
    /// When it was stored.
    pub(crate) received_at: UnixMs,
    /// What was done.
    pub(crate) input: &'a Input,
    /// What the backend said.
    pub(crate) facts: &'a Facts,
}
