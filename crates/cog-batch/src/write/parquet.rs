//! Parquet, compressed with Zstandard.

use std::io::Write;

use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::properties::WriterProperties,
};

use super::{WriteError, records};
use crate::{ResultLine, columns::Columns};

/// The bytes in memory after which a row group ends.
const MAX_BUFFERED: usize = 32 << 20;

pub(super) fn write(
    columns: &Columns,
    lines: impl Iterator<Item = Result<ResultLine, WriteError>>,
    out: &mut (dyn Write + Send),
) -> Result<(), WriteError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_created_by(concat!("cog ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let mut file = ArrowWriter::try_new(out, columns.to_arrow(), Some(properties))?;
    records::for_each(columns, lines, |batch| {
        file.write(batch)?;
        if file.memory_size() >= MAX_BUFFERED {
            file.flush()?;
        }
        Ok(())
    })?;
    file.finish()?;
    Ok(())
}
