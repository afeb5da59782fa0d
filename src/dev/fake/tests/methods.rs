//! What the methods accept and refuse, byte for byte.

use super::*;

#[tokio::test]
async fn names_come_in_any_case_and_parameters_in_any_form() {
    let bench = Bench::start().await;
    let url = format!("{}/bot{TOKEN}/SENDmessage", bench.url);
    let ask = |request: reqwest::RequestBuilder| async { request.send().await.expect("answers").status() };
    let parts = reqwest::multipart::Form::new().text("chat_id", "9").text("text", "multi");
    assert_eq!(ask(bench.http.get(&url).query(&[("chat_id", "9"), ("text", "query")])).await, StatusCode::OK);
    assert_eq!(ask(bench.http.post(&url).form(&[("chat_id", "9"), ("text", "form & co")])).await, StatusCode::OK);
    assert_eq!(ask(bench.http.post(&url).multipart(parts)).await, StatusCode::OK);
    assert_eq!(ask(bench.http.post(&url).json(&json!({"chat_id": "9", "text": "json"}))).await, StatusCode::OK);
    let texts: Vec<_> = bench.messages().await.iter().map(|it| it["text"].clone()).collect();
    assert_eq!(texts, ["query", "form & co", "multi", "json"]);
    assert_eq!(ask(bench.http.post(&url).header("content-type", "application/json").body("{")).await, 400);
}

#[tokio::test]
async fn a_keyboard_may_come_as_text() {
    let bench = Bench::start().await;
    let keyboard = json!({"inline_keyboard": [[{"text": "a", "url": "https://a.example"}]]});
    let sent = bench.ok("sendMessage", json!({"chat_id": 9, "text": "x", "reply_markup": keyboard.to_string()})).await;
    assert_eq!(sent["reply_markup"], keyboard);
    assert_eq!(bench.messages().await[0]["reply_markup"], keyboard);
}

#[tokio::test]
async fn unknown_methods_and_malformed_tokens_are_not_found() {
    let bench = Bench::start().await;
    let (status, body) = bench.call("sendPigeon", json!({})).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_eq!(body, json!({"ok": false, "error_code": 404, "description": "Not Found: method not found"}));
    for token in ["nonsense", "12:", ":abc", "1a:abc", "12:ab.c", "%ff"] {
        let (status, body) = bench.post(&format!("/bot{token}/getMe"), json!({})).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{token}");
        assert_eq!(body, json!({"ok": false, "error_code": 404, "description": "Not Found"}));
    }
}

#[tokio::test]
async fn bad_messages_are_refused_with_the_servers_texts() {
    let bench = Bench::start().await;
    let keyboard = |button: Value| json!({"chat_id": 9, "text": "x", "reply_markup": {"inline_keyboard": [[button]]}});
    for (params, text) in [
        (json!({"text": "x"}), "chat_id is empty"),
        (json!({"chat_id": "", "text": "x"}), "chat_id is empty"),
        (json!({"chat_id": "@somebody", "text": "x"}), "chat not found"),
        (json!({"chat_id": 9}), "message text is empty"),
        (json!({"chat_id": 9, "text": " \n"}), "message text is empty"),
        (json!({"chat_id": 9, "text": "<b></b>", "parse_mode": "HTML"}), "message text is empty"),
        (json!({"chat_id": 9, "text": "é".repeat(4097)}), "message is too long"),
        (json!({"chat_id": 9, "text": "x", "parse_mode": "rtf"}), "unsupported parse_mode"),
        (
            json!({"chat_id": 9, "text": "<b>x", "parse_mode": "HTML"}),
            "can't parse entities: Can't find end tag corresponding to start tag \"b\"",
        ),
        (json!({"chat_id": 9, "text": "x", "reply_markup": "{"}), "can't parse reply markup JSON object"),
        (json!({"chat_id": 9, "text": "x", "reply_markup": []}), "object expected as reply markup"),
        (keyboard(json!({"text": "a", "callback_data": "é".repeat(33)})), "BUTTON_DATA_INVALID"),
        (
            keyboard(json!({"text": "a"})),
            "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard",
        ),
        (
            keyboard(json!({"text": "a", "url": "a.example"})),
            "inline keyboard button URL 'a.example' is invalid: Wrong HTTP URL",
        ),
    ] {
        assert_eq!(bench.refused("sendMessage", params).await, (400, format!("Bad Request: {text}")));
    }
    assert!(bench.messages().await.is_empty());
    bench.ok("sendMessage", keyboard(json!({"text": "a", "callback_data": "é".repeat(32)}))).await;
    bench
        .ok(
            "sendMessage",
            json!({"chat_id": 9, "text": "<b>&lt;".to_owned() + &"👥".repeat(4095) + "</b>", "parse_mode": "html"}),
        )
        .await;
}

#[tokio::test]
async fn only_a_known_message_can_be_edited_and_only_into_something_else() {
    let bench = Bench::start().await;
    let edit = |id: &Value, text: &str| json!({"chat_id": 9, "message_id": id, "text": text});
    let unknown = bench.refused("editMessageText", edit(&json!(1), "x")).await;
    assert_eq!(unknown.1, "Bad Request: message to edit not found");
    let id = bench.ok("sendMessage", json!({"chat_id": 9, "text": "x"})).await["message_id"].take();
    let elsewhere = json!({"chat_id": 8, "message_id": id, "text": "y"});
    assert_eq!(bench.refused("editMessageText", elsewhere).await.1, "Bad Request: message to edit not found");
    let same = bench.refused("editMessageText", edit(&id, "x")).await;
    assert!(same.1.starts_with("Bad Request: message is not modified: "), "{}", same.1);
    bench.ok("editMessageText", edit(&id, "y")).await;
    let methods: Vec<_> = bench.messages().await.iter().map(|it| it["method"].clone()).collect();
    assert_eq!(methods, ["sendMessage", "editMessageText"]);
}

#[tokio::test]
async fn a_tap_nobody_made_cannot_be_answered() {
    let bench = Bench::start().await;
    let error = bench.refused("answerCallbackQuery", json!({"callback_query_id": "1"})).await;
    assert_eq!(error.1, "Bad Request: query is too old and response timeout expired or query ID is invalid");
}
