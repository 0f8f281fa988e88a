//! Evidence of runs on the command line, and in batches.

use cog_testkit::{Mock, Reply, Wire};
use serde_json::{Value, json};

use crate::{
    media::PIXEL,
    media_read::document,
    support::{Place, json as stdout_json, stderr},
};

const MANIFEST: &str = "\
name: m
version: 1.0.0
responsibility: Read
tier: decision
excludes: []
rationale: optional
";

const SCHEMA: &str = r##"{
  "input": {"properties": {"query": {"type": "string"}, "paper": {"$ref": "#/$defs/MediaInput"}}},
  "data": {"type": "object", "properties": {"verdict": {"enum": ["yes", "no"]}, "word": {"type": "string"}}}
}"##;

fn place(manifest: &str) -> Place {
    let place = Place::new();
    place.write("m/module.yaml", format!("{MANIFEST}{manifest}")).write("m/prompt.md", "Read $MEDIA_INPUTS");
    place.write("m/schema.json", SCHEMA);
    place
}

fn reply(data: &Value) -> Reply {
    let meta = json!({"confidence": 0.95, "risk": "low", "explain": "Fine."});
    Reply::text(json!({"ok": true, "meta": meta, "data": data, "error": null}).to_string()).usage(100, 10)
}

fn run(place: &Place, mock: &Mock, args: &[&str]) -> Value {
    let mut command = place.cog(args.iter().copied());
    command.args(["--provider", "openai", "--model", "mock-model"]);
    command.env("OPENAI_API_KEY", "sk-canary").env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    stdout_json(&command.output().unwrap())
}

#[test]
fn offsets_in_a_pdf_point_at_the_text() {
    let place = place("modalities: {input: [text, document], output: [text]}\n");
    place.write("a.pdf", document());
    let mock = Mock::start([reply(&json!({"verdict": "yes", "word": "THREE"}))]);
    let envelope = run(&place, &mock, &["run", "./m", "--pdf", "a.pdf", "--evidence", "grounding"]);
    let found = &envelope["meta"]["evidence"]["grounding"]["found"][0];
    assert_eq!(
        (&found["path"], &found["source"], &found["page"]),
        (&json!("data.word"), &json!("input.paper"), &json!(3))
    );
    // The text of the page as another command prints it.
    let pages = stdout_json(&place.cog(["media", "text", "a.pdf", "--format", "json"]).output().unwrap());
    let page = pages["pages"].as_array().unwrap().iter().find(|page| page["page"] == 3).unwrap();
    let at = |key: &str| usize::try_from(found[key].as_u64().unwrap()).unwrap();
    let text: String = page["text"].as_str().unwrap().chars().skip(at("offset")).take(at("length")).collect();
    assert_eq!(text, "Three");
}

#[test]
fn picture_has_no_text_to_search() {
    let place = place("modalities: {input: [text, image], output: [text]}\n");
    place.write("a.gif", PIXEL);
    let mock = Mock::start([reply(&json!({"verdict": "yes", "word": "three"}))]);
    let envelope = run(&place, &mock, &["run", "./m", "--file", "paper=a.gif", "--evidence", "grounding"]);
    assert_eq!(envelope["meta"]["evidence"]["grounding"], Value::Null);
    let warnings = envelope["_warnings"].as_array().unwrap();
    let absent = warnings.iter().find(|warning| warning["code"] == "W4026").unwrap();
    assert_eq!(
        absent["message"],
        "There is no grounding: input.paper (image) has no text that can be searched."
    );
}

#[test]
fn agreement_of_runs_and_of_rows() {
    let place = place("");
    let mock = Mock::start([reply(&json!({"verdict": "yes"}))]);
    let envelope = run(&place, &mock, &["run", "./m", "--args", "x", "--evidence", "agreement=3"]);
    let agreement = json!({"value": 1.0, "runs": 3, "fields": {"verdict": 3}});
    assert_eq!(envelope["meta"]["evidence"]["agreement"], agreement);
    assert_eq!((&envelope["meta"]["usage"]["input_tokens"], mock.request_count()), (&json!(300), 3));

    place.write("rows.jsonl", "{\"query\": \"a\"}\n{\"query\": \"b\"}\n");
    let mut command =
        place.cog(["batch", "./m", "rows.jsonl", "-o", "out.jsonl", "--evidence", "agreement=2"]);
    command.args(["--provider", "openai", "--model", "mock-model"]);
    command.env("OPENAI_API_KEY", "sk-canary").env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    for line in place.read("out.jsonl").lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        assert_eq!(row["meta"]["evidence"]["agreement"]["runs"], 2);
    }
    assert_eq!(mock.request_count(), 3 + 2 * 2);
}

#[test]
fn job_of_a_vendor_has_one_request_for_each_row() {
    let place = place("confidence: {evidence: [agreement]}\n");
    place.write("rows.jsonl", "{\"query\": \"a\"}\n");
    let mut command = place.cog(["batch", "./m", "rows.jsonl", "-o", "out.jsonl", "--via", "openai"]);
    let output = command.env("OPENAI_API_KEY", "sk-canary").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    assert!(text.contains("`agreement=5` needs 5") && text.contains("--evidence none"), "{text}");
}

#[test]
fn unknown_evidence_is_a_usage_error() {
    let place = place("");
    let output = place.cog(["run", "./m", "--args", "x", "--evidence", "opinion"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("allowed: agreement, agreement=2 to 20, grounding"),
        "{}",
        stderr(&output)
    );
    let manifest = "confidence: {evidence: [agreement=1, grounding], feilds: [verdict]}\n";
    let output = self::place(manifest).cog(["validate", "./m"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let text = stderr(&output) + &crate::support::stdout(&output);
    assert!(text.contains("agreement=2 to agreement=20") && text.contains("feilds"), "{text}");
}
