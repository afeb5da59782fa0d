//! Every event is in the catalogue as its publisher makes it, and what is shown of it holds nothing personal.

use serde_json::Value;

use super::{
    BroadcastOutcome, CATALOGUE, EndpointReason, EndpointTrouble, Event, FinishedBroadcast, KEPT_NAMES, Lead, Member,
    NftLevel,
};
use super::{find_entry, is_reserved};
use crate::kernel::contract::Chat;
use crate::kernel::tenant::TenantId;

fn lead() -> Lead {
    let id = "01890a5d-ac96-774b-bcce-b302099a8057".to_owned();
    Lead { id, request_id: Some("IP-20261130-A1B2C3".into()) }
}

fn trouble(reason: EndpointReason, failing_since: Option<i64>) -> EndpointTrouble {
    let endpoint_id = "ep_01890a5d-ac96-774b-bcce-b302099a8057".to_owned();
    EndpointTrouble { endpoint_id, tenant: TenantId::parse("acme").unwrap(), reason, failing_since }
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
        Event::EndpointFailing(trouble(EndpointReason::Failing, Some(1_795_770_000_000))),
        Event::EndpointDisabled(trouble(EndpointReason::Gone, None)),
        Event::BroadcastFinished(FinishedBroadcast {
            id: 3,
            outcome: BroadcastOutcome::Done,
            total: 500,
            sent: 480,
            undeliverable: 12,
            unknown: 1,
            skipped: 7,
        }),
    ]
}

/// Whether a value is what the catalogue calls its kind.
fn is_kind(value: &Value, kind: &str) -> bool {
    kind.split(" or ").any(|kind| match kind {
        "integer" => value.is_i64(),
        "string" => value.is_string(),
        "null" => value.is_null(),
        other => panic!("{other} is no kind of JSON"),
    })
}

#[test]
fn every_event_is_in_the_catalogue_with_the_fields_its_fixture_shows() {
    let events = one_of_each();
    let names: Vec<_> = events.iter().map(|event| event.entry().name).collect();
    assert_eq!(names, CATALOGUE.iter().map(|entry| entry.name).collect::<Vec<_>>());
    for event in events {
        let entry = event.entry();
        let example: Value = serde_json::from_str(entry.example).unwrap();
        assert_eq!(example, event.payload(), "{}", entry.name);
        let fields = event.payload();
        let fields = fields.as_object().unwrap();
        assert_eq!(fields.len(), entry.fields.len(), "{}", entry.name);
        for field in entry.fields {
            let value = fields.get(field.name).unwrap_or_else(|| panic!("{}.{}", entry.name, field.name));
            assert!(is_kind(value, field.kind), "{}.{}: {value}", entry.name, field.name);
        }
        assert!(!event.aggregate_id().is_empty(), "{}", entry.name);
    }
}

#[test]
fn every_fixture_is_an_example() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/events");
    for file in std::fs::read_dir(folder).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(find_entry(name.trim_end_matches(".json")).is_some(), "{name}");
    }
}

/// Ids, codes, times and amounts have a form; what a person writes does not.
#[test]
fn examples_hold_no_name_no_phone_and_no_text() {
    let is_code = |text: &str| {
        text.len() <= 64
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "_-.:".contains(c))
            && !text.contains("+7")
    };
    // A phone number is ten digits or more in a row; no id of ours is so long but for a chat's.
    let digits = |text: &str| text.split(|c: char| !c.is_ascii_digit()).map(str::len).max().unwrap_or(0);
    let personal = ["name", "phone", "email", "comment", "text", "city", "message", "username", "address"];
    for entry in CATALOGUE {
        for field in entry.fields {
            assert!(!personal.iter().any(|word| field.name.contains(word)), "{}.{}", entry.name, field.name);
        }
        let example: Value = serde_json::from_str(entry.example).unwrap();
        for (field, value) in example.as_object().unwrap() {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            // An upper-case letter begins a name; ids have them beside digits only.
            let is_word =
                text.chars().next().is_some_and(char::is_uppercase) && !text.contains(|c: char| c.is_ascii_digit());
            // The last part of a UUID is twelve characters, and may be digits only.
            let is_uuid = uuid::Uuid::try_parse(text.trim_start_matches("ep_")).is_ok();
            let is_fit = is_code(&text) && !is_word && (is_uuid || digits(&text) < 10);
            assert!(is_fit, "{}.{field}: {text}", entry.name);
        }
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

#[test]
fn names_of_our_own_are_reserved_also_those_that_nothing_publishes_yet() {
    let promised = [
        "lead.received",
        "lead.notification_sent",
        "lead.notification_failed",
        "funnel.stage_advanced",
        "member.wallet_connected",
        "member.registered",
        "member.nft_activated",
        "partner.joined",
        "broadcast.finished",
        "webhook.test",
        "webhook.endpoint_failing",
        "webhook.endpoint_disabled",
    ];
    assert!(promised.iter().all(|name| is_reserved(name)));
    assert_eq!(promised.len(), CATALOGUE.len() + KEPT_NAMES.len());
    assert!(!is_reserved("lead") && !is_reserved("lead.received.again") && !is_reserved("order.paid"));
}
