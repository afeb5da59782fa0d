//! What a member has reached and nobody has been told of: the flags against the marks.

use super::{Member, Told};
use crate::backend::sql;
use crate::kernel::events::{self, Event, NftLevel};
use crate::kernel::store::{StoreError, Tx};

/// Something that a member reaches once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Wallet,
    Registration,
    Lp1,
    Lp2,
}

/// What was reached and not told of, in the order in which it is told.
fn untold(member: &Member) -> Vec<Step> {
    let Told { wallet_connected_at, registered_at, lp1_at, lp2_at } = member.told;
    let all = [
        (Step::Wallet, member.has_wallet() && wallet_connected_at.is_none()),
        (Step::Registration, member.registration_confirmed && registered_at.is_none()),
        (Step::Lp1, member.lp1 && lp1_at.is_none()),
        (Step::Lp2, member.lp2 && lp2_at.is_none()),
    ];
    all.into_iter().filter(|(_, is_untold)| *is_untold).map(|(step, _)| step).collect()
}

/// Publishes what this member has reached and nobody has been told of, and marks it; the names of the events.
///
/// # Errors
/// [`StoreError::NoRow`] if the mark does not hold: it would be told for ever. Else the store's.
pub(in crate::backend) fn announce_one(tx: &Tx<'_>, uid: i64) -> Result<Vec<&'static str>, StoreError> {
    let Some(member) = sql::find_member(tx, uid)? else { return Ok(Vec::new()) };
    let steps = untold(&member);
    if steps.is_empty() {
        return Ok(Vec::new());
    }
    sql::mark_told(tx, uid)?;
    let mut published = Vec::new();
    for step in steps {
        for event in events_of(tx, &member, step)? {
            tx.publish(&event)?;
            published.push(event.entry().name);
        }
    }
    let marked = sql::find_member(tx, uid)?.ok_or(StoreError::NoRow)?;
    if untold(&marked).is_empty() { Ok(published) } else { Err(StoreError::NoRow) }
}

fn events_of(tx: &Tx<'_>, member: &Member, step: Step) -> Result<Vec<Event>, StoreError> {
    let who = events::Member { uid: member.uid, chat: member.chat() };
    Ok(match step {
        Step::Wallet => vec![Event::WalletConnected(who)],
        Step::Lp1 => vec![Event::NftActivated { member: who, level: NftLevel::Lp1 }],
        Step::Lp2 => vec![Event::NftActivated { member: who, level: NftLevel::Lp2 }],
        Step::Registration => {
            let registered = Event::Registered { member: who, parent_uid: member.parent_uid };
            let Some(parent) = member.parent_uid else { return Ok(vec![registered]) };
            let chat = sql::find_member(tx, parent)?.and_then(|parent| parent.chat());
            let joined = Event::PartnerJoined {
                member: events::Member { uid: parent, chat },
                partner_uid: member.uid,
                partner_name: member.name.clone(),
            };
            vec![registered, joined]
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{Member, Step, Told, untold};

    const STEPS: [Step; 4] = [Step::Wallet, Step::Registration, Step::Lp1, Step::Lp2];

    /// The steps of the bits that are set.
    fn of(bits: usize) -> Vec<Step> {
        STEPS.into_iter().enumerate().filter(|(at, _)| bits & (1 << at) != 0).map(|(_, step)| step).collect()
    }

    fn member(reached: usize, told: usize) -> Member {
        let has = |bits: usize, at: usize| bits & (1 << at) != 0;
        let mark = |at: usize| has(told, at).then_some(5);
        Member {
            addr: has(reached, 0).then(|| "0xA1".to_owned()),
            registration_confirmed: has(reached, 1),
            lp1: has(reached, 2),
            lp2: has(reached, 3),
            told: Told { wallet_connected_at: mark(0), registered_at: mark(1), lp1_at: mark(2), lp2_at: mark(3) },
            ..Member::new(7)
        }
    }

    #[test]
    fn what_was_reached_and_not_told_is_told_in_its_order_from_every_start() {
        for reached in 0..16 {
            for told in 0..16 {
                assert_eq!(untold(&member(reached, told)), of(reached & !told), "{reached:04b} {told:04b}");
            }
        }
    }

    #[test]
    fn an_empty_address_is_no_wallet() {
        let member = Member { addr: Some(String::new()), ..Member::new(7) };
        assert_eq!(untold(&member), []);
    }
}
