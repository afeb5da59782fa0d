//! What tenants post: what is taken, what is not, and what a repeat gets.

use proptest::prelude::*;

use super::super::{Error, IdempotencyKey, register_type, types, unregister_type};
use super::*;

fn keyed(key: &str, body: u8, events: Vec<NewEvent>) -> Posted {
    Posted { key: Some(IdempotencyKey { key: key.into(), body_hash: [body; 32] }), ..posted(events) }
}

fn with_id(event_id: &str, payload: &str) -> NewEvent {
    NewEvent { event_id: Some(event_id.into()), ..event("order.paid", payload) }
}

const ID: &str = "0190a5d0-ac96-774b-bcce-b302099a8057";

/// JSON that tempts whoever parses and writes it anew.
const ODD: [&str; 9] = [
    r#"{"z":1,"a":2,"z":3}"#,
    r#"{"n":1e400,"m":0.10,"k":-0,"big":123456789012345678901234567890,"e":1E+2}"#,
    r#"{"path":"a\/b","u":"\u2028\u0041\u0000","half":"\ud800"}"#,
    "{\"line\":\"\u{2028}\u{2029}\",\"emoji\":\"👩‍👩‍👧\",\"del\":\"\u{7f}\"}",
    "{ \"spaced\" :\t[ 1 ,\r\n 2 ] }",
    r#"{"":{"":{}}}"#,
    r#"{"quote":"\"}{][\\"}"#,
    "{}",
    "{\"combining\":\"e\u{301}\",\"composed\":\"\u{e9}\"}",
];

#[tokio::test]
async fn data_is_kept_byte_for_byte() {
    let world = World::new().await;
    let taker = Actor::inside("taker");
    let deep = format!("{{\"deep\":{}1{}}}", "[".repeat(99), "]".repeat(99));
    let long = format!("{{\"long\":\"{}\"}}", "я".repeat(65_536 - 11));
    let texts: Vec<&str> = ODD.into_iter().chain([deep.as_str(), long.as_str()]).collect();
    let events = texts.iter().map(|text| event("order.paid", text)).collect();
    let ids = world.post(posted(events)).await.unwrap();
    assert_eq!(world.column("SELECT payload FROM outbox_events ORDER BY id").await, texts);
    assert_eq!(pass(&world.relay(&[&taker])).await.published, texts.len() as u64);
    assert_eq!(taker.events().iter().map(|event| event.payload.clone()).collect::<Vec<_>>(), texts);
    for (id, text) in ids.into_iter().zip(texts) {
        let found = world.db.read(move |tx| super::super::inspect::find(tx, &acme(), &id)).await.unwrap().unwrap();
        assert_eq!(found.data.get(), text);
    }
}

#[tokio::test]
async fn white_space_around_data_is_none_of_it() {
    let world = World::new().await;
    world.post(posted(vec![event("order.paid", " \n{\"a\" : 1}\t")])).await.unwrap();
    assert_eq!(world.column("SELECT payload FROM outbox_events").await, ["{\"a\" : 1}"]);
}

#[tokio::test]
async fn an_event_gets_an_id_that_sorts_and_the_time_of_now() {
    let world = World::new().await;
    let own = NewEvent { occurred_at: Some(5), ..with_id(&ID.to_uppercase(), "{}") };
    let ids = world.post(posted(vec![event("order.paid", "{}"), event("order.paid", "{}"), own])).await.unwrap();
    assert!(ids[0] < ids[1], "{ids:?}");
    assert_eq!(ids[2], ID, "two spellings of a UUID are one id");
    let shown =
        "SELECT concat_ws(' ', tenant_id, type, schema_version, aggregate_type, aggregate_id, occurred_at, created_at)
                 FROM outbox_events ORDER BY id";
    let rows = world.column(shown).await;
    assert_eq!(rows[0], format!("acme order.paid 1 order 17 {START} {START}"));
    assert_eq!(rows[2], format!("acme order.paid 1 order 17 5 {START}"));
}

