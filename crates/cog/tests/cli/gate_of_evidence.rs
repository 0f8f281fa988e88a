//! A calibration and a gate that read the evidence about an answer, which is collected after its reply.

use std::process::{Command, Output};

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
  "data": {
    "type": "object",
    "required": ["label"],
    "properties": { "label": { "enum": ["a", "b"] }, "quote": { "type": "string" } }
  }
}"#;

/// Returns the `confidence` of a manifest with a gate.
fn gate(below: &str, evidence: &str) -> String {
    let gate = "source: calibrated, gate: {accuracy: 0.8, risk: 0.1}";
    format!("confidence: {{{gate}, below: {below}, evidence: [{evidence}]}}\n")
}

/// Returns a module `m` with this many golden tests, whose expected label is `a`.
fn place(manifest: &str, cases: usize) -> Place {
    let place = Place::new();
    place.write("m/module.yaml", format!("{MANIFEST}{manifest}")).write("m/prompt.md", "Sort $ARGUMENTS.\n");
    place.write("m/schema.json", SCHEMA);
    for case in 1..=cases {
        place.write(&format!("m/tests/case{case}.input.json"), format!(r#"{{"query": "item {case}."}}"#));
        place.write(
            &format!("m/tests/case{case}.expected.json"),
            r#"{"$validate": {"data.label": {"const": "a"}}}"#,
        );
    }
    place
}

/// An answer that states 0.7, whatever it says.
fn answer(label: &str, quote: &str) -> Reply {
    let meta = json!({"confidence": 0.7, "risk": "low", "explain": "Fine."});
    let data = json!({"label": label, "quote": quote});
    let envelope = json!({"ok": true, "meta": meta, "data": data, "error": null});
    Reply::text(envelope.to_string()).usage(100, 10)
}

/// Returns a model that is right and quotes its input, except on items whose name ends with 3: it is wrong and makes its quote up.
fn model() -> Mock {
    let wrong = ["item 3.", "item 13.", "item 23."].map(|item| answer("b", "nowhere").when(item));
    Mock::start(wrong.into_iter().chain([answer("a", "item")]))
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

fn chunks(output: &Output) -> Vec<Value> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn grounding_decides_which_answers_are_accepted() {
    let (place, mock) = (place(&gate("review", "grounding"), 30), model());
    let report = calibrate(&place, &mock, &["--evidence", "grounding", "--target", "0.8"]);
    assert_eq!((&report["accuracy"], &report["gate"]["threshold"]), (&json!(0.9), &json!(1.0)));
    let kept: Value = serde_json::from_str(&place.read("m/calibration.json")).unwrap();
    let kept = &kept["calibrations"][0];
    assert_eq!(kept["collected"], "grounding");
    assert_eq!(kept["map"]["slopes"]["grounding"], report["map"]["slope"]);

    let (code, sure) = run(&place, &mock, "item 1.", &[]);
    assert_eq!((code, codes(&sure)), (Some(0), vec![]), "{sure}");
    let meta = &sure["meta"];
    assert_eq!(meta["confidence_source"], "calibrated");
    assert_eq!(
        (&meta["evidence"]["stated"], &meta["evidence"]["grounding"]["value"]),
        (&json!(0.7), &json!(1.0))
    );
    assert_eq!((&meta["gate"]["passed"], &meta["gate"]["threshold"]), (&json!(true), &meta["confidence"]));
    let (code, unsure) = run(&place, &mock, "item 3.", &[]);
    assert_eq!(code, Some(5), "{unsure}");
    assert_eq!((codes(&unsure)[0], &unsure["meta"]["gate"]["passed"]), ("W2002", &json!(false)));
    // Evidence that is not collected is absent, not 0.
    let (code, silent) = run(&place, &mock, "item 1.", &["--evidence", "none"]);
    assert_eq!(
        (code, codes(&silent), &silent["meta"]["confidence"]),
        (Some(5), vec!["W2003", "W2002"], &json!(0.7))
    );
    assert!(
        silent["_warnings"][0]["message"].as_str().unwrap().contains("no `evidence.grounding`"),
        "{silent}"
    );
}

#[test]
fn stream_is_judged_by_the_same_evidence() {
    let manifest = format!("{}response: {{mode: both}}\n", gate("review", "grounding"));
    let (place, mock) = (place(&manifest, 30), model());
    calibrate(&place, &mock, &["--evidence", "grounding"]);
    for (query, exit) in [("item 1.", 0), ("item 3.", 5)] {
        let (code, envelope) = run(&place, &mock, query, &[]);
        let output = cog(&place, &mock, &["run", "./m", "--args", query, "--stream"]).output().unwrap();
        assert_eq!((code, output.status.code()), (Some(exit), Some(exit)), "{}", stderr(&output));
        let last = chunks(&output).pop().unwrap();
        for key in ["confidence", "confidence_source", "gate", "calibration", "evidence"] {
            assert_eq!(last["meta"][key], envelope["meta"][key], "{key} in {last}");
        }
    }
}

#[test]
fn tier_exec_compares_the_confidence_that_the_evidence_gives() {
    let place = place("confidence: {source: calibrated, evidence: [grounding]}\n", 60);
    let manifest = place.read("m/module.yaml").replace("tier: decision", "tier: exec");
    place.write("m/module.yaml", manifest);
    let mock = Mock::start([answer("b", "nowhere").when("Sort x."), answer("a", "item")]);
    let (code, refused) = run(&place, &mock, "item 1.", &[]);
    assert_eq!((code, &refused["error"]["code"]), (Some(1), &json!("E2001")), "0.7 as stated");
    assert_eq!(refused["partial_data"]["label"], "a");
    calibrate(&place, &mock, &["--evidence", "grounding"]);
    let (code, accepted) = run(&place, &mock, "item 1.", &[]);
    assert_eq!(code, Some(0), "{accepted}");
    assert!(accepted["meta"]["confidence"].as_f64().unwrap() >= 0.9, "{accepted}");
    let (code, refused) = run(&place, &mock, "x", &[]);
    assert_eq!((code, &refused["error"]["code"]), (Some(1), &json!("E2001")), "{refused}");
    assert_eq!(refused["error"]["details"]["meta"]["confidence"], 0.7, "as the model stated it");
}

/// Runs `./m` on a cheap provider, then on a strong one.
fn both(place: &Place, cheap: &Mock, strong: &Mock, args: &[&str]) -> Output {
    let run = ["run", "./m", "--args", "item 3.", "--provider", "openai,mistral", "--model", "mock-model"];
    let mut command = place.cog(run.iter().chain(args).copied());
    command.env("OPENAI_API_KEY", "sk-canary").env("OPENAI_BASE_URL", cheap.base_url(Wire::OpenAi));
    command.env("MISTRAL_API_KEY", "sk-canary").env("MISTRAL_BASE_URL", strong.base_url(Wire::OpenAi));
    command.output().unwrap()
}

#[test]
fn answer_with_weak_evidence_is_asked_of_the_next_provider() {
    let manifest = format!("{}response: {{mode: both}}\n", gate("next", "grounding"));
    let (place, cheap) = (place(&manifest, 30), model());
    let strong = Mock::start([answer("a", "item")]);
    calibrate(&place, &cheap, &["--evidence", "grounding"]);
    let output = both(&place, &cheap, &strong, &[]);
    let sync = stdout_json(&output);
    // The last provider has no calibration, so its answer is to be reviewed.
    assert_eq!((output.status.code(), &sync["data"]["label"]), (Some(5), &json!("a")), "{sync}");
    assert_eq!((cheap.request_count(), strong.request_count()), (31, 1));
    let meta = &sync["meta"];
    assert_eq!(meta["fallbacks"].as_array().unwrap().len(), 1);
    assert_eq!(
        (&meta["fallbacks"][0]["provider"], &meta["fallbacks"][0]["code"]),
        (&json!("openai"), &json!("E2001"))
    );
    assert_eq!((&meta["usage"]["input_tokens"], &meta["attempts"]), (&json!(200), &json!(2)));
    assert_eq!(meta["evidence"]["grounding"]["value"], 1.0, "of the answer that counts");

    let streamed = both(&place, &cheap, &strong, &["--stream"]);
    let chunks = chunks(&streamed);
    assert_eq!(streamed.status.code(), Some(5));
    let numbers: Vec<u64> = chunks.iter().filter_map(|chunk| chunk["chunk"]["seq"].as_u64()).collect();
    assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "{numbers:?}");
    let resets = chunks
        .iter()
        .filter(|chunk| chunk["chunk"]["type"] == "snapshot" && chunk["chunk"]["data"] == json!({}));
    assert_eq!(resets.count(), 1, "{chunks:?}");
    assert_eq!(chunks.iter().filter(|chunk| chunk["streaming"] == true).count(), 1, "{chunks:?}");
    let last = chunks.last().unwrap();
    assert_eq!((&last["data"], &last["meta"]["fallbacks"]), (&sync["data"], &meta["fallbacks"]));
    assert_eq!((&last["usage"], &last["meta"]["gate"]), (&meta["usage"], &meta["gate"]));
}

#[test]
fn answer_before_an_unreachable_provider_is_kept_with_its_cost() {
    let (place, cheap) = (place(&gate("next", "grounding"), 30), model());
    let strong = Mock::start([Reply::error(401, "no")]);
    calibrate(&place, &cheap, &["--evidence", "grounding"]);
    let envelope = stdout_json(&both(&place, &cheap, &strong, &[]));
    assert_eq!(
        (&envelope["ok"], &envelope["partial_data"]["label"]),
        (&json!(false), &json!("b")),
        "{envelope}"
    );
    assert!(envelope["error"]["message"].as_str().unwrap().contains("E2001"), "{envelope}");
    assert_eq!(envelope["meta"]["fallbacks"][0]["provider"], "openai");
    assert_eq!(envelope["meta"]["usage"]["input_tokens"], 100);
}

#[test]
fn answer_with_weak_evidence_can_be_refused_or_escalated() {
    let (refusing, cheap) = (place(&gate("fail", "grounding"), 30), model());
    calibrate(&refusing, &cheap, &["--evidence", "grounding"]);
    let (code, refused) = run(&refusing, &cheap, "item 3.", &[]);
    assert_eq!((code, &refused["error"]["code"]), (Some(1), &json!("E2001")));
    assert_eq!(
        (&refused["partial_data"]["label"], &refused["error"]["details"]["gate"]["passed"]),
        (&json!("b"), &json!(false))
    );
    // Escalation is about every answer that fails with E2001.
    let strong = Mock::start([answer("a", "item")]);
    let escalated = stdout_json(&both(&refusing, &cheap, &strong, &["--escalate"]));
    assert_eq!(strong.request_count(), 1, "{escalated}");
    assert_eq!(escalated["error"]["code"], "E2001", "the strong one has no calibration");
    assert_eq!(escalated["partial_data"]["label"], "a");
}

#[test]
fn calibration_collects_the_agreement_that_it_is_for() {
    let (place, mock) = (place(&gate("review", "agreement=3"), 4), model());
    let report = calibrate(&place, &mock, &["--evidence", "agreement"]);
    assert_eq!((&report["cases"], mock.request_count()), (&json!(4), 12), "three runs of each case");
    // Below 50 cases, the share of equal answers is taken as it is.
    assert_eq!((&report["map"]["intercept"], &report["map"]["slope"]), (&json!(0.0), &json!(1.0)));
    let (_, run_of_3) = run(&place, &mock, "item 1.", &[]);
    assert_eq!(run_of_3["meta"]["confidence"], 0.995, "three of three, and nothing is certain");
    let (code, other) = run(&place, &mock, "item 1.", &["--evidence", "agreement=2"]);
    assert_eq!((code, &other["meta"]["calibration"]["stale"]), (Some(5), &json!(true)), "{other}");
}

#[test]
fn agreement_of_the_answer_that_counts_decides() {
    let place = place(&gate("review", "agreement=3"), 1);
    let line = |case: u32, agreement: f64, right: bool| {
        format!("{{\"case\": {case}, \"evidence\": {{\"agreement\": {agreement}}}, \"right\": {right}}}\n")
    };
    let lines: String = (0..40)
        .map(|case| if case < 30 { line(case, 1.0, true) } else { line(case, 0.6667, false) })
        .collect();
    place.write("runs.jsonl", lines);
    calibrate(&place, &model(), &["--runs", "runs.jsonl", "--evidence", "agreement", "--write"]);
    let (code, sure) = run(&place, &Mock::start([answer("a", "item")]), "item 1.", &[]);
    assert_eq!((code, &sure["meta"]["confidence"]), (Some(0), &json!(0.995)), "{sure}");
    // One of three runs has another answer, and it may be the one whose chunks are shown.
    let mock = Mock::start([answer("b", "item"), answer("a", "item"), answer("a", "item")]);
    let (code, unsure) = run(&place, &mock, "item 1.", &[]);
    assert_eq!((code, &unsure["data"]["label"]), (Some(5), &json!("a")), "{unsure}");
    let meta = &unsure["meta"];
    assert_eq!((&meta["confidence"], &meta["gate"]["passed"]), (&json!(0.6667), &json!(false)), "{unsure}");
    assert_eq!((&meta["usage"]["input_tokens"], &meta["attempts"]), (&json!(300), &json!(3)));
}

#[test]
fn only_the_kinds_that_help_enter_the_map() {
    let (place, mock) = (place(&gate("review", "grounding"), 60), model());
    let report = calibrate(&place, &mock, &["--evidence", "stated,grounding"]);
    // Every answer states 0.7, which sorts nothing.
    let trials = report["cross_validation"].as_array().unwrap();
    let chosen: Vec<&Value> = trials.iter().filter(|trial| trial["chosen"] == true).collect();
    assert_eq!((chosen.len(), &chosen[0]["evidence"]), (1, &json!(["grounding"])), "{report}");
    let kept: Value = serde_json::from_str(&place.read("m/calibration.json")).unwrap();
    let slopes = kept["calibrations"][0]["map"]["slopes"].as_object().unwrap();
    assert!(slopes.keys().eq(["grounding"]), "{slopes:?}");
}

#[test]
fn two_kinds_that_help_are_named_with_their_slopes() {
    let place = place(&gate("review", "grounding"), 1);
    // A wrong answer is unsure, or not grounded, or both; each kind alone overlooks some.
    let mut lines = String::new();
    for case in 0..200 {
        let (stated, grounding, right) = match case % 8 {
            0 => (0.55, 1.0, false),
            1 => (0.95, 0.2, false),
            2 => (0.55, 0.2, false),
            _ => (0.95, 1.0, true),
        };
        lines += &format!(
            "{{\"case\": {case}, \"confidence\": {stated}, \"evidence\": {{\"grounding\": {grounding}}}, \"right\": {right}}}\n"
        );
    }
    place.write("runs.jsonl", &lines);
    let args = ["--runs", "runs.jsonl", "--evidence", "grounding,stated", "--write", "--target", "0.9"];
    let mock = model();
    let report = calibrate(&place, &mock, &args);
    assert!(report["map"]["slopes"]["grounding"].as_f64().unwrap() > 0.0, "{report}");
    assert!(report["map"]["slopes"]["stated"].as_f64().unwrap() > 0.0, "{report}");
    assert!(report["gate"]["accepted"].as_u64().unwrap() >= 125, "{report}");
    assert!(report["auroc"]["value"].as_f64().unwrap() > 0.99, "{report}");
    let confidence = |quote: &str| {
        let (_, envelope) = run(&place, &Mock::start([answer("a", quote)]), "item 1.", &[]);
        assert_eq!(envelope["meta"]["confidence_source"], "calibrated", "{envelope}");
        envelope["meta"]["confidence"].as_f64().unwrap()
    };
    assert!(confidence("item") > confidence("nowhere") + 0.2);
    // A line without one of the kinds is refused, not read as 0.
    place.write("recent.jsonl", "{\"confidence\": 0.9}\n");
    let check = place.cog(["calibrate", "./m", "--check", "--runs", "recent.jsonl"]).output().unwrap();
    assert!(stderr(&check).contains("`evidence.grounding` is missing"), "{}", stderr(&check));
    place.write("same.jsonl", &lines);
    let check = place.cog(["calibrate", "./m", "--check", "--runs", "same.jsonl"]).output().unwrap();
    assert_eq!(check.status.code(), Some(0), "{}", stderr(&check));
    assert_eq!(mock.request_count(), 0);
}
