//! One event's way to one endpoint: what waits, claiming it, and what its attempt's end leads to. The worker calls these
//! in this order and does the sending in between, outside any transaction.

mod claim;
mod finish;
mod interrupted;
mod schedule;
mod trouble;

use std::sync::Arc;
use std::time::Duration;

pub(in crate::webhooks) use claim::{ClaimedRow, Found};
pub(crate) use claim::{claim, tenants, waiting};
pub(crate) use finish::finish;
pub(in crate::webhooks) use finish::{Standing, UnderWay};
pub(in crate::webhooks) use interrupted::CutOff;
pub(crate) use interrupted::take_up_interrupted;
pub(crate) use schedule::Jitter;
pub(in crate::webhooks) use schedule::{LONGEST_HOLD_MS, LONGEST_WAIT_MS};

use super::Error;
use super::attempt::{Outcome, Trigger};
use super::endpoint::DisabledReason;
use crate::kernel::clock::UnixMs;
use crate::kernel::tenant::TenantId;

/// Where a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum DeliveryStatus {
    /// It waits for its time.
    Pending,
    /// An attempt is under way.
    Sending,
    /// The endpoint has it.
    Delivered,
    /// The schedule is exhausted, or the endpoint is gone.
    Failed,
    /// It waited when the endpoint was found gone.
    Cancelled,
    /// The endpoint was disabled.
    Skipped,
}

impl DeliveryStatus {
    /// Every status.
    pub(crate) const ALL: [Self; 6] =
        [Self::Pending, Self::Sending, Self::Delivered, Self::Failed, Self::Cancelled, Self::Skipped];

    /// Its word, in the file and in answers.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Sending => "sending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Skipped => "skipped",
        }
    }

    /// The status of that name.
    ///
    /// # Errors
    /// [`Error::UnknownText`] if there is none.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|status| status.as_str() == text);
        found.ok_or(Error::UnknownText { column: "status" })
    }
}

/// An active endpoint with something to send, now or later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// The endpoint's row.
    pub(crate) endpoint: i64,
    /// When the first may go. Already past the instant until which its receiver wants to be left alone.
    pub(crate) due_at: UnixMs,
    /// How many requests a second it takes, if that is limited.
    pub(crate) rate_per_second: Option<i64>,
    /// Whether nothing has arrived there since a failure.
    pub(crate) is_failing: bool,
    /// Whose it is.
    pub(crate) tenant: TenantId,
}

/// Whether anybody else has endpoints, so that one tenant must not have every slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tenants {
    /// One tenant at most has endpoints.
    One,
    /// More than one has.
    Several,
}

/// So many of an endpoint may be claimed: it has that many slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pick {
    /// The endpoint's row.
    pub(crate) endpoint: i64,
    /// How many at most.
    pub(crate) most: usize,
}

/// A secret as it is in the file. The row names it for ever, so that what was opened once can be kept by it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SealedSecret {
    /// Its row.
    pub(crate) row: i64,
    /// Nonce and ciphertext.
    pub(crate) sealed: Vec<u8>,
}

impl std::fmt::Debug for SealedSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SealedSecret({})", self.row)
    }
}

/// Where the claims of an endpoint go; they share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Destination {
    /// The endpoint's row.
    pub(crate) endpoint: i64,
    /// Its id: what its secrets are sealed for.
    pub(crate) endpoint_id: String,
    /// The address, as it was judged when it was stored.
    pub(crate) url: String,
    /// The secrets that sign now, the newest first.
    pub(crate) secrets: Vec<SealedSecret>,
}

/// What is sent; the deliveries of an event share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// The event's id: `webhook-id`.
    pub(crate) event_id: String,
    /// The event's type.
    pub(crate) event_type: String,
    /// The bytes that are signed and sent.
    pub(crate) body: Vec<u8>,
}

/// A delivery that the caller sends now, and nobody else does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// The delivery's row.
    pub(crate) delivery: i64,
    /// The number of this attempt, from one: the fence of [`finish()`].
    pub(crate) number: i64,
    /// Who caused it.
    pub(crate) trigger: Trigger,
    /// When it was claimed.
    pub(crate) started_at: UnixMs,
    /// When the delivery was made.
    pub(crate) created_at: UnixMs,
    /// Where to.
    pub(crate) destination: Arc<Destination>,
    /// What.
    pub(crate) message: Arc<Message>,
}

impl Claim {
    /// The delivery's id, as it is shown.
    pub(crate) fn id(&self) -> String {
        super::id::delivery_id(self.delivery, self.created_at)
    }
}

/// A claimed delivery whose attempt has ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    /// The claim.
    pub(crate) claim: Claim,
    /// How it ended.
    pub(crate) outcome: Outcome,
}

/// What follows from failures.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Policy {
    /// An endpoint where nothing has arrived for this long is disabled; zero: never.
    pub(crate) disable_after: Duration,
    /// What is added to the schedule's pauses.
    pub(crate) jitter: Jitter,
}

/// What became of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// The endpoint has it.
    Delivered,
    /// It is tried again then.
    Again(UnixMs),
    /// It is not tried again by itself.
    Failed,
    /// The attempt that a person asked for has failed; the delivery stands where it stood before.
    Returned(DeliveryStatus),
    /// The attempt was no longer ours: nothing was changed.
    Fenced,
}

/// What became of an endpoint on the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Its receiver wants to be left alone until then.
    Held(UnixMs),
    /// Nothing has arrived for long: its owner should know.
    Failing,
    /// It was disabled.
    Disabled(DisabledReason),
}

/// What an attempt's end led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finished {
    /// The delivery.
    pub(crate) settled: Settled,
    /// The endpoint; mostly nothing.
    pub(crate) trouble: Vec<Trouble>,
}

/// An endpoint as the end of an attempt finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::webhooks) struct Condition {
    pub(in crate::webhooks) endpoint_id: String,
    pub(in crate::webhooks) tenant: TenantId,
    pub(in crate::webhooks) url: String,
    /// It is neither disabled nor deleted.
    pub(in crate::webhooks) is_live: bool,
    pub(in crate::webhooks) held_until: Option<UnixMs>,
    pub(in crate::webhooks) failing_since: Option<UnixMs>,
    pub(in crate::webhooks) warned_at: Option<UnixMs>,
}
