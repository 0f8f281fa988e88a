//! `cog batch`: a module runs for each row of a file.

mod dedupe;
mod files;
#[cfg(unix)]
mod killed;
mod limits;
#[cfg(feature = "nats")]
mod nats;
mod plan;
#[cfg(unix)]
mod resumed;
mod rows;
#[cfg(unix)]
mod via;

use std::process::{Command, Output};

use cog_testkit::{Mock, Reply, Wire};
use serde_json::Value;

use crate::support::{Place, stderr, stdout};

/// An answer of the module.
pub(super) const ANSWER: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "Done."},
    "data": {"label": "a", "rationale": "It says so."}, "error": null}"#;

const SCHEMA: &str = r##"{
    "input": {
        "type": "object", "required": ["text"], "additionalProperties": false,
        "properties": {
            "text": {"type": "string"},
            "count": {"type": "integer"},
            "weight": {"type": ["number", "null"]},
            "is_new": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "place": {"type": "object"},
            "photo": {"$ref": "#/$defs/MediaInput"}
        }
    },
    "data": {
        "type": "object", "required": ["label"], "properties": {"label": {"type": "string"}, "rationale": {"type": "string"}}
    }
}"##;

/// A place with the module `m`.
pub(super) fn place() -> Place {
    let place = Place::new();
    place.write(
        "m/module.yaml",
        "name: m\nversion: 1.0.0\ntier: decision\nresponsibility: Labels a text.\nexcludes: [to translate]\nmodalities: { input: [text, image] }\n",
    );
    place.write("m/prompt.md", "Label the text.").write("m/schema.json", SCHEMA);
    place
}

/// `cog batch ./m` with these arguments, against the mock.
pub(super) fn batch(place: &Place, mock: &Mock, args: &str) -> Command {
    let args: Vec<&str> = ["batch", "./m"].into_iter().chain(args.split_whitespace()).collect();
    let mut command = place.cog(args);
    command.env("OPENAI_API_KEY", "none").env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    command
}

/// Returns a model that answers every request.
pub(super) fn model() -> Mock {
    Mock::start([Reply::text(ANSWER).usage(12, 34)])
}

/// Returns the results on stdout.
pub(super) fn results(output: &Output) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    stdout(output).lines().map(parse).collect()
}

/// Returns the code of each result, `ok` if it has none.
pub(super) fn codes(results: &[Value]) -> Vec<&str> {
    results.iter().map(|result| result["error"]["code"].as_str().unwrap_or("ok")).collect()
}

/// Returns the text of the last message of each request.
pub(super) fn inputs(mock: &Mock) -> Vec<String> {
    let text = |body: &Value| body["messages"].as_array().unwrap().last().unwrap()["content"].to_string();
    mock.requests().iter().map(|request| text(&request.body)).collect()
}

#[test]
fn each_row_is_a_run_and_each_result_a_line() {
    let (place, mock) = (place(), model());
    place.write("rows.jsonl", "{\"text\": \"one\"}\n\"two\"\n{\"text\": \"three\", \"count\": 3}\n");
    let output = batch(&place, &mock, "rows.jsonl -o -").output().unwrap();
    let results = results(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(results.iter().map(|it| it["row"].as_u64().unwrap()).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(results.iter().all(|it| it["data"]["label"] == "a" && it["meta"]["usage"]["input_tokens"] == 12));
    let mut sent = inputs(&mock);
    sent.sort();
    let fields = ["one", "three", "two"];
    assert!(sent.iter().zip(fields).all(|(sent, text)| sent.contains(text)), "{sent:?}");
    let summary = stderr(&output);
    assert!(
        summary.contains("rows    3 ok, 0 failed") && summary.contains("tokens  36 in, 102 out"),
        "{summary}"
    );
}

#[test]
fn failed_row_is_a_result_and_the_exit_code_says_so() {
    let place = place();
    let mock = Mock::start([Reply::text(ANSWER), Reply::text("no JSON").when("bad")]);
    place.write("rows.jsonl", "\"one\"\n\"bad\"\n{\"texts\": \"x\"}\n\"four\"\n");
    let output = batch(&place, &mock, "rows.jsonl -o - --summary s.json").output().unwrap();
    assert_eq!(
        (codes(&results(&output)), output.status.code()),
        (vec!["ok", "E1000", "E1001", "ok"], Some(1))
    );
    let summary: Value = serde_json::from_str(&place.read("s.json")).unwrap();
    assert_eq!(summary["rows"]["ok"], 2);
    assert_eq!(summary["failures"], serde_json::json!({ "E1000": 1, "E1001": 1 }));
    assert_eq!(summary["stopped"], Value::Null);
}
