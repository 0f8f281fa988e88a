//! The results as record batches, in Arrow IPC or Parquet.

use std::io::Write;

use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::properties::WriterProperties,
};

use super::{WriteError, parse};
use crate::{
    ResultLine,
    columns::{Columns, RecordBuilder},
};

/// The bytes in memory after which a row group ends.
const MAX_BUFFERED: usize = 32 << 20;
/// The maximum number of rows in a record batch.
const MAX_ROWS: usize = 4096;
/// The bytes of results after which a record batch ends.
const MAX_BYTES: usize = 8 << 20;

/// Writes Arrow IPC: a file that every reader of Arrow and Feather opens, not compressed.
pub(super) fn write_arrow(
    columns: &Columns,
    lines: impl Iterator<Item = Result<ResultLine, WriteError>>,
    out: &mut (dyn Write + Send),
) -> Result<(), WriteError> {
    let mut file = FileWriter::try_new(out, &columns.to_arrow())?;
    for_each(columns, lines, |batch| Ok(file.write(batch)?))?;
    Ok(file.finish()?)
}

/// Writes Parquet, compressed with Zstandard.
pub(super) fn write_parquet(
    columns: &Columns,
    lines: impl Iterator<Item = Result<ResultLine, WriteError>>,
    out: &mut (dyn Write + Send),
) -> Result<(), WriteError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(concat!("cog ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let mut file = ArrowWriter::try_new(out, columns.to_arrow(), Some(properties))?;
    for_each(columns, lines, |batch| {
        file.write(batch)?;
        if file.memory_size() >= MAX_BUFFERED {
            file.flush()?;
        }
        Ok(())
    })?;
    file.finish()?;
    Ok(())
}

/// Passes the results on, in record batches.
fn for_each(
    columns: &Columns,
    lines: impl Iterator<Item = Result<ResultLine, WriteError>>,
    mut write: impl FnMut(&RecordBatch) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    let mut builder = RecordBuilder::new(columns);
    let mut bytes = 0;
    for line in lines {
        let line = line?;
        builder.push(&parse(&line)?);
        bytes += line.json.len();
        if builder.len() >= MAX_ROWS || bytes >= MAX_BYTES {
            write(&builder.finish()?)?;
            bytes = 0;
        }
    }
    match builder.is_empty() {
        true => Ok(()),
        false => write(&builder.finish()?),
    }
}
