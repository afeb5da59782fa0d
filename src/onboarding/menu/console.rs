//! The console: what a registered member has, and the way there.

use super::{Error, name_of};
use crate::kernel::contract::MemberState;
use crate::onboarding::dialog::{Facts, Reply};
use crate::onboarding::screens::menu::{CONSOLE, CONSOLE_LOCKED};
use crate::onboarding::screens::{Address, View};

/// Characters of a wallet's address that are shown at its beginning, and at its end.
const ENDS: (usize, usize) = (6, 4);

/// The gate is the confirmed registration, as the backend knows it now.
pub(super) fn show(reply: &Reply<'_>, facts: &Facts) -> Result<(), Error> {
    let Some(state) = facts.state.as_ref().filter(|state| state.is_registration_confirmed) else {
        return reply.show(&CONSOLE_LOCKED, &View::default());
    };
    reply.show(&CONSOLE, &view(reply, state))
}

fn view(reply: &Reply<'_>, state: &MemberState) -> View {
    let mut view = View::default();
    view.values.set_switch("lp1", state.lp1);
    view.values.set_switch("lp2", state.lp2);
    view.values.set("wallet", &shortened(state.addr.as_deref().unwrap_or_default()));
    // The day of it: RFC 3339 begins with that.
    let day = state.time_active.as_deref().and_then(|at| at.split('T').next());
    view.values.set("time_active", &name_of(day));
    if let Some(console) = &reply.addresses().console {
        view.addresses.insert(Address::Console, console.clone());
    }
    view
}

/// Enough of an address to know it by.
fn shortened(address: &str) -> String {
    let all: Vec<char> = address.chars().filter(|next| !next.is_control()).collect();
    if all.len() <= ENDS.0 + ENDS.1 {
        return all.into_iter().collect();
    }
    let (start, end) = (&all[..ENDS.0], &all[all.len() - ENDS.1..]);
    start.iter().chain(&['…']).chain(end).collect()
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn a_wallet_is_shown_by_its_ends() {
        assert_eq!(shortened("0xA1B2000000000000000000000000000000C3D4CE"), "0xA1B2…D4CE");
        assert_eq!(shortened("0xA1\nB2"), "0xA1B2");
        assert_eq!(shortened(""), "");
    }
}
