//! The catalogue: every kind of domain event there is, its name, version and fields. Publishers, the documents and
//! `pillarbox events catalogue` all have it from here.

use crate::kernel::contract::BotEventType;

/// A field of an event's data.
#[derive(Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What its value is, in JSON's words.
    pub kind: &'static str,
    /// What it says.
    pub meaning: &'static str,
}

/// One row of the catalogue.
#[derive(Debug)]
pub struct Entry {
    /// The dotted name in `outbox_events.type`.
    pub name: &'static str,
    /// The version of its fields.
    pub version: i64,
    /// What has happened.
    pub meaning: &'static str,
    /// What the event is about.
    pub aggregate: &'static str,
    /// Which subsystem publishes it.
    pub source: &'static str,
    /// The fields of its data, all of them always there.
    pub fields: &'static [Field],
    /// Its data, as an example.
    pub example: &'static str,
    /// The bot event it also is, for the bot's outbox.
    pub bot: Option<BotEventType>,
}

/// The example is the fixture that tests hold the publisher to.
macro_rules! example {
    ($name:literal) => {
        include_str!(concat!("../../../fixtures/events/", $name, ".json"))
    };
}

const fn field(name: &'static str, kind: &'static str, meaning: &'static str) -> Field {
    Field { name, kind, meaning }
}

const UID: Field = field("uid", "integer", "The member's id.");
const LEAD_ID: Field = field("lead_id", "string", "The lead's id, a UUID.");
const REQUEST_ID: Field = field("request_id", "string or null", "The id that the form gave its request.");
const ENDPOINT: &[Field] = &[
    field("endpoint_id", "string", "The endpoint's id, `ep_…`."),
    field("tenant", "string", "The tenant whose endpoint it is."),
    field("reason", "string", "`failing`, `gone` or `manual`."),
    field("failing_since", "string or null", "Since when every attempt has failed, RFC 3339."),
];

/// Every kind of event, once.
pub const CATALOGUE: &[Entry] = &[
    Entry {
        name: "member.wallet_connected",
        version: 1,
        meaning: "A member connected a wallet.",
        aggregate: "member",
        source: "backend",
        fields: &[UID],
        example: example!("member.wallet_connected"),
        bot: Some(BotEventType::WalletConnected),
    },
    Entry {
        name: "member.registered",
        version: 1,
        meaning: "A member's registration was confirmed.",
        aggregate: "member",
        source: "backend",
        fields: &[UID, field("parent_uid", "integer or null", "The member under whom.")],
        example: example!("member.registered"),
        bot: Some(BotEventType::Registered),
    },
    Entry {
        name: "partner.joined",
        version: 1,
        meaning: "A partner registered under a member.",
        aggregate: "member",
        source: "backend",
        fields: &[UID, field("partner_uid", "integer", "The partner's id as a member.")],
        example: example!("partner.joined"),
        bot: Some(BotEventType::NewPartner),
    },
    Entry {
        name: "member.nft_activated",
        version: 1,
        meaning: "A member's status NFT was activated.",
        aggregate: "member",
        source: "backend",
        fields: &[UID, field("level", "string", "`lp1` or `lp2`.")],
        example: example!("member.nft_activated"),
        bot: Some(BotEventType::StatusNftActivated),
    },
    Entry {
        name: "funnel.stage_advanced",
        version: 1,
        meaning: "A person moved up in the bot's funnel.",
        aggregate: "bot_user",
        source: "onboarding",
        fields: &[
            field("telegram_id", "string", "The person's chat; a text, since it does not fit every number."),
            field("magnet_uid", "integer or null", "The member's id, if the person is known as one."),
            field("from", "integer", "The stage before, 1 to 9."),
            field("to", "integer", "The stage now, 1 to 9."),
        ],
        example: example!("funnel.stage_advanced"),
        bot: None,
    },
    Entry {
        name: "lead.received",
        version: 1,
        meaning: "A form's lead was stored.",
        aggregate: "lead",
        source: "leads",
        fields: &[LEAD_ID, REQUEST_ID],
        example: example!("lead.received"),
        bot: None,
    },
    Entry {
        name: "lead.notification_sent",
        version: 1,
        meaning: "The broker's chat was told of a lead.",
        aggregate: "lead",
        source: "leads",
        fields: &[LEAD_ID, REQUEST_ID, field("attempt", "integer", "The number of the attempt that arrived, from 1.")],
        example: example!("lead.notification_sent"),
        bot: None,
    },
    Entry {
        name: "lead.notification_failed",
        version: 1,
        meaning: "The broker's chat was not told of a lead, and will not be by itself.",
        aggregate: "lead",
        source: "leads",
        fields: &[
            LEAD_ID,
            REQUEST_ID,
            field("attempt", "integer", "The number of the attempt that failed; 0 if there was none."),
            field("error_code", "string", "The short code of the reason."),
        ],
        example: example!("lead.notification_failed"),
        bot: None,
    },
    Entry {
        name: "webhook.endpoint_failing",
        version: 1,
        meaning: "Nothing arrives at an endpoint, and it will be disabled unless something does.",
        aggregate: "webhook_endpoint",
        source: "webhooks",
        fields: ENDPOINT,
        example: example!("webhook.endpoint_failing"),
        bot: None,
    },
    Entry {
        name: "webhook.endpoint_disabled",
        version: 1,
        meaning: "An endpoint was disabled: nothing is sent there until somebody makes it active again.",
        aggregate: "webhook_endpoint",
        source: "webhooks",
        fields: ENDPOINT,
        example: example!("webhook.endpoint_disabled"),
        bot: None,
    },
    Entry {
        name: "broadcast.finished",
        version: 1,
        meaning: "A broadcast is over: nothing more of it is sent.",
        aggregate: "broadcast",
        source: "onboarding",
        fields: &[
            field("broadcast_id", "integer", "The broadcast's id."),
            field("outcome", "string", "`done` or `cancelled`."),
            field("total", "integer", "The recipients; more than the sum of the others only after a cancel."),
            field("sent", "integer", "To how many it was sent."),
            field("undeliverable", "integer", "To how many it certainly was not."),
            field("unknown", "integer", "Of how many nobody knows."),
            field("skipped", "integer", "How many were passed over: blocked, opted out, or without a text."),
        ],
        example: example!("broadcast.finished"),
        bot: None,
    },
];

/// Names that are ours although no event of theirs is recorded: what the test button sends.
pub const KEPT_NAMES: &[&str] = &["webhook.test"];

/// The catalogue's row of that name.
pub fn find_entry(name: &str) -> Option<&'static Entry> {
    CATALOGUE.iter().find(|entry| entry.name == name)
}

/// Whether a type is of our own events, so that nobody else may publish it.
pub fn is_reserved(name: &str) -> bool {
    find_entry(name).is_some() || KEPT_NAMES.contains(&name)
}
