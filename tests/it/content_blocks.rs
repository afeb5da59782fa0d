//! The bot's texts: what may take the place of a shipped one, from when on, and what becomes of a text that nobody checked.

use std::fs;

use serde_json::{Value, json};

use crate::cli::{Place, Ran};
use crate::harness::dev::Dev;
use crate::harness::file::{add_person, value};
use crate::harness::http::Client;
use crate::harness::{self, until};

const SETS: [&str; 2] = ["telegram.chat_interval=0s", "store.ballast=0"];
const CHAT: i64 = 177;

fn set(place: &Place, key: &str, lang: &str, text: &str) -> Ran {
    fs::write(place.path().join("text"), text).unwrap();
    place.run(&["content", "set", key, "--lang", lang, "text"])
}

/// A server with an English-speaking leader, and what the fake has of their chat.
struct Leader {
    dev: Dev,
    seen: usize,
}

impl Leader {
    fn start() -> Self {
        let dev = Dev::start(&SETS);
        add_person(&dev.writer(), 77, CHAT);
        dev.writer().execute("UPDATE bot_users SET lang = 'en' WHERE telegram_id = ?1", [CHAT]).unwrap();
        Self { dev, seen: 0 }
    }

    /// The leader has a new partner of this name; what they read of it.
    fn gets(&mut self, name: &str) -> String {
        let payload = json!({"partnerUid": 9, "partnerName": name});
        self.dev.emit(&json!({"eventType": "new_partner", "magnetUid": 77, "payload": payload}));
        let text = until("the message arrives", || self.dev.texts(CHAT).get(self.seen).cloned());
        // A server that is stopped before it knows of that sends it again.
        until("the message is known to have arrived", || {
            let open = "SELECT COUNT(*) FROM telegram_messages WHERE status IN ('pending', 'sending')";
            value::<i64>(&self.dev.reader(), open, []).eq(&0).then_some(())
        });
        self.seen += 1;
        text
    }

