//! The run of a row.

use std::time::{Duration, Instant};

use cog_run::RunInput;
use cog_spec::Envelope;

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
            Ok(chunks) if batch.via.is_some() => Slot::answered(self.row, self.hash).run(chunks.fold()).await,
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
