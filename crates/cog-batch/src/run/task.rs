//! The run of a row, or the result of an earlier row with an equal input.

use std::time::{Duration, Instant};

use cog_json::{Node, ToJson as _, Value};
use cog_run::{RunInput, provider::TokenCounter};
use cog_spec::{Code, Envelope, ErrorBody};

use super::{Batch, BatchRun, run_input};
use crate::{
    FinishedRow, Row, RowHash, RowLocation, RowResult, Sink, Stop,
    duplicates::{Duplicate, FirstRow, digest_of_input, has_head, renumbered},
    jobs::Slot,
    row::{Digest, Position},
    sink::RowHead,
};

/// How often a row runs while the provider is overloaded.
const MAX_TRIES: u32 = 5;
/// How often a row runs whose connection is cut or whose time is over. Each of these calls may be paid for.
const MAX_CUT_TRIES: u32 = 3;
/// The first pause when the vendor requests none; it doubles with each try.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// A row that runs.
pub(super) struct Task {
    pub(super) row: u64,
    pub(super) hash: RowHash,
    /// The members that the result gets from the row.
    pub(super) carried: Box<str>,
    pub(super) location: RowLocation,
    /// The digest of the input, if rows with an equal input get the result.
    pub(super) digest: Option<Digest>,
    pub(super) input: RunInput,
    /// How often it ran before.
    pub(super) tries: u32,
}

/// A run that has ended.
pub(super) struct TaskResult {
    pub(super) task: Task,
    pub(super) envelope: Envelope,
    pub(super) latency: Duration,
    pub(super) reserved: f64,
}

impl Task {
    pub(super) async fn run(self, batch: &Batch, reserved: f64) -> TaskResult {
        let started = Instant::now();
        let envelope = match &batch.runner {
            Some(runner) => runner.run(self.row, self.hash, &self.input).await,
            None => self.run_here(batch).await,
        };
        TaskResult { task: self, envelope, latency: started.elapsed(), reserved }
    }

    async fn run_here(&self, batch: &Batch) -> Envelope {
        match batch.prepare(self.input.clone()) {
            Ok(chunks) if batch.via.is_some() => Slot::answered(self.row, self.hash).run(chunks.fold()).await,
            Ok(chunks) => chunks.fold().await,
            Err(refused) => *refused,
        }
    }

    pub(super) fn may_repeat(&self) -> bool {
        self.tries + 1 < MAX_TRIES
    }

    pub(super) fn may_repeat_cut(&self) -> bool {
        self.tries + 1 < MAX_CUT_TRIES
    }

    pub(super) fn head(&self) -> RowHead<'_> {
        RowHead { row: self.row, hash: self.hash, carried: &self.carried }
    }

    /// Returns the pause before the next try.
    pub(super) fn wait(&self) -> Duration {
        FIRST_WAIT * 2_u32.pow(self.tries.min(MAX_TRIES))
    }

    pub(super) fn again(self) -> Self {
        Self { tries: self.tries + 1, ..self }
    }
}

// The tokens of a row, for the limit per minute.

/// Counts the tokens of rows whose provider reports none.
pub(super) struct RowTokens {
    counter: TokenCounter,
    /// The tokens of a request without its input.
    prompt: u64,
}

impl RowTokens {
    /// Renders the request of a row. None if it has none.
    pub(super) async fn new(batch: &Batch, input: &RunInput) -> Option<Self> {
        let first = batch.runtime.providers().default_order().first();
        let counter = TokenCounter::new(first.map_or("", |provider| &provider.info().model));
        let rendered =
            batch.runtime.render(&batch.module, input.clone(), batch.options.clone()).await.ok()?;
        let all = counter.conversation(&rendered.messages);
        let prompt = all.saturating_sub(counter.text(&text_of(input)));
        Some(Self { counter, prompt })
    }

    /// Returns the tokens of a row, about.
    pub(super) fn count(&self, input: &RunInput, answer: &str) -> u64 {
        self.prompt + self.counter.text(&text_of(input)) + self.counter.text(answer)
    }
}

/// Returns an input as the prompt contains it, about.
fn text_of(input: &RunInput) -> String {
    match input {
        RunInput::Json(input) => input.to_json(),
        RunInput::Args(text) | RunInput::ArgsWith(text, _) => text.clone(),
        _ => String::new(),
    }
}

