//! The rows that have a result, in memory: 24 bytes each; and which rows of an input keep their results.
//!
//! If the input may have changed, a result belongs to the hash of its row, wherever the row is now, and each result is kept by one
//! row. Otherwise it belongs to the position, and another hash means that the input has changed.

use super::Record;
use crate::row::{Position, Row, RowHash};

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
    /// Whether the provider did not answer it.
    pub is_unanswered: bool,
    /// Where its result is stored.
    pub position: Position,
}

/// The order of the fields is the order of sorting: the newest record of a row, whose line is the last, comes last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    row: u64,
    place: Place,
    hash: RowHash,
}

/// The position of a line; in the lowest bits whether the provider did not answer, and whether the run succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place(u64);

impl Place {
    fn of(record: &Record) -> Self {
        Self(record.offset << 2 | u64::from(record.is_unanswered) << 1 | u64::from(record.ok))
    }

    fn is_ok(self) -> bool {
        self.0 & 1 == 1
    }

    fn position(self) -> Position {
        Position(self.0 >> 2)
    }

    fn row(self, hash: RowHash) -> FinishedRow {
        let is_unanswered = self.0 & 2 != 0;
        FinishedRow { hash, ok: self.is_ok(), is_unanswered, position: self.position() }
    }
}

impl Finished {
    /// Returns the result of a row, if it has one.
    #[must_use]
    pub fn get(&self, row: u64) -> Option<FinishedRow> {
        let index = self.entries.binary_search_by_key(&row, |entry| entry.row).ok()?;
        let entry = self.entries.get(index)?;
        Some(entry.place.row(entry.hash))
    }

    /// Returns whether a row has a result.
    #[must_use]
    pub fn contains(&self, row: u64) -> bool {
        self.get(row).is_some()
    }

    /// Returns the rows whose run failed, in ascending order.
    pub fn failed(&self) -> impl Iterator<Item = u64> {
        self.entries.iter().filter(|entry| !entry.place.is_ok()).map(|entry| entry.row)
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
        self.entries.iter().step_by(distance).map(|entry| entry.place.position())
    }

    /// Creates an empty list, with room for this number of records. If the input may have changed, results are also found by the
    /// hashes of their rows.
    pub(super) fn with_capacity(records: usize, allows_changes: bool) -> Self {
        let by_hash = allows_changes.then(ByHash::default);
        Self { entries: Vec::with_capacity(records), by_hash, ..Self::default() }
    }

    /// Adds a record; records are added in their order, at most [`MAX_RECORDS`].
    pub(super) fn push(&mut self, record: &Record) {
        self.entries.push(Entry { row: record.row, place: Place::of(record), hash: record.hash });
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
        self.failed = self.entries.iter().filter(|entry| !entry.place.is_ok()).count() as u64;
        self.damaged = damaged;
        if let Some(by_hash) = &mut self.by_hash {
            by_hash.complete();
        }
        self
    }
}

/// The results of a journal by the hashes of their rows: 32 bytes each, and 8 while the input is read.
#[derive(Debug, Default)]
pub(super) struct ByHash {
    /// Sorted by hash. Of equal hashes, those whose run succeeded come first.
    entries: Vec<HashedEntry>,
}

/// A result, whose row may be another one by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct HashedEntry {
    hash: RowHash,
    row: u64,
    place: Place,
    /// The CRC-32 of the line.
    crc: u32,
}

/// The results that rows have kept so far, while the input is read in its order.
#[derive(Debug)]
pub(crate) struct Kept<'a> {
    finished: &'a Finished,
    /// Whether a result was taken, and at the first one of each hash how many of them were passed.
    taken: Vec<Taken>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    is_taken: bool,
    passed: u32,
}

/// The result of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptResult {
    pub(crate) result: FinishedRow,
    /// The CRC-32 of the line with its line break, if the input may have changed.
    pub(crate) crc: Option<u32>,
    /// Whether the row was at another position.
    pub(crate) is_moved: bool,
}

impl ByHash {
    pub(super) fn push(&mut self, record: &Record) {
        let place = Place::of(record);
        self.entries.push(HashedEntry { hash: record.hash, row: record.row, place, crc: record.line_crc });
    }

