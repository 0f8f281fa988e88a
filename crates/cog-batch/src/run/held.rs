//! Results of rows that the provider failed, which are held until it is known whether the batch goes on.

use cog_spec::Envelope;

use super::{Running, Task};
use crate::{Sink, Stop};

/// The failures of the provider in a row that end a batch.
const MAX_FAILURES: usize = 20;

impl<S: Sink> Running<'_, S> {
    /// Holds the result of a row that the provider failed. Many in a row stop the batch: the provider is down, or its key is
    /// wrong, and every row would fail.
    pub(super) async fn hold(&mut self, task: Task, envelope: Envelope) {
        self.held.push((task, envelope));
        if self.has_too_many_failures() {
            return self.release().await;
        }
        let error = self.held.last().and_then(|(_, envelope)| envelope.error());
        if let Some(error) = error.filter(|_| self.held.len() >= MAX_FAILURES) {
            let (rows, error) = (self.held.len(), Box::new(error.clone()));
            let has_results = self.batch.runner.is_some();
            self.stop.get_or_insert(Stop::Provider { rows, error, has_results });
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
        let (rows, held) = (self.summary.rows, self.held.len() as u64);
        let limit = self.batch.max_failures;
        limit.is_some_and(|limit| limit.is_exceeded(rows.failed + held, rows.done() + held))
    }
}
