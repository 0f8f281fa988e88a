//! `cog diff`, and `cog validate --against`.

use std::process::Command;

use crate::support::{Place, json, snapshot, stderr};

/// Runs git in the directory.
fn git(place: &Place, args: &[&str]) {
    let mut git = Command::new("git");
    git.current_dir(place.path()).env_clear().env("HOME", place.path());
    let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"];
    let output = git.args(identity).args(args).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

const SCHEMA: &str = r#"{
  "input": {
    "type": "object",
    "properties": { "text": { "type": "string", "maxLength": 9 } },
    "required": ["text"],
    "additionalProperties": false
  },
  "meta": {
    "type": "object",
    "properties": {
      "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
      "risk": { "enum": ["none", "low", "medium", "high"] },
      "explain": { "type": "string", "maxLength": 280 }
    },
    "required": ["confidence", "risk", "explain"]
  },
  "data": {
    "type": "object",
    "properties": { "rationale": { "type": "string" }, "queue": { "enum": ["billing", "other"] } },
    "required": ["rationale", "queue"]
  },
  "error": { "type": "object", "properties": { "code": { "type": "string" } }, "required": ["code"] }
}
"#;

/// Writes a module with a golden test.
fn module(place: &Place, directory: &str) {
    let manifest =
        "name: sort\nversion: 1.0.0\nresponsibility: Sorts a message\ntier: decision\nexcludes: []\n";
    place
        .write(&format!("{directory}/module.yaml"), manifest)
        .write(&format!("{directory}/prompt.md"), "Sort $ARGUMENTS into a queue.\n")
        .write(&format!("{directory}/schema.json"), SCHEMA)
        .write(&format!("{directory}/tests/a.input.json"), r#"{"text": "money"}"#)
        .write(
            &format!("{directory}/tests/a.expected.json"),
            r#"{"$validate": {"queue": {"const": "billing"}}}"#,
        );
}

/// Replaces text in a file of a module.
fn replace(place: &Place, path: &str, from: &str, to: &str) {
    let text = place.read(path);
    assert!(text.contains(from), "{from}");
    place.write(path, text.replacen(from, to, 1));
}

/// A repository with the module `sort` committed, and changed afterwards.
fn changed() -> Place {
    let place = Place::new();
    module(&place, "modules/sort");
    git(&place, &["init", "-q"]);
    git(&place, &["add", "."]);
    git(&place, &["commit", "-qm", "1"]);
    replace(&place, "modules/sort/schema.json", "\"maxLength\": 9", "\"maxLength\": 5");
    replace(&place, "modules/sort/schema.json", "\"other\"]", "\"other\", \"sales\"]");
    replace(
        &place,
        "modules/sort/schema.json",
        "\"rationale\": { \"type\": \"string\"",
        "\"rationale\": { \"type\": \"string\", \"minLength\": 1, \"description\": \"Why\"",
    );
    replace(&place, "modules/sort/prompt.md", "into a queue", "into one queue");
    replace(&place, "modules/sort/module.yaml", "excludes: []", "excludes: [guessing]");
    replace(&place, "modules/sort/tests/a.expected.json", "billing", "other");
    place
}

#[test]
fn diff_with_a_revision() {
    let place = changed();
    snapshot!(place.cog(["diff", "main:modules/sort", "modules/sort"]));
}

#[test]
fn diff_as_json_with_check() {
    let place = changed();
    snapshot!(place.cog(["diff", "HEAD:./modules/sort", "./modules/sort", "--check", "--format", "json"]));
}

#[test]
fn diff_of_equal_modules() {
    let place = Place::new();
    module(&place, "old");
    module(&place, "new");
    snapshot!(place.cog(["diff", "./old", "./new", "--check"]));
}

#[test]
fn diff_of_every_module_that_ships_with_itself_is_equal() {
    let place = Place::new();
    let listed = json(&place.cog(["list", "--format", "json"]).output().unwrap());
    for module in listed.as_array().unwrap() {
        let name = module["name"].as_str().unwrap();
        let output = place.cog(["diff", name, name, "--format", "json"]).output().unwrap();
        let found = json(&output);
        assert_eq!(found["verdict"], "equal", "{found}");
        assert_eq!(found["version_step"], "none");
        assert_eq!(found["changes"], serde_json::json!([]));
    }
}

#[test]
fn diff_below_the_root_of_a_repository() {
    let place = changed();
    let output = place
        .cog(["diff", "HEAD:./", ".", "--format", "json"])
        .current_dir(place.path().join("modules/sort"))
        .output();
    assert_eq!(json(&output.unwrap())["verdict"], "breaking");
}

#[test]
fn diff_with_an_unknown_revision() {
    let place = changed();
    snapshot!(place.cog(["diff", "v9:modules/sort", "modules/sort"]));
}

#[test]
fn diff_with_a_path_that_the_revision_does_not_have() {
    let place = changed();
    snapshot!(place.cog(["diff", "main:modules/other", "modules/sort"]));
}

#[test]
fn diff_with_a_revision_outside_a_repository() {
    let place = Place::new();
    module(&place, "sort");
    let output =
        place.cog(["diff", "main:sort", "sort"]).env("GIT_CEILING_DIRECTORIES", "/").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("is not in a git repository"), "{}", stderr(&output));
}