    /// Sorts the results, after the last one. Of several of a row, the last one counts.
    pub(super) fn complete(&mut self) {
        self.entries.sort_unstable();
        self.entries.dedup_by(|later, kept| {
            let is_same = (later.hash, later.row) == (kept.hash, kept.row);
            if is_same {
                *kept = *later;
            }
            is_same
        });
        self.entries.sort_unstable_by_key(|entry| (entry.hash, !entry.place.is_ok(), entry.place));
    }
}

impl ByHash {
    /// Returns the index of a result.
    fn find(&self, result: &FinishedRow) -> Option<usize> {
        let bits = u64::from(result.is_unanswered) << 1 | u64::from(result.ok);
        let key = (result.hash, !result.ok, Place(result.position.0 << 2 | bits));
        self.entries.binary_search_by_key(&key, |entry| (entry.hash, !entry.place.is_ok(), entry.place)).ok()
    }
}

impl<'a> Kept<'a> {
    pub(crate) fn new(finished: &'a Finished) -> Self {
        let count = finished.by_hash.as_ref().map_or(0, |by_hash| by_hash.entries.len());
        Self { finished, taken: vec![Taken::default(); count] }
    }

    /// Takes the result of a row, each once. Rows are given in their order.
    pub(crate) fn take(&mut self, row: &Row) -> Option<KeptResult> {
        let here = self.finished.get(row.number);
        let Some(by_hash) = &self.finished.by_hash else {
            return here.map(|result| KeptResult { result, crc: None, is_moved: false });
        };
        if let Some(result) = here.filter(|here| here.hash == row.hash)
            && let Some(at) = by_hash.find(&result)
            && let Some(taken) = self.taken.get_mut(at)
            && !std::mem::replace(&mut taken.is_taken, true)
        {
            let crc = by_hash.entries.get(at).map(|entry| entry.crc);
            return Some(KeptResult { result, crc, is_moved: false });
        }
        let start = by_hash.entries.partition_point(|entry| entry.hash < row.hash);
        // Those that were passed are not looked at again, so that many equal rows take no longer than others.
        let from = start + self.taken.get(start)?.passed as usize;
        let open = by_hash.entries.get(from..)?.iter().take_while(|entry| entry.hash == row.hash);
        let mut open = open.zip(from..);
        let (entry, at) = open.find(|(_, at)| self.taken.get(*at).is_some_and(|taken| !taken.is_taken))?;
        self.taken.get_mut(at)?.is_taken = true;
        self.taken.get_mut(start)?.passed = u32::try_from(at + 1 - start).unwrap_or(u32::MAX);
        Some(KeptResult { result: entry.place.row(entry.hash), crc: Some(entry.crc), is_moved: true })
    }

