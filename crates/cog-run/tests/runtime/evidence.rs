//! The evidence of a run: agreement, grounding, judge, and what is free (docs/evidence.md).

use std::{sync::Arc, time::Duration};

use cog_harmony::Role;
use cog_json::Value;
use cog_run::{
    AnswerCache, Budget, BudgetLimits, CancelReason, Chunk, Envelope, EvidenceRequest, RunOptions, Runtime,
    ToJson as _,
    events::{Needs, RunEvents, RunReport},
};
use cog_spec::{FinishReason, ModelEvent, Usage, WarningCode};
use futures_util::StreamExt as _;
use tempfile::TempDir;

use super::support::{Scripted, code, directory, input, runtime_with, sample_input, write};

/// A module that decides: `verdict`, with free text beside it.
fn deciding(manifest: &[&str]) -> TempDir {
    let directory = directory("Decide.", manifest);
    write(
        &directory,
        "schema.json",
        r#"{"input": {"type": "object", "properties": {"query": {"type": "string"}}},
            "data": {"type": "object", "required": ["verdict", "rationale"], "properties": {
                "verdict": {"enum": ["yes", "no"]}, "name": {"type": "string"}, "rationale": {"type": "string"}}}}"#,
    );
    directory
}

fn answer(verdict: &str) -> String {
    format!(
        r#"{{"ok": true, "meta": {{"confidence": 0.9, "risk": "low", "explain": "e"}}, "data": {{"verdict": "{verdict}", "name": "Ada of {verdict}", "rationale": "because {verdict}"}}, "error": null}}"#
    )
}

/// An answer of the module `answer-judge`.
fn judged(meets: bool, confidence: f64) -> String {
    format!(
        r#"{{"ok": true, "meta": {{"confidence": {confidence}, "risk": "low", "explain": "e"}}, "data": {{"rationale": "r", "meets": {meets}}}, "error": null}}"#
    )
}

/// Returns the events of a reply of 3 tokens to a request of 10.
fn reply(text: &str) -> Vec<ModelEvent> {
    let usage = Usage { input_tokens: 10, output_tokens: 3, ..Usage::default() };
    vec![
        ModelEvent::Text(text.to_owned()),
        ModelEvent::Usage(usage),
        ModelEvent::Finished(FinishReason::Stop),
    ]
}

fn collecting(evidence: &str) -> RunOptions {
    RunOptions { evidence: Some(evidence.parse().unwrap()), max_attempts: Some(1), ..RunOptions::default() }
}

async fn run(replies: Vec<Vec<ModelEvent>>, manifest: &[&str], options: RunOptions) -> (Envelope, usize) {
    let directory = deciding(manifest);
    let (provider, runtime, module) = runtime_with(Scripted::new(replies), &directory);
    let envelope = runtime.run(&module, sample_input(), options).await;
    let requests = provider.requests().len();
    (envelope, requests)
}

fn replies(verdicts: &[&str]) -> Vec<Vec<ModelEvent>> {
    verdicts.iter().map(|verdict| reply(&answer(verdict))).collect()
}

/// Returns `meta.evidence` as JSON.
fn evidence(envelope: &Envelope) -> serde_json::Value {
    let envelope = Value::parse(&envelope.to_json()).unwrap();
    envelope.pointer("/meta/evidence").map(|evidence| evidence.to_serde()).unwrap_or_default()
}

fn warnings(envelope: &Envelope) -> Vec<&str> {
    let absent = envelope.warnings.iter().filter(|warning| warning.code == WarningCode::EvidenceAbsent);
    absent.map(|warning| &*warning.message).collect()
}

#[tokio::test]
async fn answer_is_the_first_one_of_the_largest_group() {
    let replies = replies(&["no", "yes", "yes", "no", "yes"]);
    let (envelope, requests) = run(replies, &[], collecting("agreement=5")).await;
    assert_eq!(requests, 5);
    assert_eq!(envelope.data().unwrap().get_str("verdict"), Some("yes"));
    assert_eq!(
        evidence(&envelope),
        serde_json::json!({
            "agreement": {"value": 0.6, "runs": 5, "fields": {"verdict": 3}}, "repairs": 0, "attempts": 1
        })
    );
    let runtime = &envelope.meta.runtime;
    let usage = runtime.usage.as_ref().unwrap();
    assert_eq!((usage.input_tokens, usage.output_tokens, runtime.attempts), (50, 15, Some(5)));
    assert_eq!((envelope.meta.confidence, warnings(&envelope).len()), (Some(0.9), 0));
}

