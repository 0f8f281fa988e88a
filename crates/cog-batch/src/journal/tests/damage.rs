//! Files that are cut or damaged: what remains is what was stored, and never anything else.

use proptest::prelude::*;

use super::*;
use crate::journal::writer::GROUP_ROWS;

const ROWS: u64 = 4;

/// Returns the files of a batch, the length of the header, and the length of the results after each row.
fn batch(rows: u64) -> ((Vec<u8>, Vec<u8>), usize, Vec<usize>) {
    let place = Place::new();
    runtime().block_on(async { drop(place.run(0..rows).await) });
    let files = place.files();
    let header = files.0.len() - usize::try_from(rows).unwrap() * RECORD_LEN;
    let ends = (0..rows).scan(0, |end, row| {
        *end += line(row).len() + 1;
        Some(*end)
    });
    (files, header, ends.collect())
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

/// Checks a batch whose files are cut at these lengths.
fn check_cut(files: &(Vec<u8>, Vec<u8>), header: usize, ends: &[usize], (journal, results): (usize, usize)) {
    let place = Place::cut_copy(files, journal, results);
    runtime().block_on(async {
        if journal < header && results > 0 {
            let error = place.stored().await.unwrap_err();
            let is_expected = match journal {
                0 => matches!(error, JournalError::JournalMissing { .. }),
                _ => matches!(error, JournalError::DamagedHeader { .. }),
            };
            return assert!(is_expected, "{journal} {results}: {error}");
        }
        let records = journal.saturating_sub(header) / RECORD_LEN;
        let lines = ends.iter().filter(|end| **end <= results).count();
        let stored = place.stored().await.unwrap();
        assert_eq!(stored, expected(0..records.min(lines) as u64), "{journal} {results}");
        let (journal, results) = place.files();
        assert_eq!(journal.len(), header + stored.len() * RECORD_LEN, "no cut record remains");
        assert_eq!(results.len(), ends[..stored.len()].last().copied().unwrap_or(0), "no cut line remains");
        place.finish(0..ROWS).await;
    });
}

#[test]
fn a_cut_at_any_byte_leaves_the_records_before_it() {
    let (files, header, ends) = batch(ROWS);
    for journal in 0..=files.0.len() {
        check_cut(&files, header, &ends, (journal, files.1.len()));
    }
    for results in 0..=files.1.len() {
        check_cut(&files, header, &ends, (files.0.len(), results));
    }
}

/// Checks a batch with a byte that differs: rows may be missing, but none is wrong.
fn check_flip(files: &(Vec<u8>, Vec<u8>), header: usize, is_journal: bool, position: usize) {
    let mut files = files.clone();
    let bytes = if is_journal { &mut files.0 } else { &mut files.1 };
    bytes[position] ^= 0x10;
    let place = Place::cut_copy(&files, files.0.len(), files.1.len());
    runtime().block_on(async {
        match place.stored().await {
            Ok(stored) => {
                let rows: Vec<_> = stored.iter().map(|line| line.row).collect();
                assert_eq!(stored, expected(rows.iter().copied()));
                assert!(rows.len() as u64 == ROWS - 1, "only the damaged row is missing: {rows:?}");
                place.finish(0..ROWS).await;
            }
            Err(error) => assert!(is_journal && position < header, "{position}: {error}"),
        }
    });
}

#[test]
fn a_flipped_byte_removes_at_most_its_row() {
    let (files, header, _) = batch(ROWS);
    for position in 0..files.0.len() {
        check_flip(&files, header, true, position);
    }
    for position in 0..files.1.len() {
        check_flip(&files, header, false, position);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_two_cuts_leave_a_prefix(journal in any::<prop::sample::Index>(), results in any::<prop::sample::Index>()) {
        let (files, header, ends) = batch(ROWS);
        let lengths = (journal.index(files.0.len() + 1), results.index(files.1.len() + 1));
        check_cut(&files, header, &ends, lengths);
    }

    #[test]
    fn any_bytes_after_the_header_are_survived(
        journal in prop::collection::vec(any::<u8>(), 0..200),
        results in prop::collection::vec(any::<u8>(), 1..200),
    ) {
        let (files, header, _) = batch(2);
        let place = Place::new();
        std::fs::write(&place.paths.journal, [&files.0[..header], &journal].concat()).unwrap();
        std::fs::write(&place.paths.results, results).unwrap();
        prop_assert_eq!(runtime().block_on(place.stored()).unwrap(), []);
    }
}

const MANY: u64 = GROUP_ROWS as u64 + 100;

#[test]
fn results_that_lost_more_than_a_group_are_refused() {
    let (files, _, ends) = batch(MANY);
    let place = Place::cut_copy(&files, files.0.len(), ends[98]);
    let error = place.open().map(drop).unwrap_err();
    let before = place.files();
    let expected = format!(
        "{}: the results are incomplete: {} bytes, but the journal lists {}",
        place.paths.results.display(),
        ends[98],
        files.1.len()
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(place.files(), before);
    let place = Place::cut_copy(&files, files.0.len(), ends[99]);
    runtime().block_on(place.finish(0..MANY));
}

#[test]
fn damage_before_the_last_group_is_found_when_it_is_read() {
    let (mut files, header, _) = batch(MANY);
    files.0[header + 5 * RECORD_LEN] ^= 1; // the record of row 5
    files.1[3] ^= 1; // the line of row 0
    let place = Place::cut_copy(&files, files.0.len(), files.1.len());
    let (journal, finished) = place.open().unwrap();
    assert_eq!((finished.len(), finished.damaged_records()), (MANY - 1, 1));
    assert!(!finished.contains(5));
    let mut results = runtime().block_on(journal.close()).unwrap();
    let damaged = results.lines(Order::Input).unwrap().next().unwrap();
    assert!(matches!(damaged, Err(JournalError::ResultsDamaged { first: 0, .. })), "{damaged:?}");
    results.forget(vec![0]).unwrap();
    drop(results);
    runtime().block_on(place.finish(0..MANY));
}

#[test]
fn damaged_header_loses_no_result_if_changes_are_allowed() {
    let (mut files, header, _) = batch(ROWS);
    files.0[header - 8] ^= 1; // in the description
    let place = Place::cut_copy(&files, files.0.len(), files.1.len());
    let error = place.open().map(drop).unwrap_err();
    assert!(matches!(error, JournalError::DamagedHeader { .. }), "{error}");
    let opened = Journal::open_with(&place.paths, &description(), Resume::Changed, &unsynced);
    let (journal, finished) = opened.unwrap();
    assert_eq!(finished.len(), ROWS);
    assert!((0..ROWS).all(|row| finished.get(row).is_some_and(|found| found.hash == hash(row))));
    drop(runtime().block_on(journal.close()).unwrap());
    runtime().block_on(place.finish(0..ROWS));
    // The journal has a header again.
    assert_eq!(Journal::status(&place.paths).unwrap().unwrap().description, description());
}

#[test]
fn damaged_header_without_results_is_a_new_journal() {
    let (mut files, header, _) = batch(0);
    files.0[header - 8] ^= 1;
    let place = Place::cut_copy(&files, files.0.len(), 0);
    runtime().block_on(place.finish(0..ROWS));
}

#[test]
fn status_is_read_while_the_journal_is_written() {
    let place = Place::new();
    assert_eq!(Journal::status(&place.paths).unwrap(), None);
    let (journal, _) = place.open().unwrap();
    runtime().block_on(append_each(&journal, &place.paths.journal, 0..ROWS)).unwrap();
    let status = Journal::status(&place.paths).unwrap().unwrap();
    let failed = (0..ROWS).filter(|row| !is_ok(*row)).count() as u64;
    assert_eq!((status.rows, status.failed, status.is_in_use), (ROWS, failed, true));
    drop(journal);
    assert!(!Journal::status(&place.paths).unwrap().unwrap().is_in_use);
}
