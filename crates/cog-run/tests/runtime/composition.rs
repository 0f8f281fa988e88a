//! What the runtime does with the parts of a composed module, here those of a scripted composer. The tests of the modules below
//! run compositions as a program does: modules on disk, and a provider that replies by module.

mod budgets;
mod cache;
mod calls;
mod confirmation;
mod context;
mod failures;
mod limits;
mod media;
mod names;
mod patterns;
mod resume;
mod streams;
mod support;
mod usage;

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use cog_json::{ToJson as _, Value};
use cog_module::Module;
use cog_provider::Provider;
use cog_run::{
    RunContext, RunOptions, Runtime,
    composition::{
        ComposedModule, Composer, Modules, PartOptions, Parts, PartsAnswer, PartsEnd, PartsError,
        PartsFuture, PartsSummary,
    },
};
use cog_spec::{
    Chunk, Code, ErrorBody, PartProgress, PartReport, PartStatus, Risk, Usage, Warning, WarningCode,
};
use tempfile::TempDir;

use crate::support::{ANSWER, Scripted, code, directory, input, sample_input};

const PROMPT: &str = "Part: @call:part($ARGUMENTS) Risk: {{part.meta.risk}} Input: $INPUT";

type Outcome = (PartsSummary, Result<PartsAnswer, PartsError>, Option<Value>);

/// A composer whose parts have one outcome, or run a module and insert its data.
#[derive(Clone, Default)]
struct Scripts {
    outcome: Arc<Mutex<Option<Outcome>>>,
    part: Option<Arc<Module>>,
    own_prompt: bool,
}

impl fmt::Debug for Scripts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scripts")
    }
}

impl Composer for Scripts {
    fn compose(
        &self,
        _: &Modules,
        module: &Arc<Module>,
    ) -> Result<Option<Arc<dyn ComposedModule>>, ErrorBody> {
        let is_plain = module.manifest.composition.is_none() && !module.prompt.text().contains("@call");
        Ok((!is_plain).then(|| Arc::new(self.clone()) as _))
    }
}

impl ComposedModule for Scripts {
    fn uses_own_prompt(&self) -> bool {
        self.own_prompt
    }

    fn timeout(&self) -> Option<Duration> {
        None
    }

