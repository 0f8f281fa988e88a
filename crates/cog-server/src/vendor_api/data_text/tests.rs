use std::sync::Arc;

use cog_json::Value;
use cog_module::Module;
use cog_spec::{Progress, ViolationNote};

use super::*;

/// A module of which only the string `data.text` accepts any text.
fn live() -> Live {
    let schema = r#"{"data": {"type": "object", "properties": {"text": {"type": "string"}}}}"#;
    let manifest =
        "name: live\nversion: 1.0.0\nresponsibility: Answer\nexcludes: []\nresponse:\n  mode: both\n";
    let directory = tempfile::tempdir().unwrap();
    for (file, text) in [("module.yaml", manifest), ("prompt.md", "Answer."), ("schema.json", schema)] {
        cog_module::files::write_atomic(&directory.path().join(file), text).unwrap();
    }
    let module: Arc<Module> = cog_run::Runtime::offline().load(directory.path().to_str().unwrap()).unwrap();
    Live::from_module(&module).unwrap()
}

fn delta(field: &str, delta: &str) -> Chunk {
    Chunk::Delta { seq: 1, field: format!("data.{field}"), delta: delta.to_owned(), checkpoint: None }
}

fn value(field: &str, json: &str) -> Chunk {
    let data = Value::parse(json).unwrap();
    Chunk::Snapshot { seq: 1, field: Some(format!("data.{field}")), data }
}

fn retraction() -> Chunk {
    Chunk::Snapshot { seq: 1, field: None, data: Value::parse("{}").unwrap() }
}

fn violation(path: &str) -> Chunk {
    let [path, rule, message] = [path, "type", "wrong"].map(str::to_owned);
    Chunk::Progress(Progress {
        violation: Some(ViolationNote { path, rule, message }),
        ..Progress::default()
    })
}

/// Returns what each chunk adds, and what the final data add.
fn added(chunks: &[Chunk], data: &str) -> Vec<Result<String, CorrectedData>> {
    let mut text = DataText::new(live());
    let mut parts: Vec<_> = chunks
        .iter()
        .map(|chunk| {
            let mut new = String::new();
            text.add(chunk, &mut new).map(|()| new)
        })
        .collect();
    let mut new = String::new();
    parts.push(text.finish(data, &mut new).map(|()| new));
    parts
}

fn texts(parts: &[&str]) -> Vec<Result<String, CorrectedData>> {
    parts.iter().map(|part| Ok((*part).to_owned())).collect()
}

#[test]
fn a_value_is_written_when_the_next_one_arrives() {
    let chunks = [
        value("a", "1.50"),
        delta("b[0].c", "x\""),
        delta("b[0].c", "y"),
        value("b[0].d", "true"),
        value("b[1]", "{}"),
        delta("e", ""),
    ];
    let data = r#"{"a":1.50,"b":[{"c":"x\"y","d":true},{}],"e":""}"#;
    let expected =
        texts(&["", r#"{"a":1.50"#, "", r#","b":[{"c":"x\"y""#, r#","d":true"#, "},{}", r#"],"e":""}"#]);
    assert_eq!(added(&chunks, data), expected);
}

#[test]
fn a_string_that_accepts_any_text_is_written_while_it_arrives() {
    let chunks =
        [delta("text", " "), delta("text", "é\n"), delta("text", "b"), delta("text", ""), value("n", "1")];
    let expected = texts(&["", r#"{"text":" é\n"#, "b", "", "\"", r#","n":1}"#]);
    assert_eq!(added(&chunks, r#"{"text":" é\nb","n":1}"#), expected);
}

#[test]
fn a_violation_holds_back_the_attempt() {
    let chunks = [value("a", "1"), value("b", "2"), violation("data.b"), value("c", "3"), retraction()];
    let repeated = [value("a", "1"), value("b", "7"), value("c", "3")];
    let chunks: Vec<Chunk> = chunks.into_iter().chain(repeated).collect();
    let expected = texts(&["", r#"{"a":1"#, "", "", "", "", "", r#","b":7"#, r#","c":3}"#]);
    assert_eq!(added(&chunks, r#"{"a":1,"b":7,"c":3}"#), expected);
}

#[test]
fn a_corrected_value_is_an_error() {
    let chunks = [value("a", "1"), value("b", "2"), retraction(), value("a", "12"), value("b", "2")];
    let parts = added(&chunks, r#"{"a":12,"b":2}"#);
    // Until a separator follows, a number is a beginning.
    assert_eq!(parts[4..], texts(&["2", ",\"b\":2}"]));
    let chunks = [value("a", "1"), value("b", "2"), retraction(), value("a", "3"), value("b", "2")];
    let parts = added(&chunks, r#"{"a":3,"b":2}"#);
    assert_eq!(parts[4], Err(CorrectedData));
    assert_eq!(added(&[value("a", "1"), value("b", "2")], "{}").last(), Some(&Err(CorrectedData)));
}

#[test]
fn values_after_extensions_or_without_a_place_wait_for_the_end() {
    for waiting in ["extensions.insights[0].a", "c[1]", "c[0][2]"] {
        let chunks = [value("a", "1"), value("b", "2"), value(waiting, "3"), value("d", "4")];
        let parts: String = added(&chunks, r#"{"a":1,"b":2,"z":[]}"#).into_iter().flatten().collect();
        assert_eq!(parts, r#"{"a":1,"b":2,"z":[]}"#, "{waiting}");
    }
}
