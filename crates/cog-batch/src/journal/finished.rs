//! The rows that have a result, in memory: 24 bytes each.

use super::{Record, kept::ByHash};
use crate::row::{Position, RowHash};

/// The maximum number of records of a journal.
pub(crate) const MAX_RECORDS: u64 = 1 << 31;

/// The rows that had a result when the journal was opened.
#[derive(Debug, Default)]
pub struct Finished {
    /// Sorted by row, each row once.
    entries: Vec<Entry>,
    failed: u64,
    damaged: u64,
    /// All results by the hashes of their rows, if the input may have changed.
    pub(super) by_hash: Option<ByHash>,
}

/// A row that has a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishedRow {
    /// The hash of the row as it was read.
    pub hash: RowHash,
    /// Whether its run succeeded.
    pub ok: bool,
    /// Where its result is stored.
    pub position: Position,
}

/// The order of the fields is the order of sorting: the newest record of a row, whose line is the last, comes last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    row: u64,
    /// The position of the line, and in the lowest bit whether its run succeeded.
    place: u64,
    hash: RowHash,
}

impl FinishedRow {
    /// Returns the position of the line, and in the lowest bit whether its run succeeded.
    pub(super) fn place(self) -> u64 {
        self.position.0 << 1 | u64::from(self.ok)
    }
}

impl Finished {
    /// Returns the result of a row, if it has one.
    #[must_use]
    pub fn get(&self, row: u64) -> Option<FinishedRow> {
        let index = self.entries.binary_search_by_key(&row, |entry| entry.row).ok()?;
        let entry = self.entries.get(index)?;
        Some(FinishedRow { hash: entry.hash, ok: entry.is_ok(), position: Position(entry.place >> 1) })
    }

    /// Returns whether a row has a result.
    #[must_use]
    pub fn contains(&self, row: u64) -> bool {
        self.get(row).is_some()
    }

    /// Returns the rows whose run failed, in ascending order.
    pub fn failed(&self) -> impl Iterator<Item = u64> {
        self.entries.iter().filter(|entry| !entry.is_ok()).map(|entry| entry.row)
    }

    /// Returns the number of rows whose run failed.
    #[must_use]
    pub fn failed_count(&self) -> u64 {
        self.failed
    }

    /// Returns the number of rows that have a result.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Returns whether no row has a result.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the number of records that were dropped because they or their lines are damaged. Their rows have
    /// no result, and are sent again.
    #[must_use]
    pub fn damaged_records(&self) -> u64 {
        self.damaged
    }

    /// Returns where the results of at most this number of rows are, at equal distances in the order of the rows.
    pub(crate) fn sample(&self, max: usize) -> impl Iterator<Item = Position> {
        let distance = self.entries.len().div_ceil(max).max(1);
        self.entries.iter().step_by(distance).map(|entry| Position(entry.place >> 1))
    }

    /// Creates an empty list, with room for this number of records. If the input may have changed, results are also found by the
    /// hashes of their rows.
    pub(super) fn with_capacity(records: usize, allows_changes: bool) -> Self {
        let by_hash = allows_changes.then(ByHash::default);
        Self { entries: Vec::with_capacity(records), by_hash, ..Self::default() }
    }

    /// Adds a record; records are added in their order, at most [`MAX_RECORDS`].
    pub(super) fn push(&mut self, record: &Record) {
        let place = record.offset << 1 | u64::from(record.ok);
        self.entries.push(Entry { row: record.row, place, hash: record.hash });
        if let Some(by_hash) = &mut self.by_hash {
            by_hash.push(record);
        }
    }

    /// Sorts the rows, after the last record.
    pub(super) fn complete(mut self, damaged: u64) -> Self {
        self.entries.sort_unstable();
        self.entries.dedup_by(|later, kept| {
            let is_same = later.row == kept.row;
            if is_same {
                *kept = *later;
            }
            is_same
        });
        self.failed = self.entries.iter().filter(|entry| !entry.is_ok()).count() as u64;
        self.damaged = damaged;
        if let Some(by_hash) = &mut self.by_hash {
            by_hash.complete();
        }
        self
    }
}

impl Entry {
    fn is_ok(self) -> bool {
        self.place & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(records: &[(u64, u64, bool)]) -> Finished {
        let mut finished = Finished::with_capacity(records.len(), false);
        for (number, &(row, hash, ok)) in (0..).zip(records) {
            let hash = RowHash::from_u64(hash);
            finished.push(&Record { row, hash, ok, offset: number * 10, length: 10, line_crc: 0 });
        }
        finished.complete(0)
    }

    #[test]
    fn an_entry_has_24_bytes() {
        assert_eq!(size_of::<Entry>(), 24);
    }

    #[test]
    fn the_last_record_of_a_row_counts() {
        let rows =
            [(7, 1, false), (2, 2, false), (7, 3, true), (1, 4, true), (1, 5, false), (u64::MAX, 6, false)];
        let found = finished(&rows);
        let row =
            |hash, ok, at| Some(FinishedRow { hash: RowHash::from_u64(hash), ok, position: Position(at) });
        assert_eq!(found.get(7), row(3, true, 20));
        assert_eq!(found.get(2), row(2, false, 10));
        assert_eq!(found.get(1), row(5, false, 40));
        assert!(!found.contains(0) && found.contains(u64::MAX));
        assert_eq!(found.failed().collect::<Vec<_>>(), [1, 2, u64::MAX]);
        assert_eq!((found.len(), found.failed_count()), (4, 3));
    }
}
