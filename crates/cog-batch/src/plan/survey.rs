//! The rows of a plan.

use cog_json::{ToJson as _, Value};
use serde::Serialize;

use crate::{Batch, Finished, Row, Rows, duplicates::SeenInputs, journal::Kept, read::ReadError};

/// The maximum number of rows whose tokens are counted.
const SAMPLE: usize = 1_000;
/// The maximum bytes of these rows.
const SAMPLE_BYTES: usize = 32 << 20;

/// The rows of a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PlannedRows {
    /// The rows of the input, as far as the batch reads it.
    pub read: u64,
    /// The rows that will run.
    pub run: u64,
    /// The rows that have a result.
    pub earlier: u64,
    /// The rows that `--where` excludes.
    pub excluded: u64,
    /// The rows that get the result of an earlier row with an equal input.
    pub duplicates: u64,
    /// The rows that cannot be read.
    pub unreadable: u64,
}

/// All rows, and a sample of those that will run.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) rows: PlannedRows,
    pub(super) sample: Sample,
}

/// Rows at equal distances. The distance doubles when there are too many.
#[derive(Debug)]
pub(super) struct Sample {
    distance: u64,
    rows: Vec<(Value, usize)>,
}

impl Survey {
    /// Reads all rows.
    pub(super) async fn read(batch: &Batch, mut rows: Rows, finished: &Finished) -> Result<Self, ReadError> {
        let mut survey = Self::default();
        let mut seen = SeenInputs::default();
        let mut selected = 0;
        let mut kept = Kept::new(finished);
        while let Some(group) = rows.next().await? {
            for row in group {
                if batch.sample.is_some_and(|sample| selected >= sample) {
                    return Ok(survey);
                }
                survey.rows.read += 1;
                match batch.has_row(&row, &mut selected) {
                    true => survey.add(batch, row, &mut kept, &mut seen),
                    false => survey.rows.excluded += 1,
                }
            }
        }
        Ok(survey)
    }

    fn add(&mut self, batch: &Batch, row: Row, kept: &mut Kept<'_>, seen: &mut SeenInputs) {
        let done = kept.take(&row).map(|kept| kept.result);
        let done = done.filter(|row| row.ok || !batch.retries_failed);
        let is_first = !batch.dedupes || seen.is_first(&row, done);
        if done.is_some() {
            self.rows.earlier += 1;
            return;
        }
        match row.input.into_result() {
            Err(_) => self.rows.unreadable += 1,
            Ok(_) if !is_first => self.rows.duplicates += 1,
            Ok(input) => {
                self.sample.add(self.rows.run, input);
                self.rows.run += 1;
            }
        }
    }
}

impl Default for Sample {
    fn default() -> Self {
        Self { distance: 1, rows: Vec::new() }
    }
}

impl Sample {
    fn add(&mut self, number: u64, row: Value) {
        if !number.is_multiple_of(self.distance) {
            return;
        }
        let length = row.to_json().len();
        self.rows.push((row, length));
        while self.is_too_large() {
            self.distance *= 2;
            let mut is_kept = false;
            self.rows.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
        }
    }

    fn is_too_large(&self) -> bool {
        let bytes: usize = self.rows.iter().map(|(_, length)| length).sum();
        self.rows.len() > SAMPLE || self.rows.len() > 1 && bytes > SAMPLE_BYTES
    }

    /// Returns the rows.
    pub(super) fn rows(&self) -> impl Iterator<Item = &Value> {
        self.rows.iter().map(|(row, _)| row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(sample: &Sample) -> Vec<u64> {
        sample.rows().filter_map(|row| row.get("n")?.as_u64()).collect()
    }

    fn sample(rows: u64, text: &str) -> Sample {
        let mut sample = Sample::default();
        for number in 0..rows {
            sample.add(number, Value::parse(&format!("{{\"n\":{number},\"t\":\"{text}\"}}")).unwrap());
        }
        sample
    }

    #[test]
    fn sample_is_spread_over_the_rows() {
        assert_eq!(numbers(&sample(1_000, "")), Vec::from_iter(0..1_000));
        assert_eq!(numbers(&sample(1_001, "")), Vec::from_iter((0..1_001).step_by(2)));
        assert_eq!(numbers(&sample(10_000, "")), Vec::from_iter((0..10_000).step_by(16)));
    }

    #[test]
    fn sample_has_few_bytes() {
        let sample = sample(100, &"x".repeat(1 << 20));
        assert_eq!(numbers(&sample), Vec::from_iter((0..100).step_by(4)));
        let mut one = Sample::default();
        one.add(0, Value::parse(&format!("\"{}\"", "x".repeat(SAMPLE_BYTES + 1))).unwrap());
        assert_eq!(one.rows().count(), 1);
    }
}
