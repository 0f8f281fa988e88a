//! Record batches as rows: each column is an input field.

mod fit;

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Schema};
use bytes::Bytes;
use cog_json::Writer;
use cog_schema::{Contract, InputField};

use self::fit::{Form, is_supported, write_cell};
use super::{
    ColumnMap, ColumnsError, RowReader,
    columns::{Columns, parse_input},
};
use crate::{
    ArrayError, ParsedRow, Row, RowErrorKind, RowHash, RowInput, RowLocation, RowParser,
    arrays::{is_missing, write_value},
    row::MAX_LINE,
};

/// The rows that are passed on at once.
const GROUP: usize = 16;
/// The bytes of rows after which a group ends.
const GROUP_BYTES: usize = 4 << 20;

/// Why a table cannot be opened.
#[derive(Debug)]
pub(super) enum TableError {
    Io(io::Error),
    /// It is not what its format requires.
    Content(String),
    Columns(ColumnsError),
}

/// The columns of a table that are read: input fields, and columns that go to the results.
pub(super) struct Table {
    targets: Vec<Target>,
    map: ColumnMap,
    /// The names of the columns that are read.
    names: Vec<String>,
    /// Their positions in the file, in ascending order.
    projection: Vec<usize>,
}

struct Target {
    /// The position of the column among those that are read.
    index: usize,
    column: String,
    field: InputField,
    form: Form,
}

impl Table {
    /// Finds the input field of each column, and checks its type.
    pub(super) fn new(contract: &Contract, schema: &Schema, map: &ColumnMap) -> Result<Self, ColumnsError> {
        let header: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let found = Columns::new(contract, &header, map)?.into_targets();
        let fields = contract.input_fields();
        let mut table =
            Self { targets: Vec::new(), map: map.clone(), names: Vec::new(), projection: Vec::new() };
        for ((index, column), field) in schema.fields().iter().enumerate().zip(found) {
            let is_carried = map.carried().names().any(|name| name == column.name());
            if is_carried && !is_supported(column.data_type()) {
                let found = column.data_type().to_string();
                return Err(ColumnsError::NotCarried { column: column.name().clone(), found });
            }
            if let Some(mut field) = field.clone() {
                if fields.is_empty() {
                    field.types = cog_schema::FieldTypes::default(); // any value
                }
                let form = Form::new(column, &field)?;
                let column = column.name().clone();
                table.targets.push(Target { index: table.projection.len(), column, field, form });
            }
            if is_carried || field.is_some() {
                table.names.push(column.name().clone());
                table.projection.push(index);
            }
        }
        Ok(table)
    }

    /// Returns the positions of the columns that are read, in ascending order.
    pub(super) fn projection(&self) -> Vec<usize> {
        self.projection.clone()
    }

    /// Returns the rows of batches with these columns; `count` is their number, if the file says it.
    pub(super) fn rows<I>(self, batches: I, count: Option<u64>) -> Box<dyn RowReader>
    where
        I: Iterator<Item = Result<RecordBatch, ArrowError>> + Send + 'static,
    {
        Box::new(TableRows {
            table: self,
            batches,
            count,
            batch: None,
            row: 0,
            text: String::new(),
            parser: Arc::new(parse),
        })
    }

    /// Writes the input of a row.
    fn write(&self, batch: &RecordBatch, index: usize, text: &mut String) -> Result<(), RowErrorKind> {
        let mut written = Ok(());
        text.clear();
        Writer::compact(text).object(|w| {
            let mut targets = self.targets.iter();
            written = targets.try_for_each(|target| {
                let Some(cells) = batch.columns().get(target.index) else { return Ok(()) };
                write_cell(cells.as_ref(), index, target.form, &target.field, w)
                    .map_err(|reason| cell_error(&target.column, reason))
            });
        });
        let carried = self.map.carried().write(|name, w| {
            let position = self.names.iter().position(|column| column == name);
            match position.and_then(|position| batch.columns().get(position)) {
                Some(cells) if !is_missing(cells.as_ref(), index) => {
                    if let Err(reason) = write_value(cells.as_ref(), index, w) {
                        written = Err(cell_error(name, reason));
                    }
                }
                _ => w.null(),
            }
        });
        // A line break separates what is carried: compact JSON has none.
        text.push('\n');
        text.push_str(&carried);
        if text.len() > MAX_LINE {
            return Err(RowErrorKind::RowTooLarge);
        }
        written
    }
}

