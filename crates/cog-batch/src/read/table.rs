//! Record batches as rows: each column is an input field.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use arrow_array::{Array, RecordBatch, cast::AsArray as _};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use bytes::Bytes;
use cog_json::{Value, Writer};
use cog_schema::{Contract, InputField};

use super::{
    ColumnMap, ColumnsError, RowReader,
    columns::{Columns, parse_input},
};
use crate::{
    ArrayError, ParsedRow, Row, RowErrorKind, RowHash, RowInput, RowLocation, RowParser,
    arrays::{bytes, dictionary_value, is_missing, text, write_value},
    read::columns::media_source,
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

// How the cells of a column become an input field.

/// The maximum depth of a type, below that of JSON.
const MAX_DEPTH: usize = 64;

/// How a cell is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As the value that it is.
    Value,
    /// A text that is JSON.
    Json,
    /// A media file: its content, path, URL or source.
    Media,
    /// A list of media files.
    MediaList,
}

/// What JSON a type becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Null,
    Text,
    Binary,
    Number,
    Bool,
    Object,
    Array,
}

impl Form {
    /// Returns how the cells of a column are written as a field.
    fn new(column: &Field, field: &InputField) -> Result<Self, ColumnsError> {
        let found = class(column.data_type(), 0).and_then(|class| choose(class, column.data_type(), field));
        found.ok_or_else(|| ColumnsError::Type {
            column: column.name().clone(),
            found: column.data_type().to_string(),
            field: field.name.clone(),
            expected: expected(field),
        })
    }
}

fn choose(class: Class, kind: &DataType, field: &InputField) -> Option<Form> {
    let types = field.types;
    let fits = match class {
        Class::Null => types.null || !field.is_required,
        Class::Text | Class::Binary => types.text,
        Class::Number => types.number,
        Class::Bool => types.boolean,
        Class::Object => types.object,
        Class::Array => types.array,
    };
    match class {
        _ if field.is_media && is_media(class, kind) => Some(Form::Media),
        Class::Array if field.is_list => {
            let item = item_type(kind)?;
            is_media(self::class(item, 1)?, item).then_some(Form::MediaList)
        }
        _ if fits || types.is_any() && !field.is_media => Some(Form::Value),
        Class::Text if (types.object || types.array) && !is_temporal(kind) => Some(Form::Json),
        _ => None,
    }
}

/// Whether values of a type can name or contain a media file.
fn is_media(class: Class, kind: &DataType) -> bool {
    matches!(class, Class::Text | Class::Binary | Class::Object) && !is_temporal(kind)
}

/// Whether JSON has the values of a type.
fn is_supported(kind: &DataType) -> bool {
    class(kind, 0).is_some()
}

/// Whether all types within another one are supported.
fn are_supported<'a>(mut kinds: impl Iterator<Item = &'a DataType>, depth: usize) -> bool {
    depth < MAX_DEPTH && kinds.all(|kind| class(kind, depth + 1).is_some())
}

/// Returns what a type becomes; none if it is not supported.
fn class(kind: &DataType, depth: usize) -> Option<Class> {
    match kind {
        DataType::Null => Some(Class::Null),
        DataType::Boolean => Some(Class::Bool),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => Some(Class::Text),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            Some(Class::Binary)
        }
        kind if kind.is_integer() || kind.is_floating() || kind.is_decimal() => Some(Class::Number),
        DataType::Interval(_) => None,
        kind if kind.is_temporal() => Some(Class::Text),
        DataType::Struct(members) => {
            are_supported(members.iter().map(|member| member.data_type()), depth).then_some(Class::Object)
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) => {
                let key = pair.first()?.data_type();
                let is_text = class(key, depth + 1) == Some(Class::Text) && !is_temporal(key);
                let kinds = pair.iter().map(|member| member.data_type());
                (is_text && are_supported(kinds, depth)).then_some(Class::Object)
            }
            _ => None,
        },
        DataType::Dictionary(_, values) => class(values, depth + 1).filter(|_| depth < MAX_DEPTH),
        list => are_supported(std::iter::once(item_type(list)?), depth).then_some(Class::Array),
    }
}

fn item_type(list: &DataType) -> Option<&DataType> {
    match list {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => Some(item.data_type()),
        _ => None,
    }
}

fn is_temporal(kind: &DataType) -> bool {
    match kind {
        DataType::Dictionary(_, values) => is_temporal(values),
        kind => kind.is_temporal(),
    }
}

