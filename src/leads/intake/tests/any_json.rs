//! Whatever a form or an attacker sends: nothing panics, and nothing that is stored offends the schema.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;

/// JSON text of any kind, also such as `serde_json` would not write: great numbers, half surrogates, NUL, keys that come
/// twice.
fn any_value() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        "\\PC{0,40}".prop_map(|text| json!(text).to_string()),
        any::<String>().prop_map(|text| json!(text).to_string()),
        proptest::collection::vec(
            prop_oneof![
                Just(r"\u0000"),
                Just(r"\ud800"),
                Just(r"\uDC00"),
                Just(r"\ud83d\ude00"),
                Just(r"\\"),
                Just(r#"\""#),
                Just(r"\r\n"),
                Just("я"),
                Just("1"),
                Just(" "),
                Just("😀"),
                Just(r"\u0001"),
                Just("'; DROP TABLE broker_leads; --"),
            ],
            0..12
        )
        .prop_map(|parts| format!("\"{}\"", parts.concat())),
        (1_usize..3000).prop_map(|times| format!("\"{}\"", "Ж".repeat(times))),
    ];
    let leaf = prop_oneof![
        4 => text,
        1 => any::<i64>().prop_map(|number| number.to_string()),
        1 => any::<f64>().prop_filter("JSON has no NaN", |number| number.is_finite()).prop_map(|number| json!(number).to_string()),
        2 => prop_oneof![Just("1e400"), Just("-0"), Just("1"), Just("1.0"), Just("1500"), Just("99999999999999999999"),
                Just("true"), Just("false"), Just("null"), Just("\"yes\""), Just("{}"), Just("[]"),
                Just("\"https://a.example/\""), Just("\"diagnosis\""), Just("\"+7 999 123 45 67\"")]
            .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 24, 6, |inner| {
        let list = proptest::collection::vec(inner.clone(), 0..6).prop_map(|items| format!("[{}]", items.join(",")));
        prop_oneof![list, object(inner)]
    })
}

/// An object of names that mean something, and of others.
fn object(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    const NAMES: [&str; 24] = [
        "name",
        "phone",
        "phone_normalized",
        "city",
        "preferred_contact",
        "scenario",
        "object_type",
        "object_price",
        "down_payment",
        "income_type",
        "bank_history",
        "comment",
        "current",
        "utm_source",
        "utm_term",
        "likely_bot",
        "honeypot_empty",
        "journey_type",
        "completed_checks",
        "completed_labels",
        "scenario_slug",
        "remaining_questions",
        "\\u0000",
        "odd \\\" name",
    ];
    let member =
        (prop::sample::select(NAMES.as_slice()), value).prop_map(|(name, value)| format!("\"{name}\":{value}"));
    proptest::collection::vec(member, 0..8).prop_map(|members| format!("{{{}}}", members.join(",")))
}

/// A request that would be valid, in which some fields are what they should not be.
fn body() -> impl Strategy<Value = String> {
    const NAMES: [&str; 19] = [
        "schema_version",
        "form_version",
        "submitted_at",
        "form_fill_ms",
        "source_page",
        "page_url",
        "page_title",
        "referrer",
        "client",
        "mortgage",
        "tracking",
        "qualification",
        "personal_data_consent",
        "consent",
        "spam_check",
        "preparation",
        "unknown",
        "request_id",
        "mortgage",
    ];
    let odd = (prop::sample::select(NAMES.as_slice()), prop_oneof![any_value(), object(any_value())]);
    proptest::collection::vec(odd, 0..4).prop_map(|odd| {
        let rest: Vec<String> = odd.iter().map(|(name, value)| format!(",\"{name}\":{value}")).collect();
        let mut whole = minimal();
        whole["client"]["phone"] = json!("+7 999 123-45-67");
        format!("{}{}}}", whole.to_string().strip_suffix('}').unwrap(), rest.concat())
    })
}

#[test]
fn any_bytes_and_any_json_are_read_without_a_panic() {
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(400) });
    let read = runner.run(&(any::<Vec<u8>>(), any_value(), ".{0,80}"), |(bytes, json, text)| {
        let bodies: [&[u8]; 3] = [&bytes, json.as_bytes(), text.as_bytes()];
        for body in bodies {
            let is_object = serde_json::from_slice::<serde_json::Map<String, Value>>(body).is_ok();
            prop_assert!(Submission::parse(body, &rules()).is_ok() || !is_object);
        }
        Ok(())
    });
    read.unwrap();
}

#[test]
fn what_is_accepted_never_offends_the_schema() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut world = runtime.block_on(async { World::new() });
    world.rules.rate_limit_per_hour = u32::MAX;
    let stored = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(600) });
    let held = runner.run(
        &(body(), prop::sample::select(vec!["RU", "DE", "US"]), any::<String>()),
        |(body, region, browser)| {
            let mut rules = world.rules.clone();
            rules.phone_region = region.to_owned();
            let submission = Submission::parse(body.as_bytes(), &rules);
            prop_assert!(submission.is_ok(), "{}", body);
            let submission = submission.unwrap();
            let visitor = Visitor { ip: [192, 0, 2, 1].into(), user_agent: browser };
            let write = world.db.write(move |tx| {
                let answer = accept(tx, &submission, &visitor, &rules)?;
                let mended = "SELECT count(*) FROM broker_leads WHERE json_array_length(preparation_completed) > 4
                            OR length(client_name) > 80 OR instr(raw_payload, char(0)) > 0 OR length(comment) > 1600";
                let bad: i64 = tx.query_one(mended, [], |row| row.get(0))?;
                tx.execute("DELETE FROM broker_leads", [])?;
                Ok::<_, StoreError>((answer, bad))
            });
            let done = runtime.block_on(write);
            prop_assert!(done.is_ok(), "{:?}: {}", done, body);
            let (answer, bad) = done.unwrap();
            prop_assert_eq!(bad, 0, "{}", body);
            stored.set(stored.get() + usize::from(matches!(answer, Answer::Stored { .. })));
            Ok(())
        },
    );
    held.unwrap();
    assert!(stored.get() > 150, "most of what is tried is refused: {}", stored.get());
}
