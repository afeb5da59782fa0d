//! What a bot asks about members.

use serde_json::{Value, json};

use super::TestServer;
use crate::tenants::Role;

/// A server with Boris, who is bound to chat 177, and Vera, whose chat 188 has still to confirm.
async fn server() -> TestServer {
    let server = TestServer::start().await;
    let key = server.key("default", Role::Admin).await;
    let boris = json!({
        "link": "boris", "name": "Борис", "telegram_id": "177", "addr": "0xA1", "lp1": true,
        "time_active": "2027-06-01T00:00:00+03:00", "registration_confirmed": true,
    });
    let vera = json!({"link": "Vera_2-x", "preview_telegram_id": "188"});
    for (uid, body) in [(77, boris), (78, vera)] {
        let put = server.ask(&key, "PUT", &format!("/v1/members/{uid}"), Some(&body)).await;
        assert_eq!(put.status, 201, "{put:?}");
    }
    server
}

#[tokio::test]
async fn a_code_is_resolved_to_the_leader_who_has_it() {
    let server = server().await;
    let found = server.get("/bot/leader/resolve?code=boris").await;
    assert_eq!((found.status, found.json()), (200, json!({"uid": 77, "link": "boris", "name": "Борис"})));
    let unnamed = server.get("/bot/leader/resolve?code=Vera_2-x").await;
    assert_eq!(unnamed.json(), json!({"uid": 78, "link": "Vera_2-x", "name": null}));
    for code in ["nobody", "Boris", "", "a%20b", "%00", "%D0%91", "' OR 1=1", &"x".repeat(65)] {
        server.get(&format!("/bot/leader/resolve?code={}", code.replace(' ', "+"))).await.problem(404, "not_found");
    }
    let missing = server.get("/bot/leader/resolve").await;
    assert_eq!(missing.problem(400, "invalid_query"), ["code"]);
}

#[tokio::test]
async fn a_bound_chat_has_a_state_and_a_preview_has_none() {
    let server = server().await;
    let bound = server.get("/bot/user/state?telegramId=177").await;
    let expected = json!({
        "isRegistrationConfirmed": true, "lp1": true, "lp2": false, "addr": "0xA1",
        "timeActive": "2027-05-31T21:00:00.000Z", "ownLink": "boris",
    });
    assert_eq!((bound.status, bound.json()), (200, expected));
    for chat in ["188", "5", "9223372036854775807"] {
        server.get(&format!("/bot/user/state?telegramId={chat}")).await.problem(404, "not_found");
    }
    for chat in ["", "x", "0", "-177", "0177", "1e3", "9223372036854775808"] {
        let refused = server.get(&format!("/bot/user/state?telegramId={chat}")).await;
        assert_eq!(refused.problem(400, "invalid_query"), ["telegramId"], "{chat}");
    }
    server.get("/bot/user/state").await.problem(400, "invalid_query");
}

#[tokio::test]
async fn an_account_is_the_binding_and_no_preview() {
    let server = server().await;
    for (chat, expected) in
        [("177", json!({"exists": true, "uid": 77})), ("188", none()), ("5", none()), ("9223372036854775807", none())]
    {
        let answer = server.get(&format!("/auth/check-account-by-telegram/{chat}")).await;
        assert_eq!((answer.status, answer.json()), (200, expected), "{chat}");
    }
    for chat in ["x", "0", "-177", "undefined", "%FF", "1.0"] {
        server.get(&format!("/auth/check-account-by-telegram/{chat}")).await.problem(404, "not_found");
    }
}

fn none() -> Value {
    json!({"exists": false, "uid": null})
}