    /// Returns whether the journal has the result of another row for a position.
    pub(crate) fn is_changed(&self, row: &Row) -> bool {
        self.finished.get(row.number).is_some_and(|here| here.hash != row.hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn record(row: u64, hash: RowHash, ok: bool, offset: u64) -> Record {
        Record { row, hash, ok, is_unanswered: false, offset, length: 10, line_crc: 7 }
    }

    #[test]
    fn row_that_was_not_answered_is_known_again() {
        let mut finished = Finished::with_capacity(2, true);
        let failed = record(4, RowHash::from_u64(9), false, 70);
        finished.push(&failed);
        finished.push(&Record { is_unanswered: true, row: 5, ..failed });
        let finished = finished.complete(0);
        let unanswered = |row| finished.get(row).map(|row| (row.ok, row.is_unanswered, row.position));
        assert_eq!(unanswered(4), Some((false, false, Position(70))));
        assert_eq!(unanswered(5), Some((false, true, Position(70))));
        assert_eq!(finished.failed_count(), 2);
    }

    fn finished(records: &[(u64, u64, bool)]) -> Finished {
        let mut finished = Finished::with_capacity(records.len(), false);
        for (number, &(row, hash, ok)) in (0..).zip(records) {
            let hash = RowHash::from_u64(hash);
            finished.push(&record(row, hash, ok, number * 10));
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
        for (row, hash, ok, at) in [(7, 3, true, 20), (2, 2, false, 10), (1, 5, false, 40)] {
            let (hash, position) = (RowHash::from_u64(hash), Position(at));
            assert_eq!(found.get(row), Some(FinishedRow { hash, ok, is_unanswered: false, position }));
        }
        assert!(!found.contains(0) && found.contains(u64::MAX));
        assert_eq!(found.failed().collect::<Vec<_>>(), [1, 2, u64::MAX]);
        assert_eq!((found.len(), found.failed_count()), (4, 3));
    }
}

#[cfg(test)]
mod kept_tests {
    use std::sync::Arc;

    use bytes::Bytes;

    use super::*;
    use crate::{RowInput, RowLocation};

    /// Returns the results of rows with these contents, of which `!` failed.
    fn finished(rows: &[(u64, &str)], allows_changes: bool) -> Finished {
        let mut finished = Finished::with_capacity(rows.len(), allows_changes);
        for (number, (row, text)) in (0..).zip(rows) {
            let (text, ok) = text.strip_suffix('!').map_or((*text, true), |text| (text, false));
            let hash = RowHash::from_bytes(text.as_bytes());
            finished.push(&super::tests::record(*row, hash, ok, number * 10));
        }
        finished.complete(0)
    }

    fn row(number: u64, text: &str) -> Row {
        let parser: Arc<crate::RowParser> = Arc::new(|_| Err(crate::RowErrorKind::Empty));
        let input = RowInput::new(RowLocation::Row(number), Ok(Bytes::new()), parser);
        Row { number, hash: RowHash::from_bytes(text.as_bytes()), input }
    }

    /// Returns the number of the record that each row keeps, and whether it has moved.
    fn kept(finished: &Finished, rows: &[&str]) -> Vec<Option<(u64, bool)>> {
        let mut kept = Kept::new(finished);
        let take = |(number, text): (u64, &&str)| {
            let found = kept.take(&row(number, text))?;
            Some((found.result.position.0 / 10, found.is_moved))
        };
        (0..).zip(rows).map(take).collect()
    }

    #[test]
    fn result_follows_its_row() {
        let old = finished(&[(0, "a"), (1, "b"), (2, "c"), (3, "d")], true);
        let here = |record| Some((record, false));
        let moved = |record| Some((record, true));
        for (rows, expected) in [
            (&["a", "b", "c", "d"][..], vec![here(0), here(1), here(2), here(3)]),
            (&["x", "a", "b", "c", "d"], vec![None, moved(0), moved(1), moved(2), moved(3)]),
            (&["a", "x", "c", "d"], vec![here(0), None, here(2), here(3)]),
            (&["b", "c", "d"], vec![moved(1), moved(2), moved(3)]),
            (&["d", "c", "b", "a"], vec![moved(3), moved(2), moved(1), moved(0)]),
            (&["a", "a", "b"], vec![here(0), None, moved(1)]),
        ] {
            assert_eq!(kept(&old, rows), expected, "{rows:?}");
        }
    }

    #[test]
    fn equal_rows_keep_one_result_each() {
        let old = finished(&[(0, "a"), (1, "h"), (2, "h!"), (3, "h")], true);
        let rows = ["h", "h", "h", "h", "a"];
        let expected = [Some((1, true)), Some((3, true)), Some((2, false)), None, Some((0, true))];
        assert_eq!(kept(&old, &rows), expected);
        let many: Vec<(u64, &str)> = (0..200_000).map(|row| (row, "h")).collect();
        let old = finished(&many, true);
        let rows: Vec<&str> = std::iter::once("x").chain(many.iter().map(|_| "h")).collect();
        let found = kept(&old, &rows);
        assert_eq!(found.iter().flatten().count(), 200_000, "in a time that is linear");
    }

    #[test]
    fn newest_result_of_a_row_counts_and_earlier_inputs_are_known() {
        let old = finished(&[(0, "a!"), (1, "b"), (0, "a"), (0, "c")], true);
        assert_eq!(kept(&old, &["b", "a", "c"]), [Some((1, true)), Some((2, true)), Some((3, true))]);
    }

    #[test]
    fn without_changes_a_result_belongs_to_its_position() {
        let old = finished(&[(0, "a"), (1, "b")], false);
        assert_eq!(kept(&old, &["a", "x", "b"]), [Some((0, false)), Some((1, false)), None]);
        assert!(Kept::new(&old).is_changed(&row(1, "x")) && !Kept::new(&old).is_changed(&row(2, "x")));
    }
}
