//! The output of a batch, written from its results when it ends.
//!
//! A file is written beside its path, synced and renamed, so that it is always complete.

#[cfg(feature = "arrow")]
mod arrow;
mod columns;
mod csv;
mod json_lines;
#[cfg(feature = "arrow")]
mod parquet;
#[cfg(feature = "arrow")]
mod records;

use std::{
    ffi::{OsStr, OsString},
    fs::{File, OpenOptions},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use cog_json::SyntaxError;
use cog_schema::Contract;
use tempfile::{Builder, NamedTempFile};

use crate::{
    format::Format,
    journal::{JournalError, suggestion_for_write, sync_directory_of},
    results::{Order, ResultLine, Results},
};

/// What an output contains, and how.
#[derive(Debug, Clone, Copy)]
pub struct Output<'a> {
    /// The format.
    pub format: Format,
    /// The order of the rows.
    pub order: Order,
    /// The contract of the module, whose data fields are the first columns of a CSV.
    pub contract: &'a Contract,
}

impl Output<'_> {
    /// Writes the results to a file, atomically. A pipe or a device is written directly. Blocks.
    ///
    /// # Errors
    /// If results cannot be read or the file cannot be written. The results remain.
    pub fn write_file(&self, results: &mut Results, path: &Path) -> Result<(), WriteError> {
        write(path, |out| self.write(results, out).map_err(|error| error.at(path)))
    }

    /// Writes the results to a file, then removes the journal and the results. Blocks.
    ///
    /// # Errors
    /// As [`Output::write_file`], and if the journal cannot be removed.
    pub fn finish(&self, mut results: Results, path: &Path) -> Result<(), WriteError> {
        if !self.link(&mut results, path)? {
            self.write_file(&mut results, path)?;
        }
        Ok(results.remove()?)
    }

    /// Writes the results. Blocks.
    ///
    /// # Errors
    /// If results cannot be read or written.
    pub fn write(&self, results: &mut Results, out: &mut (dyn Write + Send)) -> Result<(), WriteError> {
        let mut damaged = Vec::new();
        let written = match self.format {
            Format::JsonLines => json_lines::write(intact(results, self.order, &mut damaged)?, out),
            Format::Csv => self.write_csv(results, &mut damaged, out),
            #[cfg(feature = "arrow")]
            Format::Arrow => {
                let columns = crate::Columns::from_contract(self.contract);
                arrow::write(&columns, intact(results, self.order, &mut damaged)?, out)
            }
            #[cfg(feature = "arrow")]
            Format::Parquet => {
                let columns = crate::Columns::from_contract(self.contract);
                parquet::write(&columns, intact(results, self.order, &mut damaged)?, out)
            }
        };
        forget(results, damaged)?;
        written
    }

    fn write_csv(
        &self,
        results: &mut Results,
        damaged: &mut Vec<u64>,
        out: &mut (dyn Write + Send),
    ) -> Result<(), WriteError> {
        let columns = columns::Columns::new(self.contract, intact(results, Order::Free, damaged)?)?;
        if damaged.is_empty() {
            csv::write(&columns, intact(results, self.order, damaged)?, out)?;
        }
        Ok(())
    }

    /// Gives the file of the results the name of the output, if it contains just that.
    fn link(&self, results: &mut Results, path: &Path) -> Result<bool, WriteError> {
        if self.format != Format::JsonLines || self.order != Order::Free || !results.is_minimal()? {
            return Ok(false);
        }
        self.write(results, &mut io::sink())?; // each line is checked
        Ok(link(&results.paths().results, path))
    }
}

/// Returns the results that are not damaged, and collects the rows of the others.
fn intact<'a>(
    results: &'a mut Results,
    order: Order,
    damaged: &'a mut Vec<u64>,
) -> Result<impl Iterator<Item = Result<ResultLine, WriteError>> + 'a, JournalError> {
    Ok(results.lines(order)?.filter_map(|line| match line {
        Err(JournalError::ResultsDamaged { first, .. }) => {
            damaged.push(first);
            None
        }
        line => Some(line.map_err(WriteError::from)),
    }))
}

/// Removes damaged rows from the journal, and fails if there are any.
fn forget(results: &mut Results, damaged: Vec<u64>) -> Result<(), JournalError> {
    let Some(first) = damaged.iter().min().copied() else { return Ok(()) };
    let (path, count) = (results.paths().results.clone(), damaged.len() as u64);
    results.forget(damaged)?;
    Err(JournalError::ResultsDamaged { path, count, first })
}

/// An error of writing the output of a batch.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The results cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The output cannot be written.
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
    /// A file cannot be written.
    #[error("{}: cannot write: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The result of a row is not JSON.
    #[error("the result of row {row} is not JSON: {source}")]
    NotJson {
        /// The row.
        row: u64,
        /// The error of the parser.
        source: SyntaxError,
    },
    /// The data of the results has too many fields for columns.
    #[error("the data has more than {max} fields, too many for the columns of a CSV")]
    TooManyColumns {
        /// The maximum number.
        max: usize,
    },
    /// The results do not fit a table.
    #[cfg(feature = "arrow")]
    #[error("the results cannot be written as a table: {reason}")]
    Table {
        /// The reason.
        reason: String,
    },
}

