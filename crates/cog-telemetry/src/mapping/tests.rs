use std::{collections::BTreeMap, sync::Arc, time::Duration};

use cog_run::{
    Code, ErrorCode, Meta, Module, Risk, Runtime,
    provider::{Conversation, FinishReason, Message, ToolCall, Usage},
};
use cog_spec::{Amount, Cost, Currency, GateReport, PriceDate, PriceSource};

use super::*;
use crate::Redact;

/// The attributes as text.
#[derive(Debug, Default)]
struct Listed(BTreeMap<String, String>);

impl Attributes for Listed {
    fn text(&mut self, key: &str, value: &str) {
        assert!(self.0.insert(key.to_owned(), value.to_owned()).is_none(), "{key} twice");
    }

    fn texts<'a>(&mut self, key: &str, values: impl Iterator<Item = &'a str>) {
        self.text(key, &format!("{:?}", values.collect::<Vec<_>>()));
    }

    fn integer(&mut self, key: &str, value: i64) {
        self.text(key, &value.to_string());
    }

    fn number(&mut self, key: &str, value: f64) {
        self.text(key, &format!("{value:?}"));
    }

    fn flag(&mut self, key: &str, value: bool) {
        self.text(key, &value.to_string());
    }
}

fn module() -> Arc<Module> {
    Runtime::offline().load("code-reviewer").unwrap()
}

fn call<'a>() -> CallReport<'a> {
    CallReport {
        span: None,
        provider: "gemini",
        model: "gemini-3.8-flash",
        response_model: Some("gemini-3.8-flash-002"),
        response_id: Some("r1"),
        temperature: Some(0.5),
        max_tokens: Some(100),
        seed: None,
        output_media: &[],
        outcome: CallOutcome::Answered,
        finish: Some(&FinishReason::Stop),
        usage: None,
        first_token: Some(Duration::from_millis(250)),
        duration: Duration::from_millis(400),
        input: None,
        output: None,
        tool_calls: &[],
    }
}

fn run<'a>(module: &'a Module, outcome: RunOutcome<'a>) -> RunReport<'a> {
    RunReport {
        span: None,
        module,
        is_nested: false,
        session_id: "sess_1",
        outcome,
        duration: Duration::from_millis(40),
        usage: None,
        attempts: 2,
        repairs: 1,
        fallbacks: &[],
        meta: None,
        input: None,
        output: None,
        message: None,
        envelope: None,
    }
}

/// Returns the attributes of a span without content.
fn listed(kind: SpanKind<'_>) -> BTreeMap<String, String> {
    listed_with(kind, false)
}

fn listed_with(kind: SpanKind<'_>, is_on: bool) -> BTreeMap<String, String> {
    let mut listed = Listed::default();
    kind.attributes(&Recorded { redact: &masked(), is_on, limit: 100 }, &mut listed);
    listed.0
}

fn masked() -> Redact {
    Arc::new(|text| text.replace("sk-canary", "***"))
}

