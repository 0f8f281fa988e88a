//! Modules as tools.

use std::sync::Arc;

use cog_json::ToJson as _;
use cog_run::RunOptions;
use serde_json::json;
use tempfile::TempDir;

use super::script::{Setup, answer, calls, content, info, results};
use crate::support::{Scripted, directory};

/// Writes a module into a directory of modules.
fn module(modules: &TempDir, name: &str, manifest: &[&str]) {
    let source = directory("Help.", manifest);
    let target = modules.path().join(name);
    std::fs::create_dir(&target).unwrap();
    for file in ["module.yaml", "prompt.md", "schema.json"] {
        std::fs::copy(source.path().join(file), target.join(file)).unwrap();
    }
    let yaml = cog_module::files::read_text(&target.join("module.yaml"), 10_000).unwrap();
    cog_module::files::write_atomic(
        &target.join("module.yaml"),
        yaml.replace("name: m\n", &format!("name: {name}\n")),
    )
    .unwrap();
}

fn modules() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[tokio::test]
async fn envelope_of_a_module_is_the_result() {
    let modules = modules();
    module(&modules, "helper", &[]);
    let requested = calls(&[("a", "helper", r#"{"query": "how?"}"#), ("b", "helper", r#"{"count": 1}"#)]);
    let mut setup = Setup::new(&["helper"], [requested, answer()]);
    setup.modules = vec![modules.path().to_owned()];
    let envelope = setup.run().await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    let requests = setup.provider.requests();
    let tool = &requests[0].tools.as_ref().unwrap().definitions[0];
    assert_eq!((tool.name.as_str(), tool.description.as_str()), ("helper", "Answer"));
    assert!(tool.parameters.to_json().contains("query"));
    let sent = results(&setup);
    assert_eq!((&sent[0].1["status"], &sent[0].1["data"]["result"]), (&json!("success"), &json!("fine")));
    assert_eq!(sent[1].1["code"], "E1001");
    assert_eq!(requests.len(), 3, "the module called the model once");
}

#[tokio::test]
async fn tools_of_a_run_are_those_of_its_modules_too() {
    let modules = modules();
    module(&modules, "helper", &["policies: { tools_allowed: true }", "tools: { allowed: [late] }"]);
    let requested = calls(&[("a", "helper", r#"{"query": "how?"}"#)]);
    let mut setup = Setup::new(&["helper"], [requested, calls(&[("b", "late", "{}")]), answer(), answer()]);
    setup.modules = vec![modules.path().to_owned()];
    let late = Arc::new(info("late").function(async |_, _| Ok("called")));
    assert!(setup.run_with(RunOptions { tools: vec![late], ..RunOptions::default() }).await.is_ok());
    let requests = setup.provider.requests();
    let message = requests[2].messages.messages().last().unwrap();
    assert_eq!(content(message)["result"], "called");
}

#[tokio::test]
async fn module_that_agents_may_not_call_is_not_offered() {
    let modules = modules();
    module(&modules, "helper", &["invocation: { agent_invocable: false }"]);
    let mut setup = Setup::new(&["helper"], [answer()]);
    setup.modules = vec![modules.path().to_owned()];
    let envelope = setup.run().await;
    assert!(envelope.is_ok());
    assert_eq!(setup.provider.requests()[0].tools, None);
    assert!(envelope.warnings[0].message.contains("agent_invocable"), "{:?}", envelope.warnings);
}

#[tokio::test]
async fn module_that_calls_itself_is_an_error() {
    let modules = modules();
    let own = ["policies: { tools_allowed: true }", "tools: { allowed: [helper] }"];
    module(&modules, "helper", &own);
    let again = || calls(&[("a", "helper", r#"{"query": "how?"}"#)]);
    let mut setup = Setup::new(&["helper"], []);
    setup.provider = Arc::new(Scripted::new([again(), again(), answer(), answer()]));
    setup.modules = vec![modules.path().to_owned()];
    assert!(setup.run().await.is_ok());
    let requests = setup.provider.requests();
    let inner = requests[2].messages.messages().last().unwrap();
    let inner = super::script::content(inner);
    assert_eq!(inner["code"], "E4004");
    assert!(inner["message"].as_str().unwrap().contains("m → helper → helper"), "{inner}");
}

#[tokio::test]
async fn modules_are_nested_up_to_a_limit() {
    let modules = modules();
    let names = ["h1", "h2", "h3", "h4", "h5", "h6"];
    for (position, name) in names.iter().enumerate() {
        let next = names.get(position + 1).unwrap_or(&"h1");
        let allowed = format!("tools: {{ allowed: [{next}] }}");
        module(&modules, name, &["policies: { tools_allowed: true }", &allowed]);
    }
    let go = |name: &str| calls(&[("a", name, r#"{"query": "how?"}"#)]);
    let replies = names.iter().take(5).map(|name| go(name)).chain([answer()]);
    let mut setup = Setup::new(&["h1"], replies);
    setup.modules = vec![modules.path().to_owned()];
    assert!(setup.run().await.is_ok());
    let requests = setup.provider.requests();
    let codes: Vec<_> = requests
        .iter()
        .filter_map(|request| request.messages.messages().get(3).map(super::script::content))
        .map(|content| content["code"].clone())
        .collect();
    assert_eq!(codes[0], "E4005");
    assert_eq!(codes.len(), 5, "{codes:?}");
}

#[tokio::test]
async fn tool_of_a_called_module_cannot_request_a_confirmation() {
    let modules = modules();
    module(&modules, "helper", &["policies: { tools_allowed: true }", "tools: { allowed: [inner] }"]);
    module(&modules, "inner", &[]);
    let replies = [
        calls(&[("a", "helper", r#"{"query": "how?"}"#)]),
        calls(&[("b", "inner", r#"{"query": "how?"}"#)]),
        answer(),
    ];
    let mut setup = Setup::new(&["helper"], replies);
    setup.confirm = vec!["inner".to_owned()];
    setup.modules = vec![modules.path().to_owned()];
    assert!(setup.run().await.is_ok());
    let inner = &setup.provider.requests()[2];
    assert_eq!(super::script::content(inner.messages.messages().last().unwrap())["code"], "E4007");
}
