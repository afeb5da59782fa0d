//! Who records a published event: its change's transaction writes to both outboxes, or to neither.

use crate::config::StoreConfig;
use crate::kernel::clock::Clock;
use crate::kernel::contract::Chat;
use crate::kernel::events::{Event, Lead, Member, NftLevel};
use crate::kernel::store::{Db, Role, StoreError, Tx};

fn what_happened() -> Vec<Event> {
    let bound = Member { uid: 7, chat: Some(Chat::Bound(107)) };
    let preview = Member { uid: 8, chat: Some(Chat::Preview(108)) };
    let lead = Lead { id: "0198".into(), request_id: Some("IP-20260101-ABC123".into()) };
    let error_code = "telegram_timeout".into();
    vec![
        Event::WalletConnected(preview),
        Event::Registered { member: bound, parent_uid: Some(3) },
        Event::PartnerJoined { member: bound, partner_uid: 9, partner_name: Some("Anna".into()) },
        Event::NftActivated { member: Member { uid: 9, chat: None }, level: NftLevel::Lp2 },
        Event::StageAdvanced { telegram_id: 107, magnet_uid: Some(7), from: 6, to: 7 },
        Event::LeadReceived(lead.clone()),
        Event::LeadNotificationFailed { lead: lead.clone(), attempt: 1, error_code },
        Event::LeadNotificationSent { lead, attempt: 2 },
    ]
}

async fn rows(db: &Db, statement: &'static str) -> Vec<String> {
    db.read(move |tx: &Tx<'_>| tx.query_all(statement, [], |row| row.get(0))).await.unwrap()
}

#[tokio::test]
async fn a_published_event_is_recorded_with_its_change_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let store =
        StoreConfig { data_dir: dir.path().join("data"), ballast_bytes: 0, ..crate::config::Config::default().store };
    let db = super::open_store(&store, Role::Owner("test"), Clock::stopped_at(1_000)).unwrap();
    let publish = |tx: &Tx<'_>| what_happened().iter().try_for_each(|event| tx.publish(event));
    let undone = db.write(move |tx| publish(tx).and(Err::<(), _>(StoreError::NoRow))).await;
    assert!(matches!(undone, Err(StoreError::NoRow)));
    db.write(publish).await.unwrap();

    let bot =
        rows(&db, "SELECT event_type || ' ' || subject || ' ' || payload FROM bot_event_outbox ORDER BY id").await;
    let expected = [
        r#"wallet_connected uid:8 {"preview":true}"#,
        r#"registered uid:7 {"parentUid":3}"#,
        r#"new_partner uid:7 {"partnerName":"Anna","partnerUid":9}"#,
        r#"status_nft_activated uid:9 {"level":"lp2"}"#,
    ];
    assert_eq!(bot, expected, "the bot is told of members, once, and of nothing else");
    let domain = rows(&db, "SELECT type || ' ' || aggregate_id FROM outbox_events ORDER BY id").await;
    let expected = [
        "member.wallet_connected 8",
        "member.registered 7",
        "partner.joined 7",
        "member.nft_activated 9",
        "funnel.stage_advanced 107",
        "lead.received 0198",
        "lead.notification_failed 0198",
        "lead.notification_sent 0198",
    ];
    assert_eq!(domain, expected, "everything that happened, once");
    let ids = rows(&db, "SELECT event_id FROM outbox_events ORDER BY event_id").await;
    assert_eq!(
        ids,
        rows(&db, "SELECT event_id FROM outbox_events ORDER BY id").await,
        "their ids sort as they happened"
    );
    db.close().await;
}
