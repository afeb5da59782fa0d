//! Binding through the bot: chats that confirm at the same moment, and confirmations in numbers.

use serde_json::{Value, json};

use crate::harness::dev::Dev;
use crate::harness::file::{column, value};
use crate::harness::until;

const MEMBER: i64 = 901;

/// A backend with one member, who has opened the site from some chats, the last of which is the preview.
struct Site {
    dev: Dev,
    chats: Vec<i64>,
}

impl Site {
    fn opened_from(chats: &[i64]) -> Self {
        let dev = Dev::start(&["telegram.chat_interval=0s", "bot.site_url=https://site.example/"]);
        put(&dev, &json!({"link": "own"}));
        for chat in chats {
            let sql = "INSERT INTO bot_users (telegram_id, lang, stage) VALUES (?1, 'en', 6)";
            dev.writer().execute(sql, [chat]).unwrap();
            let link = dev.http.done("/bot/telegram/connect-link", &json!({"telegramId": chat.to_string()}));
            dev.api.done("/v1/connect-links/redeem", &json!({"token": link["token"], "uid": MEMBER}));
            // Whoever has a wallet is asked by the next link too.
            put(&dev, &json!({"addr": "0xA1CE"}));
            let (conn, chat) = (dev.reader(), *chat);
            until("the chat is asked", || {
                let sql = "SELECT COUNT(*) FROM telegram_messages WHERE kind = 'bind_prompt' AND chat_id = ?1 AND status = 'sent'";
                (value::<i64>(&conn, sql, [chat]) > 0).then_some(())
            });
        }
        Self { dev, chats: chats.to_vec() }
    }

    /// Every chat presses "yes" so many times, all of them at the same moment; waits until all is answered.
    fn all_confirm(&self, times: usize) {
        std::thread::scope(|scope| {
            for chat in &self.chats {
                scope.spawn(move || (0..times).for_each(|time| self.confirm(*chat, time)));
            }
        });
        let (conn, expected) = (self.dev.reader(), i64::try_from(self.chats.len() * times).unwrap());
        until("every tap is answered", || {
            let sql = "SELECT COUNT(*) FROM telegram_messages WHERE kind = 'reply' AND status = 'sent'";
            (value::<i64>(&conn, sql, []) >= expected).then_some(())
        });
    }

    fn confirm(&self, chat: i64, time: usize) {
        let from = json!({"id": chat, "is_bot": false, "first_name": "Anna"});
        let message = json!({"message_id": 1, "date": 0, "chat": {"id": chat, "type": "private"}});
        let tap: Value = json!({
            "id": format!("{chat}-{time}"), "from": from, "chat_instance": "1",
            "data": format!("bind:{MEMBER}"), "message": message,
        });
        self.dev.http.done("/dev/telegram/updates", &json!({"callback_query": tap}));
    }

    fn answers(&self, chat: i64) -> Vec<String> {
        let sql = "SELECT DISTINCT substr(text, 1, 5) FROM telegram_messages WHERE kind = 'reply' AND chat_id = ?1";
        column(&self.dev.reader(), sql, [chat])
    }

    fn bound(&self) -> Vec<String> {
        let sql = "SELECT uid || ' ' || telegram_id FROM members WHERE telegram_id IS NOT NULL
                   UNION ALL SELECT 'person ' || telegram_id FROM bot_users WHERE magnet_uid IS NOT NULL";
        column(&self.dev.reader(), sql, [])
    }
}

fn put(dev: &Dev, body: &Value) {
    let answer = dev.api.try_call("PUT", &format!("/v1/members/{MEMBER}"), Some(body)).unwrap();
    assert!((200..300).contains(&answer.status), "{} {}", answer.status, answer.body);
}

#[test]
fn of_chats_that_confirm_at_once_the_last_to_open_the_site_is_bound() {
    let chats = [501, 502, 503, 504];
    let site = Site::opened_from(&chats);
    site.all_confirm(3);
    assert_eq!(site.bound(), ["901 504", "person 504"]);
    assert_eq!(site.answers(504), ["Done!"]);
    for chat in &chats[..3] {
        assert_eq!(site.answers(*chat), ["Magne"], "the account waits for another chat, or is tied already");
    }
}

#[test]
fn a_confirmation_that_is_repeated_binds_once_and_is_told_the_same() {
    let site = Site::opened_from(&[501]);
    site.all_confirm(10);
    assert_eq!(
        (site.bound(), site.answers(501)),
        (vec!["901 501".to_owned(), "person 501".to_owned()], vec!["Done!".to_owned()])
    );
}
