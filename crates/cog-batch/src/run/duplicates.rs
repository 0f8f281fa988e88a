//! Rows that get the result of an earlier row with an equal input.

use cog_json::Value;
use cog_spec::Envelope;

use super::{Running, Task, run_input};
use crate::{
    FinishedRow, Row, RowResult, Sink,
    duplicates::{Duplicate, FirstRow, digest_of_input, renumbered},
    row::Position,
};

impl<S: Sink> Running<'_, S> {
    /// Returns the run of a row. None if the row gets the result of an earlier one.
    pub(super) async fn task(&mut self, row: Duplicate, input: Value) -> Option<Task> {
        let digest = self.batch.dedupes.then(|| digest_of_input(&input));
        if let Some(digest) = digest {
            match self.first_rows.get(digest) {
                Some(FirstRow::Running(first)) => {
                    self.first_rows.wait(first, row);
                    return None;
                }
                Some(FirstRow::Stored(position)) if self.copy(row, position).await => return None,
                // A stored result that is damaged counts as none.
                _ => self.first_rows.run(digest, row.row),
            }
        }
        Some(Task { row: row.row, hash: row.hash, digest, input: run_input(input), tries: 0 })
    }

    /// Remembers the result of an earlier start, unless it is of another input.
    pub(super) fn remember(&mut self, row: &Row, earlier: FinishedRow) {
        // In this order: the input of a row that is skipped is parsed only for its duplicates.
        if self.batch.dedupes
            && earlier.hash == row.hash
            && let Ok(input) = row.input.get()
        {
            self.first_rows.store_earlier(digest_of_input(input), earlier.position);
        }
    }

    /// Writes the result of a row again, which was at another position. Returns where it is now; none if it is damaged.
    pub(super) async fn renumber(&mut self, row: &Row, earlier: FinishedRow, crc: u32) -> Option<Position> {
        let line = match self.sink.read(earlier.position).await {
            Ok(line) => line,
            Err(error) => {
                self.stop_for_sink(error);
                return None;
            }
        };
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&line);
        hasher.update(b"\n");
        let line = renumbered(&line, row.number).filter(|_| hasher.finalize() == crc)?;
        let result = RowResult { row: row.number, hash: row.hash, ok: earlier.ok, line: &line };
        match self.sink.keep(result).await {
            Ok(position) => Some(position),
            Err(error) => {
                self.stop_for_sink(error);
                None
            }
        }
    }

    /// Writes the result of a run, which rows with an equal input get too.
    pub(super) async fn finish(&mut self, task: &Task, envelope: &Envelope) {
        let Some(digest) = task.digest else { return self.write(task.row, task.hash, envelope).await };
        self.count(envelope);
        let result = RowResult::new(&mut self.line, task.row, task.hash, envelope);
        match self.sink.keep(result).await {
            Ok(position) => self.first_rows.store(digest, task.row, position),
            Err(error) => self.stop_for_sink(error),
        }
    }

    /// Writes the results of the duplicates whose first row has ended, as far as there is room.
    pub(super) async fn copy_ready(&mut self) {
        while self.stop.is_none() && self.can_write() {
            let Some((row, position)) = self.first_rows.next_ready() else { return };
            if !self.copy(row, position).await {
                let error = std::io::Error::new(
                    std::io::ErrorKind::InvalidData,
                    "a result was changed by another program",
                );
                self.stop_for_sink(error.into());
            }
        }
    }

    /// Whether a result may be written for a row that did not run. Otherwise those that run would find no room.
    pub(super) fn can_write(&self) -> bool {
        self.running.is_empty() || self.running.len() < self.sink.room()
    }

    /// Writes the result of a duplicate. Returns false if the result of the first row is damaged.
    async fn copy(&mut self, row: Duplicate, position: Position) -> bool {
        let line = match self.sink.read(position).await {
            Ok(line) => line,
            Err(error) => {
                self.stop_for_sink(error);
                return true;
            }
        };
        let Some(result) = row.copy(&line, &mut self.line) else { return false };
        self.summary.rows.duplicates += 1;
        if let Err(error) = self.sink.put(result).await {
            self.stop_for_sink(error);
        }
        true
    }
}
