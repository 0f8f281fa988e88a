use cog_testkit::{Mock, Reply, Wire};

use crate::support::{Place, json, snapshot, stdout};

/// A module with one golden test and its expected file.
fn place(expected: &str) -> Place {
    let place = Place::new();
    let new = place.cog(["new", "m"]).output().unwrap();
    assert!(new.status.success());
    place.write("m/tests/case1.expected.json", expected);
    place
}

const DATA: &str = r#"{"answer": "Fine.", "rationale": "It is."}"#;

fn asking(place: &Place, mock: &Mock, args: &[&str]) -> std::process::Command {
    let mut command = place.cog(["test", "./m"].into_iter().chain(args.iter().copied()));
    command.env("OPENAI_API_KEY", "sk-canary").env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    command
}

fn reply(data: &str) -> Reply {
    let meta = r#"{"confidence": 0.95, "risk": "low", "explain": "Fine."}"#;
    Reply::text(format!(r#"{{"ok": true, "meta": {meta}, "data": {data}, "error": null}}"#))
}

#[test]
fn test_without_provider_is_contract_only() {
    snapshot!(place(DATA).cog(["test", "./m"]));
}

#[test]
fn expected_file_against_schema_fails() {
    snapshot!(place(r#"{"answer": 5, "rationale": "x"}"#).cog(["test", "./m"]));
}

#[test]
fn expected_answer_passes() {
    let (place, mock) = (place(DATA), Mock::start([reply(DATA)]));
    snapshot!(asking(&place, &mock, &["--provider", "openai", "--model", "m"]));
}

#[test]
fn different_answer_fails() {
    let (place, mock) = (place(DATA), Mock::start([reply(r#"{"answer": "Bad.", "rationale": "It is."}"#)]));
    snapshot!(asking(&place, &mock, &["--provider", "openai", "--model", "m"]));
}

#[test]
fn different_answer_as_junit() {
    let (place, mock) = (place(DATA), Mock::start([reply(r#"{"answer": "Bad.", "rationale": "It is."}"#)]));
    let output = asking(&place, &mock, &["--provider", "openai", "--format", "junit"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let xml = stdout(&output);
    assert!(xml.contains(r#"<testsuite name="./m" tests="1""#) && xml.contains("<failure message="), "{xml}");
}

#[test]
fn replays_recording_without_key() {
    let (place, mock) = (place(DATA), Mock::start([reply(DATA)]));
    let record = ["--provider", "openai", "--model", "m", "--record"];
    assert!(asking(&place, &mock, &record).status().unwrap().success());
    drop(mock);
    let report = json(&place.cog(["test", "./m", "--format", "json"]).output().unwrap());
    assert_eq!((&report["passed"], &report["contract_only"]), (&1.into(), &0.into()), "{report}");
}

#[test]
fn update_replaces_expected_file() {
    let (place, mock) = (place(DATA), Mock::start([reply(r#"{"answer": "New.", "rationale": "It is."}"#)]));
    let output = asking(&place, &mock, &["--provider", "openai", "--update"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    let written: serde_json::Value =
        serde_json::from_str(&place.read("m/tests/case1.expected.json")).unwrap();
    assert_eq!(written["answer"], "New.");
}

#[test]
fn update_skips_expected_files_with_rules() {
    let expected = r#"{"_validate": {"answer_contains": "ten"}, "$example": {"ok": true}}"#;
    let (place, mock) = (place(expected), Mock::start([reply(r#"{"answer": "nine", "rationale": "r"}"#)]));
    let output = asking(&place, &mock, &["--provider", "openai", "--update"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert_eq!(place.read("m/tests/case1.expected.json"), expected);
}

#[test]
fn selects_cases_by_name() {
    let output = place(DATA).cog(["test", "./m", "--case", "nothing"]).output().unwrap();
    assert!(stdout(&output).contains("no golden tests"));
}

#[test]
fn shipped_modules_match_their_contracts() {
    let report = json(&Place::new().cog(["test", "--all", "--format", "json"]).output().unwrap());
    assert_eq!(report["failed"], 0, "{report}");
    assert!(report["contract_only"].as_u64() > Some(10));
}
