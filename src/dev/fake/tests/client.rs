//! teloxide's own client takes every answer as its types.

use teloxide::prelude::*;
use teloxide::types::{
    AllowedUpdate, BotCommand, InlineKeyboardButton, InlineKeyboardMarkup, MessageEntityKind, ParseMode, UpdateKind,
};
use teloxide::{ApiError, RequestError};

use super::*;

impl Bench {
    fn bot(&self) -> Bot {
        Bot::with_client(TOKEN, self.http.clone()).set_api_url(self.url.parse().expect("is a URL"))
    }
}

#[tokio::test]
async fn teloxide_reads_who_the_bot_is() {
    let bench = Bench::start().await;
    let me = bench.bot().get_me().await.expect("answers");
    assert!(me.is_bot);
    assert_eq!(me.username(), "pillarbox_fake_bot");
}

#[tokio::test]
async fn teloxide_sends_edits_and_answers() {
    let bench = Bench::start().await;
    let bot = bench.bot();
    let button = InlineKeyboardButton::callback("Größen", "m:partners");
    let sent = bot
        .send_message(ChatId(42), "<b>Grüße</b>, Ann &amp; Bob")
        .parse_mode(ParseMode::Html)
        .reply_markup(InlineKeyboardMarkup::new([[button]]))
        .await
        .expect("is a message");
    assert_eq!(sent.text(), Some("Grüße, Ann & Bob"));
    assert_eq!(sent.date.timestamp(), 1_790_000_000);
    assert_eq!(sent.entities().expect("has one")[0].kind, MessageEntityKind::Bold);
    assert_eq!(sent.reply_markup().expect("has a keyboard").inline_keyboard[0][0].text, "Größen");

    let edited = bot.edit_message_text(ChatId(42), sent.id, "Tschüß").await.expect("is a message");
    assert_eq!((edited.id, edited.text(), edited.reply_markup()), (sent.id, Some("Tschüß"), None));
    assert!(edited.edit_date().is_some());
    let again = bot.edit_message_text(ChatId(42), sent.id, "Tschüß").await;
    assert!(matches!(again, Err(RequestError::Api(ApiError::MessageNotModified))), "{again:?}");

    let person = json!({"id": 42, "is_bot": false, "first_name": "Ann"});
    let tap = json!({"id": "tap-1", "from": person, "chat_instance": "1", "data": "m:partners"});
    bench.injected(json!({"callback_query": tap})).await;
    bot.answer_callback_query(teloxide::types::CallbackQueryId("tap-1".into())).await.expect("is true");
    let group = bot.send_message(ChatId(-1_001_234_567_890), "hello").await.expect("is a message");
    assert!(group.chat.is_supergroup());
    assert!(bot.send_message(ChatId(-5), "hello").await.expect("is a message").chat.is_group());
}

#[tokio::test]
async fn teloxide_polls_and_sets_a_webhook() {
    let bench = Bench::start().await;
    let bot = bench.bot();
    bench.person_says(42, "/start").await;
    let updates = bot.get_updates().timeout(0).allowed_updates([AllowedUpdate::Message]).await.expect("is a list");
    assert!(matches!(&updates[0].kind, UpdateKind::Message(message) if message.text() == Some("/start")));
    bot.get_updates().offset(updates[0].id.as_offset()).await.expect("confirms");

    let hook = "http://127.0.0.1:1/hook".parse().expect("is a URL");
    bot.set_webhook(hook).secret_token("s3cret").max_connections(5).await.expect("is true");
    let info = bot.get_webhook_info().await.expect("is an info");
    assert_eq!(info.url.expect("has one").as_str(), "http://127.0.0.1:1/hook");
    assert_eq!((info.max_connections, info.pending_update_count), (Some(5), 0));
    assert_eq!(info.allowed_updates.expect("is sticky"), [AllowedUpdate::Message]);
    bot.delete_webhook().drop_pending_updates(true).await.expect("is true");
    assert_eq!(bot.get_webhook_info().await.expect("is an info").url, None);
}

#[tokio::test]
async fn teloxide_sets_and_reads_commands() {
    let bench = Bench::start().await;
    let bot = bench.bot();
    let commands = [BotCommand::new("start", "Begin"), BotCommand::new("stop", "Adiós")];
    bot.set_my_commands(commands.clone()).language_code("ru").await.expect("is true");
    assert_eq!(bot.get_my_commands().language_code("ru").await.expect("is a list"), commands);
    assert_eq!(bot.get_my_commands().await.expect("is a list"), []);
}

#[tokio::test]
async fn teloxide_knows_the_faults_by_their_texts() {
    let bench = Bench::start().await;
    let bot = bench.bot();
    let fault = |fault| bench.fault(fault);
    fault(json!({"status": 429, "retry_after": 7})).await;
    let error = bot.send_message(ChatId(1), "x").await.expect_err("is refused");
    assert!(matches!(error, RequestError::RetryAfter(seconds) if seconds.seconds() == 7), "{error:?}");
    fault(json!({"status": 403})).await;
    let error = bot.send_message(ChatId(1), "x").await.expect_err("is refused");
    assert!(matches!(error, RequestError::Api(ApiError::BotBlocked)), "{error:?}");
    fault(json!({"migrate_to_chat_id": -1_001_234_567_890_i64})).await;
    let error = bot.send_message(ChatId(-5), "x").await.expect_err("is refused");
    assert!(matches!(error, RequestError::MigrateToChatId(ChatId(-1_001_234_567_890))), "{error:?}");
    fault(json!({"drop_response": true})).await;
    let error = bot.send_message(ChatId(1), "lost").await.expect_err("is cut off");
    assert!(matches!(error, RequestError::Network(_)), "{error:?}");
    assert_eq!(bench.messages().await.len(), 1);
}