#[tokio::test]
async fn run_without_evidence_is_one_call() {
    let (envelope, requests) = run(replies(&["yes"]), &[], RunOptions::default()).await;
    assert_eq!((requests, evidence(&envelope)), (1, serde_json::Value::Null));
    let none = collecting("none");
    let (envelope, requests) = run(replies(&["yes"]), &["confidence: {evidence: [agreement]}"], none).await;
    assert_eq!((requests, evidence(&envelope)), (1, serde_json::Value::Null));
}

#[tokio::test]
async fn manifest_requests_evidence_and_names_fields() {
    let manifest = ["confidence: {evidence: [agreement=3], fields: [name]}"];
    let (envelope, requests) = run(replies(&["no", "yes", "yes"]), &manifest, RunOptions::default()).await;
    assert_eq!((requests, envelope.data().unwrap().get_str("verdict")), (3, Some("yes")));
    assert_eq!(evidence(&envelope)["agreement"]["fields"], serde_json::json!({"name": 2}));
}

async fn chunks(runtime: &Runtime, directory: &TempDir, options: RunOptions) -> Vec<Chunk> {
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    runtime.stream(&module, sample_input(), options).unwrap().collect().await
}

#[tokio::test]
async fn stream_shows_the_first_run_and_switches_with_a_reset() {
    for (verdicts, resets) in [(["no", "yes", "yes"], 1), (["yes", "no", "yes"], 0)] {
        let directory = deciding(&[]);
        let (_, runtime, _) = runtime_with(Scripted::new(replies(&verdicts)), &directory);
        let chunks = chunks(&runtime, &directory, collecting("agreement=3")).await;
        assert!(matches!(chunks.first(), Some(Chunk::Meta { .. })));
        let numbers: Vec<u64> = chunks.iter().filter_map(Chunk::seq).collect();
        assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "{numbers:?}");
        let is_reset = |chunk: &&Chunk| matches!(chunk, Chunk::Snapshot { field: None, data, .. } if data.to_string() == "{}");
        assert_eq!(chunks.iter().filter(is_reset).count(), resets);
        let mut data = cog_answer::DataAccumulator::default();
        chunks.iter().for_each(|chunk| data.apply(chunk));
        let envelope = cog_answer::fold(chunks.clone());
        assert_eq!(envelope.data().unwrap().get_str("verdict"), Some("yes"));
        assert_eq!(
            data.data(),
            Some(&envelope.data().unwrap().to_serde()),
            "the chunks add up to the answer"
        );
        assert_eq!(chunks.iter().filter(|chunk| chunk.is_end()).count(), 1);
    }
}

#[tokio::test]
async fn bad_answers_disagree_and_failed_calls_do_not_count() {
    let bad = || reply(&answer("maybe"));
    let cut = || vec![ModelEvent::Text("{".to_owned())];
    let good = || reply(&answer("yes"));
    let (envelope, _) = run(vec![good(), bad(), good()], &[], collecting("agreement=3")).await;
    assert_eq!(
        evidence(&envelope)["agreement"],
        serde_json::json!({"value": 0.6667, "runs": 3, "fields": {"verdict": 2}})
    );
    assert_eq!(warnings(&envelope).len(), 0);
    // The first run fails, and another one answers.
    let (envelope, _) = run(vec![cut(), good(), good()], &[], collecting("agreement=3")).await;
    assert_eq!(
        evidence(&envelope)["agreement"],
        serde_json::json!({"value": 1.0, "runs": 2, "fields": {"verdict": 2}})
    );
    assert!(warnings(&envelope)[0].starts_with("1 of 3 runs gave no answer"), "{:?}", envelope.warnings);
    let (envelope, _) = run(vec![good(), cut(), cut()], &[], collecting("agreement=3")).await;
    assert_eq!(evidence(&envelope)["agreement"], serde_json::Value::Null, "one run agrees with no other");
    let (envelope, requests) = run(vec![bad(), bad()], &[], collecting("agreement=2")).await;
    assert_eq!((code(&envelope), requests), (Some("E3005"), 2));
    assert_eq!(envelope.meta.runtime.attempts, Some(2));
}

#[tokio::test]
async fn error_of_the_model_can_be_the_answer() {
    let error = || {
        reply(
            r#"{"ok": false, "meta": {"confidence": 0.2, "risk": "none", "explain": "No."}, "error": {"code": "E2007", "message": "No text."}}"#,
        )
    };
    let directory = deciding(&[]);
    let provider = Scripted::new([reply(&answer("yes")), error(), error()]);
    let (_, runtime, _) = runtime_with(provider, &directory);
    let chunks = chunks(&runtime, &directory, collecting("agreement=3")).await;
    let envelope = cog_answer::fold(chunks);
    assert_eq!(code(&envelope), Some("E2007"));
    assert_eq!(envelope.meta.runtime.usage.as_ref().map(Usage::total), Some(39));
}

