//! Parts with tools whose calls a person must confirm.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use cog_json::Value;
use cog_run::{
    ModuleRef, RunOptions, Runtime,
    sessions::{ResumeFrom, RunSpec, SessionSettings, Sessions, StartFrom},
    tools::{Approval, Decision, PendingApprovals, ToolInfo},
};
use cog_spec::Envelope;

use super::support::{Bench, MAP, Says, answer, code, parts, result, session_of};

const TOOLS: &str = "policies: {tools_allowed: true}\ntools: {allowed: [delete]}";
const CALL: Says = Says::Call("delete");

/// A composition whose modules may call the tool `delete`, which counts its calls.
struct Confirmed {
    bench: Bench,
    halted: PendingApprovals,
    calls: Arc<AtomicUsize>,
    /// The tool needs no confirmation in the runtimes that follow.
    is_lax: bool,
}

impl Confirmed {
    fn new(composition: &str, prompt: &str, names: &[&str], replies: &[(&str, &[Says])]) -> Self {
        let bench = Bench::new(composition, prompt, &[], replies);
        names.iter().for_each(|name| bench.module(name, TOOLS, "Answer."));
        Self { bench, halted: PendingApprovals::default(), calls: Arc::default(), is_lax: false }
    }

    /// Returns a new runtime, as another process has it.
    fn runtime(&self) -> Runtime {
        let calls = Arc::clone(&self.calls);
        let parameters = Value::parse(r#"{"type": "object"}"#).unwrap();
        let delete = ToolInfo::new("delete", "Deletes it.", &parameters).unwrap();
        let delete = if self.is_lax { delete } else { delete.with_confirmation() };
        let delete = delete.function(move |_: Value, _| {
            calls.fetch_add(1, Ordering::SeqCst);
            async { Ok("deleted") }
        });
        self.bench.builder().pending_approvals(self.halted.clone()).tool(Arc::new(delete)).build().unwrap()
    }

    async fn run(&self) -> Envelope {
        let runtime = self.runtime();
        let module = runtime.load(ModuleRef::Name("whole")).unwrap();
        runtime.run(&module, super::support::input(), RunOptions::default()).await
    }

    async fn proceed(&self, id: &str, decision: Decision) -> Envelope {
        self.runtime().continue_run(id, decision, RunOptions::default()).await
    }

    fn called(&self) -> Vec<String> {
        self.bench.provider.called()
    }

    fn count(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

/// Returns the id and the path of the part that waits for a confirmation.
fn halted(envelope: &Envelope) -> (String, Option<String>) {
    assert_eq!(code(envelope), "E4007", "{:?}", envelope.error());
    let details = envelope.error().unwrap().details.as_ref().unwrap().to_serde();
    assert_eq!(details["reason"], "human_confirmation_required");
    let text = |name: &str| details["halted"][name].as_str().map(str::to_owned);
    (text("id").unwrap(), text("part"))
}

const CHAIN: &str = "  requires: [{name: one}, {name: two}, {name: three}]
  dataflow:
    - {from: input, to: one}
    - {from: one.output, to: two, mapping: {query: $.data.result}}
    - {from: two.output, to: three, mapping: {query: $.data.result}}";

fn chain() -> String {
    format!("composition:\n{CHAIN}\n    - {{from: three.output, to: output, {MAP}}}")
}

#[tokio::test]
async fn halted_part_continues_and_the_parts_that_are_done_are_not_called_again() {
    let mut confirmed =
        Confirmed::new(&chain(), "", &["one", "two", "three"], &[("two", &[CALL, result("deleted it")])]);
    let directory = tempfile::tempdir().unwrap();
    confirmed.halted = PendingApprovals::in_directory(directory.path().join("halted"));
    let envelope = confirmed.run().await;
    let (id, part) = halted(&envelope);
    assert_eq!(part.as_deref(), Some("two"));
    assert_eq!(parts(&envelope), ["one done", "two failed"]);
    assert_eq!((confirmed.count(), confirmed.called()), (0, vec!["one".to_owned(), "two".to_owned()]));
    let run = confirmed.runtime().pending_approval(&id, None).unwrap();
    assert_eq!((run.tool.as_str(), run.arguments.to_string().as_str()), ("delete", r#"{"name":"prod"}"#));

    confirmed.halted = PendingApprovals::in_directory(directory.path().join("halted"));
    let again = confirmed.proceed(&id, Decision::Approve("yes".to_owned())).await;
    assert_eq!(halted(&again).0, id, "only YES confirms the call");
    let envelope = confirmed.proceed(&id, Decision::yes()).await;
    assert_eq!(answer(&envelope), "three");
    assert_eq!(confirmed.called(), ["one", "two", "two", "three"]);
    assert_eq!(confirmed.count(), 1);
    assert!(confirmed.bench.provider.received("three")[0].contains("deleted it"));
    let restored: Vec<_> = envelope.meta.runtime.parts.iter().map(|part| part.restored).collect();
    assert_eq!(restored, [true, false, false]);
    assert_eq!(envelope.usage().map(|usage| usage.input_tokens), Some(40), "each call counts once");
    assert_eq!(code(&confirmed.proceed(&id, Decision::yes()).await), "E4014", "a confirmation counts once");
}

#[tokio::test]
async fn denied_call_of_a_part_is_an_error_for_its_model() {
    let replies: [(&str, &[Says]); 1] = [("two", &[CALL, result("left it")])];
    let confirmed = Confirmed::new(&chain(), "", &["one", "two", "three"], &replies);
    let (id, _) = halted(&confirmed.run().await);
    let envelope = confirmed.proceed(&id, Decision::Deny).await;
    assert_eq!((answer(&envelope).as_str(), confirmed.count()), ("three", 0));
    assert!(confirmed.bench.provider.received("three")[0].contains("left it"));
}

#[tokio::test]
async fn denied_call_of_a_part_is_not_executed_by_a_runtime_that_requires_no_confirmation() {
    let replies: [(&str, &[Says]); 1] = [("leaf", &[CALL, result("left it")])];
    let mut confirmed = Confirmed::new(&chain(), "", &["one", "leaf", "three"], &replies);
    confirmed.bench.module("two", "", "Then @call:leaf");
    let (id, part) = halted(&confirmed.run().await);
    assert_eq!(part.as_deref(), Some("two/leaf"));
    confirmed.is_lax = true;
    let envelope = confirmed.proceed(&id, Decision::Deny).await;
    assert_eq!((answer(&envelope).as_str(), confirmed.count()), ("three", 0));
    assert!(confirmed.bench.provider.received("two")[0].contains("left it"));
}

#[tokio::test]
async fn confirmation_of_one_part_leaves_another_halted_in_a_runtime_that_requires_none() {
    let composition = format!(
        "composition:
  pattern: parallel
  requires: [{{name: one}}, {{name: two}}]
  dataflow:
    - {{from: input, to: [one, two]}}
    - {{from: two.output, to: output, {MAP}}}"
    );
    let both: [(&str, &[Says]); 2] = [("one", &[CALL, result("a")]), ("two", &[CALL, result("b")])];
    let mut confirmed = Confirmed::new(&composition, "", &["one", "two"], &both);
    let (first, _) = halted(&confirmed.run().await);
    confirmed.is_lax = true;
    let (second, _) = halted(&confirmed.proceed(&first, Decision::yes()).await);
    assert_eq!(confirmed.count(), 1);
    assert!(confirmed.proceed(&second, Decision::Deny).await.is_ok());
    assert_eq!(confirmed.count(), 1);
}

#[tokio::test]
async fn halted_part_that_has_changed_does_not_start_from_the_beginning() {
    let replies: [(&str, &[Says]); 1] = [("two", &[CALL, CALL, result("deleted it")])];
    let mut confirmed = Confirmed::new(&chain(), "", &["one", "two", "three"], &replies);
    let (id, _) = halted(&confirmed.run().await);
    confirmed.is_lax = true;
    confirmed.bench.module("two", TOOLS, "Answer in another way.");
    let envelope = confirmed.proceed(&id, Decision::Deny).await;
    let details = envelope.error().unwrap().details.as_ref().unwrap().to_serde();
    assert_eq!((code(&envelope), &details["error"]["code"]), ("E3002", &"E4014".into()));
    assert_eq!((confirmed.count(), confirmed.called()), (0, vec!["one".to_owned(), "two".to_owned()]));
}

#[tokio::test]
async fn part_of_a_part_continues() {
    let replies: [(&str, &[Says]); 1] = [("leaf", &[CALL, result("done")])];
    let confirmed = Confirmed::new(&chain(), "", &["one", "leaf", "other", "three"], &replies);
    confirmed.bench.module("two", "", "First @call:other, then @call:leaf");
    let (id, part) = halted(&confirmed.run().await);
    assert_eq!(part.as_deref(), Some("two/leaf"));
    let envelope = confirmed.proceed(&id, Decision::yes()).await;
    assert_eq!(answer(&envelope), "three");
    assert_eq!(confirmed.called(), ["one", "other", "leaf", "leaf", "two", "three"]);
    assert_eq!(confirmed.count(), 1);
}

#[tokio::test]
async fn parts_that_wait_at_the_same_time_are_confirmed_one_after_the_other() {
    let composition = format!(
        "composition:
  pattern: parallel
  requires: [{{name: one}}, {{name: two, optional: true}}, {{name: three}}]
  dataflow:
    - {{from: input, to: [one, two, three]}}
    - {{from: three.output, to: output, {MAP}}}"
    );
    let both: [(&str, &[Says]); 2] = [("one", &[CALL, result("a")]), ("two", &[CALL, result("b")])];
    let confirmed = Confirmed::new(&composition, "", &["one", "two", "three"], &both);
    let (first, part) = halted(&confirmed.run().await);
    let (second, other) = halted(&confirmed.proceed(&first, Decision::yes()).await);
    let mut waited = [part.unwrap(), other.unwrap()];
    waited.sort();
    assert_eq!((waited, confirmed.count()), (["one".to_owned(), "two".to_owned()], 1));
    let envelope = confirmed.proceed(&second, Decision::yes()).await;
    assert_eq!((answer(&envelope).as_str(), confirmed.count()), ("three", 2));
    let mut called = confirmed.called();
    called.sort();
    assert_eq!(called, ["one", "one", "three", "two", "two"], "no call is repeated");
}

#[tokio::test]
async fn own_prompt_of_a_composed_module_continues_after_its_parts() {
    let replies: [(&str, &[Says]); 1] = [("whole", &[CALL, result("the end")])];
    let confirmed = Confirmed::new("", "", &["one"], &replies);
    confirmed.bench.module("whole", TOOLS, "Read @call:one");
    let (id, part) = halted(&confirmed.run().await);
    assert_eq!(part, None);
    let envelope = confirmed.proceed(&id, Decision::yes()).await;
    assert_eq!((answer(&envelope).as_str(), confirmed.count()), ("the end", 1));
    assert_eq!(confirmed.called(), ["one", "whole", "whole"]);
    assert_eq!(envelope.usage().map(|usage| usage.input_tokens), Some(30), "each call counts once");
}

#[tokio::test]
async fn own_prompt_as_a_step_continues() {
    let replies: [(&str, &[Says]); 1] = [("whole", &[CALL, result("merged")])];
    let composition = "composition:
  requires: [{name: one}]
  dataflow:
    - {from: input, to: one}
    - {from: one.output, to: whole, mapping: {query: $.data.result}}";
    let confirmed = Confirmed::new("", "", &["one"], &replies);
    confirmed.bench.module("whole", &format!("{TOOLS}\n{composition}"), "Merge.");
    let (id, part) = halted(&confirmed.run().await);
    assert_eq!(part.as_deref(), Some("whole"));
    let envelope = confirmed.proceed(&id, Decision::yes()).await;
    assert_eq!((answer(&envelope).as_str(), confirmed.count()), ("merged", 1));
    assert_eq!(confirmed.called(), ["one", "whole", "whole"]);
}

fn at_once() -> String {
    format!(
        "composition:
  timeout_ms: 1000
  requires: [{{name: one}}, {{name: two}}]
  dataflow:
    - {{from: input, to: [one, two]}}
    - {{from: two.output, to: output, {MAP}}}"
    )
}

#[tokio::test(start_paused = true)]
async fn confirmation_is_not_lost_when_the_time_of_the_composition_is_over() {
    let replies: [(&str, &[Says]); 2] = [("one", &[CALL, result("a")]), ("two", &[Says::Never, result("b")])];
    let confirmed = Confirmed::new(&at_once(), "", &["one", "two"], &replies);
    let envelope = confirmed.run().await;
    let (id, part) = halted(&envelope);
    assert_eq!(part.as_deref(), Some("one"));
    assert_eq!(parts(&envelope), ["one failed", "two cancelled"]);
    let envelope = confirmed.proceed(&id, Decision::yes()).await;
    assert_eq!((answer(&envelope).as_str(), confirmed.count()), ("b", 1));
}

#[tokio::test(start_paused = true)]
async fn confirmation_is_not_lost_when_another_part_fails() {
    let replies: [(&str, &[Says]); 2] = [("one", &[CALL, result("a")]), ("two", &[Says::Never, result("b")])];
    let composition = at_once().replace("{name: two}", "{name: two, timeout_ms: 400}");
    let confirmed = Confirmed::new(&composition, "", &["one", "two"], &replies);
    let envelope = confirmed.run().await;
    let (id, _) = halted(&envelope);
    assert_eq!(parts(&envelope), ["one failed", "two failed"]);
    assert_eq!(answer(&confirmed.proceed(&id, Decision::yes()).await), "b");
}

/// Halts a run, confirms it in a session, and leaves the session when the module was called so many times. Then resumes the
/// session, and returns its last line.
async fn leave_and_resume(
    confirmed: &Confirmed,
    settings: SessionSettings,
    module: &str,
    calls: usize,
) -> Value {
    let (id, _) = halted(&confirmed.run().await);
    let runtime = confirmed.runtime();
    let sessions = Sessions::open(settings.clone()).unwrap();
    let options =
        RunOptions { approval: Some(Approval { id, decision: Decision::yes() }), ..RunOptions::default() };
    let spec = RunSpec { options, ..RunSpec::new("whole", Value::null()) };
    let whole = runtime.load(ModuleRef::Name("whole")).unwrap();
    let session = sessions.prepare(&runtime, &whole, spec, session_of("ada")).unwrap().start();
    let mut reader = session.follow(StartFrom::Beginning);
    confirmed.bench.read_until(&mut reader, module, calls).await;
    let id = session.id().to_owned();
    drop((reader, session));
    sessions.idle().await;
    let sessions = match settings.state_dir.is_some() {
        true => {
            drop(sessions);
            Sessions::open(settings).unwrap()
        }
        false => sessions,
    };
    let from = ResumeFrom::default();
    let mut resumed =
        sessions.resume(&runtime, &id, "ada", from, RunOptions::default(), Box::new(())).await.unwrap();
    let mut last = None;
    while let Some(batch) = resumed.next().await {
        last = batch.entries().last().map(|entry| Value::parse(entry.json).unwrap()).or(last);
    }
    last.unwrap()
}

#[tokio::test]
async fn continued_composition_that_is_interrupted_goes_on() {
    let in_the_part: [(&str, &[Says]); 2] =
        [("two", &[CALL, Says::Never, result("deleted it")]), ("three", &[result("the end")])];
    let after_it: [(&str, &[Says]); 2] =
        [("two", &[CALL, result("deleted it")]), ("three", &[Says::Never, result("the end")])];
    for (replies, module, calls, called) in [
        (in_the_part, "two", 2, ["one", "two", "two", "two", "three"]),
        (after_it, "three", 1, ["one", "two", "two", "three", "three"]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        for settings in [
            SessionSettings::default(),
            SessionSettings { state_dir: Some(directory.path().to_path_buf()), ..SessionSettings::default() },
        ] {
            let confirmed = Confirmed::new(&chain(), "", &["one", "two", "three"], &replies);
            let last = leave_and_resume(&confirmed, settings, module, calls).await;
            let result = last.pointer("/data/result").and_then(|node| node.as_str());
            assert_eq!(result, Some("the end"), "{last}");
            assert_eq!((confirmed.called(), confirmed.count()), (called.map(str::to_owned).into(), 1));
            assert!(confirmed.bench.provider.received("three")[0].contains("deleted it"));
        }
    }
}

#[tokio::test]
async fn continued_part_of_a_part_that_is_interrupted_goes_on() {
    let replies: [(&str, &[Says]); 1] = [("leaf", &[CALL, Says::Never, result("done")])];
    let confirmed = Confirmed::new(&chain(), "", &["one", "leaf", "other", "three"], &replies);
    confirmed.bench.module("two", "", "First @call:other, then @call:leaf");
    let last = leave_and_resume(&confirmed, SessionSettings::default(), "leaf", 2).await;
    assert_eq!(last.pointer("/data/result").and_then(|node| node.as_str()), Some("three"), "{last}");
    assert_eq!(confirmed.called(), ["one", "other", "leaf", "leaf", "leaf", "two", "three"]);
    assert_eq!(confirmed.count(), 1);
}

#[tokio::test]
async fn continued_own_prompt_that_is_interrupted_goes_on() {
    let replies: [(&str, &[Says]); 1] = [("whole", &[CALL, Says::Never, result("the end")])];
    let confirmed = Confirmed::new("", "", &["one"], &replies);
    confirmed.bench.module("whole", TOOLS, "Read @call:one");
    let last = leave_and_resume(&confirmed, SessionSettings::default(), "whole", 2).await;
    assert_eq!(last.pointer("/data/result").and_then(|node| node.as_str()), Some("the end"), "{last}");
    assert_eq!((confirmed.called().len(), confirmed.count()), (4, 1));
    assert_eq!(last.pointer("/usage/input_tokens").and_then(|node| node.as_u64()), Some(30), "{last}");
}

#[tokio::test]
async fn results_of_one_module_are_confirmed_one_by_one() {
    let composition = format!(
        "composition:
  requires: [{{name: one}}]
  dataflow:
    - {{from: input, to: one, as: first}}
    - {{from: first.output, to: one, as: second, mapping: {{query: $.data.result}}}}
    - {{from: second.output, to: output, {MAP}}}"
    );
    let replies: [(&str, &[Says]); 1] = [("one", &[CALL, result("a"), CALL, result("b")])];
    let confirmed = Confirmed::new(&composition, "", &["one"], &replies);
    let (id, part) = halted(&confirmed.run().await);
    assert_eq!((part.as_deref(), confirmed.count()), (Some("first"), 0));
    let envelope = confirmed.proceed(&id, Decision::Approve("YES".to_owned())).await;
    let (id, part) = halted(&envelope);
    assert_eq!((part.as_deref(), confirmed.count()), (Some("second"), 1));
    let envelope = confirmed.proceed(&id, Decision::Approve("YES".to_owned())).await;
    assert_eq!((answer(&envelope), confirmed.count()), ("b".to_owned(), 2));
    assert_eq!(parts(&envelope), ["first done", "second done"]);
}
