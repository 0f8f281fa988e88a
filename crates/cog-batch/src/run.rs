//! The loop of a batch: rows are read, run and written.

mod task;

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use cog_flow::Condition;
use cog_json::Value;
use cog_module::Module;
use cog_run::{ChunkStream, RunContext, RunInput, RunOptions, Runtime};
use cog_spec::{Envelope, ErrorBody, ErrorOrigin, Outcome};
use futures_util::{StreamExt as _, stream::FuturesUnordered};
use tokio::time::{MissedTickBehavior, interval, sleep_until};

use self::task::{Failure, Outage, RowTokens, Task, TaskResult};
use crate::{
    Finished, FinishedRow, MaxFailures, Pace, ParsedRow, Progress, Row, RowHash, RowResult, Sink, SinkError,
    Stop, Summary, VendorBatchProvider,
    duplicates::{Duplicate, FirstRows},
    journal::{Kept, KeptResult},
    pace::RunPace,
    read::{ReadError, Rows},
    sink::RowHead,
    summary::Speed,
};

/// How long rows that run when the user interrupts may take to finish.
const GRACE: Duration = Duration::from_secs(10);

/// What runs, and within which limits.
pub struct Batch {
    /// The runtime, with [`Pace`] as a listener.
    pub runtime: Runtime,
    /// The module.
    pub module: Arc<Module>,
    /// The options of each run.
    pub options: RunOptions,
    /// What surrounds each run.
    pub context: RunContext,
    /// How fast rows are sent.
    pub pace: Pace,
    /// The condition of rows that run: its `$` is the input.
    pub filter: Option<Condition>,
    /// The number of rows after which the batch ends.
    pub sample: Option<u64>,
    /// The maximum cost in US dollars.
    pub max_cost: Option<f64>,
    /// How many rows may fail.
    pub max_failures: Option<MaxFailures>,
    /// Whether the first row runs alone, so that the provider caches the beginning of all requests.
    pub warms_cache: bool,
    /// Whether rows that failed earlier run again.
    pub retries_failed: bool,
    /// Whether a row has the result of an earlier row with an equal input.
    pub dedupes: bool,
    /// Whether the input may have changed: rows keep the results that belong to their hashes, and the others run.
    pub allows_changes: bool,
    /// Where the rows run, if not in this process.
    pub runner: Option<Arc<dyn Runner>>,
    /// The provider, if the answers come from batch jobs that have ended.
    pub via: Option<Arc<VendorBatchProvider>>,
}

/// The result of a row that runs somewhere else.
pub type RowFuture<'a> = Pin<Box<dyn Future<Output = Envelope> + Send + 'a>>;

/// Runs rows somewhere else than in this process.
pub trait Runner: Send + Sync {
    /// Returns the envelope of a row. A future that is dropped no longer waits for it.
    fn run<'a>(&'a self, row: u64, hash: RowHash, input: &'a RunInput) -> RowFuture<'a>;

    /// Returns why no row can run now, if none can.
    fn trouble(&self) -> Option<String>;
}

/// Where the progress is shown.
pub struct View<'a> {
    /// The time between two calls.
    pub every: Duration,
    /// Shows the progress.
    pub show: &'a mut dyn FnMut(&Progress<'_>),
}

impl Batch {
    /// Runs the rows that have no result, until the input ends or the batch is stopped. `signals` resolves when the user
    /// interrupts: no further row starts, and the second time those that run are cancelled.
    pub async fn run(
        &self,
        rows: Rows,
        earlier: &Finished,
        sink: &mut impl Sink,
        signals: impl AsyncFnMut(),
        view: View<'_>,
    ) -> Summary {
        let now = Instant::now();
        let state = BatchRun {
            batch: self,
            rows,
            kept: Kept::new(earlier),
            sink,
            line: String::new(),
            queue: VecDeque::new(),
            repeats: VecDeque::new(),
            running: FuturesUnordered::new(),
            first_rows: FirstRows::default(),
            is_read: false,
            selected: 0,
            is_warm: !self.warms_cache,
            held: Vec::new(),
            outage: Outage::default(),
            stop: None,
            deadline: None,
            summary: Summary::default(),
            speed: Speed::new(now),
            started: now,
            row_tokens: None,
        };
        state.run(signals, view).await
    }
}

