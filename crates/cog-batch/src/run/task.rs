//! The run of a row.

use std::time::{Duration, Instant};

use cog_run::RunInput;
use cog_spec::{Code, Envelope, ErrorBody};

use super::Batch;
use crate::{RowHash, digest::Digest, via::Slot};

/// How often a row runs while the provider is overloaded.
const MAX_TRIES: u32 = 5;
/// The first pause when the vendor requests none; it doubles with each try.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// A row that runs.
pub(super) struct Task {
    pub(super) row: u64,
    pub(super) hash: RowHash,
    /// The digest of the input, if rows with an equal input get the result.
    pub(super) digest: Option<Digest>,
    pub(super) input: RunInput,
    /// How often it ran before.
    pub(super) tries: u32,
}

/// A run that has ended.
pub(super) struct Ended {
    pub(super) task: Task,
    pub(super) envelope: Envelope,
    pub(super) latency: Duration,
    pub(super) reserved: f64,
}

/// What an error says about the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The budget refused the run.
    Budget,
    /// The provider accepts no requests for a while, with the wait that it requests.
    Overloaded(Option<Duration>),
    /// The provider failed.
    Provider,
    /// The row failed.
    Row,
}

impl Task {
    pub(super) async fn run(self, batch: &Batch, reserved: f64) -> Ended {
        let started = Instant::now();
        let envelope = match &batch.runner {
            Some(runner) => runner.run(self.row, self.hash, &self.input).await,
            None => self.run_here(batch).await,
        };
        Ended { task: self, envelope, latency: started.elapsed(), reserved }
    }

    async fn run_here(&self, batch: &Batch) -> Envelope {
        let run =
            batch.runtime.execute_without_data(&batch.module, self.input.clone(), batch.options.clone());
        match run {
            Ok(chunks) if batch.via.is_some() => Slot::answered(self.row).run(chunks.fold()).await,
            Ok(chunks) => chunks.fold().await,
            Err(refused) => *refused,
        }
    }

    pub(super) fn may_repeat(&self) -> bool {
        self.tries + 1 < MAX_TRIES
    }

    /// Returns the pause before the next try.
    pub(super) fn wait(&self) -> Duration {
        FIRST_WAIT * 2_u32.pow(self.tries.min(MAX_TRIES))
    }

    pub(super) fn again(self) -> Self {
        Self { tries: self.tries + 1, ..self }
    }
}

impl Failure {
    pub(super) fn from_error(error: &ErrorBody) -> Self {
        let detail = |name: &str| error.details.as_ref().and_then(|details| details.get(name));
        let reason = detail("reason").and_then(cog_json::Node::as_str);
        if matches!(reason, Some("budget" | "unknown_price")) {
            return Self::Budget;
        }
        let wait = detail("retry_after_ms").and_then(cog_json::Node::as_u64).map(Duration::from_millis);
        let is = |code: Code| error.code == code.into();
        match error.recoverable {
            Some(true) if is(Code::RateLimited) && reason != Some("quota") => Self::Overloaded(wait),
            Some(true)
                if is(Code::ProviderUnavailable) && (wait.is_some() || reason == Some("unavailable")) =>
            {
                Self::Overloaded(wait)
            }
            _ if is(Code::RateLimited) || is(Code::ProviderUnavailable) => Self::Provider,
            _ => Self::Row,
        }
    }
}