#[test]
fn diff_with_a_revision_that_is_an_option() {
    let place = changed();
    let output = place.cog(["diff", "--", "--output=x:modules/sort", "modules/sort"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(!place.path().join("x").exists());
}

#[test]
fn validate_against_a_revision() {
    let place = changed();
    snapshot!(place.cog(["validate", "./modules/sort", "--against", "main", "--examples", "warn"]));
}

#[test]
fn validate_against_a_revision_with_a_new_major_version() {
    let place = changed();
    replace(&place, "modules/sort/module.yaml", "version: 1.0.0", "version: 2.0.0");
    let output = place.cog(["validate", "./modules/sort", "--against", "main"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn validate_against_a_revision_warns_of_a_small_step() {
    let place = changed();
    git(&place, &["checkout", "-q", "."]);
    replace(&place, "modules/sort/prompt.md", "into a queue", "into one queue");
    let validate = |more: &[&'static str]| {
        let args =
            ["validate", "./modules/sort", "--against", "main"].into_iter().chain(more.iter().copied());
        place.cog(args).output().unwrap().status.code()
    };
    assert_eq!((validate(&[]), validate(&["--deny-warnings"])), (Some(0), Some(3)));
}

#[test]
fn validate_new_module_against_a_revision() {
    let place = changed();
    module(&place, "modules/added");
    replace(&place, "modules/added/module.yaml", "name: sort", "name: added");
    let output = place.cog(["validate", "./modules/added", "--against", "main"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

// `cog insights`.

/// Results of a batch: custom values of `queue`, insights, and refused inputs.
fn results() -> String {
    let meta = r#""meta": {"confidence": 0.9, "risk": "low", "explain": "x"}"#;
    let answer = |data: &str| format!("{{\"ok\": true, {meta}, \"data\": {data}}}\n");
    let custom = answer(r#"{"rationale": "r", "queue": {"custom": "sales", "reason": "A new offer."}}"#);
    let insight = answer(
        r#"{"rationale": "r", "queue": "other", "extensions": {"insights": [{"text": "angry", "suggested_mapping": "data.tone"}]}}"#,
    );
    let refused = format!(
        "{{\"ok\": false, {meta}, \"error\": {{\"code\": \"E1001\", \"message\": \"m\", \"details\": {{\"violations\": [{{\"path\": \"input.text\", \"rule\": \"maxLength\", \"message\": \"m\"}}]}}}}}}\n"
    );
    custom.repeat(6)
        + &insight.repeat(5)
        + &answer(r#"{"rationale": "r", "queue": "billing"}"#).repeat(4)
        + &refused.repeat(5)
}

fn with_results() -> Place {
    let place = Place::new();
    module(&place, "sort");
    place.write("results.jsonl", results() + "no result\n");
    place
}

#[test]
fn insights_of_a_batch() {
    snapshot!(with_results().cog(["insights", "./sort", "--from", "results.jsonl"]));
}

#[test]
fn insights_as_json() {
    snapshot!(with_results().cog([
        "insights",
        "./sort",
        "--from",
        "results.jsonl",
        "--min-cases",
        "6",
        "--format",
        "json"
    ]));
}

#[test]
fn insights_of_the_log() {
    let place = Place::new();
    let run = |text: &str| {
        let run = place
            .cog(["run", "sentiment-classifier", "--args", text])
            .env("COG_LOGS_CONTENTS", "on")
            .env("LLM_PROVIDER", "offline")
            .output();
        assert_eq!(run.unwrap().status.code(), Some(0));
    };
    run("Good.");
    run("Bad.");
    let counted = |args: &[&'static str]| json(&place.cog(args.iter().copied()).output().unwrap());
    assert_eq!(counted(&["insights", "sentiment-classifier", "--format", "json"])["answers"], 2);
    assert_eq!(counted(&["insights", "--format", "json"])["runs"], 2);
    assert_eq!(counted(&["insights", "code-reviewer", "--format", "json"])["runs"], 0);
}

#[test]
fn insights_applied() {
    let place = with_results();
    snapshot!(place.cog(["insights", "./sort", "--from", "results.jsonl", "--apply", "1"]));
    assert_eq!(
        place.read("sort/schema.json"),
        SCHEMA.replacen("\"billing\", \"other\"", "\"billing\", \"other\", \"sales\"", 1)
    );
    assert!(place.read("sort/module.yaml").contains("version: 2.0.0\n"));
    // The value is in the schema now, so the next proposal is the first one.
    let output =
        place.cog(["insights", "./sort", "--from", "results.jsonl", "--format", "json"]).output().unwrap();
    let found = json(&output);
    let paths: Vec<_> =
        found["proposals"].as_array().unwrap().iter().map(|one| one["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["data.tone", "input.text"]);
}

#[test]
fn insights_applied_to_the_prompt() {
    let place = Place::new();
    module(&place, "sort");
    let refused = r#"{"ok": false, "meta": {}, "error": {"code": "E3002", "details": {"violations": [{"path": "data.queue", "rule": "enum"}]}}}"#;
    place.write("results.jsonl", format!("{refused}\n").repeat(5));
    let output =
        place.cog(["insights", "./sort", "--from", "results.jsonl", "--apply", "1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let sentence = "Keep to the schema of `data.queue`: `enum` was violated in 5 runs.";
    assert_eq!(place.read("sort/prompt.md"), format!("Sort $ARGUMENTS into a queue.\n\n{sentence}\n"));
    assert!(place.read("sort/module.yaml").contains("version: 1.0.1\n"));
    assert_eq!(place.read("sort/schema.json"), SCHEMA);
}

#[test]
fn insights_with_a_proposal_that_cannot_be_applied() {
    let place = with_results();
    snapshot!(place.cog(["insights", "./sort", "--from", "results.jsonl", "--apply", "3"]));
    let output =
        place.cog(["insights", "./sort", "--from", "results.jsonl", "--apply", "9"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(place.read("sort/schema.json"), SCHEMA);
}