impl Batch {
    /// Returns whether a row is part of the batch, and counts those that are.
    pub(crate) fn has_row(&self, row: &Row, selected: &mut u64) -> bool {
        let is_selected = self.sample.is_none_or(|sample| *selected < sample) && self.is_selected(row);
        *selected += u64::from(is_selected);
        is_selected
    }

    /// Checks the run of a row, and returns its chunks. Only their fold is read.
    pub(crate) fn prepare(&self, input: RunInput) -> Result<ChunkStream, Box<Envelope>> {
        let mut context = self.context.clone();
        context.is_folded = true;
        self.runtime.prepare(&self.module, input, self.options.clone(), context)
    }

    /// Returns whether the condition of rows is true for a row. A row that cannot be read is selected.
    fn is_selected(&self, row: &Row) -> bool {
        let Some(filter) = &self.filter else { return true };
        row.input.get().map_or(true, |input| filter.is_true(input.node()))
    }

    /// Whether a result of an earlier start stays. A row that the provider did not answer runs again: nothing is wrong with it.
    pub(crate) fn keeps(&self, result: &FinishedRow) -> bool {
        result.ok || !(self.retries_failed || result.is_unanswered)
    }

    /// Returns whether the row has changed since it was sent in a job.
    fn was_sent_as_another(&self, row: &Row) -> bool {
        let answers = self.via.as_ref().and_then(|via| via.answers());
        !self.allows_changes && answers.is_some_and(|answers| answers.has_changed(row.number, row.hash))
    }

    /// Whether the provider did not answer a row although it was repeated. A runner stores such a result itself.
    pub(crate) fn is_unanswered(&self, envelope: &Envelope) -> bool {
        envelope.error().is_some_and(|error| self.is_unanswered_error(error))
    }

    pub(crate) fn is_unanswered_error(&self, error: &ErrorBody) -> bool {
        matches!(self.failure(error), Failure::Overloaded(_) | Failure::Cut)
    }

    /// Returns what an error says about the provider.
    fn failure(&self, error: &ErrorBody) -> Failure {
        match Failure::from_error(error) {
            // No answer comes from a live call, so waiting and repeating change none.
            _ if self.via.as_ref().is_some_and(|via| !via.retries_live()) => Failure::Row,
            // The runner has waited and repeated.
            Failure::Overloaded(_) | Failure::Cut if self.runner.is_some() => Failure::Provider,
            failure => failure,
        }
    }
}

/// A batch that runs.
struct BatchRun<'a, S> {
    batch: &'a Batch,
    rows: Rows,
    kept: Kept<'a>,
    sink: &'a mut S,
    /// The line of the last result.
    line: String,
    /// Rows that were read.
    queue: VecDeque<Row>,
    /// Rows that run again, because the provider was overloaded.
    repeats: VecDeque<Task>,
    running: FuturesUnordered<Pin<Box<dyn Future<Output = TaskResult> + 'a>>>,
    /// The first row with each input, if equal inputs run once.
    first_rows: FirstRows,
    is_read: bool,
    /// The rows that are part of the batch.
    selected: u64,
    /// Whether a row has ended, if the first one runs alone.
    is_warm: bool,
    /// The last rows, which the provider failed one after another.
    held: Vec<(Task, Envelope)>,
    outage: Outage,
    stop: Option<Stop>,
    /// The time at which rows that run are cancelled.
    deadline: Option<Instant>,
    summary: Summary,
    speed: Speed,
    started: Instant,
    /// Counts the tokens of rows whose provider reports none.
    row_tokens: Option<RowTokens>,
}