#[tokio::test]
async fn module_without_deciding_fields_runs_once() {
    let directory = directory("Answer.", &[]);
    let (provider, runtime, module) = runtime_with(Scripted::replying(super::support::ANSWER), &directory);
    let envelope = runtime.run(&module, sample_input(), collecting("agreement=5")).await;
    assert_eq!((envelope.is_ok(), provider.requests().len()), (true, 1));
    assert!(warnings(&envelope)[0].contains("confidence.fields"), "{:?}", envelope.warnings);
    assert_eq!(evidence(&envelope)["agreement"], serde_json::Value::Null);
}

#[tokio::test]
async fn runs_of_one_request_share_a_budget() {
    let budget = |limits: BudgetLimits| Budget::new("b", limits);
    let calls = budget(BudgetLimits { max_calls: Some(3), ..BudgetLimits::default() });
    let options = RunOptions { budgets: vec![calls.clone()], ..collecting("agreement=3,judge") };
    let (envelope, requests) = run(replies(&["yes"]), &[], options).await;
    assert_eq!((code(&envelope), requests, calls.spent().calls), (Some("E4002"), 0, 0));
    let options = RunOptions { budgets: vec![calls.clone()], ..collecting("agreement=3") };
    let (envelope, requests) = run(replies(&["yes"]), &[], options).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    assert_eq!((requests, calls.spent().calls, calls.spent().tokens), (3, 3, 39));
}

#[tokio::test]
async fn cancellation_cancels_all_runs() {
    let directory = deciding(&[]);
    let (provider, runtime, module) = runtime_with(Scripted::hanging("{\"ok\": true"), &directory);
    let options = collecting("agreement=4");
    let cancellation = options.cancellation.clone();
    let run = runtime.run(&module, sample_input(), options);
    let cancel = async {
        while provider.open_replies() < 4 {
            tokio::task::yield_now().await;
        }
        cancellation.cancel(CancelReason::Cancelled);
    };
    let (envelope, ()) = tokio::join!(run, cancel);
    assert_eq!((code(&envelope), provider.open_replies()), (Some("E2010"), 0));
    // A stream that nobody reads any more.
    let mut stream = runtime.stream(&module, sample_input(), collecting("agreement=4")).unwrap();
    while provider.open_replies() < 4 {
        let _ = tokio::time::timeout(Duration::from_millis(1), stream.next()).await;
    }
    drop(stream);
    assert_eq!(provider.open_replies(), 0);
}

#[tokio::test]
async fn run_whose_tools_change_something_is_not_repeated() {
    let policies = "policies: {tools_allowed: true, side_effects: allow}";
    let (envelope, requests) = run(replies(&["yes"]), &[policies], collecting("agreement")).await;
    assert_eq!((code(&envelope), requests), (Some("E1001"), 0));
    let (envelope, _) =
        run(replies(&["yes"]), &["policies: {tools_allowed: true}"], collecting("agreement=2")).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
}

#[tokio::test]
async fn answers_of_all_runs_are_cached() {
    let folder = tempfile::tempdir().unwrap();
    let directory = deciding(&[]);
    let provider = Arc::new(Scripted::new(replies(&["no", "yes", "yes"])));
    let runtime = Runtime::builder()
        .provider(provider.clone())
        .cache(AnswerCache::in_directory(folder.path(), Duration::from_secs(3_600), 1 << 20))
        .build()
        .unwrap();
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    for _ in 0..2 {
        let envelope = runtime.run(&module, sample_input(), collecting("agreement=3")).await;
        assert_eq!(envelope.data().unwrap().get_str("verdict"), Some("yes"));
        assert_eq!(evidence(&envelope)["agreement"]["value"], 0.6667);
        assert_eq!(provider.requests().len(), 3);
    }
}

#[tokio::test]
async fn temperature_of_zero_is_warned_of_and_seeds_differ() {
    let directory = deciding(&["generation: {temperature: 0, seed: 7}"]);
    let (provider, runtime, module) = runtime_with(Scripted::new(replies(&["yes"])), &directory);
    let envelope = runtime.run(&module, sample_input(), collecting("agreement=3")).await;
    assert!(warnings(&envelope)[0].contains("temperature 0"), "{:?}", envelope.warnings);
    let seeds: Vec<_> = provider.requests().iter().map(|request| request.generation.seed).collect();
    assert_eq!(seeds, [Some(7), Some(8), Some(9)]);
}

