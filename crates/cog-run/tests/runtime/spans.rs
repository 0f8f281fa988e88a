//! The spans of runs, their calls to models and their calls of tools.

use std::{
    sync::{Arc, Mutex},
    time::SystemTime,
};

use cog_module::Module;
use cog_provider::ProviderError;
use cog_run::{
    RunContext, RunOptions, Runtime,
    events::{
        CallOutcome, CallReport, Needs, RunEvents, RunOutcome, RunReport, Span, SpanContext, ToolOutcome,
        ToolReport,
    },
    provider::{FinishReason, ModelEvent, Provider, Usage},
    tools::ToolError,
};
use cog_spec::Code;
use tempfile::TempDir;

use crate::{
    support::{ANSWER, Scripted, directory, input, run_in, sample_input},
    tools::script::{Setup, answer, calls, info},
};

const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Spans as text, each with its number and that of its parent. They are numbered as they start.
#[derive(Default)]
struct Spans {
    ended: Mutex<Vec<EndedSpan>>,
    with_content: bool,
}

struct EndedSpan {
    id: [u8; 8],
    parent: Option<[u8; 8]>,
    started: SystemTime,
    text: String,
}

impl Spans {
    fn take(&self) -> Vec<String> {
        let mut ended = std::mem::take(&mut *self.ended.lock().unwrap());
        ended.sort_by_key(|span| span.started);
        let ids: Vec<[u8; 8]> = ended.iter().map(|span| span.id).collect();
        let number = |id: &[u8; 8]| match ids.iter().position(|known| known == id) {
            Some(position) => (position + 1) as u64,
            None => u64::from_be_bytes(*id),
        };
        let shown = ended.iter().map(|span| {
            let parent = span.parent.as_ref().map_or(0, number);
            format!("{}<{parent:x} {}", number(&span.id), span.text)
        });
        shown.collect()
    }

    fn add(&self, span: Option<Span<'_>>, text: String) {
        let Span { context, parent, started, .. } = span.unwrap();
        assert!(context.is_sampled && parent.is_none_or(|parent| parent.trace_id == context.trace_id));
        let parent = parent.map(|parent| parent.span_id);
        self.ended.lock().unwrap().push(EndedSpan { id: context.span_id, parent, started, text });
    }
}

impl RunEvents for Spans {
    fn needs(&self) -> Needs {
        Needs { spans: true, content: self.with_content, ..Needs::default() }
    }

    fn run_ended(&self, run: &RunReport<'_>) {
        assert_eq!(run.input.is_some(), self.with_content);
        let outcome = match run.outcome {
            RunOutcome::Answered => "answered",
            RunOutcome::Failed(code) => code.as_str(),
            _ => "dropped",
        };
        let confidence = run.meta.and_then(|meta| meta.confidence);
        self.add(run.span, format!("run {} {outcome} {confidence:?}", run.module.manifest.name));
    }

    fn call_ended(&self, call: &CallReport<'_>) {
        assert_eq!(call.input.is_some(), self.with_content);
        let tokens = call.usage.map_or(0, Usage::total);
        let CallReport { provider, model, outcome, .. } = call;
        self.add(call.span, format!("call {provider}/{model} {outcome:?} tokens={tokens}"));
    }

    fn tool_ended(&self, tool: &ToolReport<'_>) {
        assert_eq!(tool.arguments.is_some(), self.with_content);
        self.add(tool.span, format!("tool {} {:?}", tool.name, tool.outcome));
    }
}

fn traced(provider: Scripted, directory: &TempDir) -> (Arc<Spans>, Runtime, Arc<Module>) {
    let spans = Arc::<Spans>::default();
    let listener = Arc::clone(&spans) as Arc<dyn RunEvents>;
    let runtime = Runtime::builder()
        .provider(Arc::new(provider) as Arc<dyn Provider>)
        .events(listener)
        .build()
        .unwrap();
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    (spans, runtime, module)
}

fn replying_with_usage() -> Scripted {
    let usage = Usage { input_tokens: 7, output_tokens: 5, ..Usage::default() };
    let (text, end) = (ModelEvent::Text(ANSWER.to_owned()), ModelEvent::Finished(FinishReason::Stop));
    Scripted::new([vec![text, ModelEvent::Usage(usage), end]])
}

