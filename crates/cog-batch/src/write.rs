//! The output of a batch, written from its results when it ends.
//!
//! A file is written under a temporary name, synced and renamed, so that it is always complete.

mod csv;
#[cfg(feature = "arrow")]
mod tables;

use std::{
    fs::{File, OpenOptions},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use cog_json::SyntaxError;
use cog_schema::Contract;
use cog_store::{Access, Destination, Durability, destination, remove_abandoned, replace};

use crate::{
    Carried, Order, ResultLine, Results,
    format::Format,
    journal::{JournalError, suggestion_for_write},
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
    /// The columns of the input that the results have.
    pub carried: Carried<'a>,
    /// How a CSV file is written.
    pub csv: CsvStyle,
}

/// How a CSV file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CsvStyle {
    /// The character between two values.
    pub delimiter: u8,
    /// Whether a string that a spreadsheet would execute gets an apostrophe before it.
    pub escapes_formulas: bool,
}

impl<'a> Output<'a> {
    /// Returns an output with commas and without columns of the input.
    #[must_use]
    pub fn new(format: Format, order: Order, contract: &'a Contract) -> Self {
        let csv = CsvStyle { delimiter: b',', escapes_formulas: false };
        Self { format, order, contract, carried: Carried::default(), csv }
    }
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
            Format::JsonLines => write_json_lines(intact(results, self.order, &mut damaged)?, out),
            Format::Json => write_json(intact(results, self.order, &mut damaged)?, out),
            Format::Csv => self.write_csv(results, &mut damaged, out),
            #[cfg(feature = "arrow")]
            Format::Arrow => {
                let columns = crate::Columns::from_contract(self.contract).with_carried(self.carried);
                tables::write_arrow(&columns, intact(results, self.order, &mut damaged)?, out)
            }
            #[cfg(feature = "arrow")]
            Format::Parquet => {
                let columns = crate::Columns::from_contract(self.contract).with_carried(self.carried);
                tables::write_parquet(&columns, intact(results, self.order, &mut damaged)?, out)
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
        let columns = csv::Columns::new(self.contract, intact(results, Order::Free, damaged)?)?;
        if damaged.is_empty() {
            csv::write(self, &columns, intact(results, self.order, damaged)?, out)?;
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

/// Writes the results as they are.
fn write_json_lines(
    lines: impl Iterator<Item = Result<ResultLine, WriteError>>,
    out: &mut (dyn Write + Send),
) -> Result<(), WriteError> {
    for line in lines {
        out.write_all(&line?.json)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Writes the results as an array, a line each.
fn write_json(
    lines: impl Iterator<Item = Result<ResultLine, WriteError>>,
    out: &mut (dyn Write + Send),
) -> Result<(), WriteError> {
    let mut before: &[u8] = b"[";
    for line in lines {
        out.write_all(before)?;
        out.write_all(b"\n")?;
        out.write_all(&line?.json)?;
        before = b",";
    }
    out.write_all(if before == b"[" { b"[]\n" } else { b"\n]\n" })?;
    Ok(())
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
    let path = results.paths().results.clone();
    let count = damaged.len() as u64;
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

// The file of an output.

/// The bytes that are written at once.
const BUFFER: usize = 256 << 10;

/// Writes a file atomically, or a pipe or device directly.
fn write(
    path: &Path,
    content: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    let written = match destination(path) {
        Err(source) => Err(source.into()),
        Ok(Destination::Stream) => match OpenOptions::new().write(true).open(path) {
            Ok(mut stream) => fill(&mut stream, content),
            Err(source) => Err(source.into()),
        },
        Ok(Destination::File(file)) => {
            remove_stale(&file);
            replace(&file, Access::Shared, Durability::PowerCut, |file| fill(file, content)).map(drop)
        }
    };
    written.map_err(|error| error.at(path))
}

/// Gives a file a second name, which replaces the file there. Returns whether the file system supports it.
fn link(from: &Path, to: &Path) -> bool {
    let Ok(Destination::File(to)) = destination(to) else { return false };
    remove_stale(&to);
    cog_store::link(from, &to).is_ok()
}

fn fill(
    file: &mut File,
    content: impl FnOnce(&mut (dyn Write + Send)) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    let mut out = BufWriter::with_capacity(BUFFER, file);
    content(&mut out)?;
    Ok(out.flush()?)
}

/// Removes the temporary files of a batch that was killed while it wrote this output. No other batch writes it: its journal is
/// locked.
fn remove_stale(path: &Path) {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    remove_abandoned(directory, None, |replaced| replaced == name);
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests read and damage files")]
mod tests;
