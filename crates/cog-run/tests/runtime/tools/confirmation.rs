//! Calls that a person must confirm: halted, stored, and continued once (appendix A, exercise 2).

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use cog_run::{
    Risk, RunOptions,
    events::Trace,
    provider::ModelEvent,
    tools::{Decision, PendingApprovals},
};
use cog_spec::Envelope;
use serde_json::json;

use super::script::{SIDE_EFFECTS, Setup, answer, calls, info, results};
use crate::support::{code, write};

/// A tool that counts its calls.
struct Counted {
    setup: Setup,
    calls: Arc<AtomicUsize>,
}

impl Counted {
    fn new(replies: impl IntoIterator<Item = Vec<ModelEvent>>) -> Self {
        let calls = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&calls);
        let delete = info("delete_database").with_confirmation().function(move |_, _| {
            counter.fetch_add(1, Ordering::SeqCst);
            async { Ok(json!({ "deleted": true })) }
        });
        let look = info("look").function(async |_, _| Ok("seen"));
        let setup = Setup::new(&["delete_database", "look"], replies).tool(delete).tool(look);
        Self { setup, calls }
    }

    fn count(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    async fn proceed(&self, id: &str, decision: Decision) -> Envelope {
        self.setup.runtime().continue_run(id, decision, RunOptions::default()).await
    }
}

