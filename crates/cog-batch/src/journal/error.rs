use std::{io, path::Path, path::PathBuf, sync::Arc};

use super::Difference;

/// An error of the journal of a batch.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Another program uses the journal.
    #[error("{}: another batch uses this journal", path.display())]
    InUse {
        /// The journal.
        path: PathBuf,
    },
    /// The file is not a journal.
    #[error("{}: not a journal of a batch", path.display())]
    NotAJournal {
        /// The file.
        path: PathBuf,
    },
    /// The journal has a format of another version.
    #[error("{}: version {found} of the journal is not supported, only version {supported}", path.display())]
    OtherVersion {
        /// The journal.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version of this program.
        supported: u32,
    },
    /// The header of the journal is damaged.
    #[error("{}: the header of the journal is damaged", path.display())]
    DamagedHeader {
        /// The journal.
        path: PathBuf,
    },
    /// The batch differs from the one in the journal.
    #[error("{}: the journal belongs to a different batch: {}", path.display(), list(differences))]
    Changed {
        /// The journal.
        path: PathBuf,
        /// What differs.
        differences: Vec<Difference>,
    },
    /// There are results without a journal.
    #[error("{}: there are results, but their journal is missing: {}", results.display(), journal.display())]
    JournalMissing {
        /// The results.
        results: PathBuf,
        /// The journal.
        journal: PathBuf,
    },
    /// The file of the results is missing.
    #[error("{}: the results of the journal are missing", path.display())]
    ResultsMissing {
        /// The results.
        path: PathBuf,
    },
    /// The file of the results is shorter than the journal says.
    #[error("{}: the results are incomplete: {found} bytes, but the journal lists {expected}", path.display())]
    ResultsIncomplete {
        /// The results.
        path: PathBuf,
        /// The length of the file.
        found: u64,
        /// The length that the journal lists.
        expected: u64,
    },
    /// Results in the middle of the file are damaged. Their rows have no result any more.
    #[error("{}: damaged results: {count}, the first is of row {first}", path.display())]
    ResultsDamaged {
        /// The results.
        path: PathBuf,
        /// The number of rows.
        count: u64,
        /// The first of them.
        first: u64,
    },
    /// The journal has more records than the program supports.
    #[error("{}: the journal has too many records: {count}, at most {max}", path.display())]
    TooManyRecords {
        /// The journal.
        path: PathBuf,
        /// The number of records.
        count: u64,
        /// The maximum number.
        max: u64,
    },
    /// The result of a row is longer than 4 GiB.
    #[error("{}: the result of row {row} is too long: {length} bytes, at most {}", path.display(), u32::MAX)]
    ResultTooLong {
        /// The results.
        path: PathBuf,
        /// The row.
        row: u64,
        /// The length of the result.
        length: u64,
    },
    /// A file cannot be opened or read.
    #[error("{}: cannot open or read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: Arc<io::Error>,
    },
    /// A file cannot be written. What was stored before is intact.
    #[error("{}: cannot write: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: Arc<io::Error>,
    },
    /// The thread that writes the journal has ended unexpectedly.
    #[error("the thread that writes the journal has ended unexpectedly")]
    Stopped,
}

impl JournalError {
    pub(crate) fn read(path: &Path, source: io::Error) -> Self {
        Self::Read { path: path.to_owned(), source: Arc::new(source) }
    }

    pub(crate) fn write(path: &Path, source: io::Error) -> Self {
        Self::Write { path: path.to_owned(), source: Arc::new(source) }
    }

    /// Returns a suggestion how to solve the problem.
    #[must_use]
    pub fn suggestion(&self) -> &'static str {
        match self {
            Self::InUse { .. } => "Wait until the other batch ends, or choose another output.",
            Self::NotAJournal { .. } => "Choose another output, or move the file away.",
            Self::OtherVersion { .. } => {
                "Continue with the version of cog that started the batch, or move the journal and its results away."
            }
            Self::DamagedHeader { .. } => {
                "Continue with --allow-changes, which keeps the results of rows that are the same. If that fails too, restore the journal, or move it and its results away."
            }
            Self::JournalMissing { .. } => {
                "Restore the journal, or move the journal and its results away to start from the beginning."
            }
            Self::Changed { .. } => {
                "Use the same module, model, options and input, choose another output, or continue with --allow-changes."
            }
            Self::ResultsMissing { .. } | Self::ResultsIncomplete { .. } => {
                "Restore the results, or move the journal and the results away to start from the beginning."
            }
            Self::ResultsDamaged { .. } => "Run the same command again: these rows are sent again.",
            Self::TooManyRecords { .. } => "Split the input.",
            Self::ResultTooLong { .. } => "Limit the output of the module.",
            Self::Read { .. } => "Check that the file and its directory exist and are readable and writable.",
            Self::Write { source, .. } => suggestion_for_write(source.kind()),
            Self::Stopped => "Run the same command again: stored rows are not sent again.",
        }
    }
}

/// Returns what to do about an error of a write.
pub(crate) fn suggestion_for_write(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "Free space, then run the same command again: stored rows are not sent again."
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "Choose an output in a directory that you may write to."
        }
        io::ErrorKind::NotFound => "Create the directory first, or choose another output.",
        _ => "Check the disk, then run the same command again: stored rows are not sent again.",
    }
}

fn list(differences: &[Difference]) -> String {
    let texts: Vec<_> = differences.iter().map(ToString::to_string).collect();
    texts.join("; ")
}