/// The rows of a table.
struct TableRows<I> {
    table: Table,
    batches: I,
    /// The number of rows that the file says it has.
    count: Option<u64>,
    /// The batch that is read, and its next row.
    batch: Option<(RecordBatch, usize)>,
    row: u64,
    text: String,
    parser: Arc<RowParser>,
}

impl<I: Iterator<Item = Result<RecordBatch, ArrowError>> + Send> RowReader for TableRows<I> {
    fn read(&mut self, rows: &mut Vec<Row>) -> io::Result<bool> {
        // A decoder that panics at a damaged file must not look like the end of the file.
        let read = catch_unwind(AssertUnwindSafe(|| self.read_group(rows)));
        read.unwrap_or_else(|_| Err(damaged("it cannot be decoded")))
    }
}

impl<I: Iterator<Item = Result<RecordBatch, ArrowError>>> TableRows<I> {
    fn read_group(&mut self, rows: &mut Vec<Row>) -> io::Result<bool> {
        let (batch, from) = match self.batch.take() {
            Some(current) => current,
            None => match self.batches.next().transpose().map_err(decode_error)? {
                Some(batch) => (batch, 0),
                None => return self.end(),
            },
        };
        let mut next = from;
        let mut bytes = 0;
        while next < batch.num_rows() && next < from + GROUP && bytes < GROUP_BYTES {
            rows.push(self.row(&batch, next));
            next += 1;
            bytes += self.text.len();
        }
        self.text.shrink_to(1 << 20);
        self.batch = (next < batch.num_rows()).then_some((batch, next));
        Ok(true)
    }

    fn row(&mut self, batch: &RecordBatch, index: usize) -> Row {
        let written = self.table.write(batch, index, &mut self.text);
        let number = self.row;
        let hash = RowHash::from_bytes(self.text.as_bytes());
        self.row += 1;
        let text = written.map(|()| Bytes::copy_from_slice(self.text.as_bytes()));
        Row { number, hash, input: RowInput::new(RowLocation::Row(number), text, Arc::clone(&self.parser)) }
    }

    /// Ends the rows. None may be missing.
    fn end(&self) -> io::Result<bool> {
        match self.count {
            Some(count) if count != self.row => {
                Err(damaged(&format!("it has {} rows, and its index says {count}", self.row)))
            }
            _ => Ok(false),
        }
    }
}

fn cell_error(column: &str, reason: ArrayError) -> RowErrorKind {
    match reason {
        ArrayError::TooLarge => RowErrorKind::RowTooLarge,
        reason => RowErrorKind::Cell { column: column.to_owned(), reason },
    }
}

/// Parses the text that was written for a row.
fn parse(text: &[u8]) -> Result<ParsedRow, RowErrorKind> {
    let end = memchr::memchr(b'\n', text).unwrap_or(text.len());
    let (input, carried) = text.split_at_checked(end).unwrap_or((text, &[]));
    let carried = String::from_utf8_lossy(carried.trim_ascii_start()).into_owned();
    Ok(ParsedRow { input: parse_input(input)?, carried })
}

/// Opens a table. A decoder that panics at its head is an error, too.
pub(super) fn guarded<T>(open: impl FnOnce() -> Result<T, TableError>) -> Result<T, TableError> {
    let opened = catch_unwind(AssertUnwindSafe(open));
    opened.unwrap_or_else(|_| Err(TableError::Content("it cannot be decoded".to_owned())))
}

pub(super) fn decode_error(error: ArrowError) -> io::Error {
    match error {
        // A file that is too short is read beyond its end, or before its beginning.
        ArrowError::IoError(_, source)
            if !matches!(source.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput) =>
        {
            source
        }
        ArrowError::IpcError(reason) => damaged(&reason),
        other => damaged(&other.to_string()),
    }
}

fn damaged(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

impl From<io::Error> for TableError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ColumnsError> for TableError {
    fn from(error: ColumnsError) -> Self {
        Self::Columns(error)
    }
}

impl From<ArrowError> for TableError {
    fn from(error: ArrowError) -> Self {
        let error = decode_error(error);
        match error.kind() {
            io::ErrorKind::InvalidData => Self::Content(error.to_string()),
            _ => Self::Io(error),
        }
    }
}

#[cfg(test)]
mod tests;
