//! Claiming, completing and asking again: who may, and what is recorded.

use super::super::{
    Claim, Completed, LEADS, Retry, RetryReason, Taken, claim, complete, enqueue_disabled, next_for_worker,
    request_retry, take,
};
use super::*;

async fn claim_it(world: &World, lead_id: &str, request_id: Option<String>) -> Claim {
    let (lead_id, hands) = (lead_id.to_owned(), world.hands.clone());
    world.write(move |tx| claim(tx, &lead_id, request_id.as_deref(), &hands).unwrap()).await
}

async fn end(world: &World, number: u32, ending: Ending, attempt: Option<i64>) -> Completed {
    world.write(move |tx| complete(tx, &id(number), Some(&request(number)), &ending, attempt).unwrap()).await
}

async fn retry(world: &World, number: u32) -> Retry {
    let reason = RetryReason::TelegramConfigFixed;
    world.write(move |tx| request_retry(tx, &id(number), Some(&request(number)), reason).unwrap()).await
}

async fn work(world: &World) -> Option<Taken> {
    let hands = world.hands.clone();
    world.write(move |tx| next_for_worker(tx, &hands).unwrap().map(|candidate| take(tx, &candidate).unwrap())).await
}

fn won(attempt_count: i64) -> Claim {
    Claim { claimed: true, current_status: "sending", attempt_count }
}