#[tokio::test]
async fn what_cannot_be_is_refused_by_its_field_and_nothing_of_the_request_is_stored() {
    let world = World::new().await;
    let good = || event("order.paid", "{}");
    let long = "x".repeat(256);
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(100), "]".repeat(100));
    let large = format!("{{\"a\":\"{}\"}}", "я".repeat(65_529));
    let wrong: Vec<(&str, NewEvent)> = vec![
        ("type", event("", "{}")),
        ("type", event("Order.Paid", "{}")),
        ("type", event("order..paid", "{}")),
        ("type", event(".order", "{}")),
        ("type", event("order.", "{}")),
        ("type", event("order paid", "{}")),
        ("type", event("заказ", "{}")),
        ("type", event(&"a".repeat(129), "{}")),
        ("version", NewEvent { version: 0, ..good() }),
        ("version", NewEvent { version: i64::MIN, ..good() }),
        ("aggregate.type", NewEvent { aggregate_type: String::new(), ..good() }),
        ("aggregate.type", NewEvent { aggregate_type: long[..129].into(), ..good() }),
        ("aggregate.id", NewEvent { aggregate_id: String::new(), ..good() }),
        ("aggregate.id", NewEvent { aggregate_id: long.clone(), ..good() }),
        ("aggregate.id", NewEvent { aggregate_id: "a\0b".into(), ..good() }),
        ("occurred_at", NewEvent { occurred_at: Some(i64::MAX), ..good() }),
        ("occurred_at", NewEvent { occurred_at: Some(i64::MIN), ..good() }),
        ("event_id", with_id("", "{}")),
        ("event_id", with_id("17", "{}")),
        ("event_id", with_id(&ID.replace('-', ""), "{}")),
        ("event_id", with_id(&format!("{{{ID}}}"), "{}")),
        ("event_id", with_id(&format!("urn:uuid:{ID}"), "{}")),
        ("data", event("order.paid", "")),
        ("data", event("order.paid", "null")),
        ("data", event("order.paid", "[]")),
        ("data", event("order.paid", "{} {}")),
        ("data", event("order.paid", "{\"a\":NaN}")),
        ("data", event("order.paid", "{\"a\":\"\u{1}\"}")),
        ("data", event("order.paid", "{}\0")),
        ("data", event("order.paid", &deep)),
        ("data", event("order.paid", &large)),
    ];
    for (wanted, event) in wrong {
        let shown = format!("{event:?}");
        let answer = world.post(posted(vec![good(), event, good()])).await;
        let Err(Error::Invalid { index: Some(1), field, .. }) = answer else { panic!("{shown}: {answer:?}") };
        assert_eq!(field, wanted, "{shown}");
    }
    for events in [vec![], vec![good(); 1001]] {
        let answer = world.post(posted(events)).await;
        assert!(matches!(answer, Err(Error::Invalid { index: None, field: "events", .. })), "{answer:?}");
    }
    for key in ["", "ключ", "a\n", &"k".repeat(256)] {
        let answer = world.post(keyed(key, 1, vec![good()])).await;
        assert!(matches!(answer, Err(Error::Invalid { index: None, field: "Idempotency-Key", .. })), "{answer:?}");
    }
    assert!(world.rows().await.is_empty());
    assert_eq!(world.post(posted(vec![good(); 1000])).await.unwrap().len(), 1000);
}

#[tokio::test]
async fn our_own_types_are_nobodys_to_post() {
    let world = World::new().await;
    for (tenant, event_type) in
        [(acme(), "lead.received"), (TenantId::installation(), "broadcast.finished"), (acme(), "webhook.test")]
    {
        let answer = world.post(Posted { tenant, ..posted(vec![event(event_type, "{}")]) }).await;
        assert!(matches!(answer, Err(Error::ReservedType { index: 0, .. })), "{answer:?}");
    }
    let install = Posted { tenant: TenantId::installation(), ..posted(vec![event("order.paid", "{}")]) };
    world.post(install).await.unwrap();
}

