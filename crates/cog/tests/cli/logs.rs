use std::process::Command;

use cog_testkit::{Mock, Reply, Wire};

use crate::{
    golden::{goldens, replies},
    support::{Place, json, settings, stderr, transcript},
};

const DIRECTORY: &str = ".local/state/cog/logs";
const REPLY: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "Fine."},
    "data": {"verdict": "approve", "issues": [], "rationale": "Nothing stands out."}, "error": null}"#;

fn calling(place: &Place, mock: &Mock, args: &[&str]) -> Command {
    let mut command = place.cog(args.iter().copied());
    command.env("OPENAI_API_KEY", "sk-canary-1").env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    command
}

fn with_contents(mut command: Command) -> Command {
    command.env("COG_LOGS_CONTENTS", "true");
    command
}

fn logged(place: &Place) -> Vec<serde_json::Value> {
    let listed = json(&place.cog(["logs", "--format", "json"]).output().unwrap());
    listed.as_array().unwrap().clone()
}

/// A snapshot in which the times and IDs of runs are replaced. The width of columns depends on the times.
fn snapshot(name: &str, command: Command) {
    let mut settings = settings();
    settings.add_filter(" {2,}", "  ");
    settings.add_filter(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\dZ?", "[DATE AND TIME]");
    settings.add_filter(r"\b[2-9a-z]{8}(  \[DATE|\n  time)", "[ID]$1");
    settings.bind(|| insta::assert_snapshot!(name, transcript(command)));
}

#[test]
fn runs_are_listed_without_contents() {
    let place = Place::new();
    let mock = Mock::start([Reply::text(REPLY).usage(12, 34)]);
    let run = ["run", "code-reviewer", "--args", "secret = 1", "--model", "gpt-6-luna"];
    assert!(calling(&place, &mock, &run).output().unwrap().status.success());
    assert!(!place.cog(["run", "code-reviewer", "--input-json", "{}"]).output().unwrap().status.success());
    snapshot("runs_are_listed", place.cog(["logs"]));
    snapshot("run_is_shown_without_contents", place.cog(["logs", "show"]));
    let text = place.read(&format!("{DIRECTORY}/runs.ndjson"));
    assert!(!text.contains("secret") && !text.contains("Nothing stands out"), "{text}");
    let runs = logged(&place);
    assert_eq!((&runs[0]["code"], &runs[1]["model"]), (&"E1002".into(), &"openai/mock-model".into()));
    assert_eq!(
        (&runs[1]["requested_model"], &runs[1]["usage"]["output_tokens"]),
        (&"gpt-6-luna".into(), &34.into())
    );
    let of_module = place.cog(["logs", "--module", "other"]).output().unwrap();
    assert!(stderr(&of_module).contains("no runs"));
    let limited = json(&place.cog(["logs", "-n", "1", "--format", "json"]).output().unwrap());
    assert_eq!(limited.as_array().unwrap().len(), 1);
}

#[test]
fn stored_contents_contain_no_key() {
    let place = Place::new();
    let leaking = REPLY.replace("Fine.", "The key is sk-canary-1.");
    let mock = Mock::start([Reply::text(&leaking)]);
    let run = ["run", "code-reviewer", "--args", "key = 'sk-canary-1'", "--model", "sk-canary-1"];
    assert!(with_contents(calling(&place, &mock, &run)).output().unwrap().status.success());
    let text = place.read(&format!("{DIRECTORY}/runs.ndjson"));
    assert!(text.contains("key = '***'") && text.contains("The key is ***."), "{text}");
    assert!(!text.contains("canary"), "{text}");
    snapshot("run_is_shown_with_contents", place.cog(["logs", "show"]));
}

#[cfg(unix)]
#[test]
fn log_is_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = Place::new();
    assert!(place.cog(["run", "code-reviewer", "--args", "x"]).output().unwrap().status.success());
    let mode = |path: &str| place.path().join(path).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(DIRECTORY), mode(&format!("{DIRECTORY}/runs.ndjson"))), (0o700, 0o600));
}