/// Describes what a field accepts.
fn expected(field: &InputField) -> String {
    let types = field.types;
    let names = [
        (field.is_media, "a media file"),
        (types.text, "a string"),
        (types.number, "a number"),
        (types.boolean, "a boolean"),
        (types.object && !field.is_media, "an object"),
        (types.array || field.is_list, "a list"),
        (types.is_any() && !field.is_media, "a value that JSON has"),
    ];
    let names: Vec<_> = names.iter().filter(|(applies, _)| *applies).map(|(_, name)| *name).collect();
    names.join(" or ")
}

type Written = Result<(), ArrayError>;

/// Writes a cell as its field. A null cell adds no field.
fn write_cell(
    cells: &dyn Array,
    index: usize,
    form: Form,
    field: &InputField,
    w: &mut Writer<'_>,
) -> Written {
    if is_missing(cells, index) {
        return Ok(());
    }
    let name = field.name.as_str();
    match form {
        Form::Value => write_value(cells, index, w.key(name)),
        Form::Json => {
            let text = text(cells, index)?.unwrap_or_default();
            match Value::parse(text) {
                Ok(value) => w.field(name, &value),
                // The check of the input names its field.
                Err(_) => w.field(name, text),
            };
            Ok(())
        }
        Form::Media if field.is_list => {
            let mut written = Ok(());
            w.key(name).array(|w| written = write_media(cells, index, w));
            written
        }
        Form::Media => write_media(cells, index, w.key(name)),
        Form::MediaList => write_media_list(cells, index, w.key(name)),
    }
}

fn write_media_list(cells: &dyn Array, index: usize, w: &mut Writer<'_>) -> Written {
    let list = match cells.data_type() {
        DataType::List(_) => cells.as_list_opt::<i32>().map(|it| it.value(index)),
        DataType::LargeList(_) => cells.as_list_opt::<i64>().map(|it| it.value(index)),
        DataType::ListView(_) => cells.as_list_view_opt::<i32>().map(|it| it.value(index)),
        DataType::LargeListView(_) => cells.as_list_view_opt::<i64>().map(|it| it.value(index)),
        _ => cells.as_fixed_size_list_opt().map(|it| it.value(index)),
    };
    let list = list.ok_or(ArrayError::Type)?;
    let mut written = Ok(());
    w.array(|w| {
        let mut present = (0..list.len()).filter(|item| !is_missing(list.as_ref(), *item));
        written = present.try_for_each(|item| write_media(list.as_ref(), item, w));
    });
    written
}

/// Writes the source of a media file: of its content, of its path or URL, or as it is.
fn write_media(cells: &dyn Array, index: usize, w: &mut Writer<'_>) -> Written {
    match cells.data_type() {
        DataType::Dictionary(..) => {
            let (values, key) = dictionary_value(cells, index)?;
            write_media(values.as_ref(), key, w)
        }
        DataType::Struct(_) => write_media_struct(cells, index, w),
        DataType::Map(..) => write_value(cells, index, w),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let text = text(cells, index)?.unwrap_or_default();
            match Value::parse(text).ok().filter(|_| text.starts_with('{')) {
                Some(source) => w.item(&source),
                None => w.item(&media_source(text)),
            };
            Ok(())
        }
        _ => write_content(bytes(cells, index)?, w),
    }
}

/// A struct of `bytes` and `path`, as datasets store media, is its bytes, otherwise its path. Another one is the source.
fn write_media_struct(cells: &dyn Array, index: usize, w: &mut Writer<'_>) -> Written {
    let members = cells.as_struct_opt().ok_or(ArrayError::Type)?;
    let member =
        |name: &str| members.column_by_name(name).filter(|column| !is_missing(column.as_ref(), index));
    let content = member("bytes").map(|column| bytes(column.as_ref(), index));
    let content = content.filter(|found| *found != Err(ArrayError::Type)).transpose()?;
    match (members.column_by_name("type"), content, member("path")) {
        (None, Some(content), _) => write_content(content, w),
        (None, None, Some(path)) => write_media(path.as_ref(), index, w),
        _ => write_value(cells, index, w),
    }
}

fn write_content(content: &[u8], w: &mut Writer<'_>) -> Written {
    let media_type = cog_run::sniff(content).ok_or(ArrayError::UnknownMedia)?;
    w.object(|w| {
        w.field("type", "base64").field("media_type", media_type);
        w.field("data", &base64_simd::STANDARD.encode_to_string(content));
    });
    Ok(())
}

#[cfg(test)]
mod tests;
