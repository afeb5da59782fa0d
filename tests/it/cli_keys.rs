//! `pillarbox tenants` and `pillarbox keys`: who may speak for whom, and a key that is seen once.

use serde_json::{Value, json};

use crate::cli::{Place, Ran};

/// The characters of a key.
const KEY_LENGTH: usize = 47;

fn with_tenant(name: &str) -> Place {
    let place = Place::migrated();
    place.run(&["tenants", "create", name]).succeeded();
    place
}

fn create(place: &Place, args: &[&str]) -> Ran {
    place.run(&[&["keys", "create"], args].concat()).succeeded()
}

fn texts(rows: &[Value], key: &str) -> Vec<String> {
    rows.iter().map(|row| row[key].as_str().unwrap_or("-").to_owned()).collect()
}

#[test]
fn a_new_key_is_alone_on_stdout_and_explained_beside_it() {
    let place = with_tenant("acme");
    let made = create(&place, &["--tenant", "acme", "--role", "publish", "--description", "the shop"]);
    let key = made.stdout.strip_suffix('\n').expect("one line");
    assert!(key.starts_with("pbx_") && key.len() == KEY_LENGTH && !key.contains('\n'), "{key}");
    let said = &made.stderr;
    assert!(said.contains("tenant acme, role publish") && said.contains("this once") && !said.contains(key), "{said}");
    let listed = place.run(&["keys", "list", "--tenant", "acme"]).succeeded();
    assert!(!listed.stdout.contains(key));
    let row = listed.row();
    assert_eq!(
        (&row["role"], &row["description"], &row["revoked_at"]),
        (&json!("publish"), &json!("the shop"), &json!(null))
    );
    assert_eq!(row["last_four"], key[key.len() - 4..]);
    assert!(said.contains(row["id"].as_str().unwrap()), "{said}");
    // For programs, with its id.
    let json = create(&place, &["--role", "read", "--json"]).row();
    assert_eq!((&json["tenant"], &json["role"]), (&json!("default"), &json!("read")));
    assert_eq!(json["key"].as_str().unwrap().len(), KEY_LENGTH);
}

#[test]
fn a_shell_has_the_key_and_nothing_else_in_its_variable() {
    let place = Place::migrated();
    let binary = env!("CARGO_BIN_EXE_pillarbox");
    let script = format!("KEY=$('{binary}' keys create --role admin 2>/dev/null); printf '[%s]' \"$KEY\"");
    let mut shell = std::process::Command::new("sh");
    shell.env_clear().current_dir(place.path()).args(["-c", &script]);
    let said = Ran::of(shell).succeeded().stdout;
    assert!(said.starts_with("[pbx_") && said.ends_with(']') && said.len() == KEY_LENGTH + 2, "{said}");
}

#[test]
fn a_revoked_key_stays_in_the_list_with_its_time_and_other_tenants_keys_are_unknown() {
    let place = with_tenant("acme");
    let id = |args: &[&str]| create(&place, args).row()["id"].as_str().unwrap().to_owned();
    let (ours, theirs) = (id(&["--role", "admin", "--json"]), id(&["--role", "admin", "--json", "--tenant", "acme"]));
    let revoked = place.run(&["keys", "revoke", &ours]).succeeded().row();
    let again = place.run(&["keys", "revoke", &ours]).succeeded().row();
    assert_eq!((&revoked["id"], &revoked["revoked_at"]), (&json!(ours), &again["revoked_at"]));
    assert_eq!(place.run(&["keys", "list"]).succeeded().row()["revoked_at"], revoked["revoked_at"]);
    let other = place.run(&["keys", "revoke", &theirs, "key_none"]);
    assert_eq!((other.code, texts(&other.rows(), "revoked_at")), (1, vec!["-".to_owned(), "-".to_owned()]));
    assert_eq!(place.run(&["keys", "list", "--tenant", "acme"]).succeeded().row()["revoked_at"], Value::Null);
}

#[test]
fn lists_go_on_behind_their_last_row() {
    let place = Place::migrated();
    for name in ["b", "a", "c"] {
        place.run(&["tenants", "create", name]).succeeded();
        create(&place, &["--role", "read"]);
    }
    let first = place.run(&["tenants", "list", "--limit", "2"]).succeeded();
    assert_eq!(texts(&first.rows(), "id"), ["a", "b"]);
    assert!(first.stderr.contains("go on with --after b"), "{first:?}");
    let rest = place.run(&["tenants", "list", "--after", "b"]).succeeded();
    assert_eq!((texts(&rest.rows(), "id"), rest.stderr.as_str()), (vec!["c".to_owned(), "default".to_owned()], ""));
    let keys = place.run(&["keys", "list", "--limit", "2"]).succeeded();
    let last = texts(&keys.rows(), "id")[1].clone();
    assert!(keys.stderr.contains(&format!("--after {last}")));
    assert_eq!(place.run(&["keys", "list", "--after", &last]).succeeded().rows().len(), 1);
}

#[test]
fn what_cannot_be_is_refused_with_what_to_do() {
    let place = Place::migrated();
    place.run(&["tenants", "create", "default"]).refused(1, &["there is a tenant default already"]);
    place.run(&["tenants", "create", "Acme"]).refused(2, &["a-z"]);
    place.run(&["keys", "list", "--tenant", "nobody"]).refused(1, &["there is no tenant nobody", "tenants list"]);
    place.run(&["keys", "create", "--tenant", "nobody", "--role", "read"]).refused(1, &["no tenant nobody"]);
    place.run(&["keys", "create", "--role", "owner"]).refused(2, &["admin", "publish", "read"]);
    place.run(&["keys", "create"]).refused(2, &["--role"]);
    let long = "x".repeat(201);
    place.run(&["keys", "create", "--role", "read", "--description", &long]).refused(1, &["200 characters"]);
    assert_eq!(place.run(&["keys", "list"]).succeeded().stdout, "");
}