#[test]
fn replay_runs_the_module_with_the_same_input_and_model() {
    let place = Place::new();
    let mock = Mock::start([Reply::text(REPLY)]);
    let run = ["run", "code-reviewer", "--args", "-", "--model", "m1"];
    let ran = crate::support::with_stdin(with_contents(calling(&place, &mock, &run)), "x = 'stdin'");
    assert!(ran.status.success());
    let id = logged(&place)[0]["id"].as_str().unwrap().to_owned();
    let again = calling(&place, &mock, &["logs", "replay", &id[..4]]).output().unwrap();
    assert_eq!(json(&again)["data"], json(&ran)["data"]);
    assert!(calling(&place, &mock, &["logs", "replay", &id, "-m", "m2"]).output().unwrap().status.success());
    let requests = mock.requests();
    assert_eq!(requests[0].body, requests[1].body);
    assert_eq!((&requests[1].body["model"], &requests[2].body["model"]), (&"m1".into(), &"m2".into()));
    assert_eq!(requests[0].body["messages"], requests[2].body["messages"]);
}

#[test]
fn replay_of_a_composition_calls_the_provider_of_its_parts() {
    let (place, mock) = (Place::new(), Mock::start(replies()));
    let golden = goldens("text-refiner").remove(0);
    let run = ["run", "text-refiner", "--input-json", &golden.input.to_string(), "--model", "m"];
    let ran = with_contents(calling(&place, &mock, &run)).output().unwrap();
    let again = calling(&place, &mock, &["logs", "replay"]).output().unwrap();
    assert_eq!(json(&again)["data"], json(&ran)["data"], "{}", stderr(&again));
    let bodies: Vec<_> = mock.requests().into_iter().map(|request| request.body).collect();
    assert_eq!((bodies.len(), &bodies[..4]), (8, &bodies[4..]));
}

#[test]
fn replay_needs_stored_input_and_an_id_that_exists() {
    let place = Place::new();
    let error = |args: &[&str]| {
        let output = place.cog(args.iter().copied()).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        stderr(&output)
    };
    assert!(error(&["logs", "show"]).contains("error[E1006]: the log contains no runs"));
    assert!(place.cog(["run", "code-reviewer", "--args", "x"]).output().unwrap().status.success());
    let message = error(&["logs", "replay"]);
    assert!(message.contains("is not stored") && message.contains("COG_LOGS_CONTENTS=true"), "{message}");
    assert!(
        error(&["logs", "show", "1x"]).contains("error[E1006]: the log contains no run with the ID `1x`")
    );
    let off = place.cog(["logs"]).env("COG_LOGS_ENABLED", "off").output().unwrap();
    assert!(stderr(&off).contains("error[E1006]: runs are not logged: `logs.enabled` is false"));
}

#[test]
fn log_is_off_if_the_operator_says_so() {
    let place = Place::new();
    place.write(".config/cog/config.toml", "[logs]\nenabled = false\n");
    assert!(place.cog(["run", "code-reviewer", "--args", "x"]).output().unwrap().status.success());
    assert!(!place.path().join(DIRECTORY).exists());
    place.write("cog.toml", "[logs]\ncontents = true\n");
    let rejected = place.cog(["run", "code-reviewer", "--args", "x"]).output().unwrap();
    assert!(stderr(&rejected).contains("cannot set `logs`"));
}

#[test]
fn size_of_the_log_is_bounded() {
    const MAX_BYTES: usize = 4 << 10;
    let place = Place::new();
    let long = "x".repeat(500);
    for number in 0..8 {
        let mut run =
            with_contents(place.cog(["run", "code-reviewer", "--args", &format!("{number} {long}")]));
        assert!(run.env("COG_LOGS_MAX_BYTES", MAX_BYTES.to_string()).output().unwrap().status.success());
    }
    let size = |name: &str| place.read(&format!("{DIRECTORY}/{name}")).len();
    assert!(size("runs.ndjson") + size("runs.1.ndjson") <= MAX_BYTES);
    let runs = logged(&place);
    assert!((2..8).contains(&runs.len()), "{}", runs.len());
    assert!(runs[0]["contents"]["args"].as_str().unwrap().starts_with("7 "));
    assert!(runs[1]["contents"]["args"].as_str().unwrap().starts_with("6 "));
}

