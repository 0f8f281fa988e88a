//! The context of a composition, and the messages that it leads to.

use std::sync::Arc;

use cog_run::{ContextScope, ContextStore, RunInput, RunOptions, Runtime};

use crate::support::{Scripted, directory, input};

const EMITTING: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "e"},
    "data": {"result": "fine", "rationale": "because"}, "error": null,
    "_emitted_context": {"session_state": {"step": 7}}}"#;

/// The lines of a manifest that reads and emits context.
const CONTEXT: [&str; 6] = [
    "context:",
    "  accepts:",
    "    - { type: environment }",
    "    - { type: session_state, from_module: m }",
    "    - { type: previous_result }",
    "  emits: [{ type: session_state, ttl: 60 }]",
];

/// Returns the user messages of the runs of a module with these options, in turn.
async fn messages(
    manifest: &[&str],
    all: Vec<(RunInput, RunOptions)>,
    runtime: impl Fn(Arc<Scripted>) -> Runtime,
) -> Vec<String> {
    let directory = directory("Answer $ARGUMENTS.", manifest);
    let provider = Arc::new(Scripted::replying(EMITTING));
    let runtime = runtime(Arc::clone(&provider));
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    for (input, options) in all {
        assert!(runtime.run(&module, input, options).await.is_ok());
    }
    provider.requests().iter().map(|request| request.messages.messages()[1].text()).collect()
}

fn plain(provider: Arc<Scripted>) -> Runtime {
    Runtime::builder().provider(provider).build().unwrap()
}

fn query() -> RunInput {
    input(r#"{"query": "why?"}"#)
}

#[tokio::test]
async fn modules_of_main_see_what_the_others_emit() {
    let given = cog_run::Value::parse(r#"{"environment": {"os": "linux"}, "user_profile": {}}"#).unwrap();
    let scope = ContextScope::new(Some(given.node()));
    // The store of another owner has nothing.
    let options = |is_fork, owner: &str| RunOptions {
        context: Some(scope.for_child(is_fork)),
        owner: Some(owner.to_owned()),
        ..RunOptions::default()
    };
    let runs = [(true, "ada"), (false, "bob"), (false, "eve")];
    let sent =
        messages(&CONTEXT, runs.map(|(is_fork, owner)| (query(), options(is_fork, owner))).into(), plain)
            .await;
    let environment = r#""environment":{"os":"linux"}"#;
    assert_eq!(sent[0], format!(r#"{{"_context":{{{environment}}}}}"#));
    assert!(!sent[1].contains("previous_result"), "a fork is not seen: {}", sent[1]);
    assert!(sent[2].contains(r#""previous_result":{"result":"fine","rationale":"because"}"#), "{}", sent[2]);
    assert!(sent[2].contains(r#""session_state":{"step":7}"#), "{}", sent[2]);
    assert!(!sent[2].contains("user_profile"), "the module does not accept it: {}", sent[2]);
    assert_eq!(scope.emitted().unwrap().to_string(), r#"{"session_state":{"step":7}}"#);
}

#[tokio::test]
async fn store_belongs_to_its_owner() {
    let options = |owner: &str| RunOptions { owner: Some(owner.to_owned()), ..RunOptions::default() };
    let runs = vec![(query(), options("ada")), (query(), options("bob")), (query(), options("ada"))];
    let store = ContextStore::default();
    let runtime = |provider: Arc<Scripted>| {
        Runtime::builder().provider(provider).context_store(store.clone()).build().unwrap()
    };
    let sent = messages(&CONTEXT, runs, runtime).await;
    let has_state: Vec<bool> = sent.iter().map(|text| text.contains("session_state")).collect();
    assert_eq!(has_state, [false, false, true]);
}

#[tokio::test]
async fn equal_calls_send_equal_messages() {
    let manifest = ["context:", "  accepts: [{ type: user_profile }, { type: environment }]"];
    let profile = r#""user_profile": {"name": "Ada"}"#;
    let environment = r#""environment": {"a": 1, "b": 2.5}"#;
    let first = format!(r#"{{"query": "why?", "_context": {{{environment}, {profile}}}}}"#);
    let second = format!(r#"{{"_context": {{{profile}, {environment}}}, "query": "why?"}}"#);
    let runs = [first, second].map(|text| (input(&text), RunOptions::default())).into();
    let sent = messages(&manifest, runs, plain).await;
    assert_eq!(sent[0], r#"{"_context":{"user_profile":{"name":"Ada"},"environment":{"a":1,"b":2.5}}}"#);
    assert_eq!(sent[0], sent[1]);
}