#[cfg(feature = "arrow")]
impl From<arrow_schema::ArrowError> for WriteError {
    fn from(error: arrow_schema::ArrowError) -> Self {
        match error {
            arrow_schema::ArrowError::IoError(_, source) => Self::Write(source),
            other => Self::Table { reason: other.to_string() },
        }
    }
}

#[cfg(feature = "arrow")]
impl From<::parquet::errors::ParquetError> for WriteError {
    fn from(error: ::parquet::errors::ParquetError) -> Self {
        match error {
            ::parquet::errors::ParquetError::External(source) => match source.downcast::<io::Error>() {
                Ok(source) => Self::Write(*source),
                Err(other) => Self::Table { reason: other.to_string() },
            },
            other => Self::Table { reason: other.to_string() },
        }
    }
}

impl WriteError {
    /// Returns a suggestion how to solve the problem.
    #[must_use]
    pub fn suggestion(&self) -> &'static str {
        match self {
            Self::Journal(error) => error.suggestion(),
            Self::Write(source) | Self::File { source, .. } => suggestion_for_write(source.kind()),
            Self::NotJson { .. } => "Move the journal and the results away to start from the beginning.",
            Self::TooManyColumns { .. } => "Write JSON Lines.",
            #[cfg(feature = "arrow")]
            Self::Table { .. } => "Write JSON Lines.",
        }
    }

    /// Adds the path of the output.
    fn at(self, path: &Path) -> Self {
        match self {
            Self::Write(source) => Self::File { path: path.to_owned(), source },
            other => other,
        }
    }
}

// The file of an output: written beside its path, synced, renamed.

/// The characters after the prefix of a temporary file.
const RANDOM: usize = 6;
/// The bytes that are written at once.
const BUFFER: usize = 256 << 10;

/// Writes a file atomically, or a pipe or device directly.
fn write(
    path: &Path,
    content: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    let at = |source| WriteError::File { path: path.to_owned(), source };
    if std::fs::metadata(path).is_ok_and(|about| !about.is_file() && !about.is_dir()) {
        let stream = OpenOptions::new().write(true).open(path).map_err(at)?;
        return fill(stream, content).map(drop).map_err(|error| error.at(path));
    }
    let path = resolve(path).map_err(at)?;
    remove_stale(&path);
    let (file, temporary) = create_beside(&path).map_err(at)?.into_parts();
    let file = fill(file, content).map_err(|error| error.at(&path))?;
    file.sync_all().map_err(at)?;
    temporary.persist(&path).map_err(|failed| at(failed.error))?;
    sync_directory_of(&path).map_err(at)
}

/// Gives a file a second name, which replaces the file there. Returns whether the file system supports it.
fn link(from: &Path, to: &Path) -> bool {
    let link = || {
        let to = resolve(to)?;
        remove_stale(&to);
        let prefix = prefix(&to);
        let temporary = builder(&prefix).make_in(directory_of(&to), |path| std::fs::hard_link(from, path))?;
        let name = temporary.path().to_owned();
        temporary.into_temp_path().persist(&to).map_err(|failed| failed.error)?;
        let _ = std::fs::remove_file(name); // it remains if both names are of the same file already
        sync_directory_of(&to)
    };
    let is_file = std::fs::metadata(to).map_or(true, |about| about.is_file());
    is_file && link().is_ok()
}

fn fill(
    file: File,
    content: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), WriteError>,
) -> Result<File, WriteError> {
    let mut out = BufWriter::with_capacity(BUFFER, file);
    content(&mut out)?;
    Ok(out.into_inner().map_err(io::IntoInnerError::into_error)?)
}

/// Follows links to the file that is replaced.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    match std::fs::metadata(path) {
        Ok(about) if about.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(_) => std::fs::canonicalize(path),
        Err(_) => Ok(path.to_owned()),
    }
}

/// Creates a temporary file in the directory of a file. The error does not contain its generated name.
fn create_beside(path: &Path) -> io::Result<NamedTempFile> {
    let prefix = prefix(path);
    let created = builder(&prefix).tempfile_in(directory_of(path));
    let file = created.map_err(|error| io::Error::from(error.kind()))?;
    if let Ok(about) = std::fs::metadata(path) {
        file.as_file().set_permissions(about.permissions())?;
    }
    Ok(file)
}

/// Temporary files have the permissions of any new file.
fn builder(prefix: &OsStr) -> Builder<'_, 'static> {
    let mut builder = Builder::new();
    builder.prefix(prefix).rand_bytes(RANDOM);
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder
}

/// Returns what the name of a temporary file of an output begins with.
fn prefix(path: &Path) -> OsString {
    let mut prefix = OsString::from(".");
    prefix.push(path.file_name().unwrap_or_default());
    prefix.push(".cog-");
    prefix
}

/// Removes the temporary files of a batch that was killed while it wrote this output. No other batch writes it: its journal is
/// locked.
fn remove_stale(path: &Path) {
    let prefix = prefix(path);
    let Ok(entries) = std::fs::read_dir(directory_of(path)) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let random = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
        if random.is_some_and(|random| random.len() == RANDOM) {
            let _ = std::fs::remove_file(entry.path()); // one that stays does no harm
        }
    }
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests read and damage files")]
mod tests;
