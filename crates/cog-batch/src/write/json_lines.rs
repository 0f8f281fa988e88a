//! JSON Lines: the results as they are.

use std::io::Write;

use super::WriteError;
use crate::ResultLine;

pub(super) fn write(
    lines: impl Iterator<Item = Result<ResultLine, WriteError>>,
    out: &mut (dyn Write + Send),
) -> Result<(), WriteError> {
    for line in lines {
        out.write_all(&line?.json)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}
