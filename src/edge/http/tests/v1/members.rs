//! Members over HTTP: what a change leaves, what it tells, and who may say it.

use serde_json::{Value, json};

use crate::edge::http::tests::{Answer, Setup, TestServer};
use crate::tenants::Role;

struct Members {
    server: TestServer,
    key: String,
}

impl Members {
    async fn start() -> Self {
        let recorders = vec![crate::outbox::record, crate::backend::record];
        let server = TestServer::with(Setup { recorders, ..Setup::default() }).await;
        let key = server.key("default", Role::Admin).await;
        Self { server, key }
    }

    async fn put(&self, uid: i64, body: Value) -> Answer {
        self.server.ask(&self.key, "PUT", &format!("/v1/members/{uid}"), Some(&body)).await
    }

    /// What the change published.
    async fn published(&self, uid: i64, body: Value) -> Value {
        let put = self.put(uid, body).await;
        assert!([200, 201].contains(&put.status), "{put:?}");
        put.json()["published"].clone()
    }

    async fn show(&self, uid: &str) -> Answer {
        self.server.ask(&self.key, "GET", &format!("/v1/members/{uid}"), None).await
    }

    async fn bot_events(&self) -> Vec<String> {
        let sql = "SELECT event_type || ' ' || magnet_uid || ' ' || COALESCE(telegram_id, '-') || ' ' || payload
                   FROM bot_event_outbox ORDER BY id";
        self.server.column(sql).await
    }
}

#[tokio::test]
async fn a_member_is_made_changed_and_shown() {
    let members = Members::start().await;
    members.show("77").await.problem(404, "not_found");
    let made = members.put(77, json!({"link": "boris", "name": "Борис", "telegram_id": "9007199254740993"})).await;
    let expected = json!({
        "uid": 77, "link": "boris", "name": "Борис", "telegram_id": "9007199254740993", "preview_telegram_id": null,
        "parent_uid": null, "addr": null, "lp1": false, "lp2": false, "time_active": null,
        "registration_confirmed": false, "updated_at": "2027-01-15T08:00:00.000Z", "published": [],
    });
    assert_eq!((made.status, made.json()), (201, expected.clone()));
    members.server.advance(60);
    let same = members.put(77, json!({"link": "boris"})).await;
    assert_eq!((same.status, same.json()), (200, expected), "what changes nothing writes nothing");
    let changed = members.put(77, json!({"name": null, "time_active": "2027-06-01T00:00:00Z"})).await;
    assert_eq!((changed.status, &changed.json()["updated_at"]), (200, &json!("2027-01-15T08:01:00.000Z")));
    let shown = members.show("77").await.json();
    assert_eq!((&shown["link"], &shown["name"]), (&json!("boris"), &Value::Null), "absent stays, null clears");
    assert_eq!(shown["time_active"], "2027-06-01T00:00:00.000Z");
}

#[tokio::test]
async fn the_difference_emits_once() {
    let members = Members::start().await;
    members.put(3, json!({"telegram_id": "103", "name": "Boris"})).await;
    let whole = json!({
        "name": "Anna", "preview_telegram_id": "107", "parent_uid": 3, "addr": "0xA1", "lp1": true, "lp2": true,
        "registration_confirmed": true,
    });
    let all = json!([
        "member.wallet_connected",
        "member.registered",
        "partner.joined",
        "member.nft_activated",
        "member.nft_activated"
    ]);
    assert_eq!(members.published(7, whole.clone()).await, all);
    for _ in 0..2 {
        assert_eq!(members.published(7, whole.clone()).await, json!([]));
    }
    let expected = [
        r#"wallet_connected 7 107 {"preview":true}"#,
        r#"registered 7 107 {"parentUid":3,"preview":true}"#,
        r#"new_partner 3 103 {"partnerName":"Anna","partnerUid":7}"#,
        r#"status_nft_activated 7 107 {"level":"lp1","preview":true}"#,
        r#"status_nft_activated 7 107 {"level":"lp2","preview":true}"#,
    ];
    assert_eq!(members.bot_events().await, expected);
    let domain = members.server.column("SELECT type || ' ' || aggregate_id FROM outbox_events ORDER BY id").await;
    let expected = [
        "member.wallet_connected 7",
        "member.registered 7",
        "partner.joined 3",
        "member.nft_activated 7",
        "member.nft_activated 7",
    ];
    assert_eq!(domain, expected);
}

#[tokio::test]
async fn each_step_is_told_with_the_change_that_reaches_it() {
    let members = Members::start().await;
    for (body, published) in [
        (json!({"name": "Anna"}), json!([])),
        (json!({"registration_confirmed": true}), json!(["member.registered"])),
        (json!({"lp2": true}), json!(["member.nft_activated"])),
        (json!({"addr": "0xA1", "lp1": false}), json!(["member.wallet_connected"])),
        (json!({"lp1": true}), json!(["member.nft_activated"])),
        (json!({"telegram_id": "107", "parent_uid": null}), json!([])),
    ] {
        assert_eq!(members.published(7, body.clone()).await, published, "{body}");
    }
}

