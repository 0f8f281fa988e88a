//! Tool calls: the loop, policies, errors, limits, and confirmations.

mod asking;
mod confirmation;
pub(crate) mod halted_media;
mod limits;
mod modules;
pub(crate) mod script;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use cog_harmony::Role;
use cog_run::{
    Providers, RunOptions,
    provider::{
        FinishReason, ModelEvent, ModelFuture, ModelRequest, Provider, ProviderError, ProviderInfo, Usage,
    },
    tools::{ToolError, ToolOutput},
};
use cog_spec::Chunk;
use serde_json::json;

use self::script::{SIDE_EFFECTS, Setup, answer, call, calls, content, info, results};
use crate::support::{Scripted, code, sample_input};

#[tokio::test]
async fn results_are_sent_back_and_the_model_answers() {
    let add = info("add").function(async |arguments, _| {
        let number = |key| arguments.get(key).and_then(|it: cog_json::Node<'_>| it.as_i64()).unwrap_or(0);
        Ok(json!({ "sum": number("a") + number("b") }))
    });
    let replies = [calls(&[("call_1", "add", r#"{"a": 1, "b": 2}"#)]), answer()];
    let setup = Setup::new(&["add"], replies).tool(add);
    let envelope = setup.run().await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    let requests = setup.provider.requests();
    let first = requests[0].tools.as_ref().unwrap();
    assert_eq!(first.definitions.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["add"]);
    let messages = requests[1].messages.messages();
    assert_eq!(messages[2].tool_calls[0].id, "call_1");
    assert_eq!((messages[3].role, messages[3].tool_call_id.as_deref()), (Role::Tool, Some("call_1")));
    assert_eq!(messages[3].name.as_deref(), Some("add"));
    assert_eq!(content(&messages[3]), json!({ "status": "success", "sum": 3 }));
}

#[tokio::test]
async fn tools_of_a_run_replace_those_of_the_runtime() {
    let of_runtime = info("a_tool").function(async |_, _| Ok("runtime"));
    let replies = [calls(&[("a", "a_tool", "{}"), ("b", "late", "{}")]), answer(), answer()];
    let setup = Setup::new(&["a_tool", "late"], replies).tool(of_runtime);
    let of_run = |name| Arc::new(info(name).function(async |_, _| Ok("run")));
    let options = RunOptions { tools: vec![of_run("a_tool"), of_run("late")], ..RunOptions::default() };
    assert!(setup.run_with(options).await.is_ok());
    let sent: Vec<_> = results(&setup).into_iter().map(|(_, content)| content["result"].clone()).collect();
    assert_eq!(sent, [json!("run"), json!("run")]);
    let envelope = setup.run().await;
    assert!(envelope.warnings.iter().any(|warning| warning.message.contains("late")), "only for one run");
}

#[tokio::test]
async fn module_without_permission_is_offered_no_tools() {
    let add = info("add").function(async |_, _| Ok("never"));
    let setup = Setup::with_manifest(&["tools: { allowed: [add] }"], [answer()]).tool(add);
    assert!(setup.run().await.is_ok());
    assert_eq!(setup.provider.requests()[0].tools, None);
}

#[tokio::test]
async fn results_are_in_the_order_of_the_calls_although_the_first_is_slow() {
    let slow = info("slow").function(async |_, _| {
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        Ok("slow")
    });
    let fast = info("fast").function(async |_, _| Ok("fast"));
    let replies = [calls(&[("a", "slow", "{}"), ("b", "fast", "{}"), ("c", "slow", "{}")]), answer()];
    let setup = Setup::new(&["slow", "fast"], replies).tool(slow).tool(fast);
    assert!(setup.run().await.is_ok());
    let sent: Vec<_> =
        results(&setup).into_iter().map(|(id, content)| (id, content["result"].clone())).collect();
    let expected = [("a", "slow"), ("b", "fast"), ("c", "slow")];
    assert_eq!(sent, expected.map(|(id, result)| (id.to_owned(), json!(result))));
}

#[tokio::test]
async fn denied_and_unknown_calls_are_errors_and_not_executed() {
    static CALLED: AtomicUsize = AtomicUsize::new(0);
    let count = async |_, _| {
        CALLED.fetch_add(1, Ordering::SeqCst);
        Ok("called")
    };
    let delete = info("delete").with_effects(SIDE_EFFECTS).function(count);
    let secret = info("secret").function(count);
    let fine = info("fine").function(async |_, _| Ok("fine"));
    let requested = calls(&[("a", "delete", "{}"), ("b", "secret", "{}"), ("c", "nothing", "{}")]);
    let setup = Setup::new(&["delete", "fine"], [requested, answer()]).tool(delete).tool(secret).tool(fine);
    assert!(setup.run().await.is_ok());
    let offered = setup.provider.requests()[0].tools.clone().unwrap();
    assert_eq!(offered.definitions.len(), 1);
    let codes: Vec<_> = results(&setup).into_iter().map(|(_, content)| content["code"].clone()).collect();
    assert_eq!(codes, [json!("E4007"), json!("E4007"), json!("E1006")]);
    assert_eq!(CALLED.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn invalid_arguments_are_sent_back_with_every_violation() {
    let setup = Setup::new(
        &["add"],
        [calls(&[("a", "add", r#"{"a": "x", "c": 1}"#), ("b", "add", r#"{"a": 1, "b""#)]), answer()],
    );
    let setup = setup.tool(info("add").function(async |_, _| Ok("never")));
    assert!(setup.run().await.is_ok());
    let sent = results(&setup);
    let violations = sent[0].1["details"]["violations"].as_array().unwrap();
    assert_eq!((sent[0].1["status"].as_str(), violations.len()), (Some("error"), 3));
    assert_eq!((&sent[1].1["code"], &sent[1].1["error_type"]), (&json!("E1000"), &json!("PARSE_ERROR")));
    let requests = setup.provider.requests();
    let message = &requests[1].messages.messages()[2];
    assert_eq!(message.tool_calls[1].arguments, "{}", "a provider accepts only JSON");
}

#[tokio::test]
async fn errors_and_panics_of_a_tool_are_results() {
    let failing = info("failing").function(async |_, _| -> Result<ToolOutput, _> {
        Err(ToolError::new("InvalidDateRange", "The year 2023 is in the future."))
    });
    let panicking =
        info("panicking").function(async |_, _| -> Result<ToolOutput, ToolError> { panic!("oh") });
    let replies = [calls(&[("a", "failing", "{}"), ("b", "panicking", "{}")]), answer()];
    let setup = Setup::new(&["failing", "panicking"], replies).tool(failing).tool(panicking);
    assert!(setup.run().await.is_ok());
    let sent = results(&setup);
    let expected = json!({ "status": "error", "error_type": "InvalidDateRange",
        "message": "The year 2023 is in the future." });
    assert_eq!(sent[0].1, expected);
    assert_eq!(sent[1].1["code"], "E4000");
}

/// A PNG of which only the header is there.
const PNG: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAACAAAAAMACAIAAAA=";

#[tokio::test]
async fn image_of_a_tool_follows_its_json() {
    let image = cog_harmony::Part::image_at(PNG);
    let part = image.clone();
    let chart = info("chart").function(move |_, _| {
        let part = part.clone();
        async { Ok(ToolOutput { parts: vec![part], ..ToolOutput::from(json!({ "status": "rendered" })) }) }
    });
    let mut setup = Setup::new(&["chart"], []).tool(chart);
    let provider = Scripted::new([calls(&[("a", "chart", "{}")]), answer()]);
    setup.provider = Arc::new(provider.accepting_images(&["image/png"]));
    assert!(setup.run().await.is_ok());
    let requests = setup.provider.requests();
    let message = &requests[1].messages.messages()[3];
    assert_eq!((content(message), &message.content[1]), (json!({ "status": "rendered" }), &image));
}

#[tokio::test]
async fn media_that_follow_in_a_user_message_are_a_warning() {
    let image = cog_harmony::Part::image_at(PNG);
    let chart = info("chart").function(move |_, _| {
        let image = image.clone();
        async { Ok(ToolOutput { parts: vec![image], ..ToolOutput::default() }) }
    });
    let chart = Arc::new(chart);
    for (text_results, expected) in [(true, vec!["W4019"]), (false, vec![])] {
        let again = calls(&[("", "chart", "{}")]);
        let mut setup = Setup::new(&["chart"], []);
        let vendor = cog_provider::vendors::Vendor::by_name("openai").unwrap();
        let scripted =
            Scripted::new([again.clone(), again, answer()]).using_tools(vendor.tools, text_results);
        setup.provider = Arc::new(scripted.accepting_images(&["image/png"]));
        setup.tools.push(Arc::clone(&chart) as _);
        let envelope = setup.run().await;
        assert!(envelope.is_ok(), "{:?}", envelope.error());
        let codes: Vec<_> = envelope.warnings.iter().map(|it| it.code.as_str()).collect();
        assert_eq!(codes, expected);
    }
}

#[tokio::test]
async fn calls_and_results_are_progress_and_text_before_calls_is_retracted() {
    let add = info("add").function(async |_, _| Ok("done"));
    let draft = r#"{"ok": true, "data": {"result": "not yet""#;
    let mut first = vec![ModelEvent::Text(draft.to_owned())];
    first.extend(calls(&[("a", "add", r#"{"a": 1, "b": 2}"#)]));
    let setup = Setup::new(&["add"], [first, answer()]).tool(add);
    let mut chunks = setup.stream(RunOptions::default());
    let (mut stages, mut text) = (Vec::new(), String::new());
    while let Some(chunk) = chunks.next().await {
        match chunk {
            Chunk::Progress(it) => stages.push((it.stage.unwrap(), it.tool.unwrap(), it.message)),
            Chunk::Delta { field, delta, .. } if field == "data.result" => text.push_str(&delta),
            Chunk::Snapshot { field: None, data, .. } => {
                assert_eq!(data.to_serde(), json!({}));
                text.push('|');
            }
            _ => {}
        }
    }
    let expected = [("tool_call", None), ("tool_result", Some("success"))];
    let expected =
        expected.map(|(stage, message)| (stage.to_owned(), "add".to_owned(), message.map(str::to_owned)));
    assert_eq!(stages, expected);
    assert_eq!(text, "not yet|fine");
}

#[tokio::test]
async fn prose_before_calls_is_not_a_failed_answer() {
    let add = info("add").function(async |_, _| Ok("done"));
    let mut first = vec![ModelEvent::Text("[Searching] for {\"it\"".to_owned())];
    first.extend(calls(&[("a", "add", r#"{"a": 1, "b": 2}"#)]));
    let setup = Setup::new(&["add"], [first, answer()]).tool(add);
    let envelope = setup.run().await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    assert_eq!(envelope.meta.runtime.attempts, None);
    let requests = setup.provider.requests();
    assert_eq!(requests[1].messages.messages()[2].text(), "[Searching] for {\"it\"");
}

#[tokio::test]
async fn usage_is_that_of_all_rounds_and_tools() {
    let usage = |input_tokens| Usage { input_tokens, output_tokens: 1, ..Usage::default() };
    let add = info("add").function(move |_, _| async move {
        Ok(ToolOutput { usage: Some(usage(100)), ..ToolOutput::from("x") })
    });
    let with_usage = |mut events: Vec<ModelEvent>, tokens| {
        events.insert(0, ModelEvent::Usage(usage(tokens)));
        events
    };
    let first = with_usage(calls(&[("a", "add", r#"{"a": 1, "b": 2}"#)]), 10);
    let setup = Setup::new(&["add"], [first, with_usage(answer(), 5)]).tool(add);
    let usage = setup.run().await.meta.runtime.usage.unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens), (115, 3));
}

#[tokio::test]
async fn correction_after_a_round_contains_the_round() {
    let add = info("add").function(async |_, _| Ok("done"));
    let bad = vec![ModelEvent::Text("{}".to_owned()), ModelEvent::Finished(FinishReason::Stop)];
    let replies = [calls(&[("a", "add", r#"{"a": 1, "b": 2}"#)]), bad, answer()];
    let setup = Setup::new(&["add"], replies).tool(add);
    assert!(setup.run().await.is_ok());
    let requests = setup.provider.requests();
    let roles: Vec<_> = requests[2].messages.messages().iter().map(|message| message.role).collect();
    let expected = [Role::System, Role::User, Role::Assistant, Role::Tool, Role::Assistant, Role::User];
    assert_eq!(roles, expected);
}

#[tokio::test]
async fn truncated_calls_are_not_executed() {
    let add = info("add").function(async |_, _| -> Result<ToolOutput, ToolError> { panic!("executed") });
    let mut events = call("a", "add", r#"{"a": 1"#);
    events.push(ModelEvent::Finished(FinishReason::Length));
    let setup = Setup::new(&["add"], [events]).tool(add);
    assert_eq!(code(&setup.run().await), Some("E2003"));
    assert_eq!(setup.provider.requests().len(), 1);
}

#[tokio::test]
async fn a_missing_tool_is_a_warning() {
    let add = info("add").function(async |_, _| Ok("done"));
    let setup = Setup::new(&["add", "no-such-tool"], [answer()]).tool(add);
    let envelope = setup.runtime().run(&setup.module(), sample_input(), RunOptions::default()).await;
    let warnings: Vec<_> = envelope.warnings.iter().map(|warning| warning.code.as_str()).collect();
    assert_eq!(warnings, ["W4017"]);
    assert!(envelope.warnings[0].message.contains("no-such-tool"));
}

/// Replies once with these events, then fails.
struct Once {
    inner: Scripted,
    failing: Scripted,
    calls: AtomicUsize,
}

impl Provider for Once {
    fn info(&self) -> &ProviderInfo {
        self.inner.info()
    }

    fn call<'a>(&'a self, request: &'a ModelRequest) -> ModelFuture<'a> {
        match self.calls.fetch_add(1, Ordering::SeqCst) {
            0 => self.inner.call(request),
            _ => self.failing.call(request),
        }
    }
}

#[tokio::test]
async fn fallback_after_a_round_receives_the_round() {
    let error = ProviderError::Unavailable {
        vendor: "One",
        by: cog_provider::Interruption::Provider,
        message: "down".to_owned(),
        retry_after: None,
    };
    let first = Once {
        inner: Scripted::new([calls(&[("a", "add", r#"{"a": 1, "b": 2}"#)])]),
        failing: Scripted::failing(error),
        calls: AtomicUsize::new(0),
    };
    let second = Arc::new(Scripted::new([answer()]).named("second"));
    let chain: Vec<Arc<dyn Provider>> = vec![Arc::new(first), Arc::clone(&second) as Arc<dyn Provider>];
    let named = |_: &str| Err(cog_spec::ErrorBody::new(cog_spec::Code::UnsupportedValue, "no name is known"));
    let add = info("add").function(async |_, _| Ok("done"));
    let setup = Setup::new(&["add"], []).tool(add);
    let runtime = setup.builder().providers(Providers::new(chain, named)).build().unwrap();
    let module = setup.module();
    let envelope = runtime.run(&module, sample_input(), RunOptions::default()).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    let requests = second.requests();
    let roles: Vec<_> = requests[0].messages.messages().iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool]);
    assert_eq!(requests[0].tools.as_ref().map(|tools| tools.definitions.len()), Some(1));
}
