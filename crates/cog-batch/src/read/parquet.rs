//! Parquet.

use std::{
    fs::File,
    io::{BufReader, Read as _, Seek as _, SeekFrom},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use arrow_schema::{DataType, Field, Fields, Schema};
use bytes::Bytes;
use cog_schema::Contract;
use parquet::{
    arrow::{
        ProjectionMask,
        arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder},
    },
    errors::{ParquetError, Result as ParquetResult},
    file::{
        metadata::ParquetMetaData,
        reader::{ChunkReader, Length},
    },
};

use super::{
    ColumnMap, RowReader,
    table::{Table, TableError, guarded},
};

/// The bytes of rows that are decoded at once, as far as the file says how large its rows are.
const BATCH_BYTES: u64 = 4 << 20;
/// The maximum number of rows that are decoded at once.
const MAX_BATCH: u64 = 1024;
/// The least bytes of a value in memory.
const VALUE_BYTES: u64 = 8;
/// The maximum length of the index at the end of the file.
const MAX_INDEX: usize = 256 << 20;
/// The maximum length of a page.
const MAX_PAGE: usize = 1 << 30;
/// The end of a file: the length of its index, and the magic number.
const TAIL: u64 = 8;

/// Opens a file. Only the columns that are input fields are read, a page of each at a time.
pub(super) fn open(
    mut file: File,
    read: &Arc<AtomicU64>,
    contract: &Contract,
    map: &ColumnMap,
) -> Result<Box<dyn RowReader>, TableError> {
    check_tail(&mut file)?;
    guarded(|| {
        let input = Input { file, read: Arc::clone(read) };
        let found = ArrowReaderMetadata::load(&input, ArrowReaderOptions::new())?;
        let table = Table::new(contract, found.schema(), map)?;
        let mask = ProjectionMask::roots(found.parquet_schema(), table.projection());
        let size = batch_size(found.metadata(), &mask);
        let count = u64::try_from(found.metadata().file_metadata().num_rows());
        let count = count.map_err(|_| TableError::Content("its number of rows is below zero".to_owned()))?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(input, with_views(found));
        let batches = builder.with_projection(mask).with_batch_size(size).build()?;
        Ok(table.rows(batches, Some(count)))
    })
}

/// Reads texts and bytes as views: one that is stored once for many rows is in memory once, too.
pub(super) fn with_views(found: ArrowReaderMetadata) -> ArrowReaderMetadata {
    let fields: Fields = found.schema().fields().iter().map(view).collect();
    let schema = Schema::new_with_metadata(fields, found.schema().metadata().clone());
    let options = ArrowReaderOptions::new().with_schema(Arc::new(schema));
    ArrowReaderMetadata::try_new(Arc::clone(found.metadata()), options).unwrap_or(found)
}

fn view(field: &Arc<Field>) -> Arc<Field> {
    let kind = match field.data_type() {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::List(item) => DataType::List(view(item)),
        DataType::LargeList(item) => DataType::LargeList(view(item)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(view(item), *length),
        DataType::Struct(members) => DataType::Struct(members.iter().map(view).collect()),
        DataType::Map(entries, is_sorted) => DataType::Map(view(entries), *is_sorted),
        _ => return Arc::clone(field),
    };
    Arc::new(Field::clone(field).with_data_type(kind))
}

/// Checks the end of the file before anything of the length that it names is read.
fn check_tail(file: &mut File) -> Result<(), TableError> {
    let mut head = [0; 4];
    let length = file.seek(SeekFrom::End(0))?;
    file.rewind()?;
    if length < TAIL + 4 || file.read_exact(&mut head).is_err() || !matches!(&head, b"PAR1" | b"PARE") {
        return Err(TableError::Content("it is not Parquet".to_owned()));
    }
    let mut tail = [0; TAIL as usize];
    file.seek(SeekFrom::Start(length - TAIL))?;
    file.read_exact(&mut tail)?;
    let [a, b, c, d, magic @ ..] = tail;
    match (&magic, u32::from_le_bytes([a, b, c, d]) as usize) {
        (b"PARE", _) => Err(TableError::Content("it is encrypted".to_owned())),
        (b"PAR1", index) if index > MAX_INDEX => {
            Err(TableError::Content("its index is too large".to_owned()))
        }
        (b"PAR1", _) => Ok(()),
        _ => Err(TableError::Content("its end is missing".to_owned())),
    }
}

/// Returns how many rows to decode at once. Values that are stored once for many rows need more memory than they have bytes in
/// the file, so each has a least size.
pub(super) fn batch_size(metadata: &ParquetMetaData, mask: &ProjectionMask) -> usize {
    let row_size = metadata.row_groups().iter().map(|group| {
        let columns = group.columns().iter().enumerate().filter(|(leaf, _)| mask.leaf_included(*leaf));
        let sizes = columns.map(|(_, column)| {
            let width = u64::try_from(column.column_descr().type_length()).unwrap_or(0);
            let values = at_least_zero(column.num_values()).saturating_mul(width.max(VALUE_BYTES));
            at_least_zero(column.uncompressed_size()).max(values)
        });
        sizes.fold(0, u64::saturating_add) / at_least_zero(group.num_rows()).max(1)
    });
    let rows = BATCH_BYTES / row_size.max().unwrap_or(0).max(1);
    usize::try_from(rows.clamp(1, MAX_BATCH)).unwrap_or(1)
}

/// Returns a number of the index of a file, which a damaged one may have below zero.
fn at_least_zero(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// A file whose bytes are counted as they are read.
struct Input {
    file: File,
    read: Arc<AtomicU64>,
}

impl Length for Input {
    fn len(&self) -> u64 {
        self.file.len()
    }
}

impl ChunkReader for Input {
    type T = BufReader<File>;

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        self.file.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        if length > MAX_PAGE {
            return Err(ParquetError::General(format!(
                "a page has {length} bytes; the maximum is {MAX_PAGE}"
            )));
        }
        self.read.fetch_add(length as u64, Ordering::Relaxed);
        self.file.get_bytes(start, length)
    }
}

impl From<ParquetError> for TableError {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(source) => match source.downcast::<std::io::Error>() {
                Ok(source) => Self::Io(*source),
                Err(other) => Self::Content(other.to_string()),
            },
            other => Self::Content(other.to_string()),
        }
    }
}