impl<S: Sink> BatchRun<'_, S> {
    async fn run(mut self, mut signals: impl AsyncFnMut(), view: View<'_>) -> Summary {
        let mut ticks = interval(view.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let ready = self.fill().await;
            // Rows are read only while none waits: the reader is ahead by two groups already, and memory must not grow with the input.
            let wants_rows = self.queue.is_empty() && !self.is_read && self.stop.is_none();
            if self.running.is_empty() && ready.is_none() && !wants_rows && !self.held.is_empty() {
                // No row can show whether the provider answers again.
                self.release().await;
                continue;
            }
            if self.is_over() {
                break;
            }
            let wake = self.deadline.or(ready);
            tokio::select! {
                // In this order: an interrupt counts also while rows end all the time, and an end makes room before more is read.
                biased;
                () = signals() => self.interrupt(),
                Some(ended) = self.running.next() => self.end(ended).await,
                group = self.rows.next(), if wants_rows => self.receive(group),
                () = sleep_until(wake.unwrap_or_else(Instant::now).into()), if wake.is_some() => self.cancel_late(),
                _ = ticks.tick() => (view.show)(&self.progress()),
            }
        }
        self.summary.elapsed = self.started.elapsed();
        if self.batch.allows_changes {
            self.summary.left_out.from = Some(self.summary.rows.read);
        }
        // Rows with an earlier result were not parsed.
        if self.summary.rows.earlier == 0 {
            self.summary.absent = self.rows.absent();
        }
        self.summary.stopped = self.stop;
        self.summary
    }

    fn is_over(&self) -> bool {
        self.running.is_empty() && (self.stop.is_some() || self.is_read && !self.has_rows())
    }

    fn interrupt(&mut self) {
        match self.stop {
            None => {
                self.stop = Some(Stop::Interrupted);
                self.deadline = Some(Instant::now() + GRACE);
            }
            Some(_) => self.running.clear(),
        }
    }

    fn cancel_late(&mut self) {
        if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            self.running.clear();
        }
    }

    fn receive(&mut self, group: Result<Option<Vec<Row>>, ReadError>) {
        match group {
            Ok(Some(rows)) => self.queue.extend(rows),
            Ok(None) => self.is_read = true,
            Err(error) => self.stop = Some(error.into()),
        }
    }

    /// Starts rows while there is room. Returns the time at which the next one may start, if only that is missing.
    async fn fill(&mut self) -> Option<Instant> {
        self.copy_ready().await;
        while self.stop.is_none() && self.has_room() {
            let now = Instant::now();
            let task = match self.repeats.pop_front() {
                Some(task) => Some(task),
                None => self.take().await,
            };
            let task = task?;
            let ready = self.batch.pace.ready_at(now);
            if ready > now {
                // It has been taken from the queue, and goes first when the pace allows it.
                self.repeats.push_front(task);
                return Some(ready);
            }
            self.start(task, now);
        }
        None
    }

    fn has_room(&mut self) -> bool {
        let running = self.running.len();
        let limit = if self.is_warm { self.batch.pace.limit() } else { 1 };
        // If nothing runs, the results without room wait for a row that has to run again.
        running < limit && (running == 0 || running < self.sink.room()) && self.is_affordable()
    }

    /// Whether the limit of the cost allows another row. Those that run are expected to cost as much as those before, so rows run
    /// one by one until a cost is known.
    fn is_affordable(&mut self) -> bool {
        let Some(limit) = self.batch.max_cost else { return true };
        let running = self.running.len();
        let (is_affordable, stop) = match self.summary.costs.estimate(running + 1) {
            Some((spent, expected)) => (spent < limit && expected <= limit, Stop::MaxCost { limit, spent }),
            None => (running == 0 && !self.summary.costs.are_unknown(), Stop::UnknownCost { limit }),
        };
        if !is_affordable && running == 0 && self.has_rows() {
            self.stop = Some(stop);
        }
        is_affordable
    }

    fn has_rows(&self) -> bool {
        !self.queue.is_empty() || !self.repeats.is_empty()
    }

    /// Returns the next row that runs.
    async fn take(&mut self) -> Option<Task> {
        while self.can_write() && !self.first_rows.is_full() {
            let row = self.queue.pop_front()?;
            if self.is_skipped(&row).await {
                if self.stop.is_some() {
                    return None;
                }
                continue;
            }
            let Row { number, hash, input } = row;
            let location = input.location();
            match input.into_result() {
                Ok(ParsedRow { input, carried }) => {
                    let row = Duplicate { row: number, hash, carried: carried.into() };
                    let task = self.task(row, location, input).await;
                    if task.is_some() || self.stop.is_some() {
                        return task;
                    }
                }
                Err(error) => {
                    let envelope = Envelope::failure(error.to_body(self.rows.name()));
                    let carried = self.rows.columns().carried().none();
                    self.write(RowHead { row: number, hash, carried: &carried }, &envelope).await;
                }
            }
        }
        None
    }

    /// Returns whether a row does not run, because it is not part of the batch or has a result.
    async fn is_skipped(&mut self, row: &Row) -> bool {
        if self.batch.sample.is_some_and(|sample| self.selected >= sample) {
            self.is_read = true;
            self.summary.is_sample = true;
            self.queue.clear();
            return true;
        }
        self.summary.rows.read += 1;
        let is_selected = self.batch.is_selected(row);
        if !is_selected {
            self.summary.rows.excluded += 1;
            if self.batch.allows_changes && self.kept.is_changed(row) {
                self.summary.left_out.rows.push(row.number);
            }
            return self.skip(row.number);
        }
        self.selected += 1;
        match self.kept.take(row) {
            Some(KeptResult { result, .. }) if result.hash != row.hash => {
                self.stop = Some(Stop::Changed { row: row.number });
                true
            }
            Some(kept) if self.batch.keeps(&kept.result) => self.keep(row, kept).await,
            _ if self.batch.was_sent_as_another(row) => {
                self.stop = Some(Stop::Changed { row: row.number });
                true
            }
            None if self.kept.is_changed(row) => {
                self.summary.rows.changed += 1;
                false
            }
            _ => false,
        }
    }

    /// Keeps the result of a row. Returns false if the row has to run, because its result is damaged.
    async fn keep(&mut self, row: &Row, KeptResult { mut result, crc, is_moved }: KeptResult) -> bool {
        // If changes are allowed, the options may carry other columns than before, so each line is looked at.
        if let Some(crc) = crc {
            match self.renumber(row, result, crc, is_moved).await {
                Some(position) => result.position = position,
                None => return self.stop.is_some(),
            }
        }
        self.summary.rows.earlier += 1;
        self.summary.rows.earlier_failed += u64::from(!result.ok);
        self.remember(row, result);
        self.skip(row.number)
    }

    fn skip(&mut self, row: u64) -> bool {
        if let Err(error) = self.sink.skip(row) {
            self.stop = Some(error.into());
        }
        true
    }

    fn start(&mut self, task: Task, now: Instant) {
        // A row whose result cannot be stored must not cost anything.
        if let Err(error) = self.sink.check() {
            self.stop_for_sink(error);
            return;
        }
        let reserved = self.batch.pace.start(now);
        self.running.push(Box::pin(task.run(self.batch, reserved)));
    }

    async fn end(&mut self, ended: TaskResult) {
        let TaskResult { task, mut envelope, latency, reserved } = ended;
        if let Outcome::Failure { error, .. } = &mut envelope.outcome
            && is_of_input(error)
        {
            self.rows.locate(task.location, error);
        }
        let now = Instant::now();
        let failure = envelope.error().map(|error| self.batch.failure(error));
        match envelope.usage() {
            Some(usage) => self.summary.spend(usage),
            None if envelope.is_ok() => self.summary.spend_unknown(),
            // The vendor bills what it sent before the connection was cut.
            None if failure == Some(Failure::Cut) => self.summary.spend_lost(),
            None => {}
        }
        let tokens = self.tokens(&task, &envelope).await;
        // A refusal comes faster than any answer, so it must not count as a good latency.
        self.batch.pace.end(
            &RunPace {
                reserved,
                tokens,
                calls: envelope.meta.runtime.attempts.unwrap_or(1),
                latency,
                is_full: self.running.len() + 1 >= self.batch.pace.limit(),
                is_answered: !matches!(
                    failure,
                    Some(Failure::Overloaded(_) | Failure::Cut | Failure::Provider | Failure::Budget)
                ),
            },
            now,
        );
        self.is_warm = true;
        self.outage.record(failure, envelope.error(), now);
        self.stop_for_outage(now);
        match (failure, envelope.error()) {
            (Some(Failure::Budget), Some(error)) => self.stop_for_cost(error),
            (Some(Failure::Overloaded(wait)), _) if task.may_repeat() => {
                self.batch.pace.pause(wait.unwrap_or_else(|| task.wait()), now);
                self.repeat(task);
            }
            (Some(Failure::Cut), _) if task.may_repeat_cut() => {
                // One connection that was cut says nothing about the others; several in sequence say that the provider is down.
                if self.outage.is_likely() {
                    self.batch.pace.pause(task.wait(), now);
                }
                self.repeat(task);
            }
            (Some(Failure::Overloaded(_) | Failure::Cut | Failure::Provider), _) => {
                self.hold(task, envelope).await;
            }
            _ => {
                self.release().await;
                self.finish(&task, &envelope).await;
            }
        }
    }

    fn repeat(&mut self, task: Task) {
        self.summary.rows.repeated += 1;
        self.repeats.push_back(task.again());
    }

    /// Stops the batch if nothing runs that the provider could still answer, and it has not answered for a while.
    fn stop_for_outage(&mut self, now: Instant) {
        let ended = self.outage.end(now).filter(|_| self.running.is_empty() && self.batch.runner.is_none());
        if let Some((time, error)) = ended {
            self.stop.get_or_insert(Stop::Unreachable { time, error: Box::new(error) });
        }
    }

    fn stop_for_cost(&mut self, error: &ErrorBody) {
        let stop = match (self.batch.max_cost, self.summary.cost) {
            (Some(limit), Some(spent)) => Stop::MaxCost { limit, spent },
            _ => Stop::Provider { rows: 1, error: Box::new(error.clone()), has_results: false },
        };
        self.stop.get_or_insert(stop);
    }

    /// Writes the result of a row.
    async fn write(&mut self, head: RowHead<'_>, envelope: &Envelope) {
        self.count(envelope);
        let result = RowResult::new(&mut self.line, head, self.batch.dedupes, envelope);
        let result = RowResult { is_unanswered: self.batch.is_unanswered(envelope), ..result };
        if let Err(error) = self.sink.put(result).await {
            self.stop_for_sink(error);
        }
    }

    /// Counts the result of a row, and stops the batch if too many have failed.
    fn count(&mut self, envelope: &Envelope) {
        self.summary.add(envelope);
        self.summary.rows.unanswered += u64::from(self.batch.is_unanswered(envelope));
        let failed = self.summary.rows.failed;
        let done = self.summary.rows.done();
        if let Some(limit) = self.batch.max_failures.filter(|limit| limit.is_exceeded(failed, done)) {
            self.stop.get_or_insert(Stop::MaxFailures { limit, failed, done });
        }
    }

    /// Cancels the rows that run, whose results have no place.
    fn stop_for_sink(&mut self, error: SinkError) {
        self.running.clear();
        self.stop = Some(error.into());
    }

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "estimates for people"
    )]
    fn progress(&mut self) -> Progress<'_> {
        let now = Instant::now();
        self.summary.elapsed = now.duration_since(self.started);
        let rows = self.summary.rows;
        let done = rows.done();
        let per_second = self.speed.measure(done, now);
        let taken = rows.read.max(1) as f64;
        let total = match self.is_read {
            true => Some(rows.read + self.queue.len() as u64),
            false => self.rows.share().filter(|share| *share > 0.0).map(|share| {
                let read = taken + self.queue.len() as f64;
                (read / share) as u64
            }),
        };
        // Rows that are excluded or have a result need no run.
        let run = rows.read - rows.excluded - rows.earlier - rows.duplicates;
        let needed = total.map(|total| total as f64 * run as f64 / taken);
        let left = needed.map(|needed| (needed - done as f64).max(0.0));
        let left = left.filter(|_| per_second > 0.0).map(|rows| rows / per_second);
        let each = self.summary.cost.map(|cost| cost / done.max(1) as f64);
        Progress {
            total,
            is_read: self.is_read,
            running: self.running.len(),
            per_second,
            expected_cost: each.zip(needed).map(|(each, needed)| each * needed),
            left: left.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            trouble: self.trouble(),
            // While rows run, the next reply may say that the vendor takes more.
            pause: self
                .batch
                .pace
                .paused_until(now)
                .filter(|_| self.running.is_empty())
                .map(|until| until.duration_since(now)),
            summary: &self.summary,
        }
    }
}

impl<S> BatchRun<'_, S> {
    /// Returns why no row starts, if none does.
    fn trouble(&self) -> Option<String> {
        if matches!(self.stop, Some(Stop::Interrupted)) {
            let rows = self.running.len();
            return Some(format!(
                "interrupted: waiting for the {rows} that run; interrupt again to cancel them"
            ));
        }
        let of_runner = self.batch.runner.as_ref().and_then(|runner| runner.trouble());
        of_runner.or_else(|| Some(format!("{}; trying again", self.outage.error()?.message)))
    }
}

/// Whether an error is about the input, which was refused before anything was sent.
fn is_of_input(error: &ErrorBody) -> bool {
    let code = error.code.as_str();
    error.origin == ErrorOrigin::Runtime && code.starts_with("E1") && code != "E1000"
}

/// Returns the input of a run: a string goes to the text field of the module.
pub fn run_input(input: Value) -> RunInput {
    match input.as_str() {
        Some(text) => RunInput::text(text),
        None => RunInput::Json(input),
    }
}

#[cfg(test)]
mod tests;
