//! `cog test --forms`, and runs that read what it stored.

use std::process::Command;

use cog_testkit::{Mock, Reply, Wire};
use serde_json::{Value, json};

use crate::support::{Place, json as stdout_json, snapshot, stderr, stdout};

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

/// Returns a module `m` with this many golden tests, whose expected label is `a`.
fn place(cases: usize) -> Place {
    let place = Place::new();
    place.write("m/module.yaml", MANIFEST).write("m/prompt.md", "Sort $ARGUMENTS.\n");
    place.write("m/schema.json", SCHEMA);
    for case in 1..=cases {
        place.write(&format!("m/tests/case{case}.input.json"), format!(r#"{{"query": "item {case}"}}"#));
        place.write(&format!("m/tests/case{case}.expected.json"), r#"{"label": "a"}"#);
    }
    place
}

/// What only a request for an envelope contains.
const ENVELOPE: &str = "## Answer format";

fn envelope(label: &str) -> Reply {
    let meta = r#"{"confidence": 0.95, "risk": "low", "explain": "Fine."}"#;
    let text = format!(r#"{{"ok": true, "meta": {meta}, "data": {{"label": "{label}"}}, "error": null}}"#);
    Reply::text(text).usage(500, 60).when(ENVELOPE)
}

fn data(label: &str) -> Reply {
    Reply::text(json!({ "label": label }).to_string()).usage(200, 10)
}

/// Returns a model that sorts every item right in its data, and only the items 7 and 8 in an envelope.
fn better_without_envelope() -> Mock {
    Mock::start([envelope("a").when("item 7"), envelope("a").when("item 8"), envelope("b"), data("a")])
}

fn asking(place: &Place, mock: &Mock, args: &[&str]) -> Command {
    let mut command = place.cog(["test", "./m", "--forms"].into_iter().chain(args.iter().copied()));
    command.env("OPENAI_API_KEY", "sk-canary").env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    command
}

const CALLING: [&str; 4] = ["--provider", "openai", "--model", "mock-model"];

#[track_caller]
fn report(command: &mut Command) -> Value {
    let report = stdout_json(&command.args(["--format", "json"]).output().unwrap());
    report["modules"][0].clone()
}

fn forms(report: &Value) -> Vec<(&str, &Value, &Value)> {
    let forms = report["forms"].as_array().unwrap().iter();
    forms.map(|form| (form["form"].as_str().unwrap(), &form["right"], &form["answered"])).collect()
}

#[test]
fn compares_forms_on_golden_tests() {
    let (place, mock) = (place(8), better_without_envelope());
    snapshot!(asking(&place, &mock, &CALLING));
    assert_eq!(mock.request_count(), 6 * 8);
}

#[test]
fn html_report_has_the_table_and_each_case() {
    let (place, mock) = (place(2), Mock::start([envelope("b"), data("a")]));
    let page = stdout(&asking(&place, &mock, &CALLING).args(["--format", "html"]).output().unwrap());
    for part in [
        "<h2>./m on openai/mock-model: 2 golden tests</h2>",
        "<tr><td>envelope *<td>0 of 2<td>0 to 84 %<td><td>2 of 2<td>1000<td>120<td>unknown<td>",
        "<tr><td>data<td>2 of 2<td>16 to 100 %<td>+2 −0, p 0.500<td>2 of 2<td>400<td>20<td>unknown<td>",
        "<p><b>best: data, at least as often right as envelope, and cheaper</b></p>",
        "<tr><th>Case<th>envelope<th>envelope-data-first<th>data<th>data-examples<th>answer<th>answer-examples",
        ">failed</b> case2",
        "<del>-   &quot;label&quot;: &quot;a&quot;</del>",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
}

#[test]
fn best_form_is_kept_and_used_and_shown() {
    let (place, mock) = (place(8), better_without_envelope());
    let kept = report(asking(&place, &mock, &CALLING).arg("--keep"));
    assert_eq!((&kept["best"], &kept["form_in_use"]), (&json!("data"), &json!("envelope")), "{kept}");
    let stored: Value = serde_json::from_str(&place.read("m/forms.json")).unwrap();
    let entry = &stored["forms"][0];
    assert_eq!((&entry["form"], &entry["right"], &entry["cases"]), (&json!("data"), &json!(8), &json!(8)));
    let schema: Value = stdout_json(&place.cog(["schema", "forms"]).output().unwrap());
    jsonschema::draft7::validate(&schema, &stored).unwrap();
    assert!(place.cog(["validate", "./m", "--deny-warnings"]).output().unwrap().status.success());

    let render = |model: &str| {
        let args = ["render", "./m", "--args", "x", "--provider", "openai", "--model", model];
        stdout_json(&place.cog(args).env("OPENAI_API_KEY", "sk-canary").output().unwrap())
    };
    let rendered = render("mock-model");
    assert_eq!(
        (&rendered["form"], &rendered["form_reason"]),
        (
            &json!("data"),
            &json!("forms.json of the module has it for openai/mock-model: 8 of 8 golden tests right")
        )
    );
    assert_eq!(render("another")["form"], "envelope");
    // The next comparison is against the form that is in use now.
    assert_eq!(report(&mut asking(&place, &mock, &CALLING))["form_in_use"], "data");
}

#[test]
fn edited_and_outdated_entries_are_ignored_and_reported() {
    let (place, mock) = (place(2), Mock::start([envelope("b"), data("a")]));
    assert!(asking(&place, &mock, &CALLING).arg("--keep").output().unwrap().status.success());
    let kept = place.read("m/forms.json");
    let warning = || {
        let args = ["run", "./m", "--args", "x", "--provider", "openai", "--model", "mock-model"];
        let mut run = place.cog(args);
        run.env("OPENAI_API_KEY", "sk-canary").env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
        stdout_json(&run.output().unwrap())["_warnings"][0].clone()
    };
    assert_eq!(warning(), Value::Null);
    place.write("m/forms.json", kept.replace("\"data\"", "\"answer\""));
    snapshot!("edited_forms", place.cog(["validate", "./m"]));
    assert_eq!(warning()["code"], "W4025");
    place.write("m/forms.json", &kept).write("m/prompt.md", "Sort this: $ARGUMENTS\n");
    snapshot!("outdated_forms", place.cog(["validate", "./m"]));
    assert_eq!(warning()["code"], "W4025");
    place.write("m/forms.json", "{\"forms\": 1}");
    snapshot!("broken_forms", place.cog(["validate", "./m"]));
    assert_eq!(warning()["code"], "W4025");
    let before = mock.request_count();
    snapshot!("broken_forms_are_not_replaced", asking(&place, &mock, &CALLING).arg("--keep"));
    assert_eq!(mock.request_count(), before, "nothing is spent on what cannot be stored");
}

#[test]
fn forms_are_recorded_and_replayed() {
    let (place, mock) = (place(2), Mock::start([envelope("b"), data("a")]));
    let recorded = report(asking(&place, &mock, &CALLING).arg("--record"));
    drop(mock);
    assert!(place.path().join("m/tests/case2.answer.cassette").is_dir());
    let mut replay = place.cog(["test", "./m", "--forms", "--keep"]);
    let replayed = report(&mut replay);
    assert_eq!(forms(&replayed), forms(&recorded));
    assert_eq!((&replayed["provider"], &replayed["model"]), (&json!("openai"), &json!("mock-model")));
    assert!(place.read("m/forms.json").contains("\"model\": \"mock-model\""));
    std::fs::remove_dir_all(place.path().join("m/tests/case1.answer.cassette")).unwrap();
    let part = report(&mut place.cog(["test", "./m", "--forms"]));
    assert_eq!(
        part["not_measured"],
        json!([{ "form": "answer", "reason": "no model is called, and `case1` has no recording in this form" }])
    );
}

#[test]
fn forms_need_answers_of_a_model() {
    let place = place(1);
    snapshot!(place.cog(["test", "./m", "--forms"]));
    snapshot!(place.cog(["test", "./m", "--forms", "--provider", "offline"]));
}

#[test]
fn module_without_golden_tests_is_not_compared() {
    let mock = Mock::start([data("a")]);
    snapshot!(asking(&place(0), &mock, &CALLING));
    assert_eq!(mock.request_count(), 0);
}

#[test]
fn one_case_decides_little_and_says_so() {
    let (place, mock) = (place(1), Mock::start([envelope("a"), data("a")]));
    snapshot!(asking(&place, &mock, &CALLING));
}

#[test]
fn tier_exec_is_asked_for_its_confidence_only() {
    let (place, mock) = (place(2), Mock::start([envelope("a")]));
    place.write("m/module.yaml", MANIFEST.replace("decision", "exec"));
    let report = report(&mut asking(&place, &mock, &CALLING));
    let measured: Vec<_> = forms(&report).into_iter().map(|(form, ..)| form).collect();
    assert_eq!(measured, ["envelope", "envelope-data-first"]);
    assert_eq!(
        report["not_measured"][0]["reason"],
        "in tier exec, only a model that states its confidence can pass the gate"
    );
}

#[test]
fn case_without_an_answer_decides_nothing() {
    let (place, mock) = (place(2), Mock::start([envelope("a"), Reply::error(401, "Wrong key.")]));
    let output = asking(&place, &mock, &CALLING).args(["--keep", "--jobs", "1"]).output().unwrap();
    let text = stdout(&output);
    assert!(text.contains("data: 2 without a result: E4001: "), "{text}");
    assert!(text.contains("best: envelope-data-first") || text.contains("best: envelope,"), "{text}");
    let failing = Mock::start([Reply::error(401, "Wrong key.").when(ENVELOPE), data("a")]);
    let output = asking(&place, &failing, &CALLING).arg("--keep").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    assert!(text.contains("not decided: not every case has a result in envelope\n"), "{text}");
}

#[test]
fn wrong_answers_choose_no_form() {
    let (place, mock) = (place(2), Mock::start([envelope("b"), data("b")]));
    let output = asking(&place, &mock, &CALLING).arg("--keep").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("not decided: no form gives a right answer\n"), "{}", stdout(&output));
    assert!(!place.path().join("m/forms.json").exists());
}

#[test]
fn max_cost_ends_the_calls() {
    let (place, mock) = (place(2), Mock::start([envelope("a"), data("a")]));
    let unknown = report(asking(&place, &mock, &CALLING).args(["--max-cost", "1"]));
    assert_eq!((&unknown["error"]["code"], mock.request_count()), (&json!("E4002"), 0), "{unknown}");
    // An envelope costs 0.56, the data 0.21.
    place.write(
        ".config/cog/config.toml",
        "[providers.openai.prices.mock-model]\ninput = 1000\noutput = 1000\n",
    );
    let limited = report(asking(&place, &mock, &CALLING).args(["--max-cost", "2.4", "--jobs", "1"]));
    let answered: Vec<_> =
        limited["forms"].as_array().unwrap().iter().map(|it| it["answered"].clone()).collect();
    assert_eq!(answered, [2, 2, 1, 0, 0, 0], "{limited}");
    assert_eq!(limited["best"], "envelope");
}

#[test]
fn flags_that_do_not_fit_forms_are_refused() {
    let place = place(1);
    for (args, message) in [
        (&["--format", "junit"][..], "--forms reports as human, json or html"),
        (&["--provider", "openai,mistral"][..], "--forms compares the forms of one model"),
        (&["--update"][..], "cannot be used with"),
    ] {
        let output = place.cog(["test", "./m", "--forms"].iter().chain(args).copied()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
    }
    let output = place.cog(["test", "./m", "--keep"]).output().unwrap();
    assert!(stderr(&output).contains("--forms"), "{}", stderr(&output));
}

#[test]
fn modules_that_cannot_be_compared_or_kept_say_why() {
    let (place, mock) = (place(1), Mock::start([data("a")]));
    let refused = |module: &str, more: &[&str]| {
        let mut command = place.cog(["test", module, "--forms"].iter().chain(&CALLING).chain(more).copied());
        command.env("OPENAI_API_KEY", "sk-canary").env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
        report(&mut command)["error"]["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        refused("review-pipeline", &[]),
        "the parts of review-pipeline give its answer, so it is asked in no form"
    );
    assert_eq!(
        refused("task-prioritizer", &["--keep"]),
        "`task-prioritizer` is built in, so nothing can be stored with it"
    );
    assert_eq!(mock.request_count(), 0);
}

#[test]
fn named_form_is_noted_when_another_is_kept() {
    let (place, mock) = (place(2), Mock::start([envelope("b"), data("a")]));
    place.write("m/module.yaml", format!("{MANIFEST}ask: envelope\n"));
    let output = asking(&place, &mock, &CALLING).arg("--keep").output().unwrap();
    assert!(
        stderr(&output).contains("names the form `envelope`, so forms.json is not read"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn matrix_compares_the_forms_of_each_model() {
    let (place, mock) = (place(2), Mock::start([envelope("b"), data("a")]));
    let args = ["--provider", "openai", "--model", "m1,m2", "--matrix", "--keep"];
    let output = asking(&place, &mock, &args).output().unwrap();
    let text = stdout(&output);
    assert!(
        text.contains("./m on openai/m1: 2 golden tests") && text.contains("./m on openai/m2: "),
        "{text}"
    );
    assert_eq!(place.read("m/forms.json").matches("\"form\": \"data\"").count(), 2);
}