impl<S: Sink> BatchRun<'_, S> {
    /// Returns the tokens of a run: as the provider counts them, otherwise counted here if their number per minute is limited.
    pub(super) async fn tokens(&mut self, task: &Task, envelope: &Envelope) -> Option<u64> {
        if let Some(usage) = envelope.usage() {
            return Some(usage.total());
        }
        let answer = envelope.data().filter(|_| self.batch.pace.limits_tokens())?.to_json();
        if self.row_tokens.is_none() {
            self.row_tokens = RowTokens::new(self.batch, &task.input).await;
        }
        Some(self.row_tokens.as_ref()?.count(&task.input, &answer))
    }
}

// What the error of a row says about the provider.

/// What an error says about the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The budget refused the run.
    Budget,
    /// The provider accepts no requests for a while, with the wait that it requests.
    Overloaded(Option<Duration>),
    /// The connection was cut, or the time is over: the provider may have begun to answer.
    Cut,
    /// The provider failed.
    Provider,
    /// The row failed.
    Row,
}

impl Failure {
    pub(super) fn from_error(error: &ErrorBody) -> Self {
        let reason = error.detail("reason").and_then(Node::as_str);
        if matches!(reason, Some("budget" | "unknown_price")) {
            return Self::Budget;
        }
        let wait = error.detail("retry_after_ms").and_then(Node::as_u64);
        let wait = wait.map(Duration::from_millis);
        let is_limited = error.has_failed_with(Code::RateLimited);
        let is_unavailable = error.has_failed_with(Code::ProviderUnavailable);
        let cuts = [Code::StreamInterrupted, Code::StreamTimeout, Code::Timeout];
        let is_cut = cuts.iter().any(|code| error.has_failed_with(*code));
        match error.recoverable {
            Some(true) if is_limited && reason != Some("quota") => Self::Overloaded(wait),
            Some(true) if is_unavailable && (wait.is_some() || reason == Some("unavailable")) => {
                Self::Overloaded(wait)
            }
            _ if is_limited || is_unavailable => Self::Provider,
            // Whether a timeout is the provider's or the row's is not known before it is tried again.
            Some(true) | None if is_cut => Self::Cut,
            _ => Self::Row,
        }
    }
}

// Results of rows that the provider failed, which are held until it is known whether the batch goes on.

/// The failures of the provider in a row that end a batch.
const MAX_FAILURES: usize = 20;

impl<S: Sink> BatchRun<'_, S> {
    /// Holds the result of a row that the provider failed. Many in a row stop the batch: the provider is down, or its key is
    /// wrong, and every row would fail.
    pub(super) async fn hold(&mut self, task: Task, envelope: Envelope) {
        self.held.push((task, envelope));
        if self.has_too_many_failures() {
            return self.release().await;
        }
        let error = self.held.last().and_then(|(_, envelope)| envelope.error());
        if let Some(error) = error.filter(|_| self.held.len() >= MAX_FAILURES) {
            let stop = Stop::Provider {
                rows: self.held.len(),
                error: Box::new(error.clone()),
                has_results: self.batch.runner.is_some(),
            };
            self.stop.get_or_insert(stop);
        }
    }

    /// Writes the results that are held. If the provider or the user has stopped the batch, those rows have no result, so that
    /// they run when the batch continues. Workers have stored their results already.
    pub(super) async fn release(&mut self) {
        let held = std::mem::take(&mut self.held);
        let is_stopped =
            matches!(self.stop, Some(Stop::Provider { .. } | Stop::Unreachable { .. } | Stop::Interrupted));
        if !is_stopped || self.batch.runner.is_some() {
            for (task, envelope) in held {
                self.finish(&task, &envelope).await;
            }
        }
    }

    /// Whether too many rows have failed, with those that are held.
    fn has_too_many_failures(&self) -> bool {
        // The limit of the user comes first: held results count, or it would be exceeded by up to twenty rows.
        let rows = self.summary.rows;
        let held = self.held.len() as u64;
        let limit = self.batch.max_failures;
        limit.is_some_and(|limit| limit.is_exceeded(rows.failed + held, rows.done() + held))
    }
}

// A provider that answers no row for a while.

/// The least time without an answer that ends a batch.
const LONG: Duration = Duration::from_secs(30);
/// The least number of failures that ends a batch.
const MANY: u32 = 5;

