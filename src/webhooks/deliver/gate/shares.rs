//! How the slots are divided, so that whoever hangs leaves some to the others: an endpoint begins with one and has one
//! more for each prompt answer; slow ones have one each and half of all together; they and those that are not proven yet
//! leave a quarter to the proven; and so does a tenant to the others, if there are others.

use std::collections::HashMap;

use crate::kernel::tenant::TenantId;
use crate::webhooks::delivery::Tenants;

/// How an endpoint answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Not often enough yet to say: so many prompt answers in a row.
    New {
        prompt: usize,
    },
    Prompt,
    Slow,
}

impl Pace {
    /// How many slots such an endpoint may have, of those that any one may.
    pub(super) fn slots(self, most_of_one: usize) -> usize {
        match self {
            Self::New { prompt } => most_of_one.min(prompt + 1),
            Self::Prompt => most_of_one,
            Self::Slow => 1,
        }
    }
}

/// How many slots there are for whom.
pub(super) struct Free {
    all: usize,
    unproven: usize,
    slow: usize,
    of_a_tenant: usize,
    /// What tenants have already.
    taken: HashMap<TenantId, usize>,
}

impl Free {
    pub(super) fn new(most: usize, tenants: Tenants) -> Self {
        let most_but_a_quarter = (most * 3).div_ceil(4);
        let of_a_tenant = match tenants {
            Tenants::One => most,
            Tenants::Several => most_but_a_quarter,
        };
        Self { all: most, unproven: most_but_a_quarter, slow: most.div_ceil(2), of_a_tenant, taken: HashMap::new() }
    }

    pub(super) fn is_none(&self) -> bool {
        self.all == 0
    }

    pub(super) fn of(&self, pace: Pace, tenant: &TenantId) -> usize {
        let taken = self.taken.get(tenant).copied().unwrap_or(0);
        let free = self.all.min(self.of_a_tenant.saturating_sub(taken));
        match pace {
            Pace::Prompt => free,
            Pace::New { .. } => free.min(self.unproven),
            Pace::Slow => free.min(self.unproven).min(self.slow),
        }
    }

    pub(super) fn take(&mut self, pace: Pace, tenant: &TenantId, slots: usize) {
        self.all = self.all.saturating_sub(slots);
        if pace != Pace::Prompt {
            self.unproven = self.unproven.saturating_sub(slots);
        }
        if pace == Pace::Slow {
            self.slow = self.slow.saturating_sub(slots);
        }
        match self.taken.get_mut(tenant) {
            Some(taken) => *taken += slots,
            None => drop(self.taken.insert(tenant.clone(), slots)),
        }
    }
}
