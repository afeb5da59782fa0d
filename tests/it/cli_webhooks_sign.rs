//! `pillarbox webhooks sign` and `verify`: signatures by hand, for whoever writes a receiver.

use std::fs;
use std::process::Stdio;

use serde_json::json;

use crate::cli::{Place, Ran};

/// The reference test of the specification's libraries.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const BODY: &str = r#"{"test": 2432232314}"#;
const HEADERS: &str = "webhook-id: msg_p5jXN8AQM9LWM0D4loKWxJek\n\
    webhook-timestamp: 1614265330\n\
    webhook-signature: v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=\n";
/// Long enough for a signature of 2021.
const FOR_EVER: &str = "--tolerance=36500d";

fn place() -> Place {
    let place = Place::new();
    fs::write(place.path().join("secret"), format!("{SECRET}\n")).unwrap();
    fs::write(place.path().join("body.json"), BODY).unwrap();
    place
}

/// The verb with the secret from the file.
fn webhooks(place: &Place, verb: &str, args: &[&str]) -> Ran {
    place.run(&[&["webhooks", verb, "--secret-file", "secret"], args].concat())
}

fn verdict(place: &Place, file: &str, content: &[u8]) -> Ran {
    fs::write(place.path().join(file), content).unwrap();
    webhooks(place, "verify", &[FOR_EVER, file])
}

#[test]
fn the_published_vector_is_signed_as_headers_that_curl_takes() {
    let place = place();
    let args = ["--id", "msg_p5jXN8AQM9LWM0D4loKWxJek", "--timestamp", "1614265330"];
    assert_eq!(webhooks(&place, "sign", &[&args[..], &["body.json"]].concat()).succeeded().stdout, HEADERS);
    // From stdin, with the secret from the environment, for programs.
    let mut command = place.command(&[&["webhooks", "sign", "--json"], &args[..]].concat());
    command.env("WEBHOOK_SECRET", SECRET);
    command.stdin(Stdio::from(fs::File::open(place.path().join("body.json")).unwrap()));
    let signed = Ran::of(command).succeeded().row();
    assert_eq!(signed["webhook-signature"], "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

#[test]
fn what_was_signed_now_is_verified_by_its_headers_or_as_a_dump() {
    let place = place();
    let headers = webhooks(&place, "sign", &["--id", "msg_1", "body.json"]).succeeded().stdout;
    let value = |at: usize| headers.lines().nth(at).unwrap().split_once(": ").unwrap().1;
    let flags = ["--id", value(0), "--timestamp", value(1), "--signature", value(2)];
    let ran = webhooks(&place, "verify", &[&flags[..], &["body.json"]].concat()).succeeded();
    assert_eq!(ran.row(), json!({"verified": true, "id": "msg_1", "reason": null}));
    fs::write(place.path().join("dump"), format!("POST /hook HTTP/1.1\r\nHost: a\r\n{headers}\n{BODY}")).unwrap();
    webhooks(&place, "verify", &["dump"]).succeeded();
    // Not as a `v1` among other versions either if the bytes are others.
    fs::write(place.path().join("other.json"), r#"{"test":2432232314}"#).unwrap();
    let ran = webhooks(&place, "verify", &[&flags[..], &["other.json"]].concat());
    assert_eq!((ran.code, &ran.row()["verified"]), (1, &json!(false)));
}

#[test]
fn a_verdict_says_what_is_wrong_and_what_may_be_the_matter() {
    let place = place();
    let reason = |ran: &Ran| {
        assert_eq!(ran.code, 1, "{ran:#?}");
        ran.row()["reason"].as_str().unwrap().to_owned()
    };
    let dump = |headers: &str, body: &str| format!("{headers}\n{body}").into_bytes();
    verdict(&place, "good", &dump(HEADERS, BODY)).succeeded();
    let said = reason(&verdict(&place, "a", &dump(HEADERS, &format!("{BODY}\n"))));
    assert!(said.contains("without the line break at its end it fits"), "{said}");
    let said = reason(&verdict(&place, "b", &dump(HEADERS, "{\"test\":2432232314}")));
    assert!(said.contains("no signature fits") && said.contains("another secret"), "{said}");
    for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
        let without: String =
            HEADERS.lines().filter(|line| !line.starts_with(name)).map(|line| format!("{line}\n")).collect();
        assert_eq!(reason(&verdict(&place, "c", &dump(&without, BODY))), format!("the header {name} is missing"));
    }
    let old = webhooks(&place, "verify", &["good"]);
    let said = reason(&old);
    assert!(
        said.contains("a signature fits") && said.contains("300 s are tolerated") && said.contains("--tolerance"),
        "{said}"
    );
}

#[test]
fn what_cannot_be_judged_is_an_error_that_says_what_to_do_and_never_the_secret() {
    let place = place();
    place.run(&["webhooks", "verify", "body.json"]).refused(1, &["WEBHOOK_SECRET", "--secret-file"]);
    webhooks(&place, "verify", &["body.json"]).refused(1, &["body.json is no HTTP message", "--signature"]);
    webhooks(&place, "verify", &["none"]).refused(1, &["cannot read none"]);
    webhooks(&place, "verify", &["--id", "msg_1", "body.json"]).refused(2, &["--timestamp", "--signature"]);
    webhooks(&place, "verify", &["--tolerance", "5", "body.json"]).refused(2, &["such as 30s"]);
    for id in ["a.b", "", "a b"] {
        webhooks(&place, "sign", &["--id", id, "body.json"]).refused(1, &["--id"]);
    }
    fs::write(place.path().join("bytes"), b"\xff").unwrap();
    webhooks(&place, "sign", &["--id", "msg_1", "bytes"]).refused(1, &["not UTF-8"]);
    for verb in ["sign", "verify"] {
        let args = ["webhooks", verb, "--id", "a", "--timestamp", "1", "--secret", "whsec_hunter2", "body.json"];
        let extra: &[&str] = if verb == "verify" { &["--signature", "v1,a"] } else { &[] };
        let ran = place.run(&[&args[..], extra].concat());
        assert_eq!((ran.code, ran.stderr.contains("whsec_ and")), (1, true), "{ran:#?}");
        assert!(!ran.stderr.contains("hunter2"), "{ran:#?}");
        let mut help = place.command(&["webhooks", verb, "--help"]);
        help.env("WEBHOOK_SECRET", SECRET);
        let help = Ran::of(help).succeeded().stdout;
        assert!(help.contains("every user") && !help.contains("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), "{help}");
    }
}
