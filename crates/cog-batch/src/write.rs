//! The output of a batch, written from its results when it ends.
//!
//! A file is written beside its path, synced and renamed, so that it is always complete.

#[cfg(feature = "arrow")]
mod arrow;
mod columns;
mod csv;
mod error;
mod json_lines;
#[cfg(feature = "arrow")]
mod parquet;
#[cfg(feature = "arrow")]
mod records;
mod target;

use std::{
    io::{self, Write},
    path::Path,
};

use cog_schema::Contract;

pub use self::error::WriteError;
use crate::{
    format::Format,
    journal::JournalError,
    results::{Order, ResultLine, Results},
};

/// What an output contains, and how.
#[derive(Debug, Clone, Copy)]
pub struct Output<'a> {
    /// The format.
    pub format: Format,
    /// The order of the rows.
    pub order: Order,
    /// The contract of the module, whose data fields are the first columns of a CSV.
    pub contract: &'a Contract,
}

impl Output<'_> {
    /// Writes the results to a file, atomically. A pipe or a device is written directly. Blocks.
    ///
    /// # Errors
    /// If results cannot be read or the file cannot be written. The results remain.
    pub fn write_file(&self, results: &mut Results, path: &Path) -> Result<(), WriteError> {
        target::write(path, |out| self.write(results, out).map_err(|error| error.at(path)))
    }

    /// Writes the results to a file, then removes the journal and the results. Blocks.
    ///
    /// # Errors
    /// As [`Output::write_file`], and if the journal cannot be removed.
    pub fn finish(&self, mut results: Results, path: &Path) -> Result<(), WriteError> {
        if !self.link(&mut results, path)? {
            self.write_file(&mut results, path)?;
        }
        Ok(results.remove()?)
    }

    /// Writes the results. Blocks.
    ///
    /// # Errors
    /// If results cannot be read or written.
    pub fn write(&self, results: &mut Results, out: &mut (dyn Write + Send)) -> Result<(), WriteError> {
        let mut damaged = Vec::new();
        let written = match self.format {
            Format::JsonLines => json_lines::write(intact(results, self.order, &mut damaged)?, out),
            Format::Csv => self.write_csv(results, &mut damaged, out),
            #[cfg(feature = "arrow")]
            Format::Arrow => {
                let columns = crate::Columns::from_contract(self.contract);
                arrow::write(&columns, intact(results, self.order, &mut damaged)?, out)
            }
            #[cfg(feature = "arrow")]
            Format::Parquet => {
                let columns = crate::Columns::from_contract(self.contract);
                parquet::write(&columns, intact(results, self.order, &mut damaged)?, out)
            }
        };
        forget(results, damaged)?;
        written
    }

    fn write_csv(
        &self,
        results: &mut Results,
        damaged: &mut Vec<u64>,
        out: &mut (dyn Write + Send),
    ) -> Result<(), WriteError> {
        let columns = columns::Columns::new(self.contract, intact(results, Order::Free, damaged)?)?;
        if damaged.is_empty() {
            csv::write(&columns, intact(results, self.order, damaged)?, out)?;
        }
        Ok(())
    }

    /// Gives the file of the results the name of the output, if it contains just that.
    fn link(&self, results: &mut Results, path: &Path) -> Result<bool, WriteError> {
        if self.format != Format::JsonLines || self.order != Order::Free || !results.is_minimal()? {
            return Ok(false);
        }
        self.write(results, &mut io::sink())?; // each line is checked
        Ok(target::link(&results.paths().results, path))
    }
}

/// Returns the results that are not damaged, and collects the rows of the others.
fn intact<'a>(
    results: &'a mut Results,
    order: Order,
    damaged: &'a mut Vec<u64>,
) -> Result<impl Iterator<Item = Result<ResultLine, WriteError>> + 'a, JournalError> {
    Ok(results.lines(order)?.filter_map(|line| match line {
        Err(JournalError::ResultsDamaged { first, .. }) => {
            damaged.push(first);
            None
        }
        line => Some(line.map_err(WriteError::from)),
    }))
}

/// Removes damaged rows from the journal, and fails if there are any.
fn forget(results: &mut Results, damaged: Vec<u64>) -> Result<(), JournalError> {
    let Some(first) = damaged.iter().min().copied() else { return Ok(()) };
    let (path, count) = (results.paths().results.clone(), damaged.len() as u64);
    results.forget(damaged)?;
    Err(JournalError::ResultsDamaged { path, count, first })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests read and damage files")]
mod tests;