#[tokio::test]
async fn strings_are_searched_for_in_the_input() {
    let directory = deciding(&[]);
    let (_, runtime, module) = runtime_with(Scripted::new(replies(&["yes"])), &directory);
    let run = |text: &'static str| {
        runtime.run(&module, input(&format!("{{\"query\": \"{text}\"}}")), collecting("grounding"))
    };
    let envelope = run("To ADA  of yes.").await;
    assert_eq!(
        evidence(&envelope)["grounding"],
        serde_json::json!({"value": 1.0, "texts": 1, "missing": [], "found": [
            {"path": "data.name", "source": "input.query", "offset": 3, "length": 11}
        ]})
    );
    let envelope = run("To Bob").await;
    assert_eq!(
        evidence(&envelope)["grounding"],
        serde_json::json!({"value": 0.0, "texts": 1, "found": [], "missing": ["data.name"]})
    );
    assert_eq!(envelope.meta.runtime.attempts, None);
}

#[tokio::test]
async fn another_model_judges_the_answer() {
    for (meets, value) in [(true, 0.8), (false, 0.2)] {
        let directory = deciding(&[]);
        let provider = Scripted::new([reply(&answer("yes")), reply(&judged(meets, 0.8))]);
        let (provider, runtime, module) = runtime_with(provider, &directory);
        let envelope = runtime.run(&module, sample_input(), collecting("judge")).await;
        assert_eq!(
            evidence(&envelope)["judge"],
            serde_json::json!({"value": value, "meets": meets, "module": "answer-judge", "model": "scripted/one"})
        );
        assert_eq!(envelope.meta.runtime.usage.as_ref().map(Usage::total), Some(26));
        assert_eq!(envelope.meta.runtime.attempts, Some(2));
        let asked = provider.requests()[1]
            .messages
            .messages()
            .iter()
            .find(|it| it.role == Role::User)
            .unwrap()
            .text();
        assert!(
            asked.contains("Ada of yes") && asked.contains("why?") && asked.contains("right for the input"),
            "{asked}"
        );
    }
}

#[tokio::test]
async fn judge_that_fails_is_absent() {
    let bad = vec![reply(&answer("yes")), reply("no")];
    let (envelope, _) = run(bad, &[], collecting("judge")).await;
    assert_eq!(evidence(&envelope)["judge"], serde_json::Value::Null);
    assert!(
        warnings(&envelope)[0].starts_with("There is no judgement: answer-judge failed: "),
        "{:?}",
        envelope.warnings
    );
    let (envelope, requests) = run(replies(&["yes"]), &[], collecting("judge=no-such-module")).await;
    assert_eq!((code(&envelope), requests), (Some("E4006"), 0));
}

#[tokio::test]
async fn checks_repairs_and_attempts_are_free() {
    let checks = [
        "checks: [{name: a, that: \"$.data.verdict == 'yes'\"}, {name: b, severity: warning, that: \"$.data.verdict == 'no'\"}]",
    ];
    let fenced = reply(&format!("```json\n{}\n```", answer("yes")));
    let options = RunOptions { max_attempts: Some(2), ..collecting("grounding") };
    let (envelope, _) = run(vec![reply(&answer("no")), fenced], &checks, options).await;
    let found = evidence(&envelope);
    assert_eq!(found["checks"], serde_json::json!({"value": 0.5, "passed": 1, "of": 2}));
    assert_eq!((&found["repairs"], &found["attempts"]), (&serde_json::json!(1), &serde_json::json!(2)));
}

#[tokio::test]
async fn offline_answers_have_no_evidence() {
    let directory = deciding(&["confidence: {evidence: [agreement, grounding, judge]}"]);
    let runtime = Runtime::offline();
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    let envelope = runtime.run(&module, sample_input(), RunOptions::default()).await;
    assert!(envelope.is_ok(), "{:?}", envelope.error());
    assert_eq!(evidence(&envelope), serde_json::Value::Null);
}

/// Counts the runs that end.
#[derive(Default)]
struct Ended(std::sync::Mutex<Vec<bool>>);

impl RunEvents for Ended {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn run_ended(&self, run: &RunReport<'_>) {
        self.0.lock().unwrap().push(run.is_nested);
    }
}

#[tokio::test]
async fn listeners_count_one_run_with_nested_ones() {
    let directory = deciding(&[]);
    let ended = Arc::new(Ended::default());
    let provider = Arc::new(Scripted::new(replies(&["yes"])));
    let runtime = Runtime::builder().provider(provider).events(ended.clone()).build().unwrap();
    let module = runtime.load(directory.path().to_str().unwrap()).unwrap();
    let own = Arc::new(Ended::default());
    let options = RunOptions { events: vec![own.clone()], ..collecting("agreement=3") };
    runtime.run(&module, sample_input(), options).await;
    assert_eq!(*ended.0.lock().unwrap(), [true, true, false]);
    assert_eq!(*own.0.lock().unwrap(), [false], "the listeners of the run know only the run");
}

#[test]
fn evidence_of_a_request_is_read() {
    let request: EvidenceRequest = "agreement=3,judge=my-judge".parse().unwrap();
    assert_eq!((request.calls(), request.judge.as_deref()), (4, Some("my-judge")));
}
