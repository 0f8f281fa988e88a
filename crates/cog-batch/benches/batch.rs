//! The costs of a batch beside those of its runs: processor time, memory, the journal and the start of a resumed batch.
//!
//! `cargo bench -p cog-batch --bench batch` prints each figure with its limit, and fails if one exceeds it. With the argument
//! `untimed`, the batches are a thousandth as long and only their memory is compared, for machines that do other work.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark makes its own files, prints its table and stops when it cannot run"
)]

#[path = "../../cog-run/benches/support/answer.rs"]
mod answer;
#[path = "../../cog-run/benches/support/in_process.rs"]
mod in_process;

use std::{
    fs::File,
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use cog_batch::{
    Batch, Concurrency, Description, Finished, Format, Journal, JournalPaths, LineSink, Order, Output, Pace,
    Resume, RowHash, RowResult, Sink, Source, Summary, View,
};
use cog_json::Value;
use cog_run::{RunContext, RunInput, RunOptions, Runtime};
use cog_testkit::bench::limit;
use tempfile::TempDir;

use self::in_process::InProcess;

/// The bytes of a row, and of the text of its answer.
const ROW: usize = 1_000;
/// The rows that run at the same time.
const CONCURRENCY: u32 = 64;
/// The rounds of a comparison; the best of each side counts.
const ROUNDS: u32 = 5;

fn main() -> ExitCode {
    let is_timed = !std::env::args().any(|argument| argument == "untimed");
    let scale = if is_timed { 1_000 } else { 1 };
    let place = Place::new();
    let grown = place.growth(10 * scale, 1_000 * scale);
    let times = place.times(100 * scale);
    let start = place.resume(1_000 * scale);
    let memory = limit(64.0, "MiB of memory that a million rows need more than 10,000", grown);
    let is_kept = memory && (!is_timed || times.are_kept() & start_is_kept(start));
    if is_kept { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn start_is_kept(start: Duration) -> bool {
    limit(2.0, "s to continue a batch of a million rows", start.as_secs_f64())
}

/// The best of several rounds.
struct Times {
    /// The processor time of a row, in microseconds.
    row: f64,
    /// The processor time of a sync run, in microseconds.
    run: f64,
    /// The part of the processor time of a batch that its journal takes, in percent.
    journal: f64,
}

impl Times {
    /// Prints the figures, and returns whether they are within their limits.
    fn are_kept(&self) -> bool {
        let row = limit(1.5, "processor time of a row ÷ a sync run", self.row / self.run);
        limit(5.0, "% of the time for the journal", self.journal) && row
    }
}

/// A directory with a module whose model answers at once.
struct Place {
    directory: TempDir,
    batch: Batch,
    events: tokio::runtime::Runtime,
}

impl Place {
    fn new() -> Self {
        let pace = Pace::new(Concurrency::Fixed(CONCURRENCY), None, None);
        let module = Runtime::offline().load("code-reviewer").unwrap();
        let model = InProcess::new(answer::answer(&module, ROW));
        let runtime =
            Runtime::builder().provider(Arc::new(model)).events(Arc::new(pace.clone())).build().unwrap();
        let batch = Batch {
            runtime,
            module,
            options: RunOptions::default(),
            context: RunContext::default(),
            pace,
            filter: None,
            sample: None,
            max_cost: None,
            max_failures: None,
            warms_cache: false,
            retries_failed: false,
            dedupes: false,
            allows_changes: false,
            via: None,
            runner: None,
        };
        let events = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { directory: tempfile::tempdir().unwrap(), batch, events }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes an input of this many rows.
    fn input(&self, rows: usize) -> Source {
        let path = self.path("rows.jsonl");
        let mut file = BufWriter::new(File::create(&path).unwrap());
        let line = line();
        (0..rows).for_each(|_| writeln!(file, "{line}").unwrap());
        file.into_inner().unwrap();
        Source::new(path, Format::JsonLines)
    }

    /// Compares a batch of this many rows with as many runs, and with a batch without a journal.
    fn times(&self, rows: usize) -> Times {
        let source = self.input(rows);
        let (mut row, mut run, mut bare) = (f64::MAX, f64::MAX, f64::MAX);
        let (mut wall, mut bare_wall) = (Duration::MAX, Duration::MAX);
        #[expect(clippy::cast_precision_loss, reason = "exact up to 2^52")]
        let each = |spent: Duration| spent.as_secs_f64() * 1e6 / rows as f64;
        for _ in 0..ROUNDS {
            run = run.min(each(spent(|| self.runs(rows)).0));
            let (processor, elapsed) = spent(|| self.stored(&source));
            (row, wall) = (row.min(each(processor)), wall.min(elapsed));
            let (processor, elapsed) = spent(|| self.bare(&source));
            (bare, bare_wall) = (bare.min(each(processor)), bare_wall.min(elapsed));
        }
        println!("        {row:.2} µs for a row, {bare:.2} µs without the journal, {run:.2} µs for a run");
        println!("        {wall:?} for the batch, {bare_wall:?} without the journal");
        Times { row, run, journal: (row - bare) / row * 100.0 }
    }

    fn runs(&self, count: usize) {
        let input = Value::parse(&line()).unwrap();
        self.events.block_on(async {
            for _ in 0..count {
                let input = RunInput::Json(input.clone());
                let run = self.batch.runtime.run(&self.batch.module, input, RunOptions::default());
                assert!(run.await.is_ok());
            }
        });
    }

    /// Runs a batch from its input to its output.
    fn stored(&self, source: &Source) {
        let out = self.path("out.jsonl");
        let (mut journal, finished) = open(&out);
        let summary = self.run(source, &finished, &mut journal);
        assert!(summary.stopped.is_none() && summary.rows.failed == 0);
        let results = self.events.block_on(journal.close()).unwrap();
        let contract = &self.batch.module.contract;
        let output = Output::new(Format::JsonLines, Order::Input, contract);
        output.finish(results, &out).unwrap();
    }

    /// Runs a batch without a journal or an output.
    fn bare(&self, source: &Source) {
        let mut nowhere = LineSink::new(std::io::sink(), Order::Free);
        let summary = self.run(source, &Finished::default(), &mut nowhere);
        assert!(summary.stopped.is_none() && summary.rows.failed == 0);
    }

    fn run(&self, source: &Source, finished: &Finished, sink: &mut impl Sink) -> Summary {
        let rows = source.open(&self.batch.module.contract).unwrap();
        let view = View { every: Duration::from_millis(500), show: &mut |_| {} };
        self.events.block_on(self.batch.run(rows, finished, sink, std::future::pending::<()>, view))
    }

    /// Returns how much more memory a long batch needs at its peak than a short one, in MiB.
    fn growth(&self, short: usize, long: usize) -> f64 {
        let peak = |rows| {
            let source = self.input(rows);
            std::fs::write("/proc/self/clear_refs", "5").unwrap(); // resets the peak
            self.stored(&source);
            status("VmHWM:")
        };
        let (short, long) = (peak(short), peak(long));
        println!("        {short:.1} MiB, {long:.1} MiB");
        long - short
    }

    /// Returns the time of a resumed batch of this many rows, of which the last one has no result.
    fn resume(&self, rows: usize) -> Duration {
        let source = self.input(rows);
        let out = self.path("resumed.jsonl");
        let (journal, _) = open(&out);
        let hash = RowHash::from_bytes(line().as_bytes());
        self.events.block_on(async {
            for row in 1..rows as u64 {
                journal.append(&RowResult::from_line(row - 1, hash, true, b"{}")).await.unwrap();
            }
            drop(journal.close().await.unwrap());
        });
        let times = (0..ROUNDS).map(|_| {
            let began = Instant::now();
            let (_journal, finished) = open(&out);
            let mut sink = LineSink::new(Vec::new(), Order::Free);
            let summary = self.run(&source, &finished, &mut sink);
            assert_eq!((summary.rows.earlier, summary.rows.done()), (rows as u64 - 1, 1));
            began.elapsed()
        });
        times.min().unwrap_or_default()
    }
}

fn open(out: &Path) -> (Journal, Finished) {
    Journal::open(&JournalPaths::beside(out), &Description::default(), Resume::Same).unwrap()
}

/// Returns a row.
fn line() -> String {
    let statement = "let total = items.iter().map(Item::price).sum();\\n";
    format!("{{\"code\": \"{}\"}}", statement.repeat(ROW / statement.len()))
}

/// Returns the processor time of this process and the duration of a call.
fn spent(run: impl Fn()) -> (Duration, Duration) {
    let (began, before) = (Instant::now(), processor_time());
    run();
    (processor_time() - before, began.elapsed())
}

/// Returns the processor time of this process so far, of all its threads.
fn processor_time() -> Duration {
    let statistics = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_name = statistics.rsplit(") ").next().unwrap();
    let ticks = after_name.split(' ').skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap());
    Duration::from_millis(ticks.sum::<u64>() * 10) // 100 ticks a second, on every architecture
}

/// Returns a value of the memory of this process, in MiB.
fn status(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
}
