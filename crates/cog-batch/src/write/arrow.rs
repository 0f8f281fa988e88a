//! Arrow IPC: a file that every reader of Arrow and Feather opens, not compressed.

use std::io::Write;

use arrow_ipc::writer::FileWriter;

use super::{WriteError, records};
use crate::{ResultLine, columns::Columns};

pub(super) fn write(
    columns: &Columns,
    lines: impl Iterator<Item = Result<ResultLine, WriteError>>,
    out: &mut (dyn Write + Send),
) -> Result<(), WriteError> {
    let mut file = FileWriter::try_new(out, &columns.to_arrow())?;
    records::for_each(columns, lines, |batch| Ok(file.write(batch)?))?;
    Ok(file.finish()?)
}
