//! The limit of the cost, and the first row that runs alone.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests write their input, and fail if they cannot"
)]

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use cog_batch::{
    Batch, Concurrency, Finished, Format, LineSink, Order, Pace, Position, Progress, RowResult, Sink,
    SinkError, Source, Stop, Summary, View,
};
use cog_run::{
    RunContext, RunOptions, Runtime,
    provider::{
        FinishReason, ModelEvent, ModelFuture, ModelRequest, Provider, ProviderError, ProviderInfo, Usage,
        reply,
    },
};

const ANSWER: &str = r#"{"ok": true, "meta": {"confidence": 0.95, "risk": "none", "explain": "It is fine."},
    "data": {"verdict": "approve", "issues": [], "rationale": "I like it."}}"#;

/// A model whose calls take many turns, and cost 2 cents each if they have a usage.
struct Slow {
    info: ProviderInfo,
    has_usage: fn(usize) -> bool,
    /// Whether the first call ends last, and is refused.
    refuses_first: bool,
    started: AtomicUsize,
    /// The calls that had started when the first one ended.
    started_with_first: AtomicUsize,
}

impl Provider for Slow {
    fn info(&self) -> &ProviderInfo {
        &self.info
    }

    fn call<'a>(&'a self, _: &'a ModelRequest) -> ModelFuture<'a> {
        Box::pin(async move {
            let number = self.started.fetch_add(1, SeqCst);
            let is_refused = number == 0 && self.refuses_first;
            for _ in 0..if is_refused { 5_000 } else { 200 } {
                tokio::task::yield_now().await;
            }
            if is_refused {
                let (message, retry_after) = ("slow down".to_owned(), Some(Duration::from_millis(1)));
                return Err(ProviderError::RateLimited {
                    vendor: "Mock",
                    is_quota: false,
                    message,
                    retry_after,
                });
            }
            if number == 0 {
                self.started_with_first.store(self.started.load(SeqCst), SeqCst);
            }
            let usage = (self.has_usage)(number).then(|| Usage { input_tokens: 200_000, ..Usage::default() });
            let text = std::iter::once(ModelEvent::Text(ANSWER.to_owned()));
            let events = text.chain(usage.map(ModelEvent::Usage));
            Ok(reply(events.chain([ModelEvent::Finished(FinishReason::Stop)]).collect::<Vec<_>>()))
        })
    }
}

/// Returns the lines of 40 rows.
fn rows() -> String {
    (0..40).map(|row| format!("\"fn f{row}() {{}}\"\n")).collect()
}

/// Runs rows, eight at once.
async fn run(
    lines: &str,
    max_cost: Option<f64>,
    warms_cache: bool,
    has_usage: fn(usize) -> bool,
) -> (Summary, Arc<Slow>) {
    let mut sink = LineSink::new(std::io::sink(), Order::Free);
    run_into(&mut sink, lines, (max_cost, warms_cache), (has_usage, false)).await
}

async fn run_into(
    sink: &mut impl Sink,
    lines: &str,
    (max_cost, warms_cache): (Option<f64>, bool),
    (has_usage, refuses_first): (fn(usize) -> bool, bool),
) -> (Summary, Arc<Slow>) {
    let mut info = ProviderInfo::new("openai", "gpt-6-luna");
    info.prices = Some("openai");
    let (started, started_with_first) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let slow = Arc::new(Slow { info, has_usage, refuses_first, started, started_with_first });
    let pace = Pace::new(Concurrency::Fixed(8), None, None);
    let runtime = Runtime::builder().provider(slow.clone()).events(Arc::new(pace.clone())).build().unwrap();
    let module = runtime.load("code-reviewer").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rows.jsonl");
    std::fs::write(&path, lines).unwrap();
    let source = Source::new(path, Format::JsonLines);
    let rows = source.open(&module.contract).unwrap();
    let batch = Batch {
        runtime,
        module,
        options: RunOptions::default(),
        context: RunContext::default(),
        pace,
        filter: None,
        sample: None,
        max_cost,
        max_failures: None,
        warms_cache,
        retries_failed: false,
        dedupes: false,
        allows_changes: false,
        runner: None,
        via: None,
    };
    let mut show = |_: &Progress<'_>| {};
    let view = View { every: Duration::from_secs(3600), show: &mut show };
    let never = async || std::future::pending::<()>().await;
    let summary = batch.run(rows, &Finished::default(), sink, never, view).await;
    (summary, slow)
}

