//! Which rows of an input keep their results.
//!
//! If the input may have changed, a result belongs to the hash of its row, wherever the row is now, and each result is kept by one
//! row. Otherwise it belongs to the position, and another hash means that the input has changed.

use super::{Finished, FinishedRow, Record};
use crate::row::{Position, Row, RowHash};

/// The results of a journal by the hashes of their rows: 32 bytes each, and 8 while the input is read.
#[derive(Debug, Default)]
pub(super) struct ByHash {
    /// Sorted by hash. Of equal hashes, those whose run succeeded come first.
    entries: Vec<Entry>,
}

/// A result, whose row may be another one by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    hash: RowHash,
    row: u64,
    /// The position of the line, and in the lowest bit whether its run succeeded.
    place: u64,
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
    /// The CRC-32 of the line with its line break, if the row was at another position.
    pub(crate) moved: Option<u32>,
}

impl ByHash {
    pub(super) fn push(&mut self, record: &Record) {
        let place = record.offset << 1 | u64::from(record.ok);
        self.entries.push(Entry { hash: record.hash, row: record.row, place, crc: record.line_crc });
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
        self.entries.sort_unstable_by_key(|entry| (entry.hash, !entry.is_ok(), entry.place));
    }
}

impl ByHash {
    /// Returns the index of a result.
    fn find(&self, result: &FinishedRow) -> Option<usize> {
        let key = (result.hash, !result.ok, result.place());
        self.entries.binary_search_by_key(&key, |entry| (entry.hash, !entry.is_ok(), entry.place)).ok()
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
            return here.map(|result| KeptResult { result, moved: None });
        };
        if let Some(result) = here.filter(|here| here.hash == row.hash)
            && let Some(taken) = by_hash.find(&result).and_then(|at| self.taken.get_mut(at))
            && !std::mem::replace(&mut taken.is_taken, true)
        {
            return Some(KeptResult { result, moved: None });
        }
        let start = by_hash.entries.partition_point(|entry| entry.hash < row.hash);
        // Those that were passed are not looked at again, so that many equal rows take no longer than others.
        let from = start + self.taken.get(start)?.passed as usize;
        let open = by_hash.entries.get(from..)?.iter().take_while(|entry| entry.hash == row.hash);
        let mut open = open.zip(from..);
        let (entry, at) = open.find(|(_, at)| self.taken.get(*at).is_some_and(|taken| !taken.is_taken))?;
        self.taken.get_mut(at)?.is_taken = true;
        self.taken.get_mut(start)?.passed = u32::try_from(at + 1 - start).unwrap_or(u32::MAX);
        let result =
            FinishedRow { hash: entry.hash, ok: entry.is_ok(), position: Position(entry.place >> 1) };
        Some(KeptResult { result, moved: Some(entry.crc) })
    }

    /// Returns whether the journal has the result of another row for a position.
    pub(crate) fn is_changed(&self, row: &Row) -> bool {
        self.finished.get(row.number).is_some_and(|here| here.hash != row.hash)
    }
}

impl Entry {
    fn is_ok(&self) -> bool {
        self.place & 1 == 1
    }
}

#[cfg(test)]
mod tests {
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
            finished.push(&Record { row: *row, hash, ok, offset: number * 10, length: 10, line_crc: 7 });
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
            Some((found.result.position.0 / 10, found.moved.is_some()))
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