/// The failures since the last answer. A provider that limits the rate, or rejects a row, answers.
#[derive(Debug, Default)]
pub(super) struct Outage {
    failures: u32,
    /// The time of the first failure.
    since: Option<Instant>,
    error: Option<ErrorBody>,
}

impl Outage {
    /// Records how a row ended, and what its error says about the provider.
    pub(super) fn record(&mut self, failure: Option<Failure>, error: Option<&ErrorBody>, now: Instant) {
        let is_down = match failure {
            Some(Failure::Overloaded(_)) => {
                error.is_some_and(|error| error.has_failed_with(Code::ProviderUnavailable))
            }
            Some(Failure::Cut) => true,
            _ => false,
        };
        match error.filter(|_| is_down) {
            None => *self = Self::default(),
            Some(error) => {
                self.failures = self.failures.saturating_add(1);
                self.since.get_or_insert(now);
                // One that was not sent, because others failed, does not say why they did.
                if self.error.is_none() || is_cause(error) {
                    self.error = Some(error.clone());
                }
            }
        }
    }

    /// Returns the time without an answer and the last error, if the batch should end: the provider is down, or its address is
    /// wrong.
    pub(super) fn end(&self, now: Instant) -> Option<(Duration, ErrorBody)> {
        let time = now.duration_since(self.since?);
        (self.failures >= MANY && time >= LONG).then_some((time, self.error.clone()?))
    }

    /// Whether so many calls have failed in sequence that the next ones are likely to fail too.
    pub(super) fn is_likely(&self) -> bool {
        self.failures >= MANY
    }

    /// Returns the last error.
    pub(super) fn error(&self) -> Option<&ErrorBody> {
        self.error.as_ref()
    }
}

/// Whether an error says why the provider cannot be reached.
fn is_cause(error: &ErrorBody) -> bool {
    error.detail("reason").and_then(Node::as_str) == Some("unavailable")
}