fn lost(current_status: &'static str, attempt_count: i64) -> Claim {
    Claim { claimed: false, current_status, attempt_count }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_claims_at_once_exactly_one_wins() {
    let world = World::new();
    world.insert(1, "pending").await;
    let claims = (0..64).map(|_| {
        let (db, hands) = (world.db.clone(), world.hands.clone());
        tokio::spawn(async move {
            let claim_it = move |tx: &Tx<'_>| claim(tx, &id(1), Some(&request(1)), &hands);
            loop {
                match db.write(claim_it.clone()).await {
                    Err(StoreError::QueueFull) => tokio::task::yield_now().await,
                    other => return other.unwrap(),
                }
            }
        })
    });
    let mut claims: Vec<Claim> = futures_util::future::join_all(claims).await.into_iter().map(Result::unwrap).collect();
    claims.sort_by_key(|claim| !claim.claimed);
    assert_eq!(claims[0], won(1));
    assert_eq!(claims[1..], vec![lost("sending", 1); 63]);
}

#[tokio::test]
async fn a_claim_is_taken_over_after_fifteen_minutes_and_not_at_them() {
    let world = World::new();
    let lead = world.insert(1, "pending").await;
    assert_eq!(claim_it(&world, &lead, Some(request(1))).await, won(1));
    world.advance(15 * MINUTE);
    assert_eq!(claim_it(&world, &lead, Some(request(1))).await, lost("sending", 1));
    world.advance(1);
    let hold = world.hands.hold(&lead);
    assert_eq!(claim_it(&world, &lead, Some(request(1))).await, lost("sending", 1), "it is in hand");
    assert_eq!(work(&world).await, None, "our own worker does not overtake itself");
    drop(hold);
    assert_eq!(claim_it(&world, &lead, Some(request(1))).await, won(2));
    world.run("UPDATE broker_leads SET notification_attempted_at = NULL").await.unwrap();
    assert_eq!(claim_it(&world, &lead, Some(request(1))).await, won(3), "no time is an old one");
    assert_eq!(world.row(&lead).await.cycle, 0, "claims of others do not count for our worker");
}

#[tokio::test]
async fn a_claim_matches_by_both_ids_also_where_there_is_none() {
    let world = World::new();
    let with = world.insert(1, "pending").await;
    let without = world.insert(2, "pending").await;
    world.run("UPDATE broker_leads SET request_id = NULL WHERE request_id LIKE '%2'").await.unwrap();
    assert_eq!(claim_it(&world, &with, None).await, lost("missing", 0));
    assert_eq!(claim_it(&world, &with, Some(request(2))).await, lost("missing", 0));
    assert_eq!(claim_it(&world, &without, Some(request(2))).await, lost("missing", 0));
    assert_eq!(claim_it(&world, &id(3), None).await, lost("missing", 0));
    assert_eq!(claim_it(&world, &without, None).await, won(1));
    assert_eq!(claim_it(&world, &with, Some(request(1))).await, won(1));
    for (number, status) in [(4, "sent"), (5, "failed"), (6, "disabled")] {
        let lead = world.insert(number, status).await;
        assert_eq!(claim_it(&world, &lead, Some(request(number))).await, lost(status, 0));
    }
}

#[tokio::test]
async fn who_comes_back_after_the_claim_was_taken_over_changes_nothing() {
    let world = World::new();
    let lead = world.insert(1, "pending").await;
    assert_eq!(end(&world, 1, Ending::Sent, None).await, Completed::Unchanged, "nobody claimed it");
    claim_it(&world, &lead, Some(request(1))).await;
    world.advance(16 * MINUTE);
    claim_it(&world, &lead, Some(request(1))).await;
    assert_eq!(end(&world, 1, Ending::Sent, Some(1)).await, Completed::Unchanged);
    assert_eq!(world.row(&lead).await.status, "sending");
    assert_eq!(end(&world, 1, failed("telegram_timeout"), Some(2)).await, Completed::Failed);
    assert_eq!(end(&world, 1, Ending::Sent, None).await, Completed::Unchanged, "it has ended");
    let elsewhere = |tx: &Tx<'_>| complete(tx, &id(9), None, &Ending::Sent, None).unwrap();
    assert_eq!(world.write(elsewhere).await, Completed::Unchanged);
    assert_eq!(world.events().await, [r#"notification_failed {"attempt":2,"error_code":"telegram_timeout"}"#]);
    assert_eq!(world.published().await, [format!("lead.notification_failed {lead}")]);
}

#[tokio::test]
async fn an_ending_is_recorded_in_the_row_its_events_and_the_outbox() {
    let world = World::new();
    let lead = world.insert(1, "pending").await;
    claim_it(&world, &lead, Some(request(1))).await;
    world.advance(MINUTE);
    assert_eq!(end(&world, 1, Ending::Sent, None).await, Completed::Sent);
    let row = world.row(&lead).await;
    assert_eq!((row.status.as_str(), row.error, row.updated_at), ("sent", None, START + MINUTE));
    let times = "SELECT concat_ws(' ', notification_attempted_at, notification_sent_at) FROM broker_leads";
    assert_eq!(world.column(times).await, [format!("{START} {}", START + MINUTE)]);
    assert_eq!(world.events().await, [r#"notification_sent {"attempt":1}"#]);
    let payload = world.column("SELECT payload FROM outbox_events").await;
    assert_eq!(payload, [format!(r#"{{"attempt":1,"lead_id":"{lead}","request_id":"{}"}}"#, request(1))]);
    let undone = world.db.write(|tx| {
        request_retry(tx, &id(1), Some(&request(1)), RetryReason::ManualRecovery)?;
        Err::<(), _>(StoreError::NoRow)
    });
    assert!(undone.await.is_err());
    assert_eq!(retry(&world, 1).await, Retry { retry_requested: false, current_status: "sent", retry_count: 0 });
}

#[tokio::test]
async fn a_failed_lead_waits_again_when_a_person_asks_and_begins_a_new_cycle() {
    let world = World::new();
    let lead = world.insert(1, "pending").await;
    for attempt in 1..=3 {
        let Some(Taken::Claimed { attempt: taken, .. }) = work(&world).await else { panic!("not taken") };
        assert_eq!(taken, attempt);
        world.advance(16 * MINUTE);
    }
    assert_eq!(work(&world).await, Some(Taken::GivenUp), "there is no fourth");
    assert_eq!(work(&world).await, None);
    let row = world.row(&lead).await;
    assert_eq!((row.status.as_str(), row.error.as_deref()), ("failed", Some("notification_failed")));

    let woken = world.db.subscribe(LEADS);
    assert_eq!(retry(&world, 1).await, Retry { retry_requested: true, current_status: "pending", retry_count: 1 });
    assert!(world.is_woken(&woken).await, "the worker is woken");
    assert_eq!(retry(&world, 1).await, Retry { retry_requested: false, current_status: "pending", retry_count: 1 });
    let row = world.row(&lead).await;
    assert_eq!((row.attempts, row.cycle, row.error.as_deref()), (3, 0, Some("notification_failed")));
    assert_eq!(row.reason.as_deref(), Some("telegram_config_fixed"));
    let Some(Taken::Claimed { attempt, .. }) = work(&world).await else { panic!("not taken") };
    assert_eq!((attempt, world.row(&lead).await.error), (4, None));
    let missing = |tx: &Tx<'_>| request_retry(tx, &id(9), None, RetryReason::ManualRecovery).unwrap();
    assert_eq!(world.write(missing).await, Retry { retry_requested: false, current_status: "missing", retry_count: 0 });
    let expected = [
        r#"notification_failed {"attempt":3,"error_code":"notification_failed"}"#,
        r#"notification_retry_requested {"reason_code":"telegram_config_fixed","retry_count":1}"#,
    ];
    assert_eq!(world.events().await, expected);
    assert!(RetryReason::parse("because").is_err());
}

#[tokio::test]
async fn what_is_being_sent_for_over_a_day_is_given_up() {
    let world = World::new();
    world.insert(1, "pending").await;
    assert!(matches!(work(&world).await, Some(Taken::Claimed { .. })));
    world.advance(24 * 60 * MINUTE);
    assert!(matches!(work(&world).await, Some(Taken::Claimed { attempt: 2, .. })), "a day is not over a day");
    world.advance(24 * 60 * MINUTE + 1);
    assert_eq!(work(&world).await, Some(Taken::GivenUp));
    assert_eq!(world.published().await, [format!("lead.notification_failed {}", id(1))]);
}

#[tokio::test]
async fn the_worker_takes_old_claims_first_and_then_who_waits_longest() {
    let world = World::new();
    for number in [3, 1, 2] {
        world.insert(number, "pending").await;
        world.advance(1);
    }
    let claimed = claim_it(&world, &id(2), Some(request(2))).await;
    assert!(claimed.claimed);
    world.advance(20 * MINUTE);
    let mut order = Vec::new();
    while let Some(Taken::Claimed { lead_id, .. }) = work(&world).await {
        order.push(lead_id);
    }
    assert_eq!(order, [id(2), id(3), id(1)]);
}

#[tokio::test]
async fn disabled_leads_wait_when_a_person_asks_in_batches() {
    let world = World::new();
    for number in 1..=3 {
        world.insert(number, "disabled").await;
    }
    let mut done = Vec::new();
    for _ in 0..3 {
        done.push(world.write(|tx| enqueue_disabled(tx, RetryReason::ManualRecovery, 2).unwrap()).await);
    }
    assert_eq!(done, [2, 1, 0]);
    let expected = r#"notification_retry_requested {"reason_code":"manual_recovery","retry_count":1}"#;
    assert_eq!(world.events().await, [expected; 3]);
    assert!(matches!(work(&world).await, Some(Taken::Claimed { .. })));
}

#[tokio::test]
async fn a_claim_from_the_future_is_not_believed() {
    let world = World::new();
    world.insert(1, "pending").await;
    claim_it(&world, &id(1), Some(request(1))).await;
    // The clock is put right: it was a year ahead when the lead was claimed.
    let ahead = |ms: i64| {
        move |tx: &Tx<'_>| {
            let sql = "UPDATE broker_leads SET notification_attempted_at = ?1";
            tx.execute(sql, [tx.now() + ms]).unwrap();
        }
    };
    world.write(ahead(15 * MINUTE)).await;
    assert_eq!(claim_it(&world, &id(1), Some(request(1))).await, lost("sending", 1));
    assert_eq!(work(&world).await, None);
    world.write(ahead(365 * 86_400_000)).await;
    assert_eq!(world.write(|tx| super::super::health::health(tx).unwrap().stale_sending).await, 1);
    assert!(matches!(work(&world).await, Some(Taken::Claimed { attempt: 2, .. })));
}

#[tokio::test]
async fn all_that_failed_wait_again_once_and_what_fails_anew_meanwhile_is_left() {
    let world = World::new();
    for number in 1..=5 {
        world.insert(number, "pending").await;
        claim_it(&world, &id(number), Some(request(number))).await;
        end(&world, number, Ending::Failed(ErrorCode::TELEGRAM_TIMEOUT), None).await;
    }
    let begun = world.clock.now();
    let batch =
        move |tx: &Tx<'_>| super::super::retry_failed(tx, RetryReason::TelegramTemporaryError, begun, 3).unwrap();
    assert_eq!(world.write(batch).await, 3);
    world.advance(1000);
    claim_it(&world, &id(1), Some(request(1))).await;
    end(&world, 1, Ending::Failed(ErrorCode::TELEGRAM_TIMEOUT), None).await;
    assert_eq!(world.write(batch).await, 2);
    assert_eq!(world.write(batch).await, 0);
}
