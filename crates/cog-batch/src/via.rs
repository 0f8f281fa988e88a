//! Batches over the batch interface of a vendor: rows are sent as jobs, and their answers are checked as live ones.
//!
//! A row is sent by a run that ends when its request is complete ([`ViaProvider`]). When its job has ended, the row runs
//! again, and the model's reply is the one in the job. So both the request and the check are those of a live run.

mod answers;
mod jobs;
mod provider;
mod send;

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use cog_provider::{
    BatchClient, HttpProvider, ProviderError, WireRequest,
    batch::{BatchInterface, BatchLimits},
};
use thiserror::Error;

pub(crate) use self::answers::Answers;
pub use self::{
    jobs::{Job, Jobs},
    provider::ViaProvider,
};
use crate::{Description, Difference, ReadError, RowHash};

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

// The row for which the provider is called.

tokio::task_local! {
    static SLOT: Arc<Slot>;
}

/// The row that runs.
pub(crate) struct Slot {
    row: u64,
    hash: RowHash,
    /// The number of calls so far.
    calls: AtomicU32,
    /// Where the request goes that would be sent.
    request: Option<Mutex<Option<WireRequest>>>,
}

impl Slot {
    /// Creates the slot of a row that takes its reply from a job.
    pub(crate) fn answered(row: u64, hash: RowHash) -> Arc<Self> {
        Arc::new(Self { row, hash, calls: AtomicU32::new(0), request: None })
    }

    /// Creates the slot of a row whose request is captured.
    fn captured(row: u64, hash: RowHash) -> Arc<Self> {
        Arc::new(Self { row, hash, calls: AtomicU32::new(0), request: Some(Mutex::default()) })
    }

    /// Runs a future for this row.
    pub(crate) async fn run<T>(self: Arc<Self>, run: impl Future<Output = T>) -> T {
        SLOT.scope(self, run).await
    }

    /// Returns the row that runs.
    fn current() -> Option<Arc<Self>> {
        SLOT.try_with(Arc::clone).ok()
    }

    /// Counts a call. Returns the number of those before it.
    fn count(&self) -> u32 {
        self.calls.fetch_add(1, Ordering::Relaxed)
    }

    fn is_captured(&self) -> bool {
        self.request.is_some()
    }

    /// Stores the request, unless there is one already.
    fn put(&self, request: WireRequest) {
        if let Some(slot) = &self.request {
            slot.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(request);
        }
    }

    /// Returns the request.
    fn take(&self) -> Option<WireRequest> {
        self.request.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

// Errors of a batch over the batch interface of a vendor.

/// Why a batch over the batch interface of a vendor cannot go on. What it has done so far is stored.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ViaError {
    /// The vendor has no batch interface.
    #[error("{vendor} has no batch interface that is supported")]
    NoInterface {
        /// The vendor.
        vendor: &'static str,
    },
    /// The jobs are those of another vendor.
    #[error("{}: the jobs are at {found}, not at {expected}", path.display())]
    OtherVendor {
        /// The file of the jobs.
        path: PathBuf,
        /// The vendor of the jobs.
        found: String,
        /// The vendor of the command.
        expected: &'static str,
    },
    /// The jobs are those of another batch.
    #[error("{}: the jobs belong to a different batch: {}", path.display(), list(differences))]
    Changed {
        /// The file of the jobs.
        path: PathBuf,
        /// What differs.
        differences: Vec<Difference>,
    },
    /// There is no file of jobs.
    #[error("{}: no batch jobs", path.display())]
    NoJobs {
        /// The file of the jobs.
        path: PathBuf,
    },
    /// The file of the jobs has another version.
    #[error("{}: the jobs have version {found}, which this program cannot read", path.display())]
    Version {
        /// The file of the jobs.
        path: PathBuf,
        /// The version.
        found: u32,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Some rows have not been sent yet.
    #[error("{}: not all rows have been sent", path.display())]
    Incomplete {
        /// The file of the jobs.
        path: PathBuf,
    },
    /// The vendor does not do what it is requested to.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The input cannot be read any further.
    #[error(transparent)]
    Read(#[from] ReadError),
}

impl ViaError {
    /// Returns what to do about it.
    #[must_use]
    pub fn suggestion(&self) -> Option<String> {
        match self {
            Self::NoInterface { .. } => Some("Use --via openai, anthropic or gemini.".to_owned()),
            Self::OtherVendor { found, .. } => {
                let option = if found == "nats" { "--nats" } else { "--via" };
                let name = if found == "nats" { "URL" } else { found };
                Some(format!("Use {option} {name}, or begin a new batch with another output."))
            }
            Self::Changed { .. } => Some("Restore it, or begin a new batch with another output.".to_owned()),
            Self::NoJobs { .. } => {
                Some("Name the output of a batch that was started with --via and is not complete.".to_owned())
            }
            Self::Version { .. } => {
                Some("Continue with the version of cog that started the batch.".to_owned())
            }
            Self::File { .. } => None,
            Self::Incomplete { .. } => {
                Some("The command that started the batch sends the others.".to_owned())
            }
            Self::Provider(error) => error.suggestion(),
            Self::Read(error) => Some(error.suggestion()),
        }
    }
}

fn list(differences: &[Difference]) -> String {
    differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
