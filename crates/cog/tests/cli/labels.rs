//! What people say about runs: `cog logs label`, `cog review`, `cog test add`, `cog calibrate --from-labels`.

use std::process::{Command, Output, Stdio};

use cog_testkit::{Mock, Reply, Wire};
use serde_json::{Value, json};

use crate::support::{Place, json, settings, stderr, stdout, transcript};

const LABELS: &str = ".local/state/cog/logs/labels.ndjson";
const REPLY: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "Fine."},
    "data": {"verdict": "approve", "issues": [], "rationale": "Nothing stands out."}, "error": null}"#;
const CORRECTED: &str = r#"{"verdict": "change", "issues": [], "rationale": "A test is missing."}"#;

/// A module `m` in the working directory, so that golden tests can be added to it.
fn place() -> Place {
    let place = Place::new();
    let created = place.cog(["new", "m", "--from", "code-reviewer", "--in", "."]).output().unwrap();
    assert!(created.status.success(), "{}", stderr(&created));
    place
}

fn run(place: &Place, module: &str, code: &str) -> String {
    let mock = Mock::start([Reply::text(REPLY)]);
    let mut command = place.cog(["run", module, "--args", code, "--model", "gpt-6-luna"]);
    command.env("OPENAI_API_KEY", "sk-canary-1").env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    let ran = command.env("COG_LOGS_CONTENTS", "true").output().unwrap();
    assert!(ran.status.success(), "{}", stderr(&ran));
    listed(place, &[])[0]["id"].as_str().unwrap().to_owned()
}

fn listed(place: &Place, flags: &[&str]) -> Vec<Value> {
    let args = ["logs", "--format", "json"];
    let output = place.cog(args.into_iter().chain(flags.iter().copied())).output().unwrap();
    json(&output).as_array().unwrap().clone()
}

fn labelled(place: &Place, args: &[&str]) -> Output {
    place.cog(["logs", "label"].into_iter().chain(args.iter().copied())).output().unwrap()
}

