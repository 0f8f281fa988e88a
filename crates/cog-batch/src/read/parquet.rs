//! Parquet.

use std::{
    fs::File,
    io::{BufReader, Read as _, Seek as _, SeekFrom},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use cog_schema::Contract;
use parquet::{
    arrow::{ProjectionMask, arrow_reader::ParquetRecordBatchReaderBuilder},
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
/// The maximum length of the index at the end of the file, and of a page.
const MAX_PART: usize = 256 << 20;
/// The end of a file: the length of its index, and the magic number.
const TAIL: u64 = 8;

/// Opens a file. Only the columns that are input fields are read, a page at a time.
pub(super) fn open(
    mut file: File,
    read: &Arc<AtomicU64>,
    contract: &Contract,
    map: &ColumnMap,
) -> Result<Box<dyn RowReader>, TableError> {
    check_tail(&mut file)?;
    guarded(|| {
        let input = Input { file, read: Arc::clone(read) };
        let builder = ParquetRecordBatchReaderBuilder::try_new(input)?;
        let table = Table::new(contract, builder.schema(), map)?;
        let mask = ProjectionMask::roots(builder.parquet_schema(), table.projection());
        let size = batch_size(builder.metadata());
        let batches = builder.with_projection(mask).with_batch_size(size).build()?;
        Ok(table.rows(batches))
    })
}

/// Checks the end of the file before anything of the length that it names is read.
fn check_tail(file: &mut File) -> Result<(), TableError> {
    let content = |reason: &str| Err(TableError::Content(reason.to_owned()));
    let mut head = [0; 4];
    let length = file.seek(SeekFrom::End(0))?;
    file.rewind()?;
    if length < TAIL + 4 || file.read_exact(&mut head).is_err() || !matches!(&head, b"PAR1" | b"PARE") {
        return content("it is not Parquet");
    }
    let mut tail = [0; TAIL as usize];
    file.seek(SeekFrom::Start(length - TAIL))?;
    file.read_exact(&mut tail)?;
    let [a, b, c, d, magic @ ..] = tail;
    match (&magic, u32::from_le_bytes([a, b, c, d]) as usize) {
        (b"PARE", _) => content("it is encrypted"),
        (b"PAR1", index) if index > MAX_PART => content("its index is too large"),
        (b"PAR1", _) => Ok(()),
        _ => content("its end is missing"),
    }
}

/// Returns how many rows to decode at once.
pub(super) fn batch_size(metadata: &ParquetMetaData) -> usize {
    let row_size = metadata.row_groups().iter().map(|group| {
        let (size, rows) = (group.total_byte_size().max(0), group.num_rows().max(1));
        size.unsigned_abs() / rows.unsigned_abs()
    });
    let rows = BATCH_BYTES / row_size.max().unwrap_or(0).max(1);
    usize::try_from(rows.clamp(1, MAX_BATCH)).unwrap_or(1)
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
        if length > MAX_PART {
            return Err(ParquetError::General(format!(
                "a part has {length} bytes; the maximum is {MAX_PART}"
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
