//! The results as record batches.

use arrow_array::RecordBatch;

use super::{WriteError, columns::parse};
use crate::{
    ResultLine,
    columns::{Columns, RecordBuilder},
};

/// The maximum number of rows in a record batch.
const MAX_ROWS: usize = 4096;
/// The bytes of results after which a record batch ends.
const MAX_BYTES: usize = 8 << 20;

/// Passes the results on, in record batches.
pub(super) fn for_each(
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