#[tokio::test]
async fn a_cleared_field_emits_nothing_again() {
    let members = Members::start().await;
    let reached = json!({"addr": "0xA1", "lp1": true, "lp2": true, "registration_confirmed": true});
    assert_eq!(members.published(7, reached.clone()).await.as_array().unwrap().len(), 4);
    let cleared = json!({"addr": null, "lp1": null, "lp2": false, "registration_confirmed": null});
    assert_eq!(members.published(7, cleared).await, json!([]), "clearing tells nobody");
    let shown = members.show("7").await.json();
    assert_eq!((&shown["addr"], &shown["lp1"]), (&Value::Null, &json!(false)));
    assert_eq!(members.published(7, reached).await, json!([]), "a flapping sync is no news");
    assert_eq!(members.published(7, json!({"addr": "0xB2"})).await, json!([]), "nor is another wallet");
    assert_eq!(members.bot_events().await.len(), 4);
}

#[tokio::test]
async fn what_is_taken_stays() {
    let members = Members::start().await;
    members.put(7, json!({"link": "anna", "telegram_id": "107"})).await;
    let refused = members.put(8, json!({"link": "anna", "addr": "0xA1"})).await;
    assert_eq!(refused.problem(409, "link_taken"), ["link"]);
    let refused = members.put(8, json!({"telegram_id": "107", "registration_confirmed": true})).await;
    assert_eq!(refused.problem(409, "chat_taken"), ["telegram_id"]);
    members.show("8").await.problem(404, "not_found");
    assert_eq!(members.bot_events().await, Vec::<String>::new(), "nothing of a refused change is told");
    members.put(7, json!({"link": null, "telegram_id": null})).await;
    assert_eq!(members.put(8, json!({"link": "anna", "telegram_id": "107"})).await.status, 201, "it is free now");
}

#[tokio::test]
async fn a_parent_is_another_member() {
    let members = Members::start().await;
    for (uid, parent) in [(7, 7), (7, 99)] {
        let refused = members.put(uid, json!({ "parent_uid": parent })).await;
        assert_eq!(refused.problem(422, "invalid_body"), ["parent_uid"], "{parent}");
    }
    members.put(3, json!({})).await;
    assert_eq!(members.put(7, json!({"parent_uid": 3})).await.status, 201);
}

#[tokio::test]
async fn a_member_of_another_form_names_its_fault() {
    let members = Members::start().await;
    let long = "x".repeat(201);
    let mut table: Vec<(&str, Value)> = vec![];
    table.extend(
        [json!(""), json!("a b"), json!("a\u{0}"), json!("ё"), json!("x".repeat(65)), json!(5)].map(|v| ("link", v)),
    );
    table.extend([json!(""), json!("a\nb"), json!(long), json!(["Anna"])].map(|v| ("name", v)));
    table.extend([json!(""), json!("\u{7f}"), json!(long), json!(true)].map(|v| ("addr", v)));
    for field in ["telegram_id", "preview_telegram_id"] {
        table.extend(
            [json!(107), json!("0"), json!("-107"), json!("107 "), json!("9223372036854775808")].map(|v| (field, v)),
        );
    }
    table.extend([json!(0), json!(-3), json!("3"), json!(1.5), json!(u64::MAX)].map(|v| ("parent_uid", v)));
    for field in ["lp1", "lp2", "registration_confirmed"] {
        table.extend([json!(1), json!("true"), json!({})].map(|v| (field, v)));
    }
    table.extend([json!(""), json!("2027-02-30T00:00:00Z"), json!(1), json!("tomorrow")].map(|v| ("time_active", v)));
    table.extend([("uid", json!(7)), ("extra", json!(null))]);
    for (field, value) in table {
        let refused = members.put(7, json!({ field: value })).await;
        assert_eq!(refused.problem(422, "invalid_body"), [field], "{field} {value}");
    }
    assert_eq!(members.put(0, json!({})).await.problem(422, "invalid_body"), ["uid"]);
    assert_eq!(members.put(-7, json!({})).await.problem(422, "invalid_body"), ["uid"]);
    for uid in ["x", "7.0", "9223372036854775808", "%FF"] {
        let answer = members.server.ask(&members.key, "PUT", &format!("/v1/members/{uid}"), Some(&json!({}))).await;
        answer.problem(404, "not_found");
        members.show(uid).await.problem(404, "not_found");
    }
    members.show("7").await.problem(404, "not_found");
}

#[tokio::test]
async fn members_are_the_installations() {
    let members = Members::start().await;
    members.put(7, json!({})).await;
    let calls = [
        ("PUT", "/v1/members/7", Some(json!({"name": "X"}))),
        ("GET", "/v1/members/7", None),
        ("POST", "/v1/connect-links/redeem", Some(json!({"token": "x", "uid": 7}))),
    ];
    for (tenant, role) in [
        ("default", Role::Read),
        ("default", Role::Publish),
        ("acme", Role::Admin),
        ("acme", Role::Read),
        ("acme", Role::Publish),
    ] {
        let key = members.server.key(tenant, role).await;
        for (method, path, body) in &calls {
            members.server.ask(&key, method, path, body.as_ref()).await.problem(403, "forbidden");
        }
    }
    assert_eq!(members.show("7").await.json()["name"], Value::Null);
}
