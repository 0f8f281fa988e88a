use std::process::Command;

use cog_testkit::{Mock, Reply, Wire, as_newcomer};
use serde_json::Value;

use crate::{
    golden::{goldens, replies, shipped},
    support::{Place, json, snapshot, stderr, stdout},
};

/// A module with one golden test and its expected file.
fn place(expected: &str) -> Place {
    let place = Place::new();
    let new = place.cog(["new", "m", "--in", "."]).output().unwrap();
    assert!(new.status.success());
    for rest in ["input", "expected"] {
        std::fs::remove_file(place.path().join(format!("m/tests/case2.{rest}.json"))).unwrap();
    }
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
    for part in [r#"<testsuite name="./m" tests="1""#, r#" classname="./m""#, "<failure message="] {
        assert!(xml.contains(part), "{part} in {xml}");
    }
}

#[test]
fn different_answer_as_annotation_for_github() {
    let answer = r#"{"answer": "Bad.\n::warning::x", "rationale": "It is."}"#;
    let (place, mock) = (place(DATA), Mock::start([reply(answer)]));
    snapshot!(asking(&place, &mock, &["--provider", "openai", "--model", "m", "--format", "github"]));
    snapshot!(place.cog(["test", "./m", "--require-model", "--format", "github"]));
}

#[test]
fn replays_recording_without_key() {
    let (place, mock) = (place(DATA), Mock::start([reply(DATA)]));
    let record = ["--provider", "openai", "--model", "m", "--record"];
    assert!(asking(&place, &mock, &record).output().unwrap().status.success());
    drop(mock);
    let report = json(&place.cog(["test", "./m", "--format", "json"]).output().unwrap());
    assert_eq!((&report["passed"], &report["contract_only"]), (&1.into(), &0.into()), "{report}");
}

#[test]
fn recording_is_replayed_after_a_checkout_with_other_line_endings() {
    let (place, mock) = (place(DATA), Mock::start([reply(DATA)]));
    let record = ["--provider", "openai", "--model", "m", "--record"];
    assert!(asking(&place, &mock, &record).output().unwrap().status.success());
    drop(mock);
    for file in
        ["prompt.md", "module.yaml", "schema.json", "tests/case1.input.json", "tests/case1.expected.json"]
    {
        let path = format!("m/{file}");
        place.write(&path, place.read(&path).replace('\n', "\r\n"));
    }
    let report = json(&place.cog(["test", "./m", "--format", "json"]).output().unwrap());
    assert_eq!(report["passed"], 1, "{report}");
    assert!(place.read("m/.gitattributes").contains("*.cassette -text"));
}

/// The commands of "Continuous integration" in docs/testing.md, in the environment of a job that has no key.
#[test]
fn recordings_are_replayed_by_a_job_that_has_no_settings() {
    let (place, mock) = (place(DATA), Mock::start([reply(DATA)]));
    let record = ["--provider", "openai", "--model", "m", "--record"];
    assert!(asking(&place, &mock, &record).output().unwrap().status.success());
    drop(mock);
    crate::support::copy(&place.path().join("m"), &place.path().join("cognitive/modules/m"));
    let job = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cog"));
        let command = as_newcomer(&mut command, place.path()).current_dir(place.path());
        let output = command.args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
    };
    job(&["validate", "--all"]);
    job(&["test", "--all", "--require-model", "--format", "junit", "-o", "report.xml"]);
    assert!(place.read("report.xml").contains(r#"tests="1" failures="0""#), "{}", place.read("report.xml"));
    job(&["test", "m", "--require-model", "--repeat", "3", "--jobs", "2"]);
    job(&["run", "m", "--args", "x"]);
}

#[test]
fn provider_of_the_settings_is_recorded() {
    let (place, mock) = (place(DATA), Mock::start([reply(DATA)]));
    let mut record = asking(&place, &mock, &["--record"]);
    let output = record.env("LLM_PROVIDER", "openai").output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("recording openai"), "{}", stderr(&output));
    let mut offline = asking(&place, &mock, &["--record"]);
    let output = offline.env_remove("OPENAI_API_KEY").env("LLM_PROVIDER", "offline").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("--record requires a provider"), "{}", stderr(&output));
}

#[test]
fn recording_of_another_request_advises_to_record_again() {
    let (place, mock) = (place(DATA), Mock::start([reply(DATA)]));
    let record = ["--provider", "openai", "--model", "m", "--record"];
    assert!(asking(&place, &mock, &record).output().unwrap().status.success());
    place.write("m/prompt.md", "Another prompt: $ARGUMENTS");
    snapshot!(place.cog(["test", "./m"]));
}

