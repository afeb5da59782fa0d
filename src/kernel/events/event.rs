//! Every kind of domain event, with what it carries.
//!
//! A new kind is a variant here, a row in [`CATALOGUE`] and a fixture, or the tests fail. What goes to `outbox_events`
//! is ids and amounts only; names, phones and texts stay with their owner.

use serde_json::{Map, Value, json};

use super::catalogue::{CATALOGUE, Entry};
use crate::kernel::clock::{UnixMs, rfc3339};
use crate::kernel::contract::Chat;
use crate::kernel::tenant::TenantId;

/// The member an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The member's id.
    pub uid: i64,
    /// The chat the bot can write to, if one is known.
    pub chat: Option<Chat>,
}

/// The level of a status NFT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NftLevel {
    /// The first level.
    Lp1,
    /// The second level.
    Lp2,
}

impl NftLevel {
    /// The contract's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lp1 => "lp1",
            Self::Lp2 => "lp2",
        }
    }
}

/// The lead an event is about: its ids and nothing of what the person wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lead {
    /// The lead's id.
    pub id: String,
    /// The id that the form gave its request; `None` for a lead that another program inserted without one.
    pub request_id: Option<String>,
}

/// Why an endpoint of webhooks is disabled, or is about to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointReason {
    /// Its receiver said that it is gone for good (410).
    Gone,
    /// Nothing has arrived there for days.
    Failing,
    /// A person did it.
    Manual,
}

impl EndpointReason {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gone => "gone",
            Self::Failing => "failing",
            Self::Manual => "manual",
        }
    }
}

/// The endpoint of webhooks an event is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointTrouble {
    /// The endpoint's id, `ep_…`.
    pub endpoint_id: String,
    /// Whose it is.
    pub tenant: TenantId,
    /// What the trouble is.
    pub reason: EndpointReason,
    /// Since when every attempt has failed, if one has.
    pub failing_since: Option<UnixMs>,
}

/// How a broadcast ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BroadcastOutcome {
    /// Every recipient has had their turn.
    Done,
    /// A person ended it.
    Cancelled,
}

impl BroadcastOutcome {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A broadcast of which nothing more is sent, and what became of its recipients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinishedBroadcast {
    /// The broadcast's id.
    pub id: i64,
    /// How it ended.
    pub outcome: BroadcastOutcome,
    /// The recipients; more than the sum of the others only after a cancel.
    pub total: i64,
    /// To whom it was sent.
    pub sent: i64,
    /// To whom it certainly was not.
    pub undeliverable: i64,
    /// Of whom nobody knows.
    pub unknown: i64,
    /// Who were passed over.
    pub skipped: i64,
}

/// Something that has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A member connected a wallet.
    WalletConnected(Member),
    /// A member's registration was confirmed.
    Registered {
        /// Who.
        member: Member,
        /// Under whom.
        parent_uid: Option<i64>,
    },
    /// A partner registered under a member.
    PartnerJoined {
        /// The one who brought the partner.
        member: Member,
        /// The partner.
        partner_uid: i64,
        /// How the partner is called; told to the bot only.
        partner_name: Option<String>,
    },
    /// A status NFT was activated.
    NftActivated {
        /// Whose.
        member: Member,
        /// Which.
        level: NftLevel,
    },
    /// A person moved up in the bot's funnel.
    StageAdvanced {
        /// The person's chat.
        telegram_id: i64,
        /// The member, if the person is known as one.
        magnet_uid: Option<i64>,
        /// The stage before, 1 to 9.
        from: i64,
        /// The stage now, 1 to 9.
        to: i64,
    },
    /// A form's lead was stored.
    LeadReceived(Lead),
    /// The broker's chat was told of a lead.
    LeadNotificationSent {
        /// The lead.
        lead: Lead,
        /// The number of the attempt that arrived, from one.
        attempt: i64,
    },
    /// The broker's chat was not told of a lead, and will not be by itself.
    LeadNotificationFailed {
        /// The lead.
        lead: Lead,
        /// The number of the attempt that failed; 0 if there was none.
        attempt: i64,
        /// The short code of the reason.
        error_code: String,
    },
    /// Nothing arrives at an endpoint, and it will be disabled unless something does.
    EndpointFailing(EndpointTrouble),
    /// An endpoint was disabled: nothing is sent there until somebody makes it active again.
    EndpointDisabled(EndpointTrouble),
    /// A broadcast is over.
    BroadcastFinished(FinishedBroadcast),
}

