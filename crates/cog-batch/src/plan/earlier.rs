//! What the results of earlier starts say.

use std::{fs::File, io::BufReader};

use cog_json::{Node, Value};

use crate::{Description, Finished, Journal, JournalError, JournalPaths, Resume, journal::read_line};

/// The maximum number of results that are read.
const SAMPLE: usize = 1_000;

/// The rows that have a result, and what they took on average.
#[derive(Debug, Default)]
pub struct EarlierRuns {
    pub(super) finished: Finished,
    /// The results that are known.
    pub(super) count: u64,
    output_tokens: u64,
    milliseconds: u64,
}

impl EarlierRuns {
    /// Reads the journal of a batch and a sample of its results, if there is one. Changes nothing. Blocks.
    ///
    /// # Errors
    /// The batch could not continue with this journal.
    pub fn read(
        paths: &JournalPaths,
        description: &Description,
        resume: Resume,
    ) -> Result<Self, JournalError> {
        let finished = Journal::finished(paths, description, resume)?;
        let mut runs = Self { finished, ..Self::default() };
        if !runs.finished.is_empty() {
            runs.sample(paths).map_err(|error| JournalError::read(&paths.results, error))?;
        }
        Ok(runs)
    }

    #[expect(clippy::disallowed_methods, reason = "the file is the batch's own")]
    fn sample(&mut self, paths: &JournalPaths) -> std::io::Result<()> {
        let mut file = BufReader::new(File::open(&paths.results)?);
        for position in self.finished.sample(SAMPLE) {
            let line = read_line(&mut file, position)?;
            if let Some((tokens, milliseconds)) = Value::parse_bytes(&line).ok().and_then(|line| run(&line)) {
                self.count += 1;
                self.output_tokens += tokens;
                self.milliseconds += milliseconds;
            }
        }
        Ok(())
    }

    /// Returns the average tokens of an answer.
    #[expect(clippy::cast_precision_loss, reason = "an average")]
    pub(super) fn output_tokens(&self) -> Option<f64> {
        (self.count > 0).then(|| self.output_tokens as f64 / self.count as f64)
    }

    /// Returns the average seconds of a run.
    #[expect(clippy::cast_precision_loss, reason = "an average")]
    pub(super) fn seconds(&self) -> Option<f64> {
        (self.count > 0 && self.milliseconds > 0).then(|| self.milliseconds as f64 / 1e3 / self.count as f64)
    }
}

/// Returns the output tokens and the milliseconds of a run. None if the model was not called, as for a duplicate.
fn run(result: &Value) -> Option<(u64, u64)> {
    let meta = result.get("meta")?;
    let tokens = meta.get("usage")?.get("output_tokens")?.as_u64().filter(|tokens| *tokens > 0)?;
    let milliseconds = meta.get("processing_time_ms").and_then(Node::as_u64);
    Some((tokens, milliseconds.unwrap_or_default()))
}
