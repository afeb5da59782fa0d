//! The inbox: updates that were stored before the messenger was told that we have them.
//!
//! **What.** Rows of `telegram_updates`, in the order of their arrival within each chat (`telegram_update_lanes` has the
//! head of each), and where the reading of a bot's updates stands (`telegram_intake`).
//!
//! **States.** pending → handled | dead; dead → pending by a person.
//!
//! **Not here.** Fetching updates (`edge/telegram`), reading them ([`super::Reader`]), and what they mean (`onboarding`).

use crate::kernel::store::Wake;

/// An update was stored, or may be handled again.
pub(crate) const UPDATES: Wake = Wake("telegram-updates");
