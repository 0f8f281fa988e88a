//! Arrow IPC: files (Feather, too) and streams.

use std::io::{BufRead as _, BufReader, Read, Seek};

use arrow_ipc::reader::{FileReader, StreamReader};
use cog_schema::Contract;

use super::{
    ColumnMap, RowReader,
    table::{Table, TableError, guarded},
};

/// The beginning of a file. A stream has none.
const MAGIC: &[u8; 6] = b"ARROW1";
/// The maximum number of zeros between that and the stream of the file.
const MAX_PADDING: usize = 64;

/// Opens a file, or a stream in a file.
pub(super) fn open_file(
    mut input: impl Read + Seek + Send + 'static,
    contract: &Contract,
    map: &ColumnMap,
) -> Result<Box<dyn RowReader>, TableError> {
    let mut head = Vec::new();
    input.by_ref().take(MAGIC.len() as u64).read_to_end(&mut head)?;
    input.rewind()?;
    if head != MAGIC {
        return open_stream(input, contract, map);
    }
    guarded(|| {
        let mut input = BufReader::new(input);
        let table = Table::new(contract, &FileReader::try_new(&mut input, None)?.schema(), map)?;
        let batches = FileReader::try_new(input, Some(table.projection()))?;
        Ok(table.rows(batches))
    })
}

/// Opens a stream, which may be that of a file.
pub(super) fn open_stream(
    input: impl Read + Send + 'static,
    contract: &Contract,
    map: &ColumnMap,
) -> Result<Box<dyn RowReader>, TableError> {
    let mut input = BufReader::new(input);
    if input.fill_buf()?.starts_with(MAGIC) {
        input.consume(MAGIC.len());
        let padding = input.fill_buf()?.iter().take(MAX_PADDING).take_while(|byte| **byte == 0).count();
        input.consume(padding);
    }
    guarded(|| {
        let batches = StreamReader::try_new(input, None)?;
        let table = Table::new(contract, &batches.schema(), map)?;
        let columns = table.projection();
        Ok(table.rows(batches.map(move |batch| batch?.project(&columns))))
    })
}
