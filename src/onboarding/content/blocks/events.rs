//! Blocks of events, of both kinds (`events.toml`).

use super::{Block, Shape, Value, html, text};

/// What a web notification's headline and text may take in the member's cabinet.
const HEADLINE: Shape = Shape::Plain(120);
const NOTIFICATION: Shape = Shape::Plain(1_000);

const PARTNER: &[Value] = &[text("partner_name", &["Anna", "Ivan Petrov"])];

/// What every domain event has; the fields of its own type are read from the catalogue of events.
const EVENT: &[Value] = &[
    text("type", &["member.registered"]),
    text("event_id", &["0193c2f1-0000-7000-8000-000000000000"]),
    text("aggregate_type", &["member"]),
    text("aggregate_id", &["7"]),
    text("occurred_at", &["2026-11-30T12:00:00.000Z"]),
];

pub(super) const BLOCKS: &[Block] = &[
    html("new_partner", PARTNER),
    Block { key: "new_partner_title", shape: HEADLINE, values: PARTNER },
    Block { key: "new_partner_body", shape: NOTIFICATION, values: PARTNER },
    html("left_leader", PARTNER),
    html("reactivation", &[]),
    html("struct_overtake", &[]),
    html("event_any", EVENT),
    html("event_broadcast_finished", EVENT),
    html("event_funnel_stage_advanced", EVENT),
    html("event_lead_notification_failed", EVENT),
    html("event_lead_notification_sent", EVENT),
    html("event_lead_received", EVENT),
    html("event_member_nft_activated", EVENT),
    html("event_member_registered", EVENT),
    html("event_member_wallet_connected", EVENT),
    html("event_partner_joined", EVENT),
    html("event_webhook_endpoint_disabled", EVENT),
    html("event_webhook_endpoint_failing", EVENT),
];