#[track_caller]
fn label(place: &Place, args: &[&str]) {
    let output = labelled(place, args);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[track_caller]
fn fails(output: &Output, code: i32, text: &str) {
    assert_eq!(output.status.code(), Some(code), "{}", stderr(output));
    assert!(stderr(output).contains(text), "{}", stderr(output));
}

/// A snapshot in which the times and IDs of runs are replaced. The width of columns depends on the times.
fn snapshot(name: &str, id: &str, command: Command) {
    let mut settings = settings();
    settings.add_filter(" {2,}", "  ");
    settings.add_filter(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\dZ?", "[DATE AND TIME]");
    settings.add_filter(id, "[ID]");
    settings.bind(|| insta::assert_snapshot!(name, transcript(command)));
}

#[test]
fn labels_are_listed_with_their_history() {
    let place = place();
    let id = run(&place, "./m", "x = 1");
    let other = run(&place, "./m", "y = 1");
    label(&place, &[&id[..6], "wrong", "--note", "A test is missing."]);
    place.write("answer.json", CORRECTED);
    label(&place, &[&id, "corrected", "--data", "answer.json"]);
    snapshot("labelled_run_is_shown", &id, place.cog(["logs", "show", &id]));
    snapshot("labelled_runs_are_listed", &id, place.cog(["logs", "--label", "any"]));
    let ids = |flags: &[&str]| {
        let runs = listed(&place, flags).into_iter();
        runs.map(|run| run["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&["--label", "corrected"]), [id.as_str()]);
    assert_eq!(ids(&["--label", "wrong"]), [""; 0], "only the last label counts");
    assert_eq!(ids(&["--label", "none"]), [other.as_str()]);
    assert_eq!(ids(&[]), [other.as_str(), id.as_str()]);
    let labels = listed(&place, &["--label", "any"])[0]["labels"].clone();
    assert_eq!(labels[0]["note"], "A test is missing.");
    assert_eq!(labels[1]["data"], serde_json::from_str::<Value>(CORRECTED).unwrap());
    assert_eq!((&labels[1]["confidence"], &labels[1]["module"]), (&json!(0.9), &json!("m")));
}

/// SHA-256 of `{"code":"x = 1"}`, however the input is given.
#[test]
fn runs_with_the_same_input_have_the_same_hash() {
    let place = place();
    run(&place, "./m", "x = 1");
    let json = place.cog(["run", "./m", "--input-json", r#"{ "code": "x = 1" }"#]).output().unwrap();
    assert!(json.status.success());
    let runs = listed(&place, &[]);
    assert_eq!((&runs[0]["input_sha256"], &runs[1]["input_sha256"]), (&json!(HASH), &json!(HASH)));
}

/// `printf '{"code":"x = 1"}' | sha256sum`
const HASH: &str = "357417a23f58e0f8fdeb70d9b710ea2a18cfd4b793a27a7f82ea15c06926467d";

#[test]
fn label_that_repeats_the_last_one_is_not_added() {
    let place = place();
    let id = run(&place, "./m", "x = 1");
    label(&place, &[&id, "right"]);
    let again = labelled(&place, &[&id, "right"]);
    assert!(
        again.status.success() && stderr(&again).contains("has this label already"),
        "{}",
        stderr(&again)
    );
    label(&place, &[&id, "wrong"]);
    label(&place, &[&id, "right"]);
    assert_eq!(place.read(LABELS).lines().count(), 3);
    // A run has at most 100 labels.
    for at in 0..97 {
        label(&place, &[&id, ["wrong", "right"][at % 2]]);
    }
    fails(&labelled(&place, &[&id, "right", "--note", "again"]), 1, "error[E4002]");
    assert_eq!(place.read(LABELS).lines().count(), 100);
}

#[test]
fn correction_must_fit_the_schema() {
    let place = place();
    let id = run(&place, "./m", "x = 1");
    place.write("answer.json", r#"{"verdict": "perhaps", "issues": [], "rationale": "r"}"#);
    fails(
        &labelled(&place, &[&id, "corrected", "--data", "answer.json"]),
        1,
        "error[E1001]: the corrected answer",
    );
    place.write("answer.json", "{");
    fails(&labelled(&place, &[&id, "corrected", "--data", "answer.json"]), 1, "error[E1000]: answer.json");
    fails(&labelled(&place, &[&id, "corrected", "--data", "nowhere.json"]), 1, "error[E1006]");
    fails(&labelled(&place, &[&id, "corrected"]), 1, "error[E1002]");
    fails(&labelled(&place, &[&id, "right", "--data", "answer.json"]), 1, "error[E1000]");
    fails(&labelled(&place, &[&id, "perhaps"]), 2, "invalid value 'perhaps'");
    fails(&labelled(&place, &["1x", "right"]), 1, "error[E1006]: the log contains no run with the ID `1x`");
    assert!(!place.path().join(LABELS).exists());
}

#[test]
fn labels_outlive_the_log_unless_the_operator_removes_them() {
    let place = place();
    let id = run(&place, "./m", "x = 1");
    label(&place, &[&id, "right"]);
    assert_eq!(stdout(&place.cog(["logs", "clear"]).output().unwrap()), "removed the log\n");
    assert_eq!(listed(&place, &[]), [Value::Null; 0]);
    label(&place, &[&id[..5], "wrong"]);
    let last: Value = serde_json::from_str(place.read(LABELS).lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["run"], &last["label"], &last["confidence"]),
        (&json!(id), &json!("wrong"), &json!(0.9))
    );
    fails(&place.cog(["logs", "show", &id]).output().unwrap(), 1, "E1006");
    let cleared = place.cog(["logs", "clear", "--labels"]).output().unwrap();
    assert_eq!(stdout(&cleared), "there is no log\nremoved the labels\n");
    fails(&labelled(&place, &[&id, "wrong"]), 1, "error[E1006]");
}

#[test]
fn people_who_label_at_once_lose_nothing() {
    const PEOPLE: usize = 8;
    let place = place();
    let id = run(&place, "./m", "x = 1");
    let notes: Vec<String> =
        (0..PEOPLE).map(|person| format!("person {person} {}", "x".repeat(1_000))).collect();
    let started: Vec<_> = notes
        .iter()
        .map(|note| {
            let mut command = place.cog(["logs", "label", &id, "wrong", "--note", note]);
            command.stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut child in started {
        assert!(child.wait().unwrap().success());
    }
    let labels = listed(&place, &[])[0]["labels"].clone();
    let mut found: Vec<&str> =
        labels.as_array().unwrap().iter().map(|label| label["note"].as_str().unwrap()).collect();
    found.sort_unstable();
    assert_eq!(found, notes);
}

#[test]
fn damaged_labels_are_skipped_and_keys_are_masked() {
    let place = place();
    let id = run(&place, "./m", "x = 1");
    label(&place, &[&id, "right"]);
    let whole = place.read(LABELS);
    place.write(LABELS, format!("\u{fffd} no label\n{whole}{}", &whole[..40]));
    let mut command = place.cog(["logs", "label", &id, "wrong", "--note", "The key is sk-canary-1."]);
    assert!(command.env("OPENAI_API_KEY", "sk-canary-1").output().unwrap().status.success());
    let labels = listed(&place, &[])[0]["labels"].clone();
    assert_eq!((labels.as_array().unwrap().len(), &labels[1]["note"]), (2, &json!("The key is ***.")));
    assert!(!place.read(LABELS).contains("canary"));
}

#[cfg(unix)]
#[test]
fn labels_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = place();
    let id = run(&place, "./m", "x = 1");
    label(&place, &[&id, "right"]);
    assert_eq!(place.path().join(LABELS).metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn run_without_contents_can_be_labelled_but_makes_no_test() {
    let place = place();
    let ran = place.cog(["run", "./m", "--args", "x = 1", "--provider", "offline"]).output().unwrap();
    assert!(ran.status.success());
    let id = listed(&place, &[])[0]["id"].as_str().unwrap().to_owned();
    label(&place, &[&id, "right"]);
    fails(&place.cog(["test", "add", "--run", &id]).output().unwrap(), 1, "is not stored");
    let shown = place.cog(["logs", "show"]).output().unwrap();
    assert!(stdout(&shown).contains("Labels"), "{}", stdout(&shown));
}

#[test]
fn review_needs_a_terminal() {
    let place = place();
    run(&place, "./m", "x = 1");
    crate::support::snapshot!("review_without_a_terminal", place.cog(["review", "./m"]));
}

fn added(place: &Place, id: &str) -> Value {
    let output = place.cog(["test", "add", "--run", id]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let name = stdout(&output).trim().to_owned();
    serde_json::from_str(&place.read(&format!("m/tests/{name}.expected.json"))).unwrap()
}

#[test]
fn labelled_runs_become_golden_tests() {
    let place = place();
    let [right, corrected, wrong, unlabelled] =
        ["a = 1", "b = 2", "c = 3", "d = 4"].map(|code| run(&place, "./m", code));
    place.write("answer.json", CORRECTED);
    label(&place, &[&right, "right"]);
    label(&place, &[&corrected, "corrected", "--data", "answer.json"]);
    label(&place, &[&wrong, "wrong"]);
    assert_eq!(added(&place, &right), json!({ "_validate": { "verdict": "approve", "issues": [] } }));
    assert_eq!(added(&place, &corrected), json!({ "_validate": { "verdict": "change", "issues": [] } }));
    let input: Value = serde_json::from_str(&place.read(&format!("m/tests/run-{right}.input.json"))).unwrap();
    assert_eq!(input, json!({ "code": "a = 1" }));
    let add = |id: &str| place.cog(["test", "add", "--run", id]).output().unwrap();
    fails(&add(&wrong), 1, "the right one is not known");
    fails(&add(&unlabelled), 1, "has no label");
    fails(&add(&right), 1, "a golden test has the input of the run");
    // The mock answers `approve` to both: one test passes, and the corrected one fails.
    let mock = Mock::start([Reply::text(REPLY)]);
    let mut test = place.cog(["test", "./m", "--case", "run-", "--provider", "openai", "--format", "json"]);
    test.env("OPENAI_API_KEY", "k").env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi)).env("LLM_MODEL", "m");
    let report = json(&test.output().unwrap());
    let mut verdicts: Vec<(String, String)> = report["modules"][0]["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| (case["name"].as_str().unwrap().to_owned(), case["verdict"].as_str().unwrap().to_owned()))
        .collect();
    let mut expected =
        [(format!("run-{right}"), "passed".to_owned()), (format!("run-{corrected}"), "failed".to_owned())];
    verdicts.sort();
    expected.sort();
    assert_eq!(verdicts, expected);
}

#[test]
fn media_of_a_run_are_copied() {
    const PIXEL: &str =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let place = Place::new();
    let created = place.cog(["new", "m", "--from", "image-analyzer", "--in", "."]).output().unwrap();
    assert!(created.status.success(), "{}", stderr(&created));
    let pixel = base64_simd::STANDARD.decode_to_vec(PIXEL).unwrap();
    place.write("a.png", &pixel);
    let mut command = place.cog(["run", "./m", "--image", "a.png", "--provider", "offline"]);
    let ran = command.env("COG_LOGS_CONTENTS", "true").output().unwrap();
    assert!(ran.status.success(), "{}", stderr(&ran));
    let id = listed(&place, &[])[0]["id"].as_str().unwrap().to_owned();
    label(&place, &[&id, "right"]);
    added(&place, &id);
    let input: Value = serde_json::from_str(&place.read(&format!("m/tests/run-{id}.input.json"))).unwrap();
    let copy = format!("tests/run-{id}-1.png");
    assert_eq!(input["images"][0]["path"], copy);
    let copied = place.path().join("m").join(copy).metadata().unwrap();
    assert_eq!(copied.len(), pixel.len() as u64);
    // A file that is gone cannot be copied, and no test is written without it.
    place.write("b.png", &pixel);
    let mut command = place.cog(["run", "./m", "--image", "b.png", "--provider", "offline"]);
    assert!(command.env("COG_LOGS_CONTENTS", "true").output().unwrap().status.success());
    let gone = listed(&place, &[])[0]["id"].as_str().unwrap().to_owned();
    label(&place, &[&gone, "right"]);
    std::fs::remove_file(place.path().join("b.png")).unwrap();
    fails(
        &place.cog(["test", "add", "--run", &gone]).output().unwrap(),
        1,
        "cannot read the media of the run",
    );
    assert!(!place.path().join(format!("m/tests/run-{gone}.input.json")).exists());
}

#[test]
fn built_in_module_gets_no_test() {
    let place = Place::new();
    let id = run(&place, "code-reviewer", "x = 1");
    label(&place, &[&id, "right"]);
    fails(&place.cog(["test", "add", "--run", &id]).output().unwrap(), 1, "is built in");
}

#[test]
fn labels_are_the_runs_of_a_calibration() {
    let place = place();
    for number in 0..12 {
        let id = run(&place, "./m", &format!("x = {number}"));
        label(&place, &[&id, if number < 9 { "right" } else { "wrong" }]);
    }
    // The same input twice is one case.
    let again = run(&place, "./m", "x = 0");
    label(&place, &[&again, "right"]);
    let insights = json(&place.cog(["insights", "./m", "--format", "json"]).output().unwrap());
    assert_eq!((&insights["runs"], &insights["labels"]), (&13.into(), &json!({ "right": 10, "wrong": 3 })));
    assert!(place.cog(["logs", "clear"]).output().unwrap().status.success());
    let report =
        json(&place.cog(["calibrate", "./m", "--from-labels", "--format", "json"]).output().unwrap());
    assert_eq!((&report["runs"], &report["cases"]), (&13.into(), &12.into()));
    assert_eq!(report["accuracy"], 0.75);
    fails(
        &place.cog(["calibrate", "code-reviewer", "--from-labels"]).output().unwrap(),
        1,
        "no labelled run",
    );
    fails(&place.cog(["calibrate", "./m"]).output().unwrap(), 1, "--provider");
    // A calibration holds for one version.
    let manifest = place.read("m/module.yaml");
    let version = manifest.lines().find(|line| line.starts_with("version:")).unwrap();
    place.write("m/module.yaml", manifest.replace(version, "version: 9.0.0"));
    let other = place.cog(["calibrate", "./m", "--from-labels"]).output().unwrap();
    fails(&other, 1, "13 labelled runs left out: of another version than 9.0.0");
}
