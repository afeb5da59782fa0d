//! `[communications]`: which chats are told of which events.

use super::problem::Origin;
use super::sections::Checked;
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
    /// The event's type, or a prefix with `.*`.
    pub event: String,
    /// The content block that is sent.
    pub block: String,
    /// The chat it is sent to: the text of an integer.
    pub chat: Secret,
    /// Where the rule is written.
    pub origin: Origin,
}

impl Checked {
    pub(super) fn communications(&self, rules: Vec<CommunicationRule>) -> CommunicationsConfig {
        CommunicationsConfig { rules, alert_chat: self.find_secret("communications.alert_chat") }
    }
}