impl Event {
    /// The event's row in the catalogue.
    pub fn entry(&self) -> &'static Entry {
        let row = match self {
            Self::WalletConnected(_) => 0,
            Self::Registered { .. } => 1,
            Self::PartnerJoined { .. } => 2,
            Self::NftActivated { .. } => 3,
            Self::StageAdvanced { .. } => 4,
            Self::LeadReceived(_) => 5,
            Self::LeadNotificationSent { .. } => 6,
            Self::LeadNotificationFailed { .. } => 7,
            Self::EndpointFailing(_) => 8,
            Self::EndpointDisabled(_) => 9,
            Self::BroadcastFinished(_) => 10,
        };
        &CATALOGUE[row]
    }

    /// The id of what the event is about.
    pub fn aggregate_id(&self) -> String {
        match self {
            Self::StageAdvanced { telegram_id, .. } => telegram_id.to_string(),
            Self::LeadReceived(lead)
            | Self::LeadNotificationSent { lead, .. }
            | Self::LeadNotificationFailed { lead, .. } => lead.id.clone(),
            Self::EndpointFailing(endpoint) | Self::EndpointDisabled(endpoint) => endpoint.endpoint_id.clone(),
            Self::BroadcastFinished(broadcast) => broadcast.id.to_string(),
            _ => self.member().map(|member| member.uid.to_string()).unwrap_or_default(),
        }
    }

    /// The payload for `outbox_events`: ids and amounts.
    pub fn payload(&self) -> Value {
        match self {
            Self::WalletConnected(member) => json!({ "uid": member.uid }),
            Self::Registered { member, parent_uid } => json!({ "uid": member.uid, "parent_uid": parent_uid }),
            Self::PartnerJoined { member, partner_uid, .. } => json!({ "uid": member.uid, "partner_uid": partner_uid }),
            Self::NftActivated { member, level } => json!({ "uid": member.uid, "level": level.as_str() }),
            Self::StageAdvanced { telegram_id, magnet_uid, from, to } => {
                json!({ "telegram_id": telegram_id.to_string(), "magnet_uid": magnet_uid, "from": from, "to": to })
            }
            Self::LeadReceived(lead) => json!({ "lead_id": lead.id, "request_id": lead.request_id }),
            Self::LeadNotificationSent { lead, attempt } => {
                json!({ "lead_id": lead.id, "request_id": lead.request_id, "attempt": attempt })
            }
            Self::LeadNotificationFailed { lead, attempt, error_code } => json!({
                "lead_id": lead.id, "request_id": lead.request_id, "attempt": attempt, "error_code": error_code,
            }),
            Self::EndpointFailing(endpoint) | Self::EndpointDisabled(endpoint) => json!({
                "endpoint_id": endpoint.endpoint_id, "tenant": endpoint.tenant.as_str(),
                "reason": endpoint.reason.as_str(), "failing_since": endpoint.failing_since.map(rfc3339),
            }),
            Self::BroadcastFinished(broadcast) => json!({
                "broadcast_id": broadcast.id, "outcome": broadcast.outcome.as_str(), "total": broadcast.total,
                "sent": broadcast.sent, "undeliverable": broadcast.undeliverable, "unknown": broadcast.unknown,
                "skipped": broadcast.skipped,
            }),
        }
    }

    /// The member the event is about, for events of members.
    pub fn member(&self) -> Option<&Member> {
        match self {
            Self::WalletConnected(member)
            | Self::Registered { member, .. }
            | Self::PartnerJoined { member, .. }
            | Self::NftActivated { member, .. } => Some(member),
            Self::StageAdvanced { .. }
            | Self::LeadReceived(_)
            | Self::LeadNotificationSent { .. }
            | Self::LeadNotificationFailed { .. }
            | Self::EndpointFailing(_)
            | Self::EndpointDisabled(_)
            | Self::BroadcastFinished(_) => None,
        }
    }

    /// The payload of the bot event, by the contract's field names.
    pub fn bot_payload(&self) -> Map<String, Value> {
        let mut payload = match self {
            Self::Registered { parent_uid: Some(parent), .. } => json!({ "parentUid": parent }),
            Self::PartnerJoined { partner_uid, partner_name: Some(name), .. } => {
                json!({ "partnerUid": partner_uid, "partnerName": name })
            }
            Self::PartnerJoined { partner_uid, .. } => json!({ "partnerUid": partner_uid }),
            Self::NftActivated { level, .. } => json!({ "level": level.as_str() }),
            _ => json!({}),
        };
        if let Some(Chat::Preview(_)) = self.member().and_then(|member| member.chat) {
            payload["preview"] = Value::Bool(true);
        }
        match payload {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}