impl<S: Sink> BatchRun<'_, S> {
    /// Returns the run of a row. None if the row gets the result of an earlier one.
    pub(super) async fn task(&mut self, row: Duplicate, location: RowLocation, input: Value) -> Option<Task> {
        let digest = self.batch.dedupes.then(|| digest_of_input(&input));
        if let Some(digest) = digest {
            match self.first_rows.get(digest) {
                Some(FirstRow::Running(first)) => {
                    self.first_rows.wait(first, row);
                    return None;
                }
                Some(FirstRow::Stored(position)) if self.copy(&row, position).await => return None,
                // A stored result that is damaged counts as none.
                _ => self.first_rows.run(digest, row.row),
            }
        }
        let Duplicate { row, hash, carried } = row;
        Some(Task { row, hash, carried, location, digest, input: run_input(input), tries: 0 })
    }

    /// Remembers the result of an earlier start, unless it is of another input.
    pub(super) fn remember(&mut self, row: &Row, earlier: FinishedRow) {
        // In this order: the input of a row that is skipped is parsed only for its duplicates.
        if self.batch.dedupes
            && earlier.hash == row.hash
            && let Ok(input) = row.input.get()
        {
            self.first_rows.store_earlier(digest_of_input(input), earlier.position);
        }
    }

    /// Writes the result of a row again, if it was at another position or has other columns of its row. Returns where it is now; none
    /// if it is damaged.
    pub(super) async fn renumber(
        &mut self,
        row: &Row,
        earlier: FinishedRow,
        crc: u32,
        is_moved: bool,
    ) -> Option<Position> {
        let line = match self.sink.read(earlier.position).await {
            Ok(line) => line,
            Err(error) => {
                self.stop_for_sink(error);
                return None;
            }
        };
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&line);
        hasher.update(b"\n");
        if hasher.finalize() != crc {
            return None;
        }
        let columns = self.rows.columns().carried();
        let none = columns.none();
        // A row that carries nothing is not parsed.
        let carried = match columns.is_empty() {
            true => "",
            false => row.input.carried().unwrap_or(&none),
        };
        let head = RowHead { row: row.number, hash: row.hash, carried };
        if !is_moved && has_head(&line, head) {
            return Some(earlier.position);
        }
        let line = renumbered(&line, head, self.batch.dedupes)?;
        let FinishedRow { ok, is_unanswered, .. } = earlier;
        let result = RowResult { row: row.number, hash: row.hash, ok, is_unanswered, line: line.as_bytes() };
        match self.sink.keep(result).await {
            Ok(position) => Some(position),
            Err(error) => {
                self.stop_for_sink(error);
                None
            }
        }
    }

    /// Writes the result of a run, which rows with an equal input get too.
    pub(super) async fn finish(&mut self, task: &Task, envelope: &Envelope) {
        let Some(digest) = task.digest else { return self.write(task.head(), envelope).await };
        self.count(envelope);
        let result = RowResult::new(&mut self.line, task.head(), self.batch.dedupes, envelope);
        let result = RowResult { is_unanswered: self.batch.is_unanswered(envelope), ..result };
        match self.sink.keep(result).await {
            Ok(position) => self.first_rows.store(digest, task.row, position),
            Err(error) => self.stop_for_sink(error),
        }
    }

    /// Writes the results of the duplicates whose first row has ended, as far as there is room.
    pub(super) async fn copy_ready(&mut self) {
        while self.stop.is_none() && self.can_write() {
            let Some((row, position)) = self.first_rows.next_ready() else { return };
            if !self.copy(&row, position).await {
                let error = std::io::Error::new(
                    std::io::ErrorKind::InvalidData,
                    "a result was changed by another program",
                );
                self.stop_for_sink(error.into());
            }
        }
    }

    /// Whether a result may be written for a row that did not run. Otherwise those that run would find no room.
    pub(super) fn can_write(&self) -> bool {
        self.running.is_empty() || self.running.len() < self.sink.room()
    }

    /// Writes the result of a duplicate. Returns false if the result of the first row is damaged.
    async fn copy(&mut self, row: &Duplicate, position: Position) -> bool {
        let line = match self.sink.read(position).await {
            Ok(line) => line,
            Err(error) => {
                self.stop_for_sink(error);
                return true;
            }
        };
        let batch = self.batch;
        let copied = row.copy(&line, |error| batch.is_unanswered_error(error), &mut self.line);
        let Some(result) = copied else { return false };
        self.summary.rows.duplicates += 1;
        if let Err(error) = self.sink.put(result).await {
            self.stop_for_sink(error);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use cog_spec::ErrorOrigin;

    use super::*;

    #[test]
    fn what_a_model_reports_says_nothing_about_the_provider() {
        let details = Value::parse(r#"{"reason": "budget", "retry_after_ms": 60000}"#).unwrap();
        for code in Code::ALL {
            let failed = ErrorBody::new(*code, "no").with_recoverable(true);
            let reported = failed.with_details(details.clone()).with_origin(ErrorOrigin::Model);
            assert_eq!(Failure::from_error(&reported), Failure::Row, "{code}");
        }
        let limited = ErrorBody::new(Code::RateLimited, "slow down");
        assert_eq!(Failure::from_error(&limited), Failure::Overloaded(None));
    }

    #[test]
    fn batch_ends_after_many_failures_over_a_long_time_without_an_answer() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let unavailable = ErrorBody::new(Code::ProviderUnavailable, "no connection");
        let cut = ErrorBody::new(Code::StreamInterrupted, "the connection was closed");
        let limited = ErrorBody::new(Code::RateLimited, "slow down");
        let down = Some(Failure::Overloaded(None));
        let mut outage = Outage::default();
        for (seconds, ends) in [(0, false), (20, false), (31, false), (40, false), (50, true)] {
            let now = start + seconds * second;
            // Refused and cut connections count together.
            match seconds {
                20 | 40 => outage.record(Some(Failure::Cut), Some(&cut), now),
                _ => outage.record(down, Some(&unavailable), now),
            }
            assert_eq!((outage.end(now).is_some(), outage.is_likely()), (ends, ends), "{seconds} s");
        }
        for (failure, answer) in [
            (None, None),
            (down, Some(&limited)),
            (Some(Failure::Provider), Some(&unavailable)), // a rejected request has the same code
        ] {
            outage.record(failure, answer, start + 60 * second);
            assert!(outage.end(start + 90 * second).is_none());
            (60..80).for_each(|at| outage.record(down, Some(&unavailable), start + at * second));
            assert!(outage.end(start + 80 * second).is_none(), "{:?}", outage.error());
        }
    }
}
