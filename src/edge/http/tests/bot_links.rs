//! The way of a chat to the site and of a member back: links, their tokens, and binding.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{Answer, Setup, TestServer};
use crate::tenants::Role;

/// A server with a site and two members whose wallets nobody knows.
struct Site {
    server: TestServer,
    key: String,
}

impl Site {
    async fn start() -> Self {
        let recorders = vec![crate::outbox::record, crate::backend::record];
        let sets = &["bot.site_url=https://site.example/join"];
        let server = TestServer::with(Setup { sets, recorders, ..Setup::default() }).await;
        let key = server.key("default", Role::Admin).await;
        let site = Self { server, key };
        for uid in [7, 8] {
            site.put(uid, json!({})).await;
        }
        site
    }

    async fn put(&self, uid: i64, body: Value) {
        let put = self.server.ask(&self.key, "PUT", &format!("/v1/members/{uid}"), Some(&body)).await;
        assert!(put.status < 300, "{put:?}");
    }

    /// A link for the chat.
    async fn link(&self, chat: Value) -> Value {
        let made = self.server.post("/bot/telegram/connect-link", json!({ "telegramId": chat })).await;
        assert_eq!(made.status, 200, "{made:?}");
        made.json()
    }

    async fn token(&self, chat: &str) -> String {
        self.link(json!(chat)).await["token"].as_str().unwrap().to_owned()
    }

    async fn redeem(&self, token: &str, uid: i64) -> Answer {
        let body = json!({ "token": token, "uid": uid });
        self.server.ask(&self.key, "POST", "/v1/connect-links/redeem", Some(&body)).await
    }

    async fn bind(&self, chat: &str, uid: i64) -> Answer {
        self.server.post("/bot/telegram/bind", json!({ "telegramId": chat, "magnetUid": uid })).await
    }

    /// Each member with its binding and its preview.
    async fn chats(&self) -> Vec<String> {
        let sql = "SELECT uid || ' ' || COALESCE(telegram_id, '-') || ' ' || COALESCE(preview_telegram_id, '-')
                   FROM members ORDER BY uid";
        self.server.column(sql).await
    }

    async fn bot_events(&self) -> Vec<String> {
        let sql = "SELECT event_type || ' ' || magnet_uid || ' ' || COALESCE(telegram_id, '-') || ' ' || payload
                   FROM bot_event_outbox ORDER BY id";
        self.server.column(sql).await
    }
}

#[tokio::test]
async fn a_link_is_reused_while_young() {
    let site = Site::start().await;
    let first = site.link(json!("101")).await;
    let token = first["token"].as_str().unwrap();
    assert_eq!(token.len(), 36);
    assert_eq!(first["url"], format!("https://site.example/join?telegramConnect={token}"));
    assert_eq!(first["expiresAt"], "2027-01-15T08:30:00.000Z");
    site.server.advance(29 * 60 + 59);
    assert_eq!(site.link(json!(101)).await, first, "the number is the same chat as the text");
    assert_ne!(site.token("102").await, token, "another chat has its own");
    site.server.advance(1);
    let second = site.token("101").await;
    assert_ne!(second, token, "it is over");
    assert_eq!(site.redeem(&second, 7).await.status, 200);
    assert_ne!(site.token("101").await, second, "it is used");
}

#[tokio::test]
async fn without_a_site_there_is_no_link() {
    let server = TestServer::start().await;
    let refused = server.post("/bot/telegram/connect-link", json!({"telegramId": "101"})).await;
    refused.problem(503, "site_url_not_set");
}

