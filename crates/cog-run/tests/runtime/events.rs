//! Reports of calls and runs to a listener.

use std::sync::{Arc, Mutex};

use cog_module::Module;
use cog_provider::{
    HttpProvider, Provider,
    vendors::{ProviderSettings, Vendor},
};
use cog_run::{
    Code, RunOptions, Runtime,
    events::{CallOutcome, CallReport, Needs, RunEvents, RunReport},
};
use cog_spec::{Envelope, FinishReason, ModelEvent, Secret, Usage};
use cog_testkit::{Mock, Reply, Wire};
use tempfile::TempDir;

use crate::support::{ANSWER, Scripted, directory, input, sample_input};

/// The notifications as text.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Notes {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl RunEvents for Notes {
    fn call_retried(&self, provider: &str, code: Code) {
        self.0.lock().unwrap().push(format!("{provider} retried {code:?}"));
    }

    fn call_ended(&self, call: &CallReport<'_>) {
        assert!(call.span.is_none() && call.input.is_none(), "no listener needs them");
        if matches!(call.outcome, CallOutcome::NotSent(_)) {
            return;
        }
        let token = if call.first_token.is_some() { "first token" } else { "no token" };
        self.0.lock().unwrap().push(format!("{} {:?} {token}", call.provider, call.outcome));
    }

    fn run_ended(&self, run: &RunReport<'_>) {
        let tokens = run.usage.map_or(0, |usage| usage.total());
        let (attempts, repairs) = (run.attempts, run.repairs);
        let note = format!(
            "{} {:?} tokens={tokens} attempts={attempts} repairs={repairs}",
            run.module.manifest.name, run.outcome
        );
        self.0.lock().unwrap().push(note);
    }
}

fn observed(
    provider: &Arc<impl Provider + 'static>,
    directory: &TempDir,
) -> (Arc<Notes>, Runtime, Arc<Module>) {
    let provider = Arc::clone(provider) as Arc<dyn Provider>;
    let notes = Arc::<Notes>::default();
    let listener = Arc::clone(&notes) as Arc<dyn RunEvents>;
    let runtime = Runtime::builder().provider(provider).events(listener).build().unwrap();
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    (notes, runtime, module)
}

fn reply(text: &str) -> Vec<ModelEvent> {
    let usage = Usage { input_tokens: 7, output_tokens: 5, ..Usage::default() };
    vec![
        ModelEvent::Text(text.to_owned()),
        ModelEvent::Usage(usage),
        ModelEvent::Finished(FinishReason::Stop),
    ]
}

#[tokio::test]
async fn answer_is_reported_with_tokens_and_repairs() {
    let directory = directory("Answer.", &[]);
    let repaired = ANSWER.replace("\"error\": null", "\"error\": null,");
    let provider = Arc::new(Scripted::new([reply(&repaired)]));
    let (notes, runtime, module) = observed(&provider, &directory);
    runtime.run(&module, sample_input(), RunOptions::default()).await;
    assert_eq!(notes.take(), ["scripted Answered first token", "m Answered tokens=12 attempts=1 repairs=1"]);
}

#[tokio::test]
async fn failure_is_reported_with_code_and_tokens() {
    let directory = directory("Answer.", &[]);
    let provider = Arc::new(Scripted::new([reply("no JSON at all")]));
    let (notes, runtime, module) = observed(&provider, &directory);
    runtime.run(&module, sample_input(), RunOptions::default()).await;
    let reported = notes.take();
    assert_eq!(
        reported,
        [
            "scripted Answered first token",
            "scripted Answered first token",
            "m Failed(Standard(ParseError)) tokens=24 attempts=2 repairs=0"
        ]
    );
}

#[tokio::test]
async fn rejected_run_is_reported_without_a_call() {
    let directory = directory("Answer.", &[]);
    let provider = Arc::new(Scripted::replying(ANSWER));
    let (notes, runtime, module) = observed(&provider, &directory);
    runtime.run(&module, input("{}"), RunOptions::default()).await;
    assert_eq!(notes.take(), ["m Failed(Standard(MissingRequiredField)) tokens=0 attempts=0 repairs=0"]);
    assert_eq!(provider.requests(), []);
}

#[tokio::test]
async fn dropped_run_is_reported() {
    let directory = directory("Answer.", &[]);
    let provider = Arc::new(Scripted::hanging(r#"{"ok": true, "data": {"result": "f"#));
    let (notes, runtime, module) = observed(&provider, &directory);
    let run = runtime.stream(&module, sample_input(), RunOptions::default());
    let mut chunks = run.ok().unwrap();
    chunks.next().await.unwrap();
    chunks.next().await.unwrap();
    drop(chunks);
    assert_eq!(provider.open_replies(), 0);
    let mut reported = notes.take();
    reported.sort();
    assert_eq!(reported, ["m Dropped tokens=0 attempts=1 repairs=0", "scripted Dropped first token"]);
}

/// The envelopes of runs.
#[derive(Default)]
struct Envelopes(Mutex<Vec<Envelope>>);

impl RunEvents for Envelopes {
    fn needs(&self) -> Needs {
        Needs { envelope: true, ..Needs::default() }
    }

    fn run_ended(&self, run: &RunReport<'_>) {
        assert!(run.input.is_none() && run.output.is_none(), "no listener needs content");
        self.0.lock().unwrap().extend(run.envelope.cloned());
    }
}

#[tokio::test]
async fn listener_of_a_run_receives_the_envelope_that_the_run_returns() {
    let directory = directory("Answer.", &[]);
    for (reply, input) in
        [(ANSWER, sample_input()), ("no JSON at all", sample_input()), (ANSWER, input("{}"))]
    {
        let (_, runtime, module) = observed(&Arc::new(Scripted::replying(reply)), &directory);
        let envelopes = Arc::new(Envelopes::default());
        let listener = Arc::clone(&envelopes) as Arc<dyn RunEvents>;
        let options = RunOptions { events: vec![listener], ..RunOptions::default() };
        let returned = runtime.run(&module, input, options).await;
        assert_eq!(*envelopes.0.lock().unwrap(), [returned]);
    }
}

/// Returns the notifications of calls, of a run that calls this mock.
async fn calls(mock: &Mock, key: Option<Secret>) -> Vec<String> {
    let directory = directory("Answer.", &[]);
    let base_url = Some(mock.base_url(Wire::OpenAi));
    let settings = ProviderSettings { key, base_url, ..ProviderSettings::default() };
    let provider = HttpProvider::new(Vendor::by_name("openai").unwrap(), settings).unwrap();
    let (notes, runtime, module) = observed(&Arc::new(provider), &directory);
    runtime.run(&module, sample_input(), RunOptions::default()).await;
    notes.take().into_iter().filter(|note| note.starts_with("openai")).collect()
}

#[tokio::test]
async fn every_retry_is_an_attempt_of_its_own() {
    let busy = Reply::error(503, "busy").header("retry-after-ms", "1");
    let mock = Mock::start([busy.clone(), busy, Reply::text(ANSWER)]);
    let retried = "openai retried ProviderUnavailable";
    let found = calls(&mock, Some(Secret::new("k"))).await;
    assert_eq!(found, [retried, retried, "openai Answered first token"]);
    assert_eq!(mock.requests().len(), 3);
}

#[tokio::test]
async fn call_without_a_key_is_no_attempt() {
    let mock = Mock::start([Reply::text(ANSWER)]);
    assert_eq!(calls(&mock, None).await, Vec::<String>::new());
    assert_eq!(mock.requests(), []);
}
