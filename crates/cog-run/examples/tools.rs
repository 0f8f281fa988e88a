//! Calls tools during a run, and halts before one that deletes something: `cargo run -p cog-run --example tools`.
//!
//! This is exercise 2 of appendix A: the run ends in place of the deletion, and continues after a person typed YES.
#![expect(clippy::print_stdout, reason = "an example prints its answer")]

#[path = "tools/model.rs"]
mod model;

use std::{error::Error, sync::Arc};

use cog_run::tools::{Decision, ToolInfo};
use cog_run::{Envelope, Finder, RunInput, RunOptions, Runtime, Value};

use model::Administrator;

/// A module that may call two tools.
const MANIFEST: &str = "name: administrator
version: 1.0.0
responsibility: Administers databases
tier: decision
excludes: [deleting without a confirmation]
policies: { tools_allowed: true, side_effects: allow }
tools: { policy: deny_by_default, allowed: [list_databases, delete_database] }
";
const PROMPT: &str = "Do what $ARGUMENTS requests. List the databases first.";
const SCHEMA: &str = r#"{
    "input": {"type": "object", "required": ["query"], "properties": {"query": {"type": "string"}}},
    "data": {"type": "object", "required": ["done", "rationale"],
        "properties": {"done": {"type": "boolean"}, "rationale": {"type": "string"}}}}"#;

/// Creates a runtime with the two tools. The model is a script, so that the example needs no key.
fn runtime(modules: &std::path::Path) -> Result<Runtime, Box<dyn Error>> {
    let none = Value::parse(r#"{"type": "object", "properties": {}}"#)?;
    let list = ToolInfo::new("list_databases", "Lists the databases.", &none)?
        .function(async |_, _| Ok(serde_json::json!({ "databases": ["prod", "test"] })));
    let name =
        r#"{"type": "object", "required": ["name"], "properties": {"name": {"enum": ["prod", "test"]}}}"#;
    let delete = ToolInfo::new("delete_database", "Deletes a database.", &Value::parse(name)?)?
        .with_confirmation()
        .function(async |arguments: Value, _| {
            Ok(serde_json::json!({ "deleted": arguments.get("name").is_some() }))
        });
    let runtime = Runtime::builder()
        .provider(Arc::new(Administrator::new()))
        .finder(Finder::new(".", vec![modules.to_owned()], None))
        .tool(Arc::new(list))
        .tool(Arc::new(delete))
        .build()?;
    Ok(runtime)
}

/// Runs to the halt, and returns that envelope and the one after the decision.
#[expect(clippy::disallowed_methods, reason = "the module is written to a temporary directory")]
async fn administer(decision: Decision) -> Result<(Envelope, Envelope), Box<dyn Error>> {
    let modules = tempfile::tempdir()?;
    let directory = modules.path().join("administrator");
    std::fs::create_dir_all(&directory)?;
    for (name, text) in [("module.yaml", MANIFEST), ("prompt.md", PROMPT), ("schema.json", SCHEMA)] {
        std::fs::write(directory.join(name), text)?;
    }
    let runtime = runtime(modules.path())?;
    let module = runtime.load("administrator")?;
    let halted = runtime.run(&module, RunInput::text("Delete prod."), RunOptions::default()).await;
    let details = halted.error().and_then(|error| error.details.as_ref()).ok_or("the run was not halted")?;
    let id = details.pointer("/halted/id").and_then(|id| id.as_str()).ok_or("no id")?.to_owned();
    let continued = runtime.continue_run(&id, decision, RunOptions::default()).await;
    Ok((halted, continued))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (halted, continued) = administer(Decision::yes()).await?;
    println!("{:?}\n{}", halted.error(), continued.into_result()?.meta.explain);
    Ok(())
}

#[tokio::test]
async fn deletion_waits_for_the_confirmation() {
    let (halted, continued) = administer(Decision::yes()).await.unwrap();
    let error = halted.error().unwrap();
    assert_eq!(error.code.as_str(), "E4007");
    let details = error.details.as_ref().unwrap().to_serde();
    assert_eq!(details["halted"]["tool"], "delete_database");
    let message = &details["messages"][0];
    let content: serde_json::Value = serde_json::from_str(message["content"].as_str().unwrap()).unwrap();
    assert_eq!(message["role"], "tool");
    assert_eq!(content["status"], "halted");
    assert_eq!(content["reason"], "human_confirmation_required");
    assert_eq!(continued.into_result().unwrap().meta.explain, r#"{"status":"success","deleted":true}"#);
}

#[tokio::test]
async fn denied_deletion_is_reported_to_the_model() {
    let (_, continued) = administer(Decision::Deny).await.unwrap();
    assert!(continued.into_result().unwrap().meta.explain.contains("PERMISSION_DENIED"));
}
