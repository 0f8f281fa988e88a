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

use cog_json::{Value, Writer};
use cog_schema::Contract;
use cog_spec::ErrorBody;
use tokio::sync::mpsc;

#[cfg(feature = "arrow")]
use super::table::TableError;
use super::{
    AbsentMember, ColumnMap, ColumnsError, ReadError, RowReader,
    csv::Csv,
    json::{JsonArray, JsonLines, Members, parser},
    text::{Lines, decoded},
};
use crate::{Compression, Encoding, Format, Row, RowLocation, format::delimiter_of};

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
    /// How a text file is compressed.
    pub compression: Option<Compression>,
    /// The encoding of a text file, if it is neither UTF-8 nor UTF-16 with a byte order mark.
    pub encoding: Option<Encoding>,
    /// The character between the values of a CSV file.
    pub delimiter: u8,
    /// What becomes of the columns.
    pub columns: ColumnMap,
}

/// The rows of an input, as they are read.
#[derive(Debug)]
pub struct Rows {
    groups: mpsc::Receiver<io::Result<Group>>,
    name: String,
    length: Option<u64>,
    columns: ColumnMap,
    /// The members of rows that are JSON, if they are not the input as they are.
    members: Option<Arc<Members>>,
    /// Whether the rows so far have been checked for their `id`.
    is_checked: bool,
    /// The first rows, once they were read ahead.
    first: Option<Result<Option<Vec<Row>>, ReadError>>,
    /// The end of the last group.
    end: u64,
}

/// What the columns or members of rows become.
struct Columned<'a> {
    contract: &'a Contract,
    members: Option<Arc<Members>>,
}

/// Rows that were read together.
struct Group {
    rows: Vec<Row>,
    /// The bytes of the input up to the end of the last row.
    end: u64,
}

