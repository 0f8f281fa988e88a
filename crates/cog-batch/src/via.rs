//! Batches over the batch interface of a vendor: rows are sent as jobs, and their answers are checked as live ones.
//!
//! A row is sent by a run that ends when its request is complete ([`ViaProvider`]). When its job has ended, the row runs
//! again, and the model's reply is the one in the job. So both the request and the check are those of a live run.

mod answers;
mod error;
mod jobs;
mod provider;
mod send;
mod slot;
mod wait;

use std::{path::Path, sync::Arc, time::Duration};

use cog_provider::{
    BatchClient, HttpProvider,
    batch::{BatchInterface, BatchLimits},
};

pub(crate) use self::{answers::Answers, slot::Slot};
pub use self::{
    error::ViaError,
    jobs::{Job, Jobs},
    provider::ViaProvider,
};
use crate::Description;

/// The size of a job in memory while it is created, whatever the vendor accepts.
const MAX_BYTES: usize = 64 << 20;
/// The first pause between two requests for the state of the jobs.
const FIRST_PAUSE: Duration = Duration::from_secs(2);

/// Returns the limits of a job: those of the vendor and ours.
fn limits(interface: &dyn BatchInterface) -> BatchLimits {
    interface.limits().within(BatchLimits { requests: usize::MAX, bytes: MAX_BYTES })
}

/// A batch over the batch interface of a vendor. What it has done is in the file of its jobs, so that any process continues.
pub struct Via {
    client: BatchClient,
    provider: Arc<ViaProvider>,
    jobs: Jobs,
    limits: BatchLimits,
    max_pause: Duration,
}

impl Via {
    /// Opens the jobs of an output, or begins without any.
    ///
    /// # Errors
    /// The vendor has no batch interface, or the jobs are those of another batch.
    pub fn open(provider: &Arc<ViaProvider>, out: &Path, max_pause: Duration) -> Result<Self, ViaError> {
        let inner: &Arc<HttpProvider> = provider.inner();
        let name = inner.vendor().name;
        let client = BatchClient::new(Arc::clone(inner)).ok_or(ViaError::NoInterface { vendor: name })?;
        let jobs = Jobs::open(out, name)?;
        let limits = limits(client.interface());
        Ok(Self { client, provider: Arc::clone(provider), jobs, limits, max_pause })
    }

    /// Sets what the batch is, and the command that started it.
    ///
    /// # Errors
    /// The jobs are those of another batch.
    pub fn describe(&mut self, description: &Description, command: Vec<String>) -> Result<(), ViaError> {
        self.jobs.describe(description, command)
    }

    /// Limits the requests of a job.
    #[must_use]
    pub fn max_requests(mut self, requests: Option<usize>) -> Self {
        let own = BatchLimits { requests: requests.unwrap_or(usize::MAX), bytes: usize::MAX };
        self.limits = self.limits.within(own);
        self
    }

    /// Returns the jobs.
    #[must_use]
    pub fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// Removes the file of the jobs and the replies, after the output is complete.
    pub fn remove(self) {
        self.jobs.remove();
    }
}
