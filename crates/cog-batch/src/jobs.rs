//! The jobs of a batch over the batch interface of a vendor: their file, their replies, and the provider that reads them.

mod provider;

use std::{
    collections::BTreeSet,
    fs, io,
    path::{Path, PathBuf},
};

use cog_provider::{
    ProviderError,
    batch::{BatchInterface, BatchLimits},
};
use cog_store::{Durability, write_durably};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Description, Difference, ReadError, journal::with_suffix};

pub use self::provider::VendorBatchProvider;
pub(crate) use self::provider::{Answers, Slot, entry_id, write};

/// The size of a job in memory while it is created, whatever the vendor accepts.
const MAX_BYTES: usize = 64 << 20;

/// Returns the limits of a job: the vendor's, and ours.
pub(crate) fn limits(interface: &dyn BatchInterface) -> BatchLimits {
    interface.limits().within(BatchLimits { requests: usize::MAX, bytes: MAX_BYTES })
}

/// The version of the file.
const VERSION: u32 = 1;

/// The jobs of a batch. The file is replaced as a whole with each change.
#[derive(Debug, Clone)]
pub struct Jobs {
    path: PathBuf,
    state: State,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct State {
    version: u32,
    vendor: String,
    /// The beginning of the names of the jobs.
    name: String,
    /// What the batch is, as JSON.
    description: String,
    /// The arguments of the command that started the batch.
    command: Vec<String>,
    /// Whether every row was sent.
    is_complete: bool,
    jobs: Vec<Job>,
}

/// A job: the rows of a part of the input.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Job {
    /// The name, with which it is found again. It changes when the job is sent again.
    pub name: String,
    /// The first row of its part of the input.
    pub first: u64,
    /// The last row.
    pub last: u64,
    /// The number of requests.
    pub requests: u64,
    /// The ID of the newest job at the vendor before this one, if jobs have no name.
    pub after: Option<String>,
    /// The ID; none if the job is waiting, or if it is not known whether it exists.
    pub id: Option<String>,
    /// Whether it is still to be sent, because the vendor's queue had no room for it.
    #[serde(default)]
    pub is_waiting: bool,
    /// How often the vendor refused it.
    #[serde(default)]
    pub refusals: u32,
    /// The state, as the vendor names it.
    pub state: String,
    /// Whether it has ended.
    pub is_ended: bool,
    /// Whether its replies are stored.
    pub is_fetched: bool,
    /// The requests that were answered, as far as the vendor reports them.
    pub succeeded: Option<u64>,
    /// The requests that failed.
    pub failed: Option<u64>,
    /// The vendor's error for the complete job.
    pub message: Option<String>,
}

impl Job {
    /// Records that the vendor's queue had no room for the job.
    pub(crate) fn refuse(&mut self, reason: Option<String>) {
        self.refusals += 1;
        // A job that was refused is known by its name at the vendor, so the next one needs another.
        let (batch, number) = self.name.rsplit_once('-').unwrap_or(("cog", &self.name));
        let number = number.split('r').next().unwrap_or_default();
        self.name = format!("{batch}-{number}r{}", self.refusals);
        self.id = None;
        self.is_waiting = true;
        self.is_ended = false;
        "waiting".clone_into(&mut self.state);
        self.message = reason;
    }

    /// Ends a job that is still to be sent: it has no results.
    pub(crate) fn close(&mut self, state: &str) {
        self.is_waiting = false;
        self.is_ended = true;
        state.clone_into(&mut self.state);
    }
}

impl Jobs {
    /// Reads the jobs of an output, or begins without any.
    ///
    /// # Errors
    /// The jobs are of another vendor, or their file cannot be read.
    pub fn open(out: &Path, vendor: &'static str) -> Result<Self, VendorBatchError> {
        let path = Self::path_beside(out);
        let state = match read(&path)? {
            Some(state) if state.vendor == vendor => state,
            Some(state) => {
                return Err(VendorBatchError::OtherVendor { path, found: state.vendor, expected: vendor });
            }
            None => State {
                version: VERSION,
                vendor: vendor.to_owned(),
                name: new_name(&path)?,
                ..State::default()
            },
        };
        Ok(Self { path, state })
    }

    /// Returns the path next to an output: `OUT.jobs`. The path of the replies of a job begins with it.
    #[must_use]
    pub fn path_beside(out: &Path) -> PathBuf {
        with_suffix(out, ".jobs")
    }

    /// Returns the command that started the batch of an output, and its vendor.
    ///
    /// # Errors
    /// There are no jobs, or their file cannot be read.
    pub fn command(out: &Path) -> Result<Vec<String>, VendorBatchError> {
        let path = Self::path_beside(out);
        let state = read(&path)?.ok_or(VendorBatchError::NoJobs { path })?;
        Ok(state.command)
    }

    /// Reads the jobs of an output, wherever they are. None if there are none.
    ///
    /// # Errors
    /// Their file cannot be read.
    pub fn find(out: &Path) -> Result<Option<Self>, VendorBatchError> {
        let path = Self::path_beside(out);
        Ok(read(&path)?.map(|state| Self { path, state }))
    }

    /// Returns where the jobs are: a vendor, or `nats`.
    #[must_use]
    pub fn vendor(&self) -> &str {
        &self.state.vendor
    }

