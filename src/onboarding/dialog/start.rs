//! `/start`: a person comes, or comes again, perhaps by somebody's link.

use super::{Facts, Reply, sql, steps};
use crate::kernel::contract::MemberState;
use crate::kernel::store::Tx;
use crate::onboarding::Error;
use crate::onboarding::content::Values;
use crate::onboarding::funnel::{Stage, advance};
use crate::onboarding::people::short_name;
use crate::onboarding::sql::{Person, find_person, set_member};

/// Notes who brought them and what the backend knows of them, and goes on where they are.
pub(super) fn start(
    tx: &Tx<'_>,
    reply: &Reply<'_>,
    person: &Person,
    code: Option<&str>,
    facts: &Facts,
) -> Result<(), Error> {
    // Before the answer is queued: who is unreachable is passed over at its claim.
    sql::set_reachable(tx, person.telegram_id)?;
    if let Some(uid) = facts.account.filter(|uid| person.magnet_uid != Some(*uid)) {
        set_member(tx, person.telegram_id, uid)?;
    }
    let own = facts.account.or(person.magnet_uid);
    // Nobody leads themselves.
    if let Some(leader) = facts.leader.as_ref().filter(|leader| Some(leader.uid) != own) {
        let name = leader.name.as_deref().map(short_name);
        sql::touch_first(tx, person.telegram_id, leader.uid, name.as_deref())?;
    }
    if code.is_some() && facts.leader.is_none() {
        reply.say("unknown_code", &Values::none())?;
    }
    let Some(person) = find_person(tx, person.telegram_id)? else { return Ok(()) };
    if let Some(stage) = facts.state.as_ref().and_then(stage_of) {
        advance(tx, &person, stage)?;
    }
    steps::go_on(tx, reply, &person)
}

/// How far a member has come, as the backend knows.
fn stage_of(state: &MemberState) -> Option<Stage> {
    let has_wallet = state.addr.as_deref().is_some_and(|addr| !addr.is_empty());
    let reached = [
        (state.lp1 || state.lp2, Stage::NftActivated),
        (state.is_registration_confirmed, Stage::Registered),
        (has_wallet, Stage::WalletConnected),
    ];
    reached.into_iter().find(|(is_so, _)| *is_so).map(|(_, stage)| stage)
}