#[tokio::test]
async fn while_types_are_strict_only_registered_ones_are_taken() {
    let world = World::new().await;
    let strict = |event_type: &str| Posted { strict: true, ..posted(vec![event(event_type, "{}")]) };
    let answer = world.post(strict("order.paid")).await;
    assert!(matches!(answer, Err(Error::UnregisteredType { index: 0, .. })), "{answer:?}");
    let registered = world.write(|tx| [(); 2].map(|()| register_type(tx, &acme(), "order.paid").unwrap())).await;
    assert_eq!(registered, [true, false]);
    world.post(strict("order.paid")).await.unwrap();
    let other = Posted { tenant: TenantId::parse("other").unwrap(), ..strict("order.paid") };
    assert!(matches!(world.post(other).await, Err(Error::UnregisteredType { .. })), "a type is one tenant's");

    let refused = world.write(|tx| {
        let nobody = TenantId::parse("nobody").unwrap();
        [
            register_type(tx, &acme(), "Order").unwrap_err().to_string(),
            register_type(tx, &acme(), "lead.received").unwrap_err().to_string(),
            register_type(tx, &nobody, "order.paid").unwrap_err().to_string(),
            unregister_type(tx, &acme(), "order.lost").unwrap_err().to_string(),
        ]
    });
    let expected = ["type must be words", "lead.received is a type of", "there is no such tenant", "not found"];
    assert!(refused.await.iter().zip(expected).all(|(said, begins)| said.starts_with(begins)));
    world.write(|tx| register_type(tx, &acme(), "order.lost").unwrap()).await;
    let listed =
        world.write(|tx| (types(tx, &acme(), None, 1).unwrap(), types(tx, &acme(), Some("order.lost"), 9).unwrap()));
    let (first, rest) = listed.await;
    assert_eq!(
        (first[0].event_type.as_str(), rest[0].event_type.as_str(), rest.len()),
        ("order.lost", "order.paid", 1)
    );
    world.write(|tx| unregister_type(tx, &acme(), "order.paid").unwrap()).await;
    assert!(world.post(strict("order.paid")).await.is_err());
}

#[tokio::test]
async fn an_event_that_is_known_by_its_id_is_not_stored_again() {
    let world = World::new().await;
    let first = with_id(ID, "{\"a\":1}");
    assert_eq!(world.post(posted(vec![first.clone(), first.clone()])).await.unwrap(), [ID, ID]);
    world.advance(DAY);
    assert_eq!(world.post(posted(vec![with_id(&ID.to_uppercase(), "{\"a\":1}")])).await.unwrap(), [ID]);
    let at_that_time = NewEvent { occurred_at: Some(START), ..first.clone() };
    assert_eq!(world.post(posted(vec![at_that_time])).await.unwrap(), [ID]);
    for other in [
        with_id(ID, "{\"a\": 1}"),
        NewEvent { version: 2, ..first.clone() },
        NewEvent { aggregate_id: "18".into(), ..first.clone() },
        NewEvent { aggregate_type: "cart".into(), ..first.clone() },
        NewEvent { event_type: "order.lost".into(), ..first.clone() },
        NewEvent { occurred_at: Some(START + 1), ..first.clone() },
    ] {
        let answer = world.post(posted(vec![event("order.paid", "{}"), other])).await;
        assert!(matches!(answer, Err(Error::EventIdConflict { index: 1, .. })), "{answer:?}");
    }
    let others = Posted { tenant: TenantId::parse("other").unwrap(), ..posted(vec![with_id(ID, "{}")]) };
    assert_eq!(world.post(others).await.unwrap(), [ID], "ids are a tenant's own");
    assert_eq!(world.rows().await.len(), 2);
}