    fn run(self: Arc<Self>, parts: Parts) -> PartsFuture {
        Box::pin(async move {
            let waiting = PartProgress {
                path: "part".to_owned(),
                status: Some(PartStatus::Running),
                ..PartProgress::default()
            };
            parts.progress(3, None, waiting);
            let scripted = self.outcome.lock().unwrap().take();
            if let Some((summary, answer, partial_data)) = scripted {
                let mut end = PartsEnd::new(summary, answer);
                end.partial_data = partial_data;
                return end;
            }
            let part = self.part.as_ref().unwrap();
            let chunks = parts.start(part, input(r#"{"query": "from the parent"}"#), PartOptions::default());
            let envelope = chunks.unwrap().fold().await;
            let data = envelope.data().unwrap().to_json();
            let answer = Ok(PartsAnswer::Texts(vec![data, "low $INPUT".to_owned()]));
            PartsEnd::new(PartsSummary::default(), answer)
        })
    }
}

struct Bench {
    provider: Arc<Scripted>,
    runtime: Runtime,
    module: Arc<Module>,
    _directories: Vec<TempDir>,
}

fn bench(provider: Scripted, scripts: Scripts, manifest: &[&str]) -> Bench {
    let parent = directory(PROMPT, manifest);
    let provider = Arc::new(provider);
    let builder = Runtime::builder().provider(Arc::clone(&provider) as Arc<dyn Provider>);
    let runtime = builder.composer(Arc::new(scripts)).build().unwrap();
    let module = runtime.load(parent.path().to_str().unwrap()).unwrap();
    Bench { provider, runtime, module, _directories: vec![parent] }
}

fn scripted(outcome: Outcome, own_prompt: bool) -> Scripts {
    Scripts { outcome: Arc::new(Mutex::new(Some(outcome))), own_prompt, ..Scripts::default() }
}

fn summary() -> PartsSummary {
    let usage = Usage { input_tokens: 5, output_tokens: 2, ..Usage::default() };
    PartsSummary {
        reports: vec![PartReport::new("part", "part", PartStatus::Done)],
        usage: Some(usage),
        risk: Some(Risk::High),
        warnings: vec![Warning::new(WarningCode::OptionalPartFailed, "one failed")],
    }
}

fn texts() -> Result<PartsAnswer, PartsError> {
    Ok(PartsAnswer::Texts(vec!["DATA".to_owned(), "RISK".to_owned()]))
}

#[tokio::test]
async fn module_that_calls_others_needs_a_composer() {
    let parent = directory(PROMPT, &[]);
    let runtime = Runtime::offline();
    let module = runtime.load(parent.path().to_str().unwrap()).unwrap();
    let envelope = runtime.execute(&module, sample_input(), RunOptions::new()).await;
    assert_eq!(code(&envelope), Some("E4008"));
    assert!(envelope.error().unwrap().message.contains("@call:part"), "{:?}", envelope.error());
}

#[tokio::test]
async fn results_take_the_place_of_calls_and_are_not_expanded() {
    let child = directory("Answer.", &[]);
    let scripts = Scripts { own_prompt: true, ..Scripts::default() };
    let mut bench = bench(Scripted::replying(ANSWER), scripts.clone(), &[]);
    let part = bench.runtime.load(child.path().to_str().unwrap()).unwrap();
    let scripts = Scripts { part: Some(part), ..scripts };
    let builder = Runtime::builder().provider(Arc::clone(&bench.provider) as Arc<dyn Provider>);
    bench.runtime = builder.composer(Arc::new(scripts)).build().unwrap();
    let envelope = bench.runtime.execute(&bench.module, sample_input(), RunOptions::new()).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    let requests = bench.provider.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[0].messages.messages()[1].text().contains("from the parent"));
    let own = requests[1].messages.messages()[0].text();
    let expected =
        r#"Part: {"result":"fine","rationale":"because"} Risk: low $INPUT Input: {"query":"why?"}"#;
    assert!(own.starts_with(expected), "{own}");
}

#[tokio::test]
async fn answer_has_the_usage_the_risk_and_the_reports_of_its_parts() {
    let bench = bench(Scripted::replying(ANSWER), scripted((summary(), texts(), None), true), &[]);
    let envelope = bench.runtime.execute(&bench.module, sample_input(), RunOptions::new()).await;
    assert_eq!(envelope.meta.risk.level(), Risk::High);
    assert_eq!(envelope.meta.confidence, Some(0.9));
    assert_eq!(envelope.meta.runtime.parts, summary().reports);
    assert_eq!(envelope.usage().map(|usage| usage.input_tokens), Some(5));
    assert_eq!(envelope.usage().and_then(|usage| usage.uncounted_calls), Some(1));
    assert_eq!(envelope.warnings, summary().warnings);
}

#[tokio::test]
async fn explicit_risk_is_that_of_the_module() {
    let manifest = ["meta: {risk_rule: explicit}"];
    let bench = bench(Scripted::replying(ANSWER), scripted((summary(), texts(), None), true), &manifest);
    let envelope = bench.runtime.execute(&bench.module, sample_input(), RunOptions::new()).await;
    assert_eq!(envelope.meta.risk.level(), Risk::Low);
}

#[tokio::test]
async fn answer_of_the_parts_is_checked_like_a_reply() {
    let answer = |text: &str| (summary(), Ok(PartsAnswer::Envelope(text.to_owned())), None);
    let one = bench(Scripted::replying(ANSWER), scripted(answer(ANSWER), false), &[]);
    let envelope = one.runtime.execute(&one.module, sample_input(), RunOptions::new()).await;
    assert_eq!(envelope.data().unwrap().get("result").unwrap().as_str(), Some("fine"));
    assert_eq!(envelope.meta.runtime.model.as_deref(), Some("composition/parts"));
    assert_eq!(envelope.usage().and_then(|usage| usage.uncounted_calls), None, "no model was called");
    let invalid = r#"{"ok":true,"meta":{"confidence":0.9,"risk":"low","explain":"e"},"data":{"result":7}}"#;
    let one = bench(Scripted::replying(ANSWER), scripted(answer(invalid), false), &[]);
    let envelope = one.runtime.execute(&one.module, sample_input(), RunOptions::new()).await;
    assert_eq!(code(&envelope), Some("E3001"));
    assert_eq!(envelope.meta.runtime.attempts, None, "the parts do not run again");
    assert!(one.provider.requests().is_empty());
}

#[tokio::test]
async fn failed_parts_end_the_run_with_the_answers_of_the_others() {
    let failed = |is_interrupted| {
        let error = ErrorBody::new(Code::PartialResult, "the part `b` failed");
        let partial_data = Some(Value::parse(r#"{"a": {"n": 1}}"#).unwrap());
        scripted((summary(), Err(PartsError { error, is_interrupted }), partial_data), true)
    };
    for is_interrupted in [false, true] {
        let bench = bench(Scripted::replying(ANSWER), failed(is_interrupted), &[]);
        let offer = cog_run::RecoveryOffer { retry_after_ms: 1, max_retries: 2 };
        let mut context = RunContext::default();
        context.recovery = Some(offer);
        let options = RunOptions::new();
        let mut stream = bench.runtime.prepare(&bench.module, sample_input(), options, context).unwrap();
        let mut chunks = Vec::new();
        while let Some(chunk) = stream.next().await {
            chunks.push(chunk);
        }
        assert!(bench.provider.requests().is_empty());
        assert!(
            matches!(&chunks[1], Chunk::Progress(progress) if progress.part.is_some()),
            "{:?}",
            chunks[1]
        );
        let Some(Chunk::Error { recovery, partial_data, .. }) = chunks.last() else { panic!("{chunks:?}") };
        assert_eq!(recovery.is_some(), is_interrupted);
        assert_eq!(partial_data.as_ref().unwrap().to_json(), r#"{"a":{"n":1}}"#);
        let envelope = cog_answer::fold(chunks);
        assert_eq!(envelope.meta.runtime.parts, summary().reports);
        assert_eq!(envelope.usage().map(|usage| usage.output_tokens), Some(2));
    }
}