impl Source {
    /// Returns a source with the compression and the delimiter that the name of the file says, and without any mapping of columns.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, format: Format) -> Self {
        let path = path.into();
        let compression = Compression::from_path(&path);
        let delimiter = delimiter_of(Compression::strip(&path));
        Self { path, format, compression, encoding: None, delimiter, columns: ColumnMap::default() }
    }

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
        let members = self.members(contract)?;
        let module = Columned { contract, members: members.clone() };
        let (reader, length) = match self.is_stdin() {
            true => (self.stream(Counted { input: io::stdin(), read: Arc::clone(&read) }, module)?, None),
            false => {
                let (file, length) = self.file()?;
                let file = Counted { input: file, read: Arc::clone(&read) };
                let reader = match length {
                    Some(_) => self.file_reader(file, module)?,
                    None => self.stream(file, module)?,
                };
                (reader, length)
            }
        };
        // Bounded, so that a fast disk does not fill the memory while rows run for seconds.
        let (sender, groups) = mpsc::channel(READ_AHEAD);
        let name = self.name();
        // Not a task: nothing waits for a thread that waits for stdin.
        let thread = std::thread::Builder::new().name("rows".to_owned());
        // What is buffered is measured in decoded bytes, the length of the file in encoded ones.
        let is_plain = self.compression.is_none() && self.encoding.is_none();
        thread.spawn(move || send(reader, &read, is_plain, &sender)).map_err(|source| self.error(source))?;
        Ok(Rows {
            groups,
            name,
            length,
            columns: self.columns.clone(),
            members,
            is_checked: false,
            first: None,
            end: 0,
        })
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

    fn file_reader(
        &self,
        file: Counted<File>,
        module: Columned<'_>,
    ) -> Result<Box<dyn RowReader>, ReadError> {
        #[cfg(feature = "arrow")]
        let contract = module.contract;
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
            _ => self.stream(file, module),
        }
    }

    /// Opens an input that is read from its beginning to its end.
    fn stream(
        &self,
        input: impl Read + Send + 'static,
        module: Columned<'_>,
    ) -> Result<Box<dyn RowReader>, ReadError> {
        match self.format {
            #[cfg(feature = "arrow")]
            Format::Arrow => {
                let opened = super::arrow::open_stream(input, module.contract, &self.columns);
                opened.map_err(|error| self.table_error(error))
            }
            #[cfg(feature = "arrow")]
            Format::Parquet => {
                let reason = "its index is at its end, so it must be a file".to_owned();
                Err(self.table_error(TableError::Content(reason)))
            }
            Format::JsonLines | Format::Csv | Format::Json => self.text(input, module),
        }
    }

    fn text(
        &self,
        input: impl Read + Send + 'static,
        module: Columned<'_>,
    ) -> Result<Box<dyn RowReader>, ReadError> {
        let Columned { contract, members } = module;
        let input = decoded(input, self.compression, self.encoding).map_err(|source| self.error(source))?;
        if self.format == Format::Json {
            let opened = JsonArray::open(input, parser(members));
            let opened = opened.map_err(|source| self.error(source))?;
            return Ok(Box::new(opened.ok_or_else(|| ReadError::NotAnArray { name: self.name() })?));
        }
        let mut lines = Lines::new(input);
        if lines.peek().map_err(|source| self.error(source))?.starts_with(b"\xEF\xBB\xBF") {
            lines.skip(3);
        }
        if self.format == Format::JsonLines {
            return Ok(Box::new(JsonLines::new(lines, parser(members))));
        }
        let opened = Csv::open(lines, contract, &self.columns, self.delimiter);
        let reader =
            opened.map_err(|source| self.error(source))?.map_err(|source| self.columns_error(source))?;
        Ok(Box::new(reader))
    }

    /// Returns what becomes of the members of rows, if rows are JSON.
    fn members(&self, contract: &Contract) -> Result<Option<Arc<Members>>, ReadError> {
        if !matches!(self.format, Format::JsonLines | Format::Json) {
            return Ok(None);
        }
        let members = Members::new(contract, &self.columns).map_err(|source| self.columns_error(source))?;
        Ok(members.map(Arc::new))
    }

    fn columns_error(&self, source: ColumnsError) -> ReadError {
        ReadError::Columns { name: self.name(), source }
    }

    #[cfg(feature = "arrow")]
    fn table_error(&self, error: TableError) -> ReadError {
        let name = self.name();
        let format = if self.format == Format::Parquet { "Parquet" } else { "Arrow IPC" };
        match error {
            TableError::Io(source) => self.error(source),
            TableError::Content(reason) => ReadError::NotATable { name, format, reason },
            TableError::Columns(source) => self.columns_error(source),
        }
    }

    fn error(&self, source: io::Error) -> ReadError {
        ReadError::Io { name: self.name(), source }
    }
}