    fn content(&self, args: &[&str]) -> Ran {
        let output = self.dev.command(&[&["content"], args].concat());
        Ran {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn set(&self, text: &str) -> Ran {
        let file = self.dev.place.path("text");
        fs::write(&file, text).unwrap();
        self.content(&["set", "new_partner", "--lang", "en", harness::text(&file)])
    }
}

#[test]
fn a_text_that_cannot_be_sent_is_refused_with_everything_that_is_wrong() {
    let place = Place::migrated();
    set(&place, "new_partner", "en", "<b>{{ partner_name }} {{ wrong }} {{ other }}").refused(
        1,
        &["new_partner (en) stays as it is", "it names `wrong`", "it names `other`", "it may name partner_name"],
    );
    set(&place, "new_partner", "en", "<b>{{ partner_name }}</i>").refused(1, &["another order"]);
    set(&place, "new_partner", "ru", "<h1>x</h1>").refused(1, &["there is no tag <h1>"]);
    set(&place, "new_partner", "ru", &"x".repeat(4_097)).refused(1, &["4097 of at most 4096"]);
    set(&place, "new_partner", "ru", "{{ partner_name }}").refused(1, &["nothing is left"]);
    set(&place, "new_partner", "ru", "{% if partner_name %}").refused(1, &["line 1: this is no template"]);
    set(&place, "bind_prompt_button", "ru", &"x".repeat(65)).refused(1, &["65 of at most 64"]);
    set(&place, "new_partners", "ru", "x").refused(1, &["no such block", "`new_partner`"]);
    set(&place, "new_partner", "de", "x").refused(2, &["ru, en"]);
    assert_eq!(place.query("SELECT key FROM content_blocks"), Vec::<Value>::new());
    set(&place, "new_partner", "en", "One more: <i>{{ partner_name }}</i>\n").succeeded();
    let shown = place.run(&["content", "show", "new_partner", "--lang", "en"]).succeeded().row();
    assert_eq!(
        (&shown["state"], &shown["body"], &shown["example"]),
        (&json!("changed"), &json!("One more: <i>{{ partner_name }}</i>"), &json!("One more: <i>Anna</i>"))
    );
}

#[test]
fn an_override_holds_from_its_commit_until_it_is_reset() {
    let mut leader = Leader::start();
    assert_eq!(leader.gets("Anna"), "🎉 A new partner: Anna! Have a look at “👥 Partners”.");
    assert_eq!(leader.set("Here is {{ partner_name }}").succeeded().row()["what"], "changed");
    assert_eq!(leader.gets("Boris"), "Here is Boris");
    leader.set("And {{ partner_name }}!").succeeded();
    assert_eq!(leader.gets("Vera"), "And Vera!");
    leader.set("<b>{{ partner_name }}").refused(1, &["never closed"]);
    assert_eq!(leader.gets("Gleb"), "And Gleb!");
    leader.dev.start_again();
    assert_eq!(leader.gets("Dina"), "And Dina!");
    let listed = leader.content(&["list", "--changed"]).succeeded().row();
    assert_eq!(
        (&listed["key"], &listed["ru"], &listed["en"]),
        (&json!("new_partner"), &json!("shipped"), &json!("changed"))
    );
    let reset = leader.content(&["reset", "new_partner"]).succeeded().rows();
    assert_eq!(
        (&reset[0]["what"], &reset[1]["what"]),
        (&json!("was the shipped one"), &json!("the shipped one again"))
    );
    assert!(leader.gets("Egor").starts_with("🎉 A new partner: Egor"));
    leader.content(&["reset", "no_such_block"]).refused(1, &["there is no block"]);
}

#[test]
fn a_flawed_override_falls_back_to_the_shipped_text() {
    let mut leader = Leader::start();
    for body in [
        "{{ not_given }}",
        "{% if",
        "",
        "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}x",
    ] {
        let body = if body.is_empty() { " " } else { body };
        let sql = "INSERT INTO content_blocks VALUES ('new_partner', 'en', ?1, 1)
                   ON CONFLICT (key, lang) DO UPDATE SET body = excluded.body";
        leader.dev.writer().execute(sql, [body]).unwrap();
        assert!(leader.gets("Anna").starts_with("🎉 A new partner: Anna"), "{body}");
    }
    let sql = "INSERT INTO content_blocks VALUES ('of_another_version', 'ru', 'x', 1)";
    leader.dev.writer().execute(sql, []).unwrap();
    let check = leader.content(&["check"]);
    assert_eq!(check.code, 1, "{check:?}");
    let flaws = check.rows();
    assert_eq!((flaws.len(), &flaws[1]["key"]), (2, &json!("of_another_version")));
    let listed = leader.content(&["list", "--changed"]).succeeded().rows();
    assert_eq!((&listed[0]["en"], &listed[1]["shape"]), (&json!("flawed"), &json!("none")));
    leader.content(&["reset", "of_another_version"]).succeeded();
    leader.content(&["reset", "new_partner"]).succeeded();
    assert_eq!(leader.content(&["check"]).succeeded().rows().len(), 0);
    let log = leader.dev.process.log();
    assert_eq!(log.matches("cannot be used").count(), 4, "one line for each text, not for each message: {log}");
    assert!(!log.contains("not_given"), "a text is no matter of a log");
}

#[test]
fn values_with_markup_are_shown_as_written() {
    let mut leader = Leader::start();
    for name in ["<b>Anna</b> & \"co\" &lt;", "\u{202e}anna\u{202c}", "{{ partner_name }}"] {
        assert_eq!(leader.gets(name), format!("🎉 A new partner: {name}! Have a look at “👥 Partners”."));
        leader.set("<b>{{ partner_name }}</b>.").succeeded();
        assert_eq!(leader.gets(name), format!("{name}."));
        leader.content(&["reset", "new_partner"]).succeeded();
    }
}

#[test]
fn the_telegram_double_takes_every_shipped_text() {
    let (place, harness) = (Place::migrated(), harness::Place::new());
    let (_fake, url) = harness.start_fake();
    let http = Client::new(&url, None);
    let listed = place.run(&["content", "list"]).succeeded().rows();
    let keys: Vec<&str> = listed.iter().map(|row| row["key"].as_str().unwrap()).collect();
    let shown = place.run(&[&["content", "show"], keys.as_slice()].concat()).succeeded().rows();
    assert_eq!(shown.len(), 2 * keys.len());
    for text in shown {
        let mut message = json!({"chat_id": 5, "text": text["example"]});
        if text["shape"] == "html" {
            message["parse_mode"] = json!("HTML");
        }
        let answer = http.post("/bot1:a/sendMessage", &message);
        assert_eq!(answer.status, 200, "{}: {}", text["key"], answer.body);
    }
}