#[tokio::test]
async fn a_redeemed_link_is_a_preview_that_the_chat_confirms() {
    let site = Site::start().await;
    let token = site.token("101").await;
    let used = site.redeem(&token, 7).await;
    assert_eq!((used.status, used.json()), (200, json!({})));
    assert_eq!(site.chats().await, ["7 - 101", "8 - -"]);
    assert_eq!(site.bot_events().await, Vec::<String>::new(), "nothing is known that could be confirmed");
    site.put(7, json!({"addr": "0xA1"})).await;
    assert_eq!(site.bot_events().await, [r#"wallet_connected 7 101 {"preview":true}"#]);

    let bound = site.bind("101", 7).await;
    assert_eq!((bound.status, bound.json()), (200, json!({"uid": 7, "telegramId": "101"})));
    assert_eq!(site.chats().await, ["7 101 -", "8 - -"]);
    let again = site.bind("101", 7).await;
    assert_eq!((again.status, again.json()), (200, bound.json()), "a repeated confirm is told the same");
}

#[tokio::test]
async fn a_member_whose_wallet_is_known_is_asked_by_a_further_event() {
    let site = Site::start().await;
    site.put(7, json!({"addr": "0xA1"})).await;
    let token = site.token("101").await;
    for _ in 0..2 {
        assert_eq!(site.redeem(&token, 7).await.status, 200);
    }
    let expected = ["wallet_connected 7 - {}", r#"wallet_connected 7 101 {"preview":true}"#];
    assert_eq!(site.bot_events().await, expected, "once, and with the chat");
    let domain = site.server.column("SELECT type FROM outbox_events ORDER BY id").await;
    assert_eq!(domain, ["member.wallet_connected"], "the wallet was connected once");
}

#[tokio::test]
async fn used_twice_is_over() {
    let site = Site::start().await;
    let token = site.token("101").await;
    assert_eq!(site.redeem(&token, 7).await.status, 200);
    assert_eq!(site.redeem(&token, 7).await.status, 200, "the same member may say it again");
    site.redeem(&token, 8).await.problem(410, "connect_link_over");
    assert_eq!(site.chats().await, ["7 - 101", "8 - -"]);
}

#[tokio::test]
async fn an_expired_link_is_over() {
    let site = Site::start().await;
    let token = site.token("101").await;
    site.server.advance(30 * 60);
    site.redeem(&token, 7).await.problem(410, "connect_link_over");
    assert_eq!(site.chats().await, ["7 - -", "8 - -"]);
}

#[tokio::test]
async fn what_is_not_there_uses_no_token() {
    let site = Site::start().await;
    site.redeem("0190c6a8-7b1e-4cc3-9e5f-2a4b6c8d0e1f", 7).await.problem(404, "not_found");
    for text in ["", "x", "' OR 1=1 --"] {
        site.redeem(text, 7).await.problem(404, "not_found");
    }
    let token = site.token("101").await;
    site.redeem(&token, 99).await.problem(404, "not_found");
    site.put(8, json!({"telegram_id": "108"})).await;
    assert_eq!(site.redeem(&token, 8).await.problem(409, "member_is_bound"), ["uid"]);
    let of_another = site.token("108").await;
    assert_eq!(site.redeem(&of_another, 7).await.problem(409, "chat_taken"), ["telegram_id"]);
    let unused = "SELECT CAST(count(*) AS TEXT) FROM telegram_connect_links WHERE used_at IS NULL";
    assert_eq!(site.server.column(unused).await, ["2"]);
    assert_eq!(site.redeem(&token, 7).await.status, 200, "the token was not used by a refusal");
}

#[tokio::test]
async fn of_many_redeems_at_once_one_wins() {
    let site = Site::start().await;
    for uid in 20..40 {
        site.put(uid, json!({})).await;
    }
    let token = site.token("101").await;
    let statuses = join_all((20..40).map(|uid| site.redeem(&token, uid))).await;
    let won = statuses.iter().filter(|answer| answer.status == 200).count();
    let over = statuses.iter().filter(|answer| answer.status == 410).count();
    assert_eq!((won, over), (1, 19));
    let previews: BTreeSet<String> = site.chats().await.into_iter().filter(|chats| chats.ends_with(" 101")).collect();
    assert_eq!(previews.len(), 1);
}

#[tokio::test]
async fn two_chats_race_for_one_member() {
    for round in 0..10 {
        let site = Site::start().await;
        let (a, b) = (site.token("101").await, site.token("102").await);
        assert_eq!(site.redeem(&a, 7).await.status, 200);
        // Both confirm while the other's link is being redeemed: whoever comes second finds another preview, or a binding.
        let (first, redeemed, second) = tokio::join!(site.bind("101", 7), site.redeem(&b, 7), site.bind("102", 7));
        let bound = [&first, &second].into_iter().filter(|answer| answer.status == 200).count();
        assert!(bound <= 1, "{round}: {first:?} {second:?}");
        for refused in [&first, &second].into_iter().filter(|answer| answer.status != 200) {
            refused.problem(409, "not_previewed");
        }
        let chats = site.chats().await.remove(0);
        match (first.status, second.status) {
            (200, _) => assert_eq!(chats, "7 101 -"),
            (_, 200) => assert_eq!(chats, "7 102 -"),
            _ => assert_eq!((chats.as_str(), redeemed.status), ("7 - 102", 200)),
        }
    }
}

#[tokio::test]
async fn a_changed_preview_is_refused() {
    let site = Site::start().await;
    let (a, b) = (site.token("101").await, site.token("102").await);
    assert_eq!((site.redeem(&a, 7).await.status, site.redeem(&b, 7).await.status), (200, 200));
    site.bind("101", 7).await.problem(409, "not_previewed");
    assert_eq!(site.bind("102", 7).await.status, 200);
    site.bind("101", 7).await.problem(409, "not_previewed");
    // A chat that is bound is nobody else's, and a preview leaves the one who had it.
    site.bind("102", 8).await.problem(409, "not_previewed");
    let moved = site.token("103").await;
    site.put(9, json!({"preview_telegram_id": "103"})).await;
    assert_eq!(site.redeem(&moved, 8).await.status, 200);
    assert_eq!(site.chats().await, ["7 102 -", "8 - 103", "9 - -"]);
    site.bind("103", 9).await.problem(409, "not_previewed");
}

#[tokio::test]
async fn a_binding_takes_the_open_events_of_the_chat_with_it() {
    let site = Site::start().await;
    site.server.emit(json!({"eventType": "reactivation", "telegramId": "101"})).await;
    let token = site.token("101").await;
    assert_eq!(site.redeem(&token, 7).await.status, 200);
    let subjects = "SELECT subject FROM bot_event_outbox ORDER BY id";
    assert_eq!(site.server.column(subjects).await, ["tg:101"], "a preview is no binding");
    assert_eq!(site.bind("101", 7).await.status, 200);
    assert_eq!(site.server.column(subjects).await, ["uid:7"]);
}

#[tokio::test]
async fn a_binding_of_another_form_names_its_fault() {
    let site = Site::start().await;
    for (body, blamed) in [
        (json!({}), "telegramId"),
        (json!({"telegramId": "x", "magnetUid": 7}), "telegramId"),
        (json!({"telegramId": -5, "magnetUid": 7}), "telegramId"),
        (json!({"telegramId": "5", "magnetUid": 0}), "magnetUid"),
        (json!({"telegramId": "5", "magnetUid": "7"}), "magnetUid"),
        (json!({"telegramId": "5", "magnetUid": 7, "force": true}), "force"),
    ] {
        let refused = site.server.post("/bot/telegram/bind", body.clone()).await;
        assert_eq!(refused.problem(422, "invalid_body"), [blamed], "{body}");
    }
    let refused = site.server.post("/bot/telegram/connect-link", json!({"telegramId": null})).await;
    assert_eq!(refused.problem(422, "invalid_body"), ["telegramId"]);
}
