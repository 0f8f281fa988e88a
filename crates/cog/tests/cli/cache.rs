use std::{path::PathBuf, process::Command};

use cog_testkit::{Mock, Reply, Wire};
use serde_json::{Value, json};

use crate::support::{Place, json, snapshot, stderr};

const ANSWER: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "Fine."},
    "data": {"result": "fine", "rationale": "Nothing was unclear."}, "error": null}"#;

/// Returns a place with a module `m`.
fn place() -> Place {
    let place = Place::new();
    let manifest = "name: m\nversion: 1.0.0\nresponsibility: Answer\ntier: decision\nexcludes: [guessing]\n";
    place.write("m/module.yaml", manifest).write("m/prompt.md", "Answer this: $ARGUMENTS\n").write(
        "m/schema.json",
        r#"{"input": {"type": "object", "required": ["query"], "properties": {"query": {"type": "string"}}},
            "data": {"type": "object", "required": ["result", "rationale"],
                "properties": {"result": {"type": "string"}, "rationale": {"type": "string"}}}}"#,
    );
    place
}

fn run(place: &Place, mock: &Mock) -> Command {
    let mut command = place.cog(["run", "./m", "--args", "why?", "--cache", "answers"]);
    command.env("OPENAI_API_KEY", "none").env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    command
}

/// Returns the envelope of a run.
fn envelope(place: &Place, mock: &Mock) -> Value {
    json(&run(place, mock).output().unwrap())
}

fn stored(place: &Place) -> Vec<PathBuf> {
    std::fs::read_dir(place.path().join("answers")).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn mock(replies: usize) -> Mock {
    Mock::start(std::iter::repeat_n(Reply::text(ANSWER), replies))
}

#[test]
fn empty_cache_has_no_answers() {
    let place = place();
    snapshot!("stats_of_no_cache", place.cog(["cache", "stats"]));
    snapshot!("stats_of_an_empty_cache", place.cog(["cache", "stats", "answers"]));
    snapshot!("stats_as_json", place.cog(["cache", "stats", "answers", "--format", "json"]));
    snapshot!("clear_an_empty_cache", place.cog(["cache", "clear", "answers"]));
}

/// Whoever can write the files of a cache decides what a run answers.
#[cfg(unix)]
#[test]
fn directory_that_others_may_write_is_noted() {
    use std::os::unix::fs::PermissionsExt;
    let (place, mock) = (place(), mock(1));
    std::fs::create_dir(place.path().join("answers")).unwrap();
    let note = "note: the cache answers can be written by other users of this machine";
    for (mode, expected) in [(0o755, None), (0o702, Some("run `chmod go-w answers`")), (0o777, Some(note))] {
        std::fs::set_permissions(place.path().join("answers"), PermissionsExt::from_mode(mode)).unwrap();
        let output = run(&place, &mock).output().unwrap();
        assert!(output.status.success());
        let noted = stderr(&output);
        assert_eq!(noted.contains("other users"), expected.is_some(), "{mode:o}: {noted}");
        assert!(noted.contains(expected.unwrap_or_default()), "{mode:o}: {noted}");
    }
    let mut stored = run(&place, &mock);
    stored.args(["--state-dir", "answers"]);
    assert!(stderr(&stored.output().unwrap()).contains("the state directory answers can be written"));
    let output = place.cog(["run", "./m", "--args", "why?"]).output().unwrap();
    assert!(!stderr(&output).contains("other users"), "this run has no cache");
}

#[test]
fn directory_of_the_settings_is_used() {
    let (place, mock) = (place(), mock(1));
    assert_eq!(envelope(&place, &mock)["ok"], true);
    let mut command = place.cog(["cache", "clear"]);
    command.env("COG_CACHE_DIRECTORY", place.path().join("answers"));
    snapshot!("clear_the_cache_of_the_settings", command);
    assert!(stored(&place).is_empty());
}

#[cfg(unix)]
#[test]
fn files_of_the_cache_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let (place, mock) = (place(), mock(1));
    assert_eq!(envelope(&place, &mock)["ok"], true);
    let files = stored(&place);
    assert_eq!(files.len(), 1);
    let mode = |path: &PathBuf| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&files[0]), mode(&place.path().join("answers"))), (0o600, 0o700));
}

#[test]
fn damaged_answer_is_a_warning_and_is_stored_again() {
    let (place, mock) = (place(), mock(3));
    assert_eq!(envelope(&place, &mock)["_warnings"], Value::Null);
    let file = stored(&place).remove(0);
    let name = format!("answers/{}", file.file_name().unwrap().to_str().unwrap());
    let text = place.read(&name);
    for damaged in
        [text.split_at(text.len() / 2).0.to_owned(), text.replacen("mock-model", "another-model", 1)]
    {
        place.write(&name, damaged);
        let answer = envelope(&place, &mock);
        assert_eq!((&answer["data"]["result"], &answer["meta"]["cache"]), (&json!("fine"), &Value::Null));
        assert_eq!(answer["_warnings"][0]["code"], "W4021");
        let again = envelope(&place, &mock);
        assert_eq!((&again["meta"]["cache"]["hit"], &again["_warnings"]), (&json!(true), &Value::Null));
    }
    assert_eq!(mock.requests().len(), 3);
}

#[test]
fn unusable_cache_is_a_warning_of_the_run_and_an_error_of_its_commands() {
    let (place, mock) = (place(), mock(1));
    place.write("answers", "a file, not a directory");
    let output = run(&place, &mock).output().unwrap();
    let answer = json(&output);
    assert_eq!((&answer["ok"], answer["_warnings"].as_array().unwrap().len()), (&json!(true), 1));
    assert_eq!(answer["_warnings"][0]["code"], "W4024", "{}", stderr(&output));
    snapshot!("stats_of_a_file", place.cog(["cache", "stats", "answers"]));
    snapshot!("clear_a_file", place.cog(["cache", "clear", "answers"]));
}

#[test]
fn another_provider_url_is_another_answer() {
    let (place, first, second) = (place(), mock(1), mock(1));
    assert_eq!(envelope(&place, &first)["meta"]["cache"], Value::Null);
    assert_eq!(envelope(&place, &second)["meta"]["cache"], Value::Null);
    assert_eq!(envelope(&place, &second)["meta"]["cache"]["hit"], true);
}