#[tokio::test]
async fn call_belongs_to_its_run_and_the_run_to_its_caller() {
    let directory = directory("Answer.", &[]);
    let (spans, runtime, module) = traced(replying_with_usage(), &directory);
    let mut context = RunContext::default();
    context.parent_span = SpanContext::parse(CALLER, None);
    let envelope = run_in(&runtime, &module, RunOptions::default(), context).await;
    let expected = ["1<f067aa0ba902b7 run m answered Some(0.9)", "2<1 call scripted/one Answered tokens=12"];
    assert_eq!(spans.take(), expected);
    assert_eq!(envelope.meta.runtime.trace_id.as_deref(), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
    let envelope = runtime
        .run(
            &module,
            sample_input(),
            RunOptions { trace_id: Some("mine".to_owned()), ..RunOptions::default() },
        )
        .await;
    assert_eq!(envelope.meta.runtime.trace_id.as_deref(), Some("mine"));
    assert_eq!(
        spans.take()[0],
        "1<0 run m answered Some(0.9)",
        "without a caller it is the first of a trace"
    );
}

#[tokio::test]
async fn refused_run_has_a_span_and_a_rendered_one_none() {
    let directory = directory("Answer.", &[]);
    let (spans, runtime, module) = traced(replying_with_usage(), &directory);
    runtime.run(&module, input("{}"), RunOptions::default()).await;
    let code = Code::MissingRequiredField.as_str();
    assert_eq!(spans.take(), [format!("1<0 run m {code} None")]);
    runtime.render(&module, sample_input(), RunOptions::default()).await.unwrap();
    assert_eq!(spans.take(), Vec::<String>::new());
}

#[tokio::test]
async fn failed_call_has_the_code_of_its_error() {
    let directory = directory("Answer.", &[]);
    let error = ProviderError::Other { code: Code::ProviderUnavailable, message: "gone".to_owned() };
    let (spans, runtime, module) = traced(Scripted::failing(error), &directory);
    runtime.run(&module, sample_input(), RunOptions::default()).await;
    let failed = CallOutcome::Failed(Code::ProviderUnavailable);
    let code = Code::ProviderUnavailable.as_str();
    let expected = [format!("1<0 run m {code} None"), format!("2<1 call scripted/one {failed:?} tokens=0")];
    assert_eq!(spans.take(), expected);
}

#[tokio::test]
async fn every_attempt_is_a_call() {
    let directory = directory("Answer.", &[]);
    let (spans, runtime, module) = traced(Scripted::replying_in_turn(["no JSON", ANSWER]), &directory);
    assert!(runtime.run(&module, sample_input(), RunOptions::default()).await.is_ok());
    let call = |number: u32| format!("{number}<1 call scripted/one Answered tokens=0");
    assert_eq!(spans.take(), ["1<0 run m answered Some(0.9)".to_owned(), call(2), call(3)]);
}

#[tokio::test]
async fn dropped_run_ends_its_spans() {
    let directory = directory("Answer.", &[]);
    let provider = Scripted::hanging(r#"{"ok": true, "data": {"result": "f"#);
    let (spans, runtime, module) = traced(provider, &directory);
    let mut chunks = runtime.stream(&module, sample_input(), RunOptions::default()).ok().unwrap();
    chunks.next().await.unwrap();
    chunks.next().await.unwrap();
    drop(chunks);
    let dropped = CallOutcome::Dropped;
    assert_eq!(
        spans.take(),
        ["1<0 run m dropped None".to_owned(), format!("2<1 call scripted/one {dropped:?} tokens=0")]
    );
}

#[tokio::test]
async fn tools_belong_to_the_run_and_know_their_span() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let of_tool = Arc::clone(&seen);
    let add = info("add").function(move |_, context| {
        of_tool.lock().unwrap().push(context.span.unwrap().span_id);
        std::future::ready(Err::<&str, _>(ToolError::new("TooLarge", "no")))
    });
    let setup = Setup::new(&["add"], [calls(&[("a", "add", r#"{"a": 1, "b": 2}"#)]), answer()]).tool(add);
    let spans = Arc::new(Spans { with_content: true, ..Spans::default() });
    let runtime = setup.builder().events(Arc::clone(&spans) as Arc<dyn RunEvents>).build().unwrap();
    assert!(runtime.run(&setup.module(), sample_input(), RunOptions::default()).await.is_ok());
    let failed = ToolOutcome::Failed("TooLarge");
    let call = |number: u32| format!("{number}<1 call scripted/one Answered tokens=0");
    let expected =
        ["1<0 run m answered Some(0.9)".to_owned(), call(2), format!("3<1 tool add {failed:?}"), call(4)];
    let of_spans = spans.ended.lock().unwrap().iter().find(|span| span.text.starts_with("tool")).unwrap().id;
    assert_eq!(spans.take(), expected);
    assert_eq!(*seen.lock().unwrap(), [of_spans]);
}

#[tokio::test]
async fn halted_call_is_no_failure() {
    let mut setup = Setup::new(&["add"], [calls(&[("a", "add", r#"{"a": 1, "b": 2}"#)]), answer()])
        .tool(info("add").function(async |_, _| Ok("never")));
    setup.confirm = vec!["add".to_owned()];
    let spans = Arc::<Spans>::default();
    let runtime = setup.builder().events(Arc::clone(&spans) as Arc<dyn RunEvents>).build().unwrap();
    runtime.run(&setup.module(), sample_input(), RunOptions::default()).await;
    let halted = ToolOutcome::Halted;
    assert!(spans.take().contains(&format!("3<1 tool add {halted:?}")));
}