fn delete(id: &str) -> Vec<ModelEvent> {
    calls(&[(id, "delete_database", r#"{"name": "prod"}"#)])
}

/// Returns `error.details` of a halted run.
fn halted(envelope: &Envelope) -> serde_json::Value {
    let error = envelope.error().unwrap();
    assert_eq!(error.code.as_str(), "E4007", "{error:?}");
    let details = error.details.as_ref().unwrap().to_serde();
    assert_eq!(details["reason"], "human_confirmation_required");
    details
}

fn id_of(envelope: &Envelope) -> String {
    halted(envelope)["halted"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn call_is_halted_and_continues_in_another_runtime() {
    let replies =
        [calls(&[("c1", "look", "{}"), ("c2", "delete_database", r#"{"name": "prod"}"#)]), answer()];
    let mut counted = Counted::new(replies);
    let directory = tempfile::tempdir().unwrap();
    counted.setup.halted = PendingApprovals::in_directory(directory.path().join("halted"));
    let envelope = counted.setup.run().await;
    let details = halted(&envelope);
    let expected = json!({ "name": "prod" });
    assert_eq!(
        (&details["halted"]["tool"], &details["halted"]["arguments"]),
        (&json!("delete_database"), &expected)
    );
    let id = id_of(&envelope);
    let suggestion = envelope.error().unwrap().suggestion.as_deref().unwrap();
    assert!(suggestion.contains("person") && !suggestion.contains(&id), "an agent reads it: {suggestion}");
    assert_eq!((counted.count(), counted.setup.provider.requests().len()), (0, 1));
    let message: serde_json::Value =
        serde_json::from_str(details["messages"][1]["content"].as_str().unwrap()).unwrap();
    assert_eq!((&message["status"], &message["reason"]), (&json!("halted"), &details["reason"]));

    let other = PendingApprovals::in_directory(directory.path().join("halted"));
    counted.setup.halted = other;
    let envelope = counted.proceed(&id, Decision::yes()).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    assert_eq!(counted.count(), 1);
    let sent = results(&counted.setup);
    assert_eq!(sent[0], ("c1".to_owned(), json!({ "status": "success", "result": "seen" })));
    assert_eq!(sent[1], ("c2".to_owned(), json!({ "status": "success", "deleted": true })));
    assert_eq!(
        code(&counted.proceed(&id, Decision::yes()).await),
        Some("E4014"),
        "a confirmation counts once"
    );
    assert_eq!(counted.count(), 1);
}

#[tokio::test]
async fn denied_call_is_an_error_for_the_model() {
    let counted = Counted::new([delete("c1"), answer()]);
    let id = id_of(&counted.setup.run().await);
    assert!(counted.proceed(&id, Decision::Deny).await.is_ok());
    let sent = results(&counted.setup);
    assert_eq!((&sent[0].1["status"], &sent[0].1["code"]), (&json!("error"), &json!("E4007")));
    assert_eq!(counted.count(), 0);
}

#[tokio::test]
async fn any_text_but_yes_leaves_the_run_halted() {
    let counted = Counted::new([delete("c1"), answer()]);
    let id = id_of(&counted.setup.run().await);
    for text in ["", "yes", "Y", "YES ", "NO"] {
        let again = counted.proceed(&id, Decision::Approve(text.to_owned())).await;
        assert_eq!(id_of(&again), id, "{text}");
    }
    assert!(counted.proceed(&id, Decision::yes()).await.is_ok());
    assert_eq!(counted.count(), 1);
}

#[tokio::test]
async fn confirmation_is_for_one_call_only() {
    let counted = Counted::new([delete("c1"), delete("c2"), answer()]);
    let first = id_of(&counted.setup.run().await);
    let second = counted.proceed(&first, Decision::yes()).await;
    assert_eq!(counted.count(), 1);
    assert_ne!(id_of(&second), first, "the same call with the same arguments is halted again");
    assert!(counted.proceed(&id_of(&second), Decision::yes()).await.is_ok());
    assert_eq!(counted.count(), 2);
}

#[tokio::test]
async fn two_calls_of_one_round_are_confirmed_in_order() {
    let both = calls(&[("c1", "delete_database", r#"{"a": 1}"#), ("c2", "delete_database", r#"{"a": 2}"#)]);
    let counted = Counted::new([both, answer()]);
    let first = counted.setup.run().await;
    assert_eq!(halted(&first)["halted"]["call_id"], "c1");
    let second = counted.proceed(&id_of(&first), Decision::Deny).await;
    assert_eq!(halted(&second)["halted"]["call_id"], "c2");
    assert!(counted.proceed(&id_of(&second), Decision::yes()).await.is_ok());
    assert_eq!(counted.count(), 1);
    let sent = results(&counted.setup);
    assert_eq!((&sent[0].1["status"], &sent[1].1["status"]), (&json!("error"), &json!("success")));
}

#[tokio::test]
async fn unknown_ids_and_those_of_another_owner_are_refused() {
    let counted = Counted::new([delete("c1"), answer()]);
    let id = id_of(
        &counted.setup.run_with(RunOptions { owner: Some("anna".to_owned()), ..RunOptions::default() }).await,
    );
    for id in [id.as_str(), "halt_0", "../x", &format!("halt_{}", "0".repeat(32))] {
        assert_eq!(code(&counted.proceed(id, Decision::yes()).await), Some("E4013"), "{id}");
    }
    let other = RunOptions { owner: Some("ben".to_owned()), ..RunOptions::default() };
    let refused = counted.setup.runtime().continue_run(&id, Decision::yes(), other).await;
    assert_eq!(code(&refused), Some("E4013"));
    let own = RunOptions { owner: Some("anna".to_owned()), ..RunOptions::default() };
    assert!(counted.setup.runtime().continue_run(&id, Decision::yes(), own).await.is_ok());
}

#[tokio::test]
async fn changed_module_is_refused_with_what_changed() {
    let counted = Counted::new([delete("c1"), answer()]);
    let id = id_of(&counted.setup.run().await);
    write(&counted.setup.directory, "prompt.md", "Do something different.");
    let refused = counted.proceed(&id, Decision::yes()).await;
    assert_eq!(code(&refused), Some("E4014"));
    let details = refused.error().unwrap().details.as_ref().unwrap().to_serde();
    assert_eq!(details["changed"], json!(["prompt"]));
    assert_eq!(counted.count(), 0);
}

#[tokio::test]
async fn tool_that_is_gone_is_an_error_for_the_model() {
    let counted = Counted::new([delete("c1"), answer()]);
    let id = id_of(&counted.setup.run().await);
    let setup = Setup { directory: counted.setup.directory, ..Setup::new(&[], [answer()]) };
    let setup = Setup { halted: counted.setup.halted, ..setup };
    let setup = setup.tool(info("look").function(async |_, _| Ok("seen")));
    let envelope = setup.runtime().continue_run(&id, Decision::yes(), RunOptions::default()).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    assert_eq!(results(&setup)[0].1["code"], "E1006");
}

#[tokio::test]
async fn run_of_high_risk_halts_every_tool_with_side_effects() {
    let send = || info("send").with_effects(SIDE_EFFECTS).function(async |_, _| Ok("sent"));
    let manifest = ["policies: { tools_allowed: true, side_effects: allow }", "tools: { allowed: [send] }"];
    let requested = || calls(&[("c1", "send", "{}")]);
    let setup = Setup::with_manifest(&manifest, [requested(), answer()]).tool(send());
    assert!(setup.run_with(RunOptions { risk: Some(Risk::Medium), ..RunOptions::default() }).await.is_ok());
    let setup = Setup::with_manifest(&manifest, [requested(), answer()]).tool(send());
    assert_eq!(
        halted(&setup.run_with(RunOptions { risk: Some(Risk::High), ..RunOptions::default() }).await)["halted"]
            ["tool"],
        "send"
    );
}

#[tokio::test]
async fn result_of_high_risk_makes_the_run_one_of_high_risk() {
    let send = info("send").with_effects(SIDE_EFFECTS).function(async |_, _| Ok("sent"));
    let assess = info("assess").function(async |_, _| {
        let mut output = cog_run::tools::ToolOutput::from("dangerous");
        output.is_high_risk = true;
        Ok(output)
    });
    let manifest =
        ["policies: { tools_allowed: true, side_effects: allow }", "tools: { allowed: [send, assess] }"];
    let replies = [calls(&[("c1", "assess", "{}")]), calls(&[("c2", "send", "{}")]), answer()];
    let setup = Setup::with_manifest(&manifest, replies).tool(send).tool(assess);
    assert_eq!(halted(&setup.run().await)["halted"]["call_id"], "c2");
}

#[tokio::test]
async fn continued_run_uses_its_options_and_sums_its_tokens() {
    let usage = cog_run::provider::Usage { input_tokens: 10, output_tokens: 1, ..Default::default() };
    let counted = |mut events: Vec<ModelEvent>| {
        events.insert(0, ModelEvent::Usage(usage.clone()));
        events
    };
    let counted = Counted::new([counted(delete("c1")), counted(answer())]);
    let options =
        RunOptions { model: Some("larger".to_owned()), risk: Some(Risk::High), ..RunOptions::default() };
    let id = id_of(&counted.setup.run_with(options).await);
    let run = counted.setup.runtime().pending_approval(&id, None).unwrap();
    assert_eq!((run.tool.as_str(), run.arguments.to_serde()), ("delete_database", json!({ "name": "prod" })));
    assert_eq!((run.provider.as_deref(), run.model.as_deref()), (Some("scripted"), Some("larger")));
    let envelope = counted.proceed(&id, Decision::yes()).await;
    assert_eq!(envelope.meta.runtime.usage.unwrap().input_tokens, 20);
    assert_eq!(counted.setup.provider.requests()[1].model, "larger");
}

#[tokio::test]
async fn trace_of_a_continued_run_is_in_the_order_of_time() {
    let counted = Counted::new([delete("c1"), answer()]);
    let traced =
        |trace: &Trace| RunOptions { events: vec![Arc::new(trace.clone())], ..RunOptions::default() };
    let id = id_of(&counted.setup.run_with(traced(&Trace::default())).await);
    tokio::time::sleep(Duration::from_millis(20)).await;
    let trace = Trace::default();
    let envelope = counted.setup.runtime().continue_run(&id, Decision::yes(), traced(&trace)).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    let times: Vec<_> = trace.messages().0.iter().map(|message| message.created_at.unwrap()).collect();
    assert!(times.len() == 5 && times.is_sorted(), "{times:?}");
}

#[cfg(unix)]
#[tokio::test]
async fn state_is_readable_by_its_user_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut counted = Counted::new([delete("c1"), answer()]);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("halted");
    counted.setup.halted = PendingApprovals::in_directory(&path);
    let id = id_of(&counted.setup.run().await);
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(&path.join(format!("{id}.json")))), (0o700, 0o600));
}
