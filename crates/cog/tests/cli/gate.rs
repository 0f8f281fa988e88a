//! `cog calibrate` on a provider, the gate of a run, and providers that are asked after a bad answer.

use std::process::Command;

use cog_testkit::{Mock, Reply, Wire};
use serde_json::{Value, json};

use crate::support::{Place, json as stdout_json, stderr};

const MANIFEST: &str = "\
name: m
version: 1.0.0
responsibility: Sort messages
excludes: [guessing]
tier: decision
rationale: optional
";

const SCHEMA: &str = r#"{
  "input": { "type": "object", "required": ["query"], "properties": { "query": { "type": "string" } } },
  "data": { "type": "object", "required": ["label"], "properties": { "label": { "enum": ["a", "b"] } } }
}"#;

const GATE: &str = "confidence: {source: calibrated, gate: {accuracy: 0.8, risk: 0.1}, below: review}\n";

/// Returns a module `m` with this many golden tests, whose expected label is `a`.
fn place(manifest: &str, cases: usize) -> Place {
    let place = Place::new();
    place.write("m/module.yaml", format!("{MANIFEST}{manifest}")).write("m/prompt.md", "Sort $ARGUMENTS.\n");
    place.write("m/schema.json", SCHEMA);
    for case in 1..=cases {
        place.write(&format!("m/tests/case{case}.input.json"), format!(r#"{{"query": "item {case}."}}"#));
        place.write(&format!("m/tests/case{case}.expected.json"), r#"{"label": "a"}"#);
    }
    place
}

fn answer(label: &str, confidence: f64) -> Reply {
    let meta = json!({"confidence": confidence, "risk": "low", "explain": "Fine."});
    let envelope = json!({"ok": true, "meta": meta, "data": {"label": label}, "error": null});
    Reply::text(envelope.to_string()).usage(100, 10)
}

/// Returns a model that is right and sure, except on items whose name ends with 3: it is wrong and less sure.
fn model() -> Mock {
    let mut replies: Vec<Reply> = Vec::new();
    for item in ["item 3.", "item 13.", "item 23."] {
        replies.push(answer("b", 0.6).when(item));
    }
    replies.push(answer("a", 0.95));
    Mock::start(replies)
}

fn cog(place: &Place, mock: &Mock, args: &[&str]) -> Command {
    let mut command = place.cog(args.iter().copied());
    command.env("OPENAI_API_KEY", "sk-canary").env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    command.args(["--provider", "openai", "--model", "mock-model"]);
    command
}

fn calibrate(place: &Place, mock: &Mock, args: &[&str]) -> Value {
    let output =
        cog(place, mock, &[&["calibrate", "./m", "--format", "json"][..], args].concat()).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    stdout_json(&output)
}

fn run(place: &Place, mock: &Mock, query: &str, args: &[&str]) -> (Option<i32>, Value) {
    let output = cog(place, mock, &[&["run", "./m", "--args", query][..], args].concat()).output().unwrap();
    (output.status.code(), stdout_json(&output))
}

fn codes(envelope: &Value) -> Vec<&str> {
    let warnings = envelope["_warnings"].as_array().map(Vec::as_slice).unwrap_or_default();
    warnings.iter().map(|warning| warning["code"].as_str().unwrap()).collect()
}

#[test]
fn calibration_decides_which_answers_are_accepted() {
    let (place, mock) = (place(GATE, 30), model());
    let report = calibrate(&place, &mock, &["--target", "0.8"]);
    assert_eq!((&report["cases"], &report["accuracy"]), (&json!(30), &json!(0.9)));
    assert_eq!(report["gate"]["threshold"], 0.95);
    assert_eq!(mock.request_count(), 30);

    let (code, sure) = run(&place, &mock, "item 1.", &[]);
    assert_eq!((code, codes(&sure)), (Some(0), vec![]));
    let meta = &sure["meta"];
    assert_eq!(
        (&meta["confidence_source"], &meta["evidence"]["stated"]),
        (&json!("calibrated"), &json!(0.95))
    );
    // The exact interval of 27 of 30, by scipy.stats.binomtest(27, 30).proportion_ci(method="exact").
    let calibration = json!({"cases": 30, "accuracy": 0.9, "interval": [0.7347, 0.9789], "stale": false});
    assert_eq!(meta["calibration"], calibration);
    assert_eq!((&meta["gate"]["accuracy"], &meta["gate"]["passed"]), (&json!(0.8), &json!(true)));
    assert_eq!(meta["gate"]["threshold"], meta["confidence"]);

    let (code, unsure) = run(&place, &mock, "item 3.", &[]);
    // The calibrated confidence is also low for tier decision.
    assert_eq!((code, codes(&unsure)), (Some(5), vec!["W2002", "W2001"]));
    assert_eq!((&unsure["ok"], &unsure["meta"]["gate"]["passed"]), (&json!(true), &json!(false)));
}

#[test]
fn stream_says_the_same_as_the_envelope() {
    let (place, mock) = (place(&format!("{GATE}response: {{mode: both}}\n"), 30), model());
    calibrate(&place, &mock, &[]);
    for (query, exit) in [("item 1.", 0), ("item 3.", 5)] {
        let (code, envelope) = run(&place, &mock, query, &[]);
        let output = cog(&place, &mock, &["run", "./m", "--args", query, "--stream"]).output().unwrap();
        assert_eq!((code, output.status.code()), (Some(exit), Some(exit)), "{}", stderr(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        for key in ["confidence", "confidence_source", "gate", "calibration", "evidence"] {
            assert_eq!(last["meta"][key], envelope["meta"][key], "{key} in {last}");
        }
    }
}

#[test]
fn changed_module_is_no_longer_measured() {
    let (place, mock) = (place(GATE, 30), model());
    calibrate(&place, &mock, &[]);
    place.write("m/prompt.md", "Sort this: $ARGUMENTS.\n");
    let (code, envelope) = run(&place, &mock, "item 1.", &[]);
    assert_eq!((code, codes(&envelope)), (Some(5), vec!["W2003", "W2002"]));
    assert_eq!(
        (&envelope["meta"]["confidence"], &envelope["meta"]["calibration"]["stale"]),
        (&json!(0.95), &json!(true))
    );
    let check = place.cog(["calibrate", "./m", "--check"]).output().unwrap();
    assert_eq!(check.status.code(), Some(1), "{}", stderr(&check));
    let problem = stdout_json(&check)["calibrations"][0]["problems"][0].clone();
    assert_eq!(problem, "stale: manifest, prompt or schema has changed since");
}

#[test]
fn check_finds_too_few_cases_and_drift() {
    let (place, mock) = (place(GATE, 30), model());
    calibrate(&place, &mock, &[]);
    let check = |args: &[&str]| {
        let output = place.cog([&["calibrate", "./m", "--check"][..], args].concat()).output().unwrap();
        (output.status.code(), stdout_json(&output))
    };
    assert_eq!(check(&[]).0, Some(0));
    let (code, strict) = check(&["--target", "0.95"]);
    let problem = strict["calibrations"][0]["problems"][0].as_str().unwrap();
    assert!(code == Some(1) && problem.starts_with("too few cases: "), "{problem}");
    let lines = |confidence: f64| format!("{{\"confidence\": {confidence}}}\n").repeat(30);
    place.write("same.jsonl", lines(0.95)).write("lower.jsonl", lines(0.6));
    assert_eq!(check(&["--runs", "same.jsonl"]).0, Some(0));
    let (code, lower) = check(&["--runs", "lower.jsonl"]);
    let problem = lower["calibrations"][0]["problems"][0].as_str().unwrap();
    assert!(code == Some(1) && problem.starts_with("drifted: "), "{problem}");
}

#[test]
fn cases_that_cannot_calibrate_are_reported_before_a_call() {
    let mock = model();
    let failed = |place: &Place, args: &[&str]| {
        let output = cog(place, &mock, &[&["calibrate", "./m"][..], args].concat()).output().unwrap();
        assert!(matches!(output.status.code(), Some(1 | 2)), "{:?}", output.status);
        stderr(&output)
    };
    let text = failed(&place("", 0), &[]);
    assert!(text.contains("E1006") && text.contains("has no golden tests"), "{text}");
    let broken = place("", 2);
    broken.write("m/tests/case2.expected.json", r#"{"label": "c"}"#);
    let text = failed(&broken, &[]);
    assert!(text.contains("case2.expected.json") && text.contains("data.label"), "{text}");
    let contradicting = place("", 2);
    contradicting.write("m/tests/case2.input.json", r#"{"query": "item 1."}"#);
    contradicting.write("m/tests/case2.expected.json", r#"{"label": "b"}"#);
    let text = failed(&contradicting, &[]);
    assert!(text.contains("`case1` has the same input and another truth"), "{text}");
    let edited = place("", 1);
    edited.write("m/calibration.json", "{\"version\": 7}");
    let text = failed(&edited, &[]);
    assert!(text.contains("has version 7"), "{text}");
    assert_eq!(mock.request_count(), 0, "nothing is spent on what cannot be stored");
}

#[test]
fn few_equal_and_unanswered_cases() {
    let one = place("", 1);
    let report = calibrate(&one, &model(), &["--target", "0.9"]);
    assert_eq!((&report["cases"], &report["gate"]["needed"]), (&json!(1), &json!(21)));
    let wrong = place("", 3);
    let report = calibrate(&wrong, &Mock::start([answer("b", 1.0)]), &["--target", "0.9"]);
    assert_eq!((&report["accuracy"], &report["gate"]["threshold"]), (&json!(0.0), &Value::Null));
    // An answer that does not exist has no confidence, so it is left out.
    let partly = place("", 3);
    let mock = Mock::start([Reply::text("I cannot.").when("item 2."), answer("a", 0.0)]);
    let output = cog(&partly, &mock, &["calibrate", "./m", "--format", "json"]).output().unwrap();
    assert_eq!(stdout_json(&output)["cases"], 2);
    assert!(stderr(&output).contains("left out: case2: E1000"), "{}", stderr(&output));
}

#[test]
fn built_in_module_is_calibrated_in_the_state_directory() {
    let (place, mock) = (Place::new(), Mock::start([answer("a", 0.9)]));
    place.write("runs.jsonl", "{\"case\": 1, \"confidence\": 0.9, \"right\": true}\n");
    let args = ["calibrate", "code-reviewer", "--runs", "runs.jsonl", "--write"];
    let output = cog(&place, &mock, &args).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let stored = place.read(".local/state/cog/calibrations/code-reviewer.json");
    assert!(stored.contains("mock-model"), "{stored}");
    let check = place.cog(["calibrate", "code-reviewer", "--check"]).output().unwrap();
    assert_eq!(check.status.code(), Some(0), "{}", stderr(&check));
    assert_eq!(mock.request_count(), 0);
}

#[test]
fn tier_exec_compares_the_measured_confidence() {
    let place = place("confidence: {source: calibrated}\n", 30);
    let manifest = place.read("m/module.yaml").replace("tier: decision", "tier: exec");
    place.write("m/module.yaml", manifest);
    // It states 0.7 and is always right.
    let mock = Mock::start([answer("a", 0.7)]);
    let (code, refused) = run(&place, &mock, "x", &[]);
    assert_eq!((code, &refused["error"]["code"]), (Some(1), &json!("E2001")));
    let report = calibrate(&place, &mock, &[]);
    assert_eq!((&report["cases"], &report["accuracy"]), (&json!(30), &json!(1.0)));
    let (code, accepted) = run(&place, &mock, "x", &[]);
    assert_eq!(code, Some(0), "{accepted}");
    assert!(accepted["meta"]["confidence"].as_f64().unwrap() >= 0.9, "{accepted}");
}

// Another provider after a bad answer.

/// Runs `./m` on a cheap provider, then on a strong one.
fn both(place: &Place, cheap: &Mock, strong: &Mock, args: &[&str]) -> Command {
    let run = ["run", "./m", "--args", "item 1.", "--provider", "openai,mistral", "--model", "mock-model"];
    let mut command = place.cog(run.iter().chain(args).copied());
    command.env("OPENAI_API_KEY", "sk-canary").env("OPENAI_BASE_URL", cheap.base_url(Wire::OpenAi));
    command.env("MISTRAL_API_KEY", "sk-canary").env("MISTRAL_BASE_URL", strong.base_url(Wire::OpenAi));
    command
}

#[test]
fn bad_answer_is_asked_of_the_next_provider() {
    let place = place("", 0);
    let (cheap, strong) = (Mock::start([answer("c", 0.9)]), Mock::start([answer("a", 0.9)]));
    let stays = stdout_json(&both(&place, &cheap, &strong, &[]).output().unwrap());
    assert_eq!((&stays["error"]["code"], strong.request_count()), (&json!("E3005"), 0));

    let output = both(&place, &cheap, &strong, &["--escalate"]).output().unwrap();
    let envelope = stdout_json(&output);
    assert_eq!((output.status.code(), &envelope["data"]["label"]), (Some(0), &json!("a")), "{envelope}");
    assert_eq!((cheap.request_count(), strong.request_count()), (4, 1), "two attempts each, then one");
    let meta = &envelope["meta"];
    assert_eq!(meta["attempts"], 3);
    assert_eq!(
        (&meta["fallbacks"][0]["provider"], &meta["fallbacks"][0]["code"]),
        (&json!("openai"), &json!("E3005"))
    );
    assert_eq!((&meta["usage"]["input_tokens"], &meta["usage"]["output_tokens"]), (&json!(300), &json!(30)));
}

#[test]
fn manifest_may_escalate_and_the_stream_resets_once() {
    let place = place("failure: {escalate: true}\nresponse: {mode: both, max_attempts: 1}\n", 0);
    let (cheap, strong) = (Mock::start([answer("c", 0.9)]), Mock::start([answer("a", 0.9)]));
    let sync = stdout_json(&both(&place, &cheap, &strong, &[]).output().unwrap());
    let output = both(&place, &cheap, &strong, &["--stream"]).output().unwrap();
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let chunks: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let resets = chunks
        .iter()
        .filter(|chunk| chunk["chunk"]["type"] == "snapshot" && chunk["chunk"]["data"] == json!({}));
    assert_eq!(resets.count(), 1, "{text}");
    let last = chunks.last().unwrap();
    assert_eq!(
        (&last["data"], &last["meta"]["fallbacks"]),
        (&sync["data"], &sync["meta"]["fallbacks"]),
        "{text}"
    );
    assert_eq!(last["usage"], sync["meta"]["usage"]);
}

#[test]
fn answer_below_the_gate_is_asked_of_the_next_provider() {
    let place = place(&GATE.replace("review", "next"), 0);
    let (cheap, strong) = (Mock::start([answer("b", 0.6)]), Mock::start([answer("a", 0.9)]));
    let output = both(&place, &cheap, &strong, &[]).output().unwrap();
    let envelope = stdout_json(&output);
    // The last provider has no calibration either, so its answer is to be reviewed.
    assert_eq!((output.status.code(), &envelope["data"]["label"]), (Some(5), &json!("a")), "{envelope}");
    assert_eq!((cheap.request_count(), strong.request_count()), (1, 1));
    assert_eq!(envelope["meta"]["fallbacks"][0]["code"], "E2001");
}

#[test]
fn answer_before_an_unreachable_provider_is_kept() {
    let place = place(&GATE.replace("review", "next"), 0);
    let (cheap, strong) = (Mock::start([answer("b", 0.6)]), Mock::start([Reply::error(401, "no")]));
    let envelope = stdout_json(&both(&place, &cheap, &strong, &[]).output().unwrap());
    assert_eq!(
        (&envelope["ok"], &envelope["partial_data"]["label"]),
        (&json!(false), &json!("b")),
        "{envelope}"
    );
    assert!(envelope["error"]["message"].as_str().unwrap().contains("E2001"), "{envelope}");
}

#[test]
fn error_of_the_model_is_an_answer() {
    let place = place("", 0);
    let error = json!({"ok": false, "meta": {"confidence": 0.9, "risk": "low", "explain": "No."},
        "error": {"code": "E2004", "message": "There is nothing to do."}, "data": null});
    let (cheap, strong) = (Mock::start([Reply::text(error.to_string())]), Mock::start([answer("a", 0.9)]));
    let envelope = stdout_json(&both(&place, &cheap, &strong, &["--escalate"]).output().unwrap());
    assert_eq!((&envelope["error"]["code"], strong.request_count()), (&json!("E2004"), 0), "{envelope}");
}

#[test]
fn cascade_shows_what_each_threshold_gives() {
    let place = place("", 10);
    let (cheap, strong) = (model(), Mock::start([answer("a", 0.9)]));
    let mut command = place.cog(["test", "./m", "--cascade", "openai,mistral", "--format", "json"]);
    command.env("OPENAI_API_KEY", "sk-canary").env("OPENAI_BASE_URL", cheap.base_url(Wire::OpenAi));
    command.env("MISTRAL_API_KEY", "sk-canary").env("MISTRAL_BASE_URL", strong.base_url(Wire::OpenAi));
    let output = command.output().unwrap();
    // The cheap model is wrong once, which is no failure of a cascade.
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = stdout_json(&output);
    let rows = report["cascades"][0]["rows"].as_array().unwrap();
    let shown: Vec<_> = rows
        .iter()
        .map(|row| {
            let number = |key: &str| row[key].as_u64().unwrap();
            (row["accepts"].as_str().unwrap(), row["threshold"].as_f64(), number("by_first"), number("right"))
        })
        .collect();
    let expected = [
        ("first", None, 10, 9),
        ("from", Some(0.6), 10, 9),
        ("from", Some(0.95), 9, 10),
        ("last", None, 0, 10),
    ];
    assert_eq!(shown, expected, "{report}");
    assert_eq!((cheap.request_count(), strong.request_count()), (10, 10));
}