#[test]
fn large_contents_are_not_stored() {
    let place = Place::new();
    place.write("in.json", format!(r#"{{"code": "{}"}}"#, "x".repeat(2 << 20)));
    let ran = with_contents(place.cog(["run", "code-reviewer", "in.json"])).output().unwrap();
    assert!(ran.status.success(), "{}", stderr(&ran));
    assert_eq!(logged(&place)[0].get("contents"), None);
}

#[test]
fn damaged_line_is_skipped() {
    let place = Place::new();
    assert!(place.cog(["run", "code-reviewer", "--args", "x"]).output().unwrap().status.success());
    let path = format!("{DIRECTORY}/runs.ndjson");
    place.write(&path, format!("{{\"id\": \"trunc\n{}", place.read(&path)));
    assert_eq!(logged(&place).len(), 1);
}

/// The file may be renamed between the opening of both: then both names lead to one file.
#[cfg(unix)]
#[test]
fn log_that_is_rotated_while_it_is_read_has_each_run_once() {
    let place = Place::new();
    assert!(place.cog(["run", "code-reviewer", "--args", "x"]).output().unwrap().status.success());
    let file = |name: &str| place.path().join(DIRECTORY).join(name);
    std::fs::hard_link(file("runs.ndjson"), file("runs.1.ndjson")).unwrap();
    assert_eq!(logged(&place).len(), 1);
}

/// A disk that fills up cuts a line anywhere, also within a character.
#[test]
fn line_that_was_cut_within_a_character_hides_no_run() {
    let place = Place::new();
    let path = format!("{DIRECTORY}/runs.ndjson");
    let run =
        |text: &str| with_contents(place.cog(["run", "code-reviewer", "--args", text])).output().unwrap();
    assert!(run("一").status.success());
    assert!(run("二").status.success());
    let text = place.read(&path).into_bytes();
    let cut = text.windows(3).rposition(|bytes| bytes == "二".as_bytes()).unwrap() + 1;
    place.write(&path, &text[..cut]);
    let runs = logged(&place);
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0]["contents"]["args"], "一");
    assert!(run("三").status.success());
    let runs = logged(&place);
    assert_eq!(runs.len(), 2, "the next run does not continue the cut line");
    assert_eq!(runs[0]["contents"]["args"], "三");
    assert!(place.cog(["logs", "show"]).output().unwrap().status.success());
}

/// Opening a pipe waits for its other end.
#[cfg(unix)]
#[test]
fn log_that_is_a_pipe_delays_no_run() {
    let place = Place::new();
    place.write(&format!("{DIRECTORY}/lock"), "");
    let pipe = place.path().join(DIRECTORY).join("runs.ndjson");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let output = place.cog(["run", "code-reviewer", "--args", "x"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let output = with_contents(place.cog(["run", "code-reviewer", "--args", "x"])).output().unwrap();
    assert!(stderr(&output).contains("note: this run is not in `cog logs`: a pipe, not a file"));
    let output = place.cog(["logs"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("a pipe, not a file"), "{}", stderr(&output));
}

#[cfg(unix)]
#[test]
fn log_that_cannot_be_written_is_reported_only_if_it_was_set_up() {
    let place = Place::new();
    place.write("file", "x");
    let blocked = format!("{}/file/logs", place.path().display());
    let mut run = place.cog(["run", "code-reviewer", "--args", "x"]);
    let output = run.env("COG_LOGS_DIRECTORY", &blocked).output().unwrap();
    assert!(output.status.success() && stderr(&output).contains("note: this run is not in `cog logs`"));
    let mut run = place.cog(["run", "code-reviewer", "--args", "x"]);
    let output = run.env("HOME", "/dev/null").output().unwrap();
    assert!(output.status.success() && !stderr(&output).contains("cog logs"), "{}", stderr(&output));
}