#[test]
fn cost_of_all_cases_is_in_the_report() {
    let report = |second: &str| {
        let replies = ["gpt-6-luna", second].map(|model| reply(DATA).model(model).usage(1_000, 100));
        let (place, mock) = (place(DATA), Mock::start(replies));
        place.write("m/tests/case2.input.json", place.read("m/tests/case1.input.json"));
        place.write("m/tests/case2.expected.json", DATA);
        let flags = ["--provider", "openai", "--record", "--jobs", "1", "--format", "json"];
        let gateway = asking(&place, &mock, &flags);
        let report = json(&{ gateway }.output().unwrap());
        assert_eq!((&report["passed"], &report["cost"]), (&2.into(), &Value::Null), "{report}");
        drop(mock);
        place.cog(["test", "./m", "--format", "json"]).output().unwrap()
    };
    let both = json(&report("gpt-6-luna"));
    assert_eq!(both["modules"][0]["cases"][0]["usage"]["cost"]["amount"], 0.00015);
    assert_eq!(both["cost"]["amount"], 0.0003);
    let one = json(&report("mock-model"));
    assert_eq!(one["modules"][0]["cases"][0]["usage"]["cost"]["currency"], "USD");
    assert_eq!((&one["modules"][0]["cases"][1]["usage"]["cost"], &one["cost"]), (&Value::Null, &Value::Null));
}

#[test]
fn text_report_ends_with_tokens_and_cost() {
    let replies = [reply(DATA).model("gpt-6-luna").usage(1_000, 100)];
    let (place, mock) = (place(DATA), Mock::start(replies));
    let gateway = stdout(&asking(&place, &mock, &["--provider", "openai", "--record"]).output().unwrap());
    assert!(gateway.contains("1 passed · 1000 input and 100 output tokens\n"), "{gateway}");
    drop(mock);
    let text = stdout(&place.cog(["test", "./m"]).output().unwrap());
    assert!(text.contains("1 passed · 1000 input and 100 output tokens · $0.000150\n"), "{text}");
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
    assert!(stdout(&output).contains("--update: the expected file contains rules, so it is not replaced"));
}

#[test]
fn case_name_that_matches_nothing_is_an_error() {
    snapshot!(place(DATA).cog(["test", "./m", "--case", "nothing"]));
}

#[test]
fn module_without_cases_fails_unless_all_are_tested() {
    let place = place(DATA);
    std::fs::remove_dir_all(place.path().join("m/tests")).unwrap();
    snapshot!(place.cog(["test", "./m"]));
}

