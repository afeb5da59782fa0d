//! The intake's cleaning of a preparation against the trigger's: whatever is sent, both make the same of it.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;

/// A string of pieces that one of the two might take for something else.
fn text() -> impl Strategy<Value = Value> {
    const PIECES: [&str; 36] = [
        "a",
        "Б",
        "ё",
        "«",
        "—",
        "№",
        " ",
        "  ",
        "\n",
        "\r\n",
        "\r",
        "\t",
        "\u{b}",
        "\u{c}",
        "\u{1}",
        "\u{2}",
        "\u{3}",
        "\u{0}",
        "\u{1f}",
        "\u{85}",
        "\u{a0}",
        "\u{2003}",
        "\u{2028}",
        "\u{2029}",
        "\u{202f}",
        "\u{3000}",
        "\u{feff}",
        "😀",
        "\"",
        "\\",
        "\\u0000",
        "\u{202e}",
        "'; DROP TABLE broker_leads; --",
        "<b>",
        "\u{7f}",
        "longer than it seems to be, ",
    ];
    let pieces = proptest::collection::vec(prop::sample::select(PIECES.as_slice()), 0..60);
    pieces.prop_map(|pieces| json!(pieces.concat()))
}

/// Mostly a string; anything else counts for nothing.
fn odd(likely: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Value> {
    let others = prop::sample::select(vec![json!(1), json!(null), json!(true), json!({"a": "b"}), json!(["a"])]);
    prop_oneof![8 => likely, 1 => text(), 1 => others]
}

fn check() -> impl Strategy<Value = Value> {
    const CHECKS: [&str; 8] =
        ["diagnosis", "finances", "documents", "next_step", " finances\n", "Diagnosis", "", "finances,documents"];
    odd(prop::sample::select(CHECKS.as_slice()).prop_map(|check| json!(check)))
}

fn preparation() -> impl Strategy<Value = Value> {
    let slugs = ["otkazali-v-ipoteke", "\u{a0}ipoteka-bez-pervonachalnogo-vznosa ", "else"];
    let slug = odd(prop::sample::select(slugs.to_vec()).prop_map(|slug| json!(slug)));
    let checks = odd(proptest::collection::vec(check(), 0..7).prop_map(Value::Array));
    let labels = odd(proptest::collection::vec(odd(text()), 0..7).prop_map(Value::Array));
    let whole = (odd(text()), odd(text()), slug, odd(text()), checks, labels).prop_map(
        |(journey_type, stage, slug, questions, checks, labels)| {
            json!({
                "journey_type": journey_type, "journey_stage": stage, "scenario_slug": slug,
                "remaining_questions": questions, "completed_checks": checks, "completed_labels": labels,
                "other": {"journey_type": "not this one"},
            })
        },
    );
    odd(whole)
}

/// The columns of the only lead.
fn columns(tx: &Tx<'_>) -> Result<[Option<String>; 6], StoreError> {
    let sql = "SELECT journey_type, journey_stage, journey_scenario_slug, remaining_questions, preparation,
                      preparation_completed FROM broker_leads";
    tx.query_one(sql, [], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?]))
}

#[test]
fn the_intake_makes_of_a_preparation_what_the_trigger_makes_of_it() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut world = runtime.block_on(async { World::new() });
    world.rules.rate_limit_per_hour = u32::MAX;
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(2_000) });
    let same = runner.run(&preparation(), |preparation| {
        let mut body = minimal();
        body["preparation"] = preparation;
        let rules = world.rules.clone();
        let submission = Submission::parse(body.to_string().as_bytes(), &rules).unwrap();
        let visitor = Visitor { ip: [192, 0, 2, 1].into(), user_agent: String::new() };
        let write = world.db.write(move |tx| {
            let answer = accept(tx, &submission, &visitor, &rules)?;
            let ours = columns(tx)?;
            // The trigger follows an update of the payload, also to what it was.
            tx.execute("UPDATE broker_leads SET raw_payload = raw_payload", [])?;
            let the_triggers = columns(tx)?;
            tx.execute("DELETE FROM broker_leads", [])?;
            Ok::<_, StoreError>((answer, ours, the_triggers))
        });
        let (answer, ours, the_triggers) = runtime.block_on(write).unwrap();
        prop_assert!(matches!(answer, Answer::Stored { .. }), "{:?}", answer);
        prop_assert_eq!(ours, the_triggers, "{}", body);
        Ok(())
    });
    same.unwrap();
}
