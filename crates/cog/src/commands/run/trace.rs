//! The file of `--trace`: every message of the run with its metadata.

use std::{
    io::{self, Write as _},
    path::Path,
};

use cog_json::ToJson as _;
use cog_store::private;

use super::Run;
use crate::{commands::emit, error::CliError};

impl Run<'_> {
    /// Writes the messages of the run, with keys masked, so that only this user may read them.
    pub(super) fn write_trace(&self) -> Result<(), CliError> {
        let (Some(path), Some(trace)) = (&self.args.trace, &self.trace) else { return Ok(()) };
        let text = self.settings.redactor().redact(&trace.messages().to_json_pretty());
        write(path, &text).map_err(|error| emit::unwritable(path, error.into()))?;
        emit::written(path, self.console);
        Ok(())
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = private::open_options().write(true).truncate(true).open(path)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")
}