#[tokio::test]
async fn the_same_request_gets_the_same_answer_for_a_day() {
    let world = World::new().await;
    let request = |body| keyed("k 1", body, vec![event("order.paid", "{}"), event("order.paid", "{}")]);
    let first = world.post(request(1)).await.unwrap();
    world.advance(DAY - 1);
    assert_eq!(world.post(request(1)).await.unwrap(), first);
    assert!(matches!(world.post(request(2)).await, Err(Error::KeyConflict)));
    let other = Posted { tenant: TenantId::parse("other").unwrap(), ..request(2) };
    assert_ne!(world.post(other).await.unwrap(), first, "keys are a tenant's own");
    world.advance(1);
    let second = world.post(request(2)).await.unwrap();
    assert_ne!(second, first, "a day later it is a new request");
    assert_eq!(world.post(request(2)).await.unwrap(), second);
    assert_eq!(world.rows().await.len(), 6);
    world.clock.set(START - DAY);
    assert_ne!(world.post(request(1)).await.unwrap(), first, "a clock that was set back keeps no key for longer");
}

#[tokio::test]
async fn a_request_that_was_refused_leaves_its_key_free() {
    let world = World::new().await;
    assert!(world.post(keyed("k", 1, vec![event("order.paid", "[]")])).await.is_err());
    world.post(keyed("k", 2, vec![event("order.paid", "{}")])).await.unwrap();
}

#[tokio::test]
async fn what_was_stored_wakes_the_relay_and_what_was_refused_does_not() {
    let world = World::new().await;
    let woken = world.db.subscribe(super::super::OUTBOX_EVENTS);
    assert!(world.post(posted(vec![event("order.paid", "[]")])).await.is_err());
    let is_woken = || tokio::time::timeout(Duration::from_millis(50), woken.notified());
    assert!(is_woken().await.is_err());
    world.fill(1).await;
    assert!(is_woken().await.is_ok());
}

/// Texts of JSON, and of what is nearly so.
fn json() -> impl Strategy<Value = String> {
    let text = "[ -~\u{e9}\u{2028}👩]{0,6}".prop_map(|text| serde_json::Value::from(text).to_string());
    let escaped =
        prop::sample::select(vec![r#""\u0000""#, r#""\ud800\/""#, "\"\\x\"", "\"\t\"", "\"\u{7f}\"", "\"\0\""]);
    let number = prop::sample::select(vec!["1e400", "0.10", "-0", "01", "1.", ".5", "+1", "1E+2", "-", "0x1", "NaN"]);
    let word = prop::sample::select(vec!["null", "true", "True", "undefined"]);
    let leaf = prop_oneof![
        6 => text.clone(),
        1 => escaped.prop_map(str::to_owned),
        1 => number.prop_map(str::to_owned),
        1 => word.prop_map(str::to_owned),
    ];
    let value = leaf.prop_recursive(4, 24, 4, move |inner| {
        let pairs = proptest::collection::vec((text.clone(), inner.clone()), 0..4);
        prop_oneof![
            proptest::collection::vec(inner, 0..4).prop_map(|all| format!("[ {} ]", all.join(","))),
            pairs.prop_map(|all| {
                let all: Vec<String> = all.into_iter().map(|(key, value)| format!("{key} :\n{value}")).collect();
                format!("{{{}}}", all.join(", "))
            }),
        ]
    });
    prop_oneof![4 => value.prop_map(|value| format!("{{\"a\":{value}}}")), 1 => Just("{\"a\":1,}".into()), 1 => Just("{a:1}".into())]
}

/// The schema takes what the check takes: nothing that is posted is answered with a fault of ours.
#[test]
fn whatever_is_let_in_is_also_what_the_schema_takes() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let world = runtime.block_on(World::new());
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(400)
    });
    runner
        .run(&json(), |text| {
            let is_json = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
            match runtime.block_on(world.post(posted(vec![event("order.paid", &text)]))) {
                Ok(_) => prop_assert!(is_json, "{text}"),
                Err(Error::Invalid { field: "data", .. }) => prop_assert!(!is_json, "{text}"),
                Err(other) => prop_assert!(false, "{other}: {text}"),
            }
            Ok(())
        })
        .unwrap();
}
