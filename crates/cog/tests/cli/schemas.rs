//! Checks the output of the program against the schemas of `cog schema`.

use cog_harmony::{Message, Part, Role};
use cog_json::ToJson;
use cog_run::{RunInput, RunOptions, Runtime};
use futures_util::StreamExt as _;
use serde_json::{Value, json};

use crate::support::{Place, json as stdout_json};

fn schema(name: &str) -> jsonschema::Validator {
    let schema = stdout_json(&Place::new().cog(["schema", name]).output().unwrap());
    jsonschema::draft7::meta::validate(&schema).unwrap();
    jsonschema::draft7::new(&schema).unwrap()
}

fn parse(value: &impl ToJson) -> Value {
    serde_json::from_str(&value.to_json()).unwrap()
}

#[track_caller]
fn fits(validator: &jsonschema::Validator, value: &Value) {
    let errors: Vec<String> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?} in {value:#}");
}

#[test]
fn envelopes() {
    let validator = schema("envelope");
    let place = Place::new();
    for args in [
        &["run", "code-reviewer", "--args", "x"][..],
        &["run", "code-reviewer", "--input-json", "{}"],
        &["run", "nothing", "--args", "x"],
    ] {
        fits(&validator, &stdout_json(&place.cog(args.iter().copied()).output().unwrap()));
    }
    let both = json!({"ok": true, "meta": {"confidence": 1, "risk": "low", "explain": ""}, "data": {},
        "error": {"code": "E1000", "message": "m"}});
    assert!(!validator.is_valid(&both));
}

#[tokio::test]
async fn chunks() {
    let validator = schema("chunk");
    let runtime = Runtime::offline();
    let module = runtime.load("code-reviewer").unwrap();
    let input = RunInput::Args("x".to_owned());
    let chunks: Vec<_> = runtime.stream(&module, input, RunOptions::default()).ok().unwrap().collect().await;
    assert!(chunks.len() > 5);
    for chunk in &chunks {
        fits(&validator, &parse(chunk));
    }
    assert!(
        !validator.is_valid(&json!({"chunk": {"seq": 0, "type": "delta", "field": "data.x", "delta": ""}}))
    );
}

#[test]
fn manifests() {
    let validator = schema("manifest");
    let place = Place::new();
    for name in ["code-reviewer", "task-prioritizer", "image-analyzer", "api-designer"] {
        let info = stdout_json(&place.cog(["info", name, "--format", "json"]).output().unwrap());
        fits(&validator, &info["manifest"]);
    }
    assert!(!validator.is_valid(&json!({"name": "A", "version": "1.0.0", "responsibility": "x"})));
}

#[test]
fn expected_answers() {
    let validator = schema("expected");
    let mut checked = 0;
    let modules = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../modules");
    for module in std::fs::read_dir(modules).unwrap() {
        for file in std::fs::read_dir(module.unwrap().path().join("tests")).into_iter().flatten() {
            let path = file.unwrap().path();
            if path.to_string_lossy().ends_with(".expected.json") {
                let text = cog_module::files::read_text(&path, 1 << 20).unwrap();
                fits(&validator, &serde_json::from_str(&text).unwrap());
                checked += 1;
            }
        }
    }
    assert!(checked > 20, "{checked}");
    for wrong in [
        json!({ "_validate": [] }),
        json!({ "_validate": { "required": "data" } }),
        json!({ "$validate": { "label": 7 } }),
        json!({ "$judge": "It is right." }),
        json!({ "$judge": [" "] }),
    ] {
        assert!(!validator.is_valid(&wrong), "{wrong}");
    }
}

#[test]
fn settings() {
    let validator = schema("settings");
    let price = |price: Value| json!({ "providers": { "custom": { "prices": { "m": price } } } });
    let mcp = json!({ "command": "files", "confirm": ["write_*"], "oauth": { "callback_port": 1 } });
    for valid in [
        json!({ "provider": "openai", "retries": 3, "server": { "port": 8000, "listen": "127.0.0.1" } }),
        json!({ "mcp": { "files": mcp } }),
        price(json!({ "input": 0.1, "output": 0.5 })),
    ] {
        fits(&validator, &valid);
    }
    for wrong in [
        price(json!({ "input": 0.1 })),
        json!({ "timout": "2m" }),
        json!({ "effort": "huge" }),
        json!({ "logs": { "content": true } }),
        json!({ "server": { "prot": 8000 } }),
    ] {
        assert!(!validator.is_valid(&wrong), "{wrong}");
    }
}

#[test]
fn messages() {
    let validator = schema("message");
    let rendered = Place::new().cog(["render", "code-reviewer", "--args", "x"]).output().unwrap();
    for message in stdout_json(&rendered)["messages"].as_array().unwrap() {
        fits(&validator, message);
    }
    let mut tool = Message::new(Role::Tool, vec![Part::text("{}")]);
    tool.tool_call_id = Some("call_1".to_owned());
    fits(&validator, &parse(&tool));
    assert!(!validator.is_valid(&json!({"role": "tool", "content": "{}"})));
}

#[test]
fn handoffs() {
    let validator = schema("handoff");
    let mut packet = json!({
        "protocol": "harmony_handoff_v1",
        "meta": {"source_agent": "planner", "target_agent": "coder", "timestamp": "2024-03-20T10:00:00Z"},
        "context": {"primary_objective": "Build it", "constraints": [], "artifacts": {"doc": "s3://bucket/spec.md"}}
    });
    fits(&validator, &packet);
    packet["context"] = json!({});
    assert!(!validator.is_valid(&packet));
}

#[test]
fn capabilities() {
    let validator = schema("capabilities");
    fits(&validator, &stdout_json(&Place::new().cog(["capabilities"]).output().unwrap()));
    assert!(!validator.is_valid(&json!({"runtime": "cog", "version": "1", "capabilities": {}})));
}

#[test]
fn examples() {
    for name in ["envelope", "chunk"] {
        let place = Place::new();
        let document = stdout_json(&place.cog(["schema", name]).output().unwrap());
        let examples = document["examples"].as_array().unwrap();
        assert!(examples.len() > 1);
        examples.iter().for_each(|example| fits(&schema(name), example));
    }
}
