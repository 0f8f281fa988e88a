//! The output of a batch, written from its results when it ends.
//!
//! A file is written under a temporary name, synced and renamed, so that it is always complete.

#[cfg(feature = "arrow")]
mod tables;

use std::{
    borrow::Cow,
    collections::{HashMap, HashSet},
    fs::{File, OpenOptions},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use cog_json::{Node, SyntaxError, Value};
use cog_schema::Contract;
use cog_store::{Access, Destination, Durability, destination, remove_abandoned, replace};
use csv::WriterBuilder;

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
        let columns = Columns::new(self.contract, intact(results, Order::Free, damaged)?)?;
        if damaged.is_empty() {
            write_csv(self, &columns, intact(results, self.order, damaged)?, out)?;
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

// CSV: a header, then a record per row. Text is written as it is, other values as JSON; null is an empty cell.

/// The maximum number of data fields.
const MAX_FIELDS: usize = 4096;
/// The column of data that is not an object.
const DATA: &str = "data";
/// The columns after the data fields, with the place of their value in a result.
const COMMON: [(&str, &str); 9] = [
    ("ok", "/ok"),
    ("confidence", "/meta/confidence"),
    ("risk", "/meta/risk"),
    ("error_code", "/error/code"),
    ("error_message", "/error/message"),
    ("input_tokens", "/meta/usage/input_tokens"),
    ("output_tokens", "/meta/usage/output_tokens"),
    ("cost", "/meta/usage/cost/amount"),
    ("currency", "/meta/usage/cost/currency"),
];

/// What a string begins with that a spreadsheet takes for a formula.
/// Spreadsheets of East Asia read the wide forms as the others.
const FORMULA: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

fn write_csv(
    output: &Output<'_>,
    columns: &Columns,
    lines: impl Iterator<Item = Result<ResultLine, WriteError>>,
    out: &mut (dyn Write + Send),
) -> Result<(), WriteError> {
    let mut table = WriterBuilder::new().delimiter(output.csv.delimiter).from_writer(out);
    let mut taken: HashSet<String> = columns.fields().iter().cloned().collect();
    // The runtime's own names first: they do not depend on which columns are kept.
    let row = free_name(&mut taken, "row");
    let common: Vec<String> = COMMON.iter().map(|(name, _)| free_name(&mut taken, name)).collect();
    let id = output.carried.id.map(|_| free_name(&mut taken, "id"));
    let kept: Vec<String> = output.carried.keep.iter().map(|name| free_name(&mut taken, name)).collect();
    let first = std::iter::once(row).chain(id).chain(kept);
    let names = first.chain(columns.fields().iter().cloned()).chain(common);
    let names = names.map(|name| output.csv.guarded(&name).into_owned());
    table.write_record(names).map_err(to_io)?;
    let mut text = String::new();
    for line in lines {
        let line = line?;
        let result = parse(&line)?;
        write_row(&mut table, output, columns, &result, &mut text).map_err(to_io)?;
    }
    Ok(table.flush()?)
}

fn write_row(
    table: &mut csv::Writer<&mut (dyn Write + Send)>,
    output: &Output<'_>,
    columns: &Columns,
    result: &Value,
    text: &mut String,
) -> csv::Result<()> {
    let mut cells = vec![result.get("row")];
    if output.carried.id.is_some() {
        cells.push(result.get("id"));
    }
    let kept = result.get("kept");
    cells.extend(output.carried.keep.iter().map(|name| kept.and_then(|kept| kept.get(name))));
    columns.arrange(result, &mut cells);
    cells.extend(COMMON.iter().map(|(_, pointer)| result.pointer(pointer)));
    for cell in cells {
        match cell.map(|value| (value, value.as_str())) {
            None => table.write_field("")?,
            Some((_, Some(string))) => table.write_field(output.csv.guarded(string).as_bytes())?,
            Some((value, None)) if value.is_null() => table.write_field("")?,
            Some((value, None)) => {
                text.clear();
                value.write(text);
                table.write_field(&*text)?;
            }
        }
    }
    table.write_record(None::<&[u8]>)
}

impl CsvStyle {
    /// Returns a string as it is, or with an apostrophe if a spreadsheet would execute it.
    fn guarded<'a>(&self, string: &'a str) -> Cow<'a, str> {
        match self.escapes_formulas && string.starts_with(FORMULA) {
            true => Cow::Owned(format!("'{string}")),
            false => Cow::Borrowed(string),
        }
    }
}

/// Returns a name for a column: this one, unless another column has it.
fn free_name(taken: &mut HashSet<String>, name: &str) -> String {
    let mut name = name.to_owned();
    while !taken.insert(name.clone()) {
        name.insert(0, '_');
    }
    name
}

fn to_io(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// The columns of a table.
struct Columns {
    /// The fields of the contract, then others in the order in which they appear.
    fields: Vec<String>,
    by_name: HashMap<String, usize>,
}

impl Columns {
    /// Collects the columns from the contract and the results.
    fn new(
        contract: &Contract,
        lines: impl Iterator<Item = Result<ResultLine, WriteError>>,
    ) -> Result<Self, WriteError> {
        let mut columns = Self { fields: Vec::new(), by_name: HashMap::new() };
        for name in contract.shape("data").iter().flat_map(|shape| shape.member_names()) {
            columns.add(name)?;
        }
        for line in lines {
            let value = parse(&line?)?;
            match value.get("data") {
                Some(data) if data.is_object() => {
                    data.members().try_for_each(|(name, _)| columns.add(name))?;
                }
                Some(data) if !data.is_null() => columns.add(DATA)?,
                _ => {}
            }
        }
        Ok(columns)
    }

    /// Returns the data fields.
    fn fields(&self) -> &[String] {
        &self.fields
    }

    /// Adds the fields of a result, in the order of the columns.
    fn arrange<'a>(&self, result: &'a Value, cells: &mut Vec<Option<Node<'a>>>) {
        let start = cells.len();
        cells.resize(start + self.fields.len(), None);
        let cells = cells.get_mut(start..).unwrap_or_default();
        match result.get("data") {
            Some(data) if data.is_object() => {
                for (name, value) in data.members() {
                    self.set(cells, name, value);
                }
            }
            Some(data) => self.set(cells, DATA, data),
            None => {}
        }
    }

    fn set<'a>(&self, cells: &mut [Option<Node<'a>>], name: &str, value: Node<'a>) {
        if let Some(cell) = self.by_name.get(name).and_then(|index| cells.get_mut(*index)) {
            *cell = Some(value);
        }
    }

    fn add(&mut self, name: &str) -> Result<(), WriteError> {
        if self.by_name.contains_key(name) {
            return Ok(());
        }
        if self.fields.len() == MAX_FIELDS {
            return Err(WriteError::TooManyColumns { max: MAX_FIELDS });
        }
        self.by_name.insert(name.to_owned(), self.fields.len());
        self.fields.push(name.to_owned());
        Ok(())
    }
}

/// Parses a result.
fn parse(line: &ResultLine) -> Result<Value, WriteError> {
    Value::parse_bytes(&line.json).map_err(|source| WriteError::NotJson { row: line.row, source })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests read and damage files")]
mod tests;