#[test]
fn require_model_fails_a_case_that_no_model_answered() {
    let output = place(DATA).cog(["test", "./m", "--require-model"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
}

#[test]
fn repeated_case_passes_if_every_run_passes() {
    let bad = r#"{"answer": "Bad.", "rationale": "It is."}"#;
    let (place, mock) = (place(DATA), Mock::start([reply(DATA), reply(bad), reply(DATA)]));
    let args = ["--provider", "openai", "--repeat", "3", "--jobs", "1", "--format", "json"];
    let output = asking(&place, &mock, &args).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let case = &json(&output)["modules"][0]["cases"][0];
    assert_eq!(
        (&case["verdict"], &case["runs"], &case["passed_runs"]),
        (&"failed".into(), &3.into(), &2.into())
    );
    assert_eq!(
        (&case["min_confidence"], &case["answer"]["answer"]),
        (&0.95.into(), &"Bad.".into()),
        "{case}"
    );
    assert_eq!(case["usage"]["output_tokens"], 21);
}

#[test]
fn matrix_runs_every_case_on_every_provider() {
    let bad = r#"{"answer": "Bad.", "rationale": "It is."}"#;
    let (place, mock) = (place(DATA), Mock::start([reply(DATA), reply(bad)]));
    let args = ["--provider", "openai,mistral", "--matrix", "--jobs", "1"];
    let mut command = asking(&place, &mock, &args);
    command.env("MISTRAL_API_KEY", "sk-canary").env("MISTRAL_BASE_URL", mock.base_url(Wire::OpenAi));
    snapshot!(command);
}

#[test]
fn each_provider_of_a_matrix_can_have_a_model() {
    let (place, mock) = (place(DATA), Mock::start([reply(DATA), reply(DATA), reply(DATA)]));
    let run = || {
        let mut command = asking(&place, &mock, &["--provider", "openai,vllm", "--matrix", "--jobs", "1"]);
        command.env("VLLM_BASE_URL", mock.base_url(Wire::OpenAi)).output().unwrap()
    };
    let advice = stdout(&run());
    assert!(
        advice.contains("with VLLM_MODEL or with `model` under `[providers.vllm]` in cog.toml"),
        "{advice}"
    );
    place.write("cog.toml", "[providers.vllm]\nmodel = \"m9\"\n");
    assert!(stdout(&run()).contains("vllm/m9"));
    assert_eq!(mock.requests().last().unwrap().body["model"], "m9");
}

#[test]
fn fallback_has_the_model_of_its_own_variable() {
    let place = place(DATA);
    let mock = Mock::start([Reply::error(503, "busy"), reply(DATA)]);
    let mut command = asking(&place, &mock, &["--provider", "openai,vllm"]);
    command
        .env("VLLM_BASE_URL", mock.base_url(Wire::OpenAi))
        .env("VLLM_MODEL", "qwen")
        .env("LLM_MODEL", "m1");
    command.env("COG_RETRIES", "0");
    command.output().unwrap();
    let models: Vec<_> = mock.requests().iter().map(|request| request.body["model"].clone()).collect();
    assert_eq!(models, ["m1", "qwen"]);
}

#[test]
fn matrix_compares_models_of_one_provider() {
    let bad = r#"{"answer": "Bad.", "rationale": "It is."}"#;
    let (place, mock) = (place(DATA), Mock::start([reply(DATA), reply(bad)]));
    let args = ["--provider", "openai", "--model", "m1,m2", "--matrix", "--jobs", "1", "--format", "html"];
    let page = stdout(&asking(&place, &mock, &args).output().unwrap());
    assert!(page.contains("<th>Case<th>openai/m1<th>openai/m2\n<tr><td>case1<td>"), "{page}");
    assert!(page.contains("href=\"#./m-on-openai/m2-case1\">failed</a>"), "{page}");
    assert!(page.contains("id=\"./m-on-openai/m2-case1\""), "{page}");
    let models: Vec<_> = mock.requests().iter().map(|it| it.body["model"].clone()).collect();
    assert_eq!(models, ["m1", "m2"]);
    place.copy_module("format-v22", "format-v22");
    let args = ["./format-v22", "--provider", "openai", "--model", "m1,m2", "--matrix"];
    let table = stdout(&asking(&place, &mock, &args).output().unwrap());
    let total = table.lines().filter(|line| line.starts_with("all modules")).collect::<Vec<_>>();
    assert!(total.len() == 2 && total[0].contains("openai/m1") && total[1].contains("0 of "), "{table}");
    let args = ["--provider", "openai,mistral", "--model", "m1,m2", "--matrix"];
    let refused = asking(&place, &mock, &args).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
}

const JUDGED: &str =
    r#"{"_validate": {"answer_min": 1}, "$judge": ["The answer is polite.", "It names a number."]}"#;

#[test]
fn model_judges_the_criteria_of_a_case() {
    let meets = r#"{"meets": true, "rationale": "It is."}"#;
    let fails = r#"{"meets": false, "rationale": "There is no number."}"#;
    let place = place(JUDGED);
    let mock = Mock::start([reply(DATA), reply(meets), reply(fails)]);
    snapshot!(asking(&place, &mock, &["--provider", "openai"]));
    let request = mock.requests()[1].body.clone();
    assert!(request.to_string().contains("The answer is polite."), "{request}");
}

#[test]
fn criteria_of_a_recorded_answer_need_a_judge() {
    let meets = r#"{"meets": true, "rationale": "It is."}"#;
    let place = place(JUDGED);
    let mock = Mock::start([reply(DATA), reply(meets), reply(meets), reply(meets), reply(meets)]);
    let record = ["--provider", "openai", "--model", "m", "--record"];
    assert!(asking(&place, &mock, &record).output().unwrap().status.success());
    snapshot!(place.cog(["test", "./m"]));
    let judged = asking(&place, &mock, &["--judge", "openai"]).output().unwrap();
    assert_eq!(judged.status.code(), Some(0), "{}", stdout(&judged));
}

#[test]
fn html_report_contains_the_difference_as_text() {
    let (place, mock) =
        (place(DATA), Mock::start([reply(r#"{"answer": "<b>Bad</b>", "rationale": "It is."}"#)]));
    let args = ["--provider", "openai", "--format", "html", "-o", "report.html"];
    let output = asking(&place, &mock, &args).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let page = place.read("report.html");
    assert!(
        page.contains("<ins>+   &quot;answer&quot;: &quot;&lt;b&gt;Bad&lt;/b&gt;&quot;,</ins>"),
        "{page}"
    );
    assert!(page.contains("<b class=\"failed\">failed</b> case1"), "{page}");
}

#[test]
fn shipped_modules_match_their_contracts() {
    let place = Place::new();
    let mut command = place.cog(["test", "--all", "--format", "json"]);
    let report = json(&command.env("COGNITIVE_MODULES_PATH", shipped("")).output().unwrap());
    assert_eq!(report["failed"], 0, "{report}");
    assert!(report["contract_only"].as_u64() > Some(10));
}

/// Runs a golden test of a module that ships on a model with this answer. Returns the report of the case.
fn golden_case(module: &str, case: &str, answer: &Value) -> Value {
    let (place, mock) = (Place::new(), Mock::start([Reply::text(answer.to_string())]));
    let args = ["test", module, "--case", case, "--provider", "openai", "--model", "m", "--format", "json"];
    let mut command = place.cog(args);
    command.env("OPENAI_API_KEY", "sk-canary").env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    json(&command.output().unwrap())["modules"][0]["cases"][0].clone()
}

#[test]
fn golden_tests_of_planner_and_coder_pass_on_a_model_that_is_right() {
    let (place, mock) = (Place::new(), Mock::start(replies()));
    let args = ["test", "planner", "coder", "--provider", "openai", "--require-model", "--format", "json"];
    let mut command = place.cog(args);
    command.env("OPENAI_API_KEY", "sk-canary").env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    let report = json(&command.output().unwrap());
    assert_eq!((&report["passed"], &report["failed"]), (&5.into(), &0.into()), "{report}");
}

#[test]
fn golden_tests_of_planner_and_coder_fail_on_a_model_that_is_wrong() {
    for (module, case, pointer, wrong, at) in [
        ("planner", "case1", "/data/goal", "Play chess.".into(), "data.goal"),
        (
            "planner",
            "case2",
            "/data/handoff/constraints/1",
            "Anybody may export".into(),
            "data.handoff.constraints",
        ),
        (
            "planner",
            "case2",
            "/data/handoff/artifacts/0/reference",
            "else.py".into(),
            "data.handoff.artifacts",
        ),
        ("planner", "case3", "/error/code", "E2004".into(), "error.code"),
        ("planner", "case3", "/error/message", "Too short.".into(), "error.message"),
        ("coder", "case1", "/data/files/0/path", "other.py".into(), "data.files"),
        ("coder", "case1", "/data/files/0/content", "def other(): pass".into(), "data.files"),
        ("coder", "case1", "/data/verification/0/command", "make".into(), "data.verification"),
        ("coder", "case1", "/data/constraints/1/constraint", "None".into(), "data.constraints"),
        ("coder", "case2", "/error/code", Value::from("E2007"), "error.code"),
    ] {
        let golden = goldens(module).into_iter().find(|golden| golden.name == case).unwrap();
        let mut answer = golden.answer.clone();
        assert_eq!(golden_case(module, case, &answer)["verdict"], "passed", "{module} {case}");
        *answer.pointer_mut(pointer).unwrap() = wrong;
        let report = golden_case(module, case, &answer);
        let is_found = report.to_string().contains(&format!("\"path\":\"{at}"));
        assert!(report["verdict"] == "failed" && is_found, "{module} {case} {pointer}: {report}");
    }
}

#[test]
fn all_modules_are_those_that_are_not_built_in() {
    let place = Place::new();
    snapshot!(place.cog(["test", "--all"]));
    place.write("cognitive/modules/README.md", "");
    assert!(place.cog(["new", "m"]).output().unwrap().status.success());
    snapshot!(place.cog(["test", "--all"]));
    snapshot!(place.cog(["validate", "--all"]));
}

/// Writes more cases: `case2`, … with the same input and expected file as the first one.
fn with_cases(place: &Place, count: usize) {
    for number in 2..=count {
        for rest in ["input", "expected"] {
            let text = place.read(&format!("m/tests/case1.{rest}.json"));
            place.write(&format!("m/tests/case{number}.{rest}.json"), text);
        }
    }
}

const BAD: &str = r#"{"answer": "Bad.", "rationale": "It is."}"#;

/// Replies in the order of the cases: `+` is right, `-` is wrong, `!` is an error of the provider.
fn replies_of(outcomes: &str) -> Vec<Reply> {
    let reply_of = |outcome| match outcome {
        '+' => reply(DATA),
        '-' => reply(BAD),
        _ => Reply::error(400, "no"),
    };
    outcomes.chars().map(reply_of).collect()
}

fn tested(place: &Place, outcomes: &str, flags: &[&str]) -> std::process::Output {
    let mock = Mock::start(replies_of(outcomes));
    let args = [&["--provider", "openai", "--model", "m", "--jobs", "1"], flags].concat();
    let mut command = asking(place, &mock, &args);
    let output = command.env("COG_RETRIES", "0").output().unwrap();
    assert_eq!(mock.request_count(), outcomes.len(), "{}", stdout(&output));
    output
}

fn names_of_cases(report: &Value) -> Vec<&str> {
    let cases = report["modules"].as_array().unwrap().iter().flat_map(|it| it["cases"].as_array().unwrap());
    cases.map(|case| case["name"].as_str().unwrap()).collect()
}

#[test]
fn error_of_the_provider_is_not_a_failure() {
    let place = place(DATA);
    with_cases(&place, 4);
    let report = json(&tested(&place, "+-!+", &["--format", "json"]));
    let counts = ["passed", "failed", "error"].map(|verdict| report[verdict].as_u64().unwrap());
    assert_eq!(counts, [2, 1, 1], "{report}");
    // scipy.stats.binomtest(2, 3).proportion_ci(): the case without an answer is not counted.
    let rate = &report["rate"];
    assert_eq!((&rate["cases"], report["modules"][0]["rate"]["cases"].as_u64()), (&3.into(), Some(3)));
    for (found, expected) in [
        (&rate["right"], 2.0 / 3.0),
        (&rate["interval"][0], 0.09429932405024612),
        (&rate["interval"][1], 0.9915962413403171),
    ] {
        assert!((found.as_f64().unwrap() - expected).abs() < 1e-9, "{rate}");
    }
    let xml = stdout(&tested(&place, "+-!+", &["--format", "junit"]));
    assert!(xml.contains(r#"tests="4" failures="1" errors="1" skipped="0""#), "{xml}");
    assert!(xml.contains("<error message=\"error: E4001: "), "{xml}");
    assert_eq!(tested(&place, "++!+", &[]).status.code(), Some(1));
}

#[test]
fn sums_of_what_is_known_name_the_number_of_runs() {
    let place = place(DATA);
    with_cases(&place, 2);
    let output = tested(&place, "+!", &[]);
    assert!(
        stdout(&output).contains("1 passed, 1 error · 11 input and 7 output tokens (1 of 2 runs)\n"),
        "{}",
        stdout(&output)
    );
    let report = json(&tested(&place, "+!", &["--format", "json"]));
    let spent = &report["spent"];
    assert_eq!(
        (&spent["runs"], &spent["counted_runs"], &spent["input_tokens"]),
        (&2.into(), &1.into(), &11.into())
    );
    assert_eq!(
        (&spent["priced_runs"], &spent["cost"], &report["cost"]),
        (&0.into(), &Value::Null, &Value::Null)
    );
}

#[test]
fn several_cases_are_selected() {
    let place = place(DATA);
    with_cases(&place, 4);
    let report = json(&tested(&place, "++", &["--case", "case1", "--case", "e4", "--format", "json"]));
    assert_eq!(names_of_cases(&report), ["case1", "case4"]);
    let output = place.cog(["test", "./m", "--case", "x", "--case", "y"]).output().unwrap();
    assert!(stderr(&output).contains("no case has a name that contains `x` or `y`"), "{}", stderr(&output));
}

#[test]
fn cases_that_failed_last_run_again() {
    let place = place(DATA);
    with_cases(&place, 4);
    let failed = |outcomes: &str| {
        let output = tested(&place, outcomes, &["--failed", "--format", "json"]);
        if outcomes.is_empty() { stderr(&output) } else { names_of_cases(&json(&output)).join(" ") }
    };
    // A module that was never tested runs completely.
    assert_eq!(failed("+-!+"), "case1 case2 case3 case4");
    assert_eq!(failed("-+"), "case2 case3");
    // A case that is not selected keeps its state; without an answer, nothing changes.
    tested(&place, "-", &["--case", "case4"]);
    assert!(place.cog(["test", "./m"]).output().unwrap().status.success());
    assert_eq!(failed("++"), "case2 case4");
    let note = failed("");
    assert!(note.contains("no case failed when the modules were last tested"), "{note}");
    assert!(place.read(".local/state/cog/tests/failed.json").contains("/m\":[]"));
}

#[test]
fn required_runs_decide_and_flaky_cases_are_listed() {
    let place = place(DATA);
    with_cases(&place, 3);
    // Case 1 passes in 4 of 5 runs, case 2 in all, case 3 in 3.
    let outcomes = "+++-++++++-+-++";
    let flags = ["--repeat", "5", "--require", "4/5"];
    let mock = Mock::start(replies_of(outcomes));
    let args = [&["--provider", "openai", "--model", "m", "--jobs", "1"][..], &flags].concat();
    snapshot!(asking(&place, &mock, &args));
    let report = json(&tested(&place, outcomes, &[&flags[..], &["--format", "json"]].concat()));
    let cases = report["modules"][0]["cases"].as_array().unwrap();
    let found: Vec<_> =
        cases.iter().map(|case| (case["verdict"].as_str().unwrap(), &case["flaky"])).collect();
    assert_eq!(found, [("passed", &true.into()), ("passed", &false.into()), ("failed", &true.into())]);
    assert!((report["rate"]["right"].as_f64().unwrap() - 0.8).abs() < 1e-9, "{}", report["rate"]);
    assert_eq!(tested(&place, "++++++++++++++-", &flags).status.code(), Some(0));
    snapshot!(place.cog(["test", "./m", "--repeat", "3", "--require", "4/5"]));
}

/// A run without an answer is neither right nor wrong.
#[test]
fn too_many_errors_leave_a_repeated_case_undecided() {
    let place = place(DATA);
    let verdict = |outcomes: &str| {
        let flags = ["--repeat", "5", "--require", "4/5", "--format", "json"];
        json(&tested(&place, outcomes, &flags))["modules"][0]["cases"][0]["verdict"].clone()
    };
    assert_eq!(verdict("++++!"), "passed");
    assert_eq!(verdict("+++!!"), "error");
    assert_eq!(verdict("++--!"), "failed");
}

#[test]
fn report_is_compared_with_a_baseline() {
    let place = place(DATA);
    with_cases(&place, 8);
    tested(&place, "++++++-!", &["--format", "json", "-o", "before.json"]);
    let mock = Mock::start(replies_of("-+++++++"));
    let args = ["--provider", "openai", "--model", "m", "--jobs", "1", "--baseline", "before.json"];
    snapshot!(asking(&place, &mock, &args));
    // One of seven cases changes in the other direction: p = 2 * (1 + 7) * 0.5^7.
    let output = tested(&place, "------++", &["--baseline", "before.json", "--format", "json"]);
    assert_eq!(output.status.code(), Some(0));
    let baseline = &json(&output)["baseline"];
    assert_eq!((&baseline["compared"], &baseline["worse"]), (&7.into(), &false.into()));
    assert!((baseline["p_value"].as_f64().unwrap() - 0.125).abs() < 1e-9, "{baseline}");
    assert_eq!(baseline["newly_failing"].as_array().unwrap().len(), 6);
}

#[test]
fn baseline_fails_only_if_the_answers_are_worse() {
    let place = place(DATA);
    with_cases(&place, 6);
    let code = |outcomes: &str| tested(&place, outcomes, &["--baseline", "before.json"]).status.code();
    tested(&place, "++++++", &["--format", "json", "-o", "before.json"]);
    assert_eq!(code("-----+"), Some(0));
    // p = 2 * 0.5^6 = 0.03125.
    assert_eq!(code("------"), Some(1));
    // Without an answer, nothing is known.
    assert_eq!(code("+++++!"), Some(1));
    tested(&place, "------", &["--format", "json", "-o", "before.json"]);
    assert_eq!(code("++++++"), Some(0));
    place.write("before.json", r#"{"modules": [{"module": "other", "cases": []}]}"#);
    assert_eq!(code("++++++"), Some(1));
}

#[test]
fn baseline_must_be_a_report() {
    let place = place(DATA);
    place.write("before.json", "{}");
    snapshot!(place.cog(["test", "./m", "--baseline", "before.json"]));
}
