//! Errors of a batch over the batch interface of a vendor.

use std::{io, path::PathBuf};

use cog_provider::ProviderError;
use thiserror::Error;

use crate::{Difference, ReadError};

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
