use crate::support::{Place, json, snapshot};

const SCHEMA: &str = r##"{
  "meta": {"type": "object", "required": ["confidence", "risk", "explain"], "properties": {"explain": {"type": "string", "maxLength": 280}}},
  "input": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}},
  "data": {"type": "object", "required": ["rationale"], "properties": {
    "issues": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}}},
    "text": {"type": "string"}, "rationale": {"type": "string"}}},
  "error": {"type": "object", "required": ["code", "message"]}
}"##;

const PIPELINE: &str = "\
composition:
  pattern: conditional
  requires:
    - {name: reader, version: ^1.0.0, timeout_ms: 500}
    - {name: judge, optional: true, fallback: writer}
  dataflow:
    - {from: input, to: reader, mapping: {text: $.text}}
    - {from: [input, reader.output], to: [judge, writer], mapping: {text: $.input.text}, condition: $.reader.data.issues.length > 0}
    - {from: input, to: expert}
  routing:
    - {condition: $.meta.confidence >= 0.8, next: null}
    - {next: expert}
";

/// Writes a module of the tier exploration; a composed one has no prompt.
fn write(place: &Place, name: &str, composition: &str) {
    let path = format!("cognitive/modules/{name}");
    let manifest = format!(
        "name: {name}\nversion: 1.0.0\nresponsibility: Read\ntier: exploration\nexcludes: []\n{composition}"
    );
    place.write(&format!("{path}/module.yaml"), manifest).write(&format!("{path}/schema.json"), SCHEMA);
    if composition.is_empty() {
        place.write(&format!("{path}/prompt.md"), "Read $INPUT.\n");
    }
}

fn pipeline() -> Place {
    let place = Place::new();
    ["reader", "judge", "writer", "expert"].into_iter().for_each(|name| write(&place, name, ""));
    write(&place, "pipeline", PIPELINE);
    place
}

#[test]
fn graph() {
    snapshot!(pipeline().cog(["graph", "pipeline"]));
}

#[test]
fn graph_as_mermaid() {
    snapshot!(pipeline().cog(["graph", "pipeline", "--format", "mermaid"]));
}

#[test]
fn graph_of_a_module_that_calls_none() {
    snapshot!(pipeline().cog(["graph", "reader"]));
}

#[test]
fn validate_composition() {
    let place = pipeline();
    let broken = PIPELINE
        .replace("name: reader, version: ^1.0.0", "name: reder, version: ^2.0.0")
        .replace("{text: $.text}", "{txt: $.txt}")
        .replace(">= 0.8", ">= 'high'")
        .replace("length > 0", "length = 0");
    write(&place, "pipeline", &broken);
    snapshot!(place.cog(["validate", "pipeline"]));
}

#[test]
fn render_of_a_composition_names_its_parts() {
    let place = pipeline();
    let output = place.cog(["render", "pipeline", "--args", "x"]).output().unwrap();
    let notes = String::from_utf8_lossy(&output.stderr);
    assert_eq!(json(&output)["messages"].as_array().map(Vec::len), Some(0));
    assert!(
        notes.contains("sends no messages with its own input. Its parts send theirs: reader, judge"),
        "{notes}"
    );
    write(&place, "asker", "composition: {requires: [{name: reader}]}\n");
    place.write("cognitive/modules/asker/prompt.md", "Judge @call:reader.\n");
    let output = place.cog(["render", "asker", "--args", "x"]).output().unwrap();
    let notes = String::from_utf8_lossy(&output.stderr);
    assert_eq!(json(&output)["messages"].as_array().map(Vec::len), Some(2));
    assert!(notes.contains("asker calls reader first"), "{notes}");
}

#[test]
fn info_of_a_composition() {
    let place = pipeline();
    write(&place, "pipeline", &PIPELINE.replace("name: reader", "name: reeder"));
    snapshot!(place.cog(["info", "pipeline"]));
    let info = json(&pipeline().cog(["info", "pipeline", "--format", "json"]).output().unwrap());
    assert_eq!(
        info["parts"],
        serde_json::json!([
            { "name": "reader", "version": "1.0.0", "tier": "exploration", "optional": false, "timeout_ms": 500 },
            { "name": "judge", "version": "1.0.0", "tier": "exploration", "optional": true, "fallback": "writer" },
            { "name": "writer", "version": "1.0.0", "tier": "exploration", "optional": false },
            { "name": "expert", "version": "1.0.0", "tier": "exploration", "optional": false },
        ])
    );
    let composition = &info["manifest"]["composition"];
    assert_eq!((&composition["max_depth"], &composition["timeout_ms"]), (&5.into(), &60_000.into()));
    assert_eq!(composition["dataflow"][0]["mapping"]["text"], "$.text");
    assert_eq!(composition["routing"][1], serde_json::json!({ "next": "expert" }));
}

#[test]
fn info_of_calls_in_the_prompt() {
    let place = pipeline();
    write(&place, "caller", "");
    place
        .write("cognitive/modules/caller/prompt.md", "@call:reader($INPUT)[optional] @call:writer($INPUT)\n");
    let info = json(&place.cog(["info", "caller", "--format", "json"]).output().unwrap());
    assert_eq!((&info["parts"][0]["optional"], &info["parts"][1]["optional"]), (&true.into(), &false.into()));
}

#[test]
fn finding_of_a_part_is_reported_once() {
    let place = pipeline();
    let step = |to: &str| {
        format!("composition: {{dataflow: [{{from: input, to: {to}}}, {{from: {to}.output, to: output}}]}}\n")
    };
    write(&place, "middle", &step("reader").replace("from: input", "from: inpt"));
    ["first", "second"].into_iter().for_each(|name| write(&place, name, &step("middle")));
    write(&place, "ring-a", &step("ring-b"));
    write(&place, "ring-b", &step("ring-a"));
    snapshot!(place.cog(["validate", "first", "middle", "second", "ring-a", "ring-b"]));
    let alone = json(&place.cog(["validate", "first", "--format", "json"]).output().unwrap());
    assert_eq!(
        (&alone["valid"], alone["diagnostics"].as_array().unwrap().len()),
        (&false.into(), 1),
        "{alone}"
    );
}
