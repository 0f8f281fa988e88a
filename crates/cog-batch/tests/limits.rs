//! The limit of the cost, and the first row that runs alone.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests write their input, and fail if they cannot"
)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use cog_batch::{
    Batch, ColumnMap, Concurrency, Finished, Format, LineSink, Order, Pace, Progress, Source, Stop, Summary,
    View,
};
use cog_run::{
    RunOptions, Runtime,
    provider::{
        FinishReason, ModelEvent, ModelFuture, ModelRequest, Provider, ProviderError, ProviderInfo, Usage,
        WireRequest, reply,
    },
};

const ANSWER: &str = r#"{"ok": true, "meta": {"confidence": 0.95, "risk": "none", "explain": "It is fine."},
    "data": {"verdict": "approve", "issues": [], "rationale": "I like it."}}"#;

/// A model whose calls take many turns, and cost 2 cents each.
struct Slow {
    info: ProviderInfo,
    started: AtomicUsize,
    /// The calls that had started when the first one ended.
    started_with_first: AtomicUsize,
}

impl Provider for Slow {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    fn render(&self, _: &ModelRequest) -> Result<Option<WireRequest>, ProviderError> {
        Ok(None)
    }

    fn call<'a>(&'a self, _: &'a ModelRequest) -> ModelFuture<'a> {
        Box::pin(async move {
            let is_first = self.started.fetch_add(1, SeqCst) == 0;
            for _ in 0..200 {
                tokio::task::yield_now().await;
            }
            if is_first {
                self.started_with_first.store(self.started.load(SeqCst), SeqCst);
            }
            let usage = Usage { input_tokens: 200_000, ..Usage::default() };
            let end = [ModelEvent::Usage(usage), ModelEvent::Finished(FinishReason::Stop)];
            Ok(reply(std::iter::once(ModelEvent::Text(ANSWER.to_owned())).chain(end).collect::<Vec<_>>()))
        })
    }
}

/// Runs 40 rows, eight at once.
async fn run(max_cost: Option<f64>, warms_cache: bool) -> (Summary, Arc<Slow>) {
    let mut info = ProviderInfo::new("openai", "gpt-6-luna");
    info.prices = Some("openai");
    let slow = Arc::new(Slow { info, started: AtomicUsize::new(0), started_with_first: AtomicUsize::new(0) });
    let pace = Pace::new(Concurrency::Fixed(8), None, None);
    let runtime = Runtime::builder().provider(slow.clone()).observer(pace.observer()).build();
    let module = runtime.load("code-reviewer").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows.jsonl");
    std::fs::write(&path, (0..40).map(|row| format!("\"fn f{row}() {{}}\"\n")).collect::<String>()).unwrap();
    let source = Source { path, format: Format::JsonLines, columns: ColumnMap::default() };
    let rows = source.open(&module.contract).unwrap();
    let batch = Batch {
        runtime,
        module,
        options: RunOptions::new(),
        pace,
        filter: None,
        sample: None,
        max_cost,
        max_failures: None,
        warms_cache,
        retries_failed: false,
        dedupes: false,
        is_mixed: false,
        runner: None,
        via: None,
    };
    let mut sink = LineSink::new(std::io::sink(), Order::Free);
    let mut show = |_: &Progress<'_>| {};
    let view = View { every: Duration::from_secs(3600), show: &mut show };
    let never = async || std::future::pending::<()>().await;
    let summary = batch.run(rows, &Finished::default(), &mut sink, never, view).await;
    (summary, slow)
}

#[tokio::test]
async fn first_row_runs_alone_if_it_warms_the_cache() {
    for (warms_cache, with_first) in [(true, 1), (false, 8)] {
        let (summary, slow) = run(None, warms_cache).await;
        assert_eq!((summary.rows.ok, summary.stopped.is_none()), (40, true));
        assert_eq!(slow.started_with_first.load(SeqCst), with_first);
    }
}

#[tokio::test]
async fn cost_stays_below_its_limit() {
    let (summary, slow) = run(Some(0.25), false).await;
    assert!(matches!(summary.stopped, Some(Stop::MaxCost { .. })), "{:?}", summary.stopped);
    assert_eq!((summary.rows.ok, slow.started.load(SeqCst)), (12, 12), "one more would cost 26 cents");
    assert_eq!(summary.cost.map(|cost| (cost * 100.0).round()), Some(24.0));
    assert_eq!(slow.started_with_first.load(SeqCst), 1, "the cost of a row is not known before");
    let (summary, _) = run(Some(0.81), false).await;
    assert!(summary.stopped.is_none() && summary.rows.ok == 40, "{:?}", summary.stopped);
}
