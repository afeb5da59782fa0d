//! What an update needs to know of the backend, asked before its transaction.

use super::command::{Command, Page, Step};
use crate::kernel::contract::{ConnectLink, Leader, MemberState};
use crate::onboarding::{Backend, BackendError};

/// Characters of a code (Bot API, deep linking: `start` parameter).
const LONGEST_CODE: usize = 64;

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

/// Asks what `command` needs. Most need nothing, and cost no call.
///
/// # Errors
/// The backend's.
pub(crate) async fn gather(backend: &dyn Backend, command: &Command, chat_id: i64) -> Result<Facts, BackendError> {
    match command {
        Command::Start(code) => {
            let leader = match code.as_deref().filter(|code| may_be_a_code(code)) {
                Some(code) => backend.find_leader(code).await?,
                None => None,
            };
            Ok(Facts { leader, ..ask_of_member(backend, chat_id).await? })
        }
        Command::Step(Step::Site) => Ok(Facts { link: backend.connect_link(chat_id).await?, ..Facts::default() }),
        Command::Show(Page::Console | Page::Path | Page::Cabinet) => ask_of_member(backend, chat_id).await,
        _ => Ok(Facts::default()),
    }
}

async fn ask_of_member(backend: &dyn Backend, chat_id: i64) -> Result<Facts, BackendError> {
    let account = backend.find_account(chat_id).await?;
    let state = match account {
        Some(_) => backend.find_state(chat_id).await?,
        None => None,
    };
    Ok(Facts { account, state, ..Facts::default() })
}

/// Anything else was not made by Telegram, which has nobody ask the backend for it.
fn may_be_a_code(text: &str) -> bool {
    let is_code = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=LONGEST_CODE).contains(&text.len()) && text.bytes().all(is_code)
}
