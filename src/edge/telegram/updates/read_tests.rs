//! What each kind of update is read as, and that no field whose absence could kill an update is there.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn read(update: &Value) -> Result<Input, Unreadable> {
    UpdateReader.read(&update.to_string())
}

fn person() -> Value {
    json!({"id": 5, "is_bot": false, "first_name": "Ann <3", "username": "ann", "language_code": "pt-br"})
}

fn message(with: Value) -> Value {
    let mut message = json!({
        "message_id": 3, "date": 1, "from": person(), "chat": {"id": 5, "type": "private", "first_name": "Ann"},
    });
    let fields = with.as_object().unwrap().clone();
    message.as_object_mut().unwrap().extend(fields);
    message
}

fn author() -> Option<Author> {
    let (username, lang) = (Some("ann".into()), Some("pt-br".into()));
    Some(Author { id: 5, is_bot: false, first_name: "Ann <3".into(), username, lang })
}

fn private(what: What) -> Input {
    Input { chat_id: 5, place: Place::Private, author: author(), what }
}

/// One of everything that Telegram is known to send us.
fn corpus() -> Vec<Value> {
    let old = json!({"message_id": 3, "date": 0, "chat": {"id": 5, "type": "private"}});
    let on = message(json!({"text": "menu", "reply_markup": {"inline_keyboard": []}}));
    vec![
        json!({"update_id": 1, "message": message(json!({"text": "/start boris", "entities": []}))}),
        json!({"update_id": 2, "message": message(json!({"sticker": {"file_id": "x"}}))}),
        json!({"update_id": 3, "message": message(json!({"photo": [{}], "caption": "see"}))}),
        json!({"update_id": 4, "message": message(json!({"pinned_message": {"message_id": 1}}))}),
        json!({"update_id": 5, "message": message(json!({"chat": {"id": -7, "type": "supergroup"}, "text": "x"}))}),
        json!({"update_id": 6, "edited_message": message(json!({"text": "y", "edit_date": 2}))}),
        json!({"update_id": 7, "callback_query": {"id": "1", "from": person(), "message": on, "data": "m:menu"}}),
        json!({"update_id": 8, "callback_query": {"id": "2", "from": person(), "message": old, "data": "m:menu"}}),
        json!({"update_id": 9, "callback_query": {"id": "3", "from": person(), "inline_message_id": "i", "data": "x"}}),
        json!({"update_id": 10, "callback_query": {"id": "4", "from": person(), "message": on, "game_short_name": "g"}}),
        json!({"update_id": 11, "my_chat_member": {"chat": {"id": 5, "type": "private"}, "from": person(), "date": 1,
            "old_chat_member": {"status": "member"}, "new_chat_member": {"status": "kicked", "until_date": 0}}}),
        json!({"update_id": 12, "message_reaction": {"chat": {"id": 5, "type": "private"}}}),
        json!({"update_id": 13, "kind_of_the_year_2030": {"chat": {"id": 5}}}),
    ]
}

#[test]
fn every_kind_is_read_as_what_the_person_did() {
    let text = |message_id, text: &str| What::Text { message_id, text: text.into() };
    let tap = |data: Option<&str>, message_id| What::Tap { data: data.map(str::to_owned), message_id };
    let group = Input { chat_id: -7, place: Place::Group, author: author(), what: text(3, "x") };
    let expected = [
        private(text(3, "/start boris")),
        private(What::Thing { message_id: 3 }),
        private(What::Thing { message_id: 3 }),
        private(What::Nothing),
        group,
        private(What::Edited),
        private(tap(Some("m:menu"), Some(3))),
        private(tap(Some("m:menu"), None)),
        private(tap(Some("x"), None)),
        private(tap(None, Some(3))),
        private(What::Membership(Membership::Gone)),
        NOTHING,
        NOTHING,
    ];
    for (update, expected) in corpus().iter().zip(expected) {
        assert_eq!(read(update), Ok(expected), "{update}");
    }
}

#[test]
fn every_status_in_a_chat_is_in_or_out() {
    for (status, what) in [
        ("member", What::Membership(Membership::Member)),
        ("administrator", What::Membership(Membership::Member)),
        ("creator", What::Membership(Membership::Member)),
        ("restricted", What::Membership(Membership::Member)),
        ("left", What::Membership(Membership::Gone)),
        ("kicked", What::Membership(Membership::Gone)),
        ("of a later version", What::Nothing),
    ] {
        let update = json!({"my_chat_member": {"chat": {"id": 5}, "new_chat_member": {"status": status}}});
        assert_eq!(read(&update).unwrap().what, what, "{status}");
    }
}

#[test]
fn what_is_no_update_cannot_be_read() {
    for text in ["", "5", "[]", "{}", r#"{"update_id":1}"#, r#"{"message":5}"#, r#"{"message":{"text":"x"}}"#] {
        assert_eq!(UpdateReader.read(text), Err(Unreadable), "{text}");
    }
}

/// Every path to a member of an object, at whatever depth.
fn paths(value: &Value, here: &str, found: &mut Vec<String>) {
    for (name, member) in value.as_object().into_iter().flatten() {
        let path = format!("{here}/{name}");
        paths(member, &path, found);
        found.push(path);
    }
}

fn without(update: &Value, path: &str) -> Value {
    let mut less = update.clone();
    let (parent, name) = path.rsplit_once('/').unwrap();
    less.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name);
    less
}

#[test]
fn a_field_that_is_missing_kills_only_what_has_no_chat_or_no_content() {
    let needed = ["/message", "/message/chat", "/message/chat/id", "/message/from/id", "/callback_query/message/chat"];
    for update in corpus() {
        let mut all = Vec::new();
        paths(&update, "", &mut all);
        for path in all {
            let read = read(&without(&update, &path));
            let is_vital = needed.contains(&path.as_str())
                || path.ends_with("/chat")
                || path.ends_with("/id")
                || path.ends_with("/from")
                || path.matches('/').count() == 1;
            assert!(read.is_ok() || is_vital, "without {path}: {update}");
        }
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let name = prop_oneof![Just("chat".to_owned()), Just("id".to_owned()), Just("from".to_owned()), ".{0,6}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn no_json_makes_it_panic(place in 0..13_usize, with in any_json(), at in any::<prop::sample::Index>()) {
        let mut update = corpus().swap_remove(place);
        let mut all = Vec::new();
        paths(&update, "", &mut all);
        let path = at.get(&all).clone();
        *update.pointer_mut(&path).unwrap() = with;
        let _ = read(&update);
    }
}
