//! The part of a request that providers can cache.

use std::sync::Arc;

use cog_module::{
    Module,
    scaffold::{self, Kind},
};
use cog_run::{RunOptions, Runtime};
use cog_spec::{Dialect, Tier};
use tempfile::TempDir;

use crate::support::{Scripted, input};

/// Returns the system message and the schema of a run.
async fn stable_part(module: &str, json: &str, dialect: Dialect) -> (String, String) {
    let provider = Arc::new(Scripted::replying("{}").with_dialect(dialect));
    let runtime = Runtime::builder().provider(Arc::clone(&provider) as _).build().unwrap();
    let module: Arc<Module> = runtime.load(module).unwrap();
    let envelope = runtime
        .run(&module, input(json), RunOptions { max_attempts: Some(1), ..RunOptions::default() })
        .await;
    let requests = provider.requests();
    assert_eq!(requests.len(), 1, "{:?}", envelope.error());
    let messages = requests[0].messages.messages();
    assert_eq!(messages.len(), 2);
    assert!(messages[1].text().contains("MARK"), "the input is in the user message");
    let schema = requests[0].output.as_ref().unwrap().schema.as_ref().map(ToString::to_string);
    (messages[0].text(), schema.unwrap_or_default())
}

#[tokio::test]
async fn system_message_and_schema_do_not_depend_on_the_input() {
    let parent = TempDir::new().unwrap();
    let new = scaffold::new(parent.path(), "fresh", Kind::Answer, Tier::Decision).unwrap();
    let inputs = [
        (new.to_str().unwrap(), r#"{"query": "MARK one"}"#, r#"{"query": "MARK $ARGUMENTS, two and more"}"#),
        ("api-designer", r#"{"query": "MARK one"}"#, r#"{"query": "MARK two", "constraints": ["none"]}"#),
        ("code-reviewer", r#"{"code": "MARK one"}"#, r#"{"code": "MARK two", "language": "python"}"#),
        ("code-simplifier", r#"{"code": "MARK one"}"#, r#"{"code": "MARK two", "max_risk": "low"}"#),
        (
            "task-prioritizer",
            r#"{"tasks": [{"id": "a", "title": "MARK"}]}"#,
            r#"{"tasks": [{"id": "b", "title": "MARK", "due": "2026-12-01"}], "today": "2026-11-22"}"#,
        ),
    ];
    for (module, first, second) in inputs {
        for dialect in Dialect::ALL {
            let parts = [first, second].map(|json| stable_part(module, json, *dialect));
            let [first, second] = parts;
            let (first, second) = (first.await, second.await);
            assert_eq!(first, second, "{module} in {dialect}");
            assert!(!first.0.contains("MARK"), "{module} in {dialect}");
        }
    }
}
