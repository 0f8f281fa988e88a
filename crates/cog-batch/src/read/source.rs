//! The input of a batch, read on a thread of its own.

use std::{
    fs::File,
    io::{self, Read},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use cog_schema::Contract;
use tokio::sync::mpsc;

#[cfg(feature = "arrow")]
use super::table::TableError;
use super::{ColumnMap, ReadError, RowReader, csv::Csv, json_lines::JsonLines, lines::Lines};
use crate::{Format, Row};

/// The groups of rows that are read ahead.
const READ_AHEAD: usize = 2;
/// The rows of a group.
const GROUP: usize = 64;

/// Where the rows of a batch come from.
#[derive(Debug, Clone)]
pub struct Source {
    /// The path as given; `-` is stdin.
    pub path: PathBuf,
    /// The format.
    pub format: Format,
    /// The columns of a table.
    pub columns: ColumnMap,
}

/// The rows of an input, as they are read.
#[derive(Debug)]
pub struct Rows {
    groups: mpsc::Receiver<io::Result<Group>>,
    name: String,
    length: Option<u64>,
    /// The end of the last group.
    end: u64,
}

/// Rows that were read together.
struct Group {
    rows: Vec<Row>,
    /// The bytes of the input up to the end of the last row.
    end: u64,
}

impl Source {
    /// Returns the name of the input for messages.
    #[must_use]
    pub fn name(&self) -> String {
        if self.is_stdin() { "stdin".to_owned() } else { self.path.display().to_string() }
    }

    fn is_stdin(&self) -> bool {
        self.path.as_os_str() == "-"
    }

    /// Opens the input, and reads its header if it has one.
    ///
    /// # Errors
    /// The input cannot be read, or its columns do not fit the module.
    pub fn open(&self, contract: &Contract) -> Result<Rows, ReadError> {
        let read = Arc::new(AtomicU64::new(0));
        let (reader, length) = match self.is_stdin() {
            true => (self.stream(Counted { input: io::stdin(), read: Arc::clone(&read) }, contract)?, None),
            false => {
                let (file, length) = self.file()?;
                let file = Counted { input: file, read: Arc::clone(&read) };
                let reader = match length {
                    Some(_) => self.file_reader(file, contract)?,
                    None => self.stream(file, contract)?,
                };
                (reader, length)
            }
        };
        // Bounded, so that a fast disk does not fill the memory while rows run for seconds.
        let (sender, groups) = mpsc::channel(READ_AHEAD);
        let name = self.name();
        // Not a task: nothing waits for a thread that waits for stdin.
        let thread = std::thread::Builder::new().name("rows".to_owned());
        thread.spawn(move || send(reader, &read, &sender)).map_err(|source| self.error(source))?;
        Ok(Rows { groups, name, length, end: 0 })
    }

    #[expect(clippy::disallowed_methods, reason = "rows are read here, one at a time and each with a limit")]
    fn file(&self) -> Result<(File, Option<u64>), ReadError> {
        let file = File::open(&self.path).map_err(|source| self.error(source))?;
        let facts = file.metadata().map_err(|source| self.error(source))?;
        match facts.is_dir() {
            true => Err(ReadError::Directory { name: self.name() }),
            false => Ok((file, facts.is_file().then_some(facts.len()))),
        }
    }

    fn file_reader(&self, file: Counted<File>, contract: &Contract) -> Result<Box<dyn RowReader>, ReadError> {
        match self.format {
            #[cfg(feature = "arrow")]
            Format::Arrow => {
                let opened = super::arrow::open_file(file, contract, &self.columns);
                opened.map_err(|error| self.table_error(error))
            }
            #[cfg(feature = "arrow")]
            Format::Parquet => {
                let opened = super::parquet::open(file.input, &file.read, contract, &self.columns);
                opened.map_err(|error| self.table_error(error))
            }
            _ => self.stream(file, contract),
        }
    }

    /// Opens an input that is read from its beginning to its end.
    fn stream(
        &self,
        input: impl Read + Send + 'static,
        contract: &Contract,
    ) -> Result<Box<dyn RowReader>, ReadError> {
        match self.format {
            #[cfg(feature = "arrow")]
            Format::Arrow => {
                let opened = super::arrow::open_stream(input, contract, &self.columns);
                opened.map_err(|error| self.table_error(error))
            }
            #[cfg(feature = "arrow")]
            Format::Parquet => {
                let reason = "its index is at its end, so it must be a file".to_owned();
                Err(self.table_error(TableError::Content(reason)))
            }
            Format::JsonLines | Format::Csv => self.lines(input, contract),
        }
    }

    fn lines(
        &self,
        input: impl Read + Send + 'static,
        contract: &Contract,
    ) -> Result<Box<dyn RowReader>, ReadError> {
        let mut lines = Lines::new(input);
        match lines.peek().map_err(|source| self.error(source))? {
            [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => return Err(ReadError::Utf16 { name: self.name() }),
            [0xEF, 0xBB, 0xBF, ..] => lines.skip(3),
            _ => {}
        }
        match self.format {
            Format::Csv => {
                let opened =
                    Csv::open(lines, contract, &self.columns).map_err(|source| self.error(source))?;
                let reader = opened.map_err(|source| ReadError::Columns { name: self.name(), source })?;
                Ok(Box::new(reader))
            }
            _ => Ok(Box::new(JsonLines::new(lines))),
        }
    }

    #[cfg(feature = "arrow")]
    fn table_error(&self, error: TableError) -> ReadError {
        let name = self.name();
        let format = if self.format == Format::Parquet { "Parquet" } else { "Arrow IPC" };
        match error {
            TableError::Io(source) => self.error(source),
            TableError::Content(reason) => ReadError::NotATable { name, format, reason },
            TableError::Columns(source) => ReadError::Columns { name, source },
        }
    }

    fn error(&self, source: io::Error) -> ReadError {
        ReadError::Io { name: self.name(), source }
    }
}

/// Reads all rows, until the receiver is dropped.
fn send(mut reader: Box<dyn RowReader>, read: &AtomicU64, sender: &mpsc::Sender<io::Result<Group>>) {
    loop {
        let mut rows = Vec::with_capacity(GROUP);
        let more = reader.read(&mut rows);
        let end = read.load(Ordering::Relaxed).saturating_sub(reader.buffered() as u64);
        let is_sent = rows.is_empty() || sender.blocking_send(Ok(Group { rows, end })).is_ok();
        match more {
            Ok(true) if is_sent => {}
            Ok(_) => return,
            Err(error) => return drop(sender.blocking_send(Err(error))),
        }
    }
}

impl Rows {
    /// Returns these rows, for tests.
    #[cfg(test)]
    pub(crate) fn from_vec(rows: Vec<Row>) -> Self {
        let (sender, groups) = mpsc::channel(1);
        assert!(sender.try_send(Ok(Group { rows, end: 0 })).is_ok());
        Self { groups, name: "rows".to_owned(), length: None, end: 0 }
    }

    /// Waits for the next rows. Returns none at the end.
    ///
    /// # Errors
    /// The input cannot be read any further.
    pub async fn next(&mut self) -> Result<Option<Vec<Row>>, ReadError> {
        let group = self.groups.recv().await.transpose();
        let group = group.map_err(|source| ReadError::Io { name: self.name.clone(), source })?;
        Ok(group.map(|Group { rows, end }| {
            self.end = end;
            rows
        }))
    }

    /// Returns the name of the input.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the part of the input that the rows so far contain, from 0 to 1; none if its length is unknown.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share, not a count")]
    pub fn share(&self) -> Option<f64> {
        let length = self.length.filter(|length| *length > 0)?;
        Some((self.end as f64 / length as f64).min(1.0))
    }
}

/// Counts the bytes that are read.
struct Counted<R> {
    input: R,
    read: Arc<AtomicU64>,
}

#[cfg(feature = "arrow")]
impl<R: io::Seek> io::Seek for Counted<R> {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        self.input.seek(to)
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use cog_schema::Rules;
    use cog_spec::{Format as ModuleFormat, Manifest};

    use super::*;

    #[tokio::test]
    #[expect(
        clippy::disallowed_methods,
        clippy::cast_precision_loss,
        reason = "a file for the test, and a share of few rows"
    )]
    async fn rows_so_far_are_the_share_of_the_input_that_contains_them() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows.csv");
        let rows = (0..3_000).map(|row| format!("{row:050}\n"));
        std::fs::write(&path, format!("text\n{}", rows.collect::<String>())).unwrap();
        let schema = serde_json::json!({ "input": { "properties": { "text": { "type": "string" } } } });
        let manifest = Manifest::with_defaults("x", ModuleFormat::V22, None);
        let contract = Contract::compile(&schema, &Rules::from(&manifest)).unwrap();
        let source = Source { path, format: Format::Csv, columns: ColumnMap::default() };
        let mut rows = source.open(&contract).unwrap();
        let mut count = 0.0;
        while let Some(group) = rows.next().await.unwrap() {
            count += group.len() as f64;
            let share = rows.share().unwrap();
            assert!((share - count / 3_000.0).abs() < 0.001, "{share} after {count} rows");
        }
        assert_eq!(rows.share(), Some(1.0));
    }
}