/// Reads all rows, until the receiver is dropped.
fn send(
    mut reader: Box<dyn RowReader>,
    read: &AtomicU64,
    is_plain: bool,
    sender: &mpsc::Sender<io::Result<Group>>,
) {
    loop {
        let mut rows = Vec::with_capacity(GROUP);
        let more = reader.read(&mut rows);
        let buffered = if is_plain { reader.buffered() as u64 } else { 0 };
        let end = read.load(Ordering::Relaxed).saturating_sub(buffered);
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
        Self {
            groups,
            name: "rows".to_owned(),
            length: None,
            columns: ColumnMap::default(),
            members: None,
            is_checked: true,
            first: None,
            end: 0,
        }
    }

    /// Waits for the next rows. Returns none at the end.
    ///
    /// # Errors
    /// The input cannot be read any further.
    pub async fn next(&mut self) -> Result<Option<Vec<Row>>, ReadError> {
        match self.first.take() {
            Some(first) => first,
            None => self.receive().await,
        }
    }

    /// Waits for the first rows, which [`Rows::next`] then returns. Returns the members of `--keep` that none of them has: in rows
    /// that are JSON, a later one may have them. A table without such a column is not opened.
    pub async fn absent_members(&mut self) -> Vec<AbsentMember> {
        let Some(members) = self.members.clone().filter(|_| !self.columns.keep.is_empty()) else {
            return Vec::new();
        };
        let first = self.next().await;
        let absent = match &first {
            Ok(Some(rows)) => {
                parse(rows);
                members.absent_among(rows.len())
            }
            // The error is told by the one who reads the rows.
            _ => Vec::new(),
        };
        self.first = Some(first);
        absent
    }

    async fn receive(&mut self) -> Result<Option<Vec<Row>>, ReadError> {
        let group = self.groups.recv().await.transpose();
        let group = group.map_err(|source| ReadError::Io { name: self.name.clone(), source })?;
        let Some(Group { rows, end }) = group else { return Ok(None) };
        self.end = end;
        self.check_id(&rows)?;
        Ok(Some(rows))
    }

    /// Checks the first rows for their `id`, before any is sent: with a misspelt name, nothing would join the results to the input.
    fn check_id(&mut self, rows: &[Row]) -> Result<(), ReadError> {
        let Some(members) = self.members.as_ref().filter(|_| !self.is_checked) else { return Ok(()) };
        self.is_checked = true;
        if self.columns.id.is_some() {
            parse(rows);
            let name = || self.name.clone();
            members.check_id().map_err(|source| ReadError::Columns { name: name(), source })?;
        }
        Ok(())
    }

    /// Returns the members that go to the results and that no row has had.
    pub(crate) fn absent(&self) -> Vec<String> {
        self.members.as_ref().map(|members| members.absent()).unwrap_or_default()
    }

    /// Returns the name of the input.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what becomes of the columns.
    pub(crate) fn columns(&self) -> &ColumnMap {
        &self.columns
    }

    /// Adds the location of a row to an error about its input.
    pub(crate) fn locate(&self, location: RowLocation, error: &mut ErrorBody) {
        locate(location, error, &self.name, &self.columns);
    }

    /// Returns the part of the input that the rows so far contain, from 0 to 1; none if its length is unknown.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share, not a count")]
    pub fn share(&self) -> Option<f64> {
        let length = self.length.filter(|length| *length > 0)?;
        Some((self.end as f64 / length as f64).min(1.0))
    }
}

/// Parses rows, to know their members. What is wrong with a row is its result.
fn parse(rows: &[Row]) {
    for row in rows {
        let _ = row.input.get();
    }
}

/// Adds the location of a row, and the column of the field that an error of the contract names.
fn locate(location: RowLocation, error: &mut ErrorBody, input: &str, map: &ColumnMap) {
    let (unit, number) = location.parts();
    let path = error.message.strip_prefix("input.").unwrap_or_default();
    let field = path.split(['.', '[', ':', ' ']).next().filter(|field| !field.is_empty());
    let mut text = String::new();
    Writer::compact(&mut text).object(|w| {
        w.field("input", input).field(unit, &number);
        w.optional("column", &field.map(|field| map.column_of(field)));
        for (name, value) in error.details.iter().flat_map(|details| details.members()) {
            if !["input", "column", unit].contains(&name) {
                w.field(name, &value);
            }
        }
    });
    error.details = Value::parse(&text).ok();
    error.message = format!("{input}, {location}: {}", error.message);
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
    use cog_spec::{Code, Format as ModuleFormat, Manifest};

    use super::*;

    #[test]
    fn error_of_an_input_names_its_line_and_column() {
        let map = ColumnMap { fields: vec![("count".to_owned(), "n".to_owned())], ..ColumnMap::default() };
        let mut error = ErrorBody::new(Code::TypeMismatch, "input.count[2]: must be an integer")
            .with_details(Value::from(serde_json::json!({ "expected": "integer" })));
        locate(RowLocation::Line(7), &mut error, "rows.csv", &map);
        assert_eq!(error.message, "rows.csv, line 7: input.count[2]: must be an integer");
        let details = error.details.unwrap().to_string();
        assert_eq!(details, r#"{"input":"rows.csv","line":7,"column":"n","expected":"integer"}"#);
        let mut error = ErrorBody::new(Code::InvalidInput, "the input is not an object");
        locate(RowLocation::Row(0), &mut error, "rows.parquet", &map);
        assert_eq!(error.details.unwrap().to_string(), r#"{"input":"rows.parquet","row":0}"#);
    }

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
        let source = Source::new(path, Format::Csv);
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