#[test]
fn call_has_the_names_of_the_conventions() {
    let usage = Usage {
        input_tokens: 10,
        output_tokens: 5,
        cached_input_tokens: Some(4),
        cache_write_input_tokens: Some(3),
        reasoning_tokens: Some(2),
        cost: Some(Cost {
            amount: Amount::new(0.5).unwrap(),
            currency: Currency::Usd,
            source: PriceSource::GenaiPrices,
            date: PriceDate::new("2026-11-01").unwrap(),
        }),
        ..Usage::default()
    };
    let call = CallReport { usage: Some(&usage), ..call() };
    assert_eq!(SpanKind::Call(&call).name(), "chat gemini-3.8-flash");
    let expected = [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.output.type", "json"),
        ("gen_ai.provider.name", "gcp.gemini"),
        ("gen_ai.request.max_tokens", "100"),
        ("gen_ai.request.model", "gemini-3.8-flash"),
        ("gen_ai.request.temperature", "0.5"),
        ("gen_ai.response.finish_reasons", r#"["stop"]"#),
        ("gen_ai.response.id", "r1"),
        ("gen_ai.response.model", "gemini-3.8-flash-002"),
        ("gen_ai.response.time_to_first_chunk", "0.25"),
        ("gen_ai.usage.cache_creation.input_tokens", "3"),
        ("gen_ai.usage.cache_read.input_tokens", "4"),
        ("gen_ai.usage.cost.amount", "0.5"),
        ("gen_ai.usage.cost.currency", "USD"),
        ("gen_ai.usage.cost.source", "local"),
        ("gen_ai.usage.input_tokens", "10"),
        ("gen_ai.usage.output_tokens", "5"),
        ("gen_ai.usage.reasoning.output_tokens", "2"),
    ];
    let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(listed(SpanKind::Call(&call)), BTreeMap::from(expected));
}

#[test]
fn failed_and_stopped_calls_have_an_error() {
    let error = |outcome| listed(SpanKind::Call(&CallReport { outcome, ..call() })).remove("error.type");
    assert_eq!(error(CallOutcome::Answered), None);
    assert_eq!(
        error(CallOutcome::Failed(Code::StreamTimeout)).as_deref(),
        Some(Code::StreamTimeout.as_str())
    );
    assert_eq!(error(CallOutcome::Dropped).as_deref(), Some("cancelled"));
}

#[test]
fn call_that_generates_an_image_is_no_chat() {
    let call = CallReport { output_media: &[Modality::Image], ..call() };
    assert_eq!(SpanKind::Call(&call).name(), "generate_content gemini-3.8-flash");
    assert_eq!(listed(SpanKind::Call(&call))["gen_ai.output.type"], "image");
}

#[test]
fn run_names_its_module_and_outcome() {
    let module = module();
    let answered = run(&module, RunOutcome::Answered);
    assert_eq!(SpanKind::Run(&answered).name(), "invoke_workflow code-reviewer");
    let found = listed(SpanKind::Run(&answered));
    for (key, value) in [
        ("gen_ai.operation.name", "invoke_workflow"),
        ("gen_ai.workflow.name", "code-reviewer"),
        ("gen_ai.conversation.id", "sess_1"),
        ("cog.module.version", &module.manifest.version),
        ("cog.module.tier", "decision"),
        ("cog.ok", "true"),
        ("cog.attempts", "2"),
        ("cog.repairs", "1"),
    ] {
        assert_eq!(found[key], value, "{key}");
    }
    let code = ErrorCode::from(Code::ParseError);
    let failed = listed(SpanKind::Run(&run(&module, RunOutcome::Failed(&code))));
    assert_eq!((&failed["cog.ok"][..], &failed["error.type"]), ("false", &code.as_str().to_owned()));
}

#[test]
fn tokens_of_a_run_are_not_counted_twice() {
    let module = module();
    let usage = Usage { input_tokens: 10, output_tokens: 5, ..Usage::default() };
    let report = RunReport { usage: Some(&usage), ..run(&module, RunOutcome::Answered) };
    let found = listed(SpanKind::Run(&report));
    assert_eq!((&found["cog.usage.input_tokens"][..], &found["cog.usage.output_tokens"][..]), ("10", "5"));
    assert!(found.keys().all(|key| !key.starts_with("gen_ai.usage.")), "{found:?}");
}

#[test]
fn confidence_is_an_evaluation() {
    let module = module();
    let exec = Runtime::offline().load("audio-transcriber").unwrap();
    let evaluate = |module: &Module, confidence, is_on| {
        let meta = Meta::new(confidence, Risk::Low, "It is fine.");
        let report = RunReport { meta: Some(&meta), ..run(module, RunOutcome::Answered) };
        let found = evaluation(&report, &Recorded { redact: &masked(), is_on, limit: 100 });
        found.map(|found| (found.value, found.label, found.explanation.map(str::to_owned)))
    };
    assert_eq!(evaluate(&exec, Some(0.9), false), Some((0.9, Some("sufficient"), None)));
    assert_eq!(evaluate(&exec, Some(0.1), false), Some((0.1, Some("low"), None)));
    assert_eq!(evaluate(&module, Some(0.1), false), Some((0.1, None, None)), "its tier has no minimum");
    assert_eq!(evaluate(&module, None, false), None);
    let explained = evaluate(&module, Some(0.9), true).unwrap().2;
    assert_eq!(explained.as_deref(), Some("It is fine."));
}

#[test]
fn gate_decides_the_label_of_an_evaluation() {
    let exec = Runtime::offline().load("audio-transcriber").unwrap();
    for (passed, label) in [(true, "accepted"), (false, "review")] {
        let mut meta = Meta::new(Some(0.95), Risk::Low, "It is fine.");
        meta.runtime.gate = Some(GateReport { accuracy: 0.99, threshold: None, passed });
        let report = RunReport { meta: Some(&meta), ..run(&exec, RunOutcome::Answered) };
        let found = evaluation(&report, &Recorded { redact: &masked(), is_on: false, limit: 100 }).unwrap();
        assert_eq!(found.label, Some(label));
    }
}

#[test]
fn content_is_recorded_without_keys_and_up_to_the_limit() {
    let long = "x".repeat(500);
    let messages = Conversation::new([
        Message::system("Be brief."),
        Message::user(format!("My key is sk-canary. {long}")),
    ]);
    let calls = [ToolCall::new("call_1", "search", r#"{"query": "sk-canary"}"#)];
    let call = CallReport { input: Some(&messages), output: Some("Done."), tool_calls: &calls, ..call() };
    let found = listed_with(SpanKind::Call(&call), true);
    let json = |key: &str| serde_json::from_str::<serde_json::Value>(&found[key]).unwrap();
    assert_eq!(json("gen_ai.system_instructions")[0]["content"], "Be brief.");
    let input = &json("gen_ai.input.messages")[0];
    let text = input["parts"][0]["content"].as_str().unwrap();
    assert!(input["role"] == "user" && text.starts_with("My key is ***.") && text.len() < 150, "{text}");
    let output = &json("gen_ai.output.messages")[0];
    assert_eq!((&output["finish_reason"], &output["parts"][0]["content"]), (&"stop".into(), &"Done.".into()));
    assert_eq!(output["parts"][1]["arguments"]["query"], "***");
}

#[test]
fn no_attribute_contains_a_key() {
    let finish = FinishReason::Other("sk-canary-stop".to_owned());
    let call = CallReport {
        model: "sk-canary-model",
        response_model: Some("m-sk-canary"),
        response_id: Some("id-sk-canary"),
        finish: Some(&finish),
        ..call()
    };
    let tool = ToolReport {
        span: None,
        name: "sk-canary-tool",
        call_id: "call-sk-canary",
        arguments_sha256: "",
        decision: None,
        outcome: ToolOutcome::Failed("sk-canary-error"),
        arguments: Some("{\"a\": \"sk-canary\"}"),
        result: Some("sk-canary"),
    };
    let recorded = Recorded { redact: &masked(), is_on: false, limit: 100 };
    for kind in [SpanKind::Call(&call), SpanKind::Tool(&tool)] {
        assert!(!recorded.name(&kind.name()).contains("canary"));
        for is_on in [false, true] {
            let found = listed_with(kind, is_on);
            assert!(found.values().all(|value| !value.contains("canary")), "{found:?}");
        }
    }
    assert_eq!(listed(SpanKind::Call(&call))["gen_ai.request.model"], "***-model");
    assert!(!listed(SpanKind::Tool(&tool)).contains_key("gen_ai.tool.call.arguments"));
}

#[test]
fn tool_call_has_its_outcome() {
    let tool = ToolReport {
        span: None,
        name: "search",
        call_id: "call_1",
        arguments_sha256: "",
        decision: None,
        outcome: ToolOutcome::Failed("E4008"),
        arguments: None,
        result: None,
    };
    assert_eq!(SpanKind::Tool(&tool).name(), "execute_tool search");
    let found = listed(SpanKind::Tool(&tool));
    assert_eq!((&found["error.type"][..], &found["gen_ai.tool.name"][..]), ("E4008", "search"));
    let halted = listed(SpanKind::Tool(&ToolReport { outcome: ToolOutcome::Halted, ..tool }));
    assert_eq!((halted.get("error.type"), &halted["cog.tool.halted"][..]), (None, "true"));
}
