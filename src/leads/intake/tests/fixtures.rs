//! The faults of the fixtures that are refused as invalid: no answer tells them, so that only here they can be compared.

use std::path::Path;

use super::*;

#[tokio::test]
async fn what_the_fixtures_lack_is_logged_by_its_codes() {
    let world = World::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/leads");
    let mut compared = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let fixture: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let Some(expected) = fixture["faults"].as_array() else { continue };
        let body = fixture["request"]["body"].to_string();
        let Answer::Invalid { faults, .. } = world.send(body.as_bytes(), &format!("192.0.2.{compared}")).await else {
            panic!("{}: it is not refused as invalid", path.display());
        };
        assert_eq!(json!(faults), json!(expected), "{}", path.display());
        compared += 1;
    }
    assert!(compared >= 5, "the fixtures name what they lack: {compared}");
}
