//! The catalogue: every kind of domain event there is, its name, version and fields.
//!
//! Closed: a new kind is a variant here, a row in [`CATALOGUE`] and a fixture, or the tests fail. What goes to
//! `outbox_events` is ids and amounts only; names, phones and texts stay with their owner.

use serde_json::{Map, Value, json};

use crate::kernel::contract::{BotEventType, Chat};

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
}

/// One row of the catalogue.
#[derive(Debug)]
pub struct Entry {
    /// The dotted name in `outbox_events.type`.
    pub name: &'static str,
    /// The version of its fields.
    pub version: i64,
    /// What the event is about.
    pub aggregate: &'static str,
    /// Which subsystem publishes it.
    pub source: &'static str,
    /// The fields of its payload.
    pub fields: &'static [&'static str],
    /// The bot event it also is, for the bot's outbox.
    pub bot: Option<BotEventType>,
}

/// Every kind of event, once.
pub const CATALOGUE: &[Entry] = &[
    Entry {
        name: "member.wallet_connected",
        version: 1,
        aggregate: "member",
        source: "backend",
        fields: &["uid"],
        bot: Some(BotEventType::WalletConnected),
    },
    Entry {
        name: "member.registered",
        version: 1,
        aggregate: "member",
        source: "backend",
        fields: &["uid", "parent_uid"],
        bot: Some(BotEventType::Registered),
    },
    Entry {
        name: "partner.joined",
        version: 1,
        aggregate: "member",
        source: "backend",
        fields: &["uid", "partner_uid"],
        bot: Some(BotEventType::NewPartner),
    },
    Entry {
        name: "member.nft_activated",
        version: 1,
        aggregate: "member",
        source: "backend",
        fields: &["uid", "level"],
        bot: Some(BotEventType::StatusNftActivated),
    },
    Entry {
        name: "funnel.stage_advanced",
        version: 1,
        aggregate: "bot_user",
        source: "onboarding",
        fields: &["telegram_id", "magnet_uid", "from", "to"],
        bot: None,
    },
    Entry {
        name: "lead.received",
        version: 1,
        aggregate: "lead",
        source: "leads",
        fields: &["lead_id", "request_id"],
        bot: None,
    },
    Entry {
        name: "lead.notification_sent",
        version: 1,
        aggregate: "lead",
        source: "leads",
        fields: &["lead_id", "request_id", "attempt"],
        bot: None,
    },
    Entry {
        name: "lead.notification_failed",
        version: 1,
        aggregate: "lead",
        source: "leads",
        fields: &["lead_id", "request_id", "attempt", "error_code"],
        bot: None,
    },
];

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
            | Self::LeadNotificationFailed { .. } => None,
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

#[cfg(test)]
mod tests {
    use super::{CATALOGUE, Event, Lead, Member, NftLevel};
    use crate::kernel::contract::Chat;

    fn lead() -> Lead {
        let id = "01890a5d-ac96-774b-bcce-b302099a8057".to_owned();
        Lead { id, request_id: Some("IP-20261130-A1B2C3".into()) }
    }

    fn one_of_each() -> Vec<Event> {
        let member = Member { uid: 7, chat: Some(Chat::Preview(70)) };
        vec![
            Event::WalletConnected(member),
            Event::Registered { member, parent_uid: Some(3) },
            Event::PartnerJoined { member, partner_uid: 9, partner_name: Some("Anna".into()) },
            Event::NftActivated { member, level: NftLevel::Lp1 },
            Event::StageAdvanced { telegram_id: 70, magnet_uid: Some(7), from: 6, to: 7 },
            Event::LeadReceived(lead()),
            Event::LeadNotificationSent { lead: lead(), attempt: 1 },
            Event::LeadNotificationFailed { lead: lead(), attempt: 2, error_code: "telegram_timeout".into() },
        ]
    }

    #[test]
    fn every_event_is_in_the_catalogue_with_the_fields_its_fixture_shows() {
        let events = one_of_each();
        let names: Vec<_> = events.iter().map(|event| event.entry().name).collect();
        assert_eq!(names, CATALOGUE.iter().map(|entry| entry.name).collect::<Vec<_>>());
        for event in events {
            let entry = event.entry();
            let path = format!("{}/fixtures/events/{}.json", env!("CARGO_MANIFEST_DIR"), entry.name);
            let fixture: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
            assert_eq!(fixture, event.payload(), "{}", entry.name);
            let mut fields: Vec<_> = event.payload().as_object().unwrap().keys().cloned().collect();
            let mut promised: Vec<_> = entry.fields.iter().map(|field| (*field).to_owned()).collect();
            fields.sort();
            promised.sort();
            assert_eq!(fields, promised, "{}", entry.name);
        }
    }

    #[test]
    fn names_of_people_go_to_the_bot_and_nowhere_else() {
        for event in one_of_each() {
            assert!(!event.payload().to_string().contains("Anna"));
        }
        let joined = &one_of_each()[2];
        assert_eq!(joined.bot_payload()["partnerName"], "Anna");
        assert_eq!(joined.bot_payload()["preview"], true);
    }
}