    /// Stores the command that started the batch, unless it has one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn begin(&mut self, command: Vec<String>) -> Result<(), VendorBatchError> {
        if self.state.command.is_empty() {
            self.state.command = command;
            self.save()?;
        }
        Ok(())
    }

    /// Returns the beginning of the names of the jobs, which no other batch has.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.state.name
    }

    pub(crate) fn describe(
        &mut self,
        now: &Description,
        command: Vec<String>,
    ) -> Result<(), VendorBatchError> {
        let before = Description::from_json(self.state.description.as_bytes());
        match before.map(|before| before.differences(now)) {
            Some(differences) if !differences.is_empty() => {
                Err(VendorBatchError::Changed { path: self.path.clone(), differences })
            }
            Some(_) => Ok(()),
            None => {
                (self.state.description, self.state.command) = (now.to_json(), command);
                Ok(())
            }
        }
    }

    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the jobs, in the order of their rows.
    #[must_use]
    pub fn list(&self) -> &[Job] {
        &self.state.jobs
    }

    /// Whether a job of this batch has this ID at the vendor.
    pub(crate) fn contains(&self, id: &str) -> bool {
        self.state.jobs.iter().any(|job| job.id.as_deref() == Some(id))
    }

    pub(crate) fn list_mut(&mut self) -> &mut Vec<Job> {
        &mut self.state.jobs
    }

    /// Whether every row was sent.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.state.is_complete && !self.has_waiting()
    }

    /// Whether a job is still to be sent.
    pub(crate) fn has_waiting(&self) -> bool {
        self.state.jobs.iter().any(|job| job.is_waiting)
    }

    /// Returns the number of the job that has a row, if the job is still to be sent and its first row is one of these.
    pub(crate) fn waiting_with(&self, row: u64, firsts: &BTreeSet<u64>) -> Option<usize> {
        let number = self.state.jobs.iter().position(|job| (job.first..=job.last).contains(&row))?;
        self.state.jobs.get(number).filter(|job| job.is_waiting && firsts.contains(&job.first))?;
        Some(number)
    }

    pub(crate) fn set_complete(&mut self, is_complete: bool) {
        self.state.is_complete = is_complete;
    }

    /// Returns the name of the next job.
    pub(crate) fn next_name(&self) -> String {
        format!("{}-{}", self.state.name, self.state.jobs.len())
    }

    /// Divides a job that is still to be sent: the rows from this one on become a job of their own.
    pub(crate) fn divide(&mut self, number: usize, row: u64) {
        let name = self.next_name();
        let Some(job) = self.state.jobs.get_mut(number) else { return };
        let rest = Job {
            name,
            first: row,
            last: job.last,
            state: job.state.clone(),
            is_waiting: true,
            ..Job::default()
        };
        job.last = row.saturating_sub(1);
        self.state.jobs.insert(number + 1, rest);
    }

    /// Returns the path of the replies of a job.
    pub(crate) fn replies(&self, number: usize) -> PathBuf {
        with_suffix(&self.path, &format!("-{number}"))
    }

    /// Stores the jobs.
    pub(crate) fn save(&self) -> Result<(), VendorBatchError> {
        let text = serde_json::to_vec_pretty(&self.state).map_err(io::Error::from);
        let stored = text.and_then(|text| write_durably(&self.path, &text, Durability::PowerCut));
        stored.map_err(|source| VendorBatchError::file(&self.path, source))
    }

    /// Removes the file of the jobs and the replies, after the output is complete.
    pub fn remove(self) {
        for number in 0..self.state.jobs.len() {
            let _ = fs::remove_file(self.replies(number));
        }
        let _ = fs::remove_file(&self.path);
    }
}

#[expect(clippy::disallowed_methods, reason = "the file is the batch's own")]
fn read(path: &Path) -> Result<Option<State>, VendorBatchError> {
    match fs::read(path) {
        Ok(text) => match serde_json::from_slice::<State>(&text) {
            Ok(state) if state.version == VERSION => Ok(Some(state)),
            Ok(state) => Err(VendorBatchError::Version { path: path.to_owned(), found: state.version }),
            Err(invalid) => Err(VendorBatchError::file(path, invalid.into())),
        },
        Err(missing) if missing.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(other) => Err(VendorBatchError::file(path, other)),
    }
}

/// Returns a name that no other batch has, from the name of a temporary file.
fn new_name(path: &Path) -> Result<String, VendorBatchError> {
    let file = tempfile::Builder::new().prefix("cog-").rand_bytes(16).tempfile();
    let file = file.map_err(|source| VendorBatchError::file(path, source))?;
    Ok(file.path().file_name().unwrap_or_default().to_string_lossy().into_owned())
}

// Errors of a batch over the batch interface of a vendor.

/// Why a batch over the batch interface of a vendor cannot go on. What it has done so far is stored.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum VendorBatchError {
    /// The vendor has no batch interface.
    #[error("{vendor} has no batch interface that is supported")]
    NoInterface {
        /// The vendor.
        vendor: &'static str,
    },
    /// The jobs are of another vendor.
    #[error("{}: the jobs are at {found}, not at {expected}", path.display())]
    OtherVendor {
        /// The file of the jobs.
        path: PathBuf,
        /// The vendor of the jobs.
        found: String,
        /// The vendor of the command.
        expected: &'static str,
    },
    /// The jobs are of another batch.
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
    /// The vendor's queue has no room for a job although no other job of the batch is in it.
    #[error("the vendor's queue has no room for a job of {requests} rows{}", reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default())]
    QueueFull {
        /// The rows of the job.
        requests: u64,
        /// The vendor's reason.
        reason: Option<String>,
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

impl VendorBatchError {
    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        Self::File { path: path.to_owned(), source }
    }

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
            Self::QueueFull { requests, .. } => Some(format!(
                "Run the same command again when other jobs of the account have ended, or with smaller jobs: --job-rows {}.",
                (requests / 2).max(1)
            )),
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