#[tokio::test]
async fn first_row_runs_alone_if_it_warms_the_cache() {
    for (warms_cache, with_first) in [(true, 1), (false, 8)] {
        let (summary, slow) = run(&rows(), None, warms_cache, |_| true).await;
        assert_eq!((summary.rows.ok, summary.stopped.is_none()), (40, true));
        assert_eq!(slow.started_with_first.load(SeqCst), with_first);
    }
}

#[tokio::test]
async fn cost_stays_below_its_limit() {
    let (summary, slow) = run(&rows(), Some(0.25), false, |_| true).await;
    assert!(matches!(summary.stopped, Some(Stop::MaxCost { .. })), "{:?}", summary.stopped);
    assert_eq!((summary.rows.ok, slow.started.load(SeqCst)), (12, 12), "one more would cost 26 cents");
    assert_eq!(summary.cost.map(|cost| (cost * 100.0).round()), Some(24.0));
    assert_eq!(slow.started_with_first.load(SeqCst), 1, "the cost of a row is not known before");
    let (summary, _) = run(&rows(), Some(0.81), false, |_| true).await;
    assert!(summary.stopped.is_none() && summary.rows.ok == 40, "{:?}", summary.stopped);
}

#[tokio::test]
async fn rows_that_are_not_sent_do_not_lower_the_expected_cost() {
    let lines = format!("{}{}", "{\"focus\": 1}\n".repeat(30), rows());
    let (summary, slow) = run(&lines, Some(0.05), false, |_| true).await;
    assert!(matches!(summary.stopped, Some(Stop::MaxCost { .. })), "{:?}", summary.stopped);
    assert_eq!((summary.rows.failed, summary.rows.ok, slow.started.load(SeqCst)), (30, 2, 2));
}

#[tokio::test]
async fn rows_of_unknown_cost_count_as_much_as_the_others() {
    let (summary, slow) = run(&rows(), Some(0.25), false, |number| number % 3 != 1).await;
    assert!(matches!(summary.stopped, Some(Stop::MaxCost { .. })), "{:?}", summary.stopped);
    assert_eq!((summary.rows.ok, slow.started.load(SeqCst), summary.cost), (12, 12, None));
}

#[tokio::test]
async fn batch_with_a_limit_stops_if_no_cost_is_known() {
    let (summary, slow) = run(&rows(), Some(0.25), false, |_| false).await;
    assert!(matches!(summary.stopped, Some(Stop::UnknownCost { .. })), "{:?}", summary.stopped);
    assert_eq!((summary.rows.ok, slow.started.load(SeqCst)), (1, 1));
    let (summary, _) = run(&rows(), None, false, |_| false).await;
    assert_eq!((summary.rows.ok, summary.cost, summary.stopped.is_none()), (40, None, true));
}

/// Holds results that wait for an earlier row, and has no room once there are four.
#[derive(Default)]
struct Full {
    next: u64,
    waiting: BTreeSet<u64>,
}

impl Sink for Full {
    async fn put(&mut self, result: RowResult<'_>) -> Result<(), SinkError> {
        self.waiting.insert(result.row);
        while self.waiting.remove(&self.next) {
            self.next += 1;
        }
        Ok(())
    }

    async fn keep(&mut self, _: RowResult<'_>) -> Result<Position, SinkError> {
        Err(std::io::Error::from(std::io::ErrorKind::Unsupported).into())
    }

    async fn read(&mut self, _: Position) -> Result<Vec<u8>, SinkError> {
        Err(std::io::Error::from(std::io::ErrorKind::Unsupported).into())
    }

    fn room(&self) -> usize {
        if self.waiting.len() < 4 { usize::MAX } else { 0 }
    }
}

#[tokio::test]
async fn row_that_runs_again_has_room_if_all_others_wait_for_it() {
    let mut sink = Full::default();
    let rows = rows();
    let run = run_into(&mut sink, &rows, (None, false), (|_| true, true));
    let (summary, _) = tokio::time::timeout(Duration::from_secs(60), run).await.expect("no row starts");
    assert_eq!((summary.rows.ok, summary.rows.repeated, sink.next), (40, 1, 40));
}
