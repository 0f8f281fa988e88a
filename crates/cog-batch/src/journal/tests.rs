#![expect(clippy::disallowed_methods, reason = "the files of the tests")]

mod damage;
mod faults;
mod kill;
mod opening;

use std::{
    fs::File,
    io,
    path::Path,
    sync::atomic::{AtomicI64, Ordering},
};

use tempfile::TempDir;

use super::*;
use crate::{Order, ResultLine, RowHash};

/// A journal in a directory of its own.
struct Place {
    directory: TempDir,
    paths: JournalPaths,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let paths = JournalPaths::beside(&directory.path().join("out"));
        Self { directory, paths }
    }

    /// Creates a place with the files of another, cut at these lengths.
    fn cut_copy(files: &(Vec<u8>, Vec<u8>), journal: usize, results: usize) -> Self {
        let place = Self::new();
        std::fs::write(&place.paths.journal, &files.0[..journal]).unwrap();
        std::fs::write(&place.paths.results, &files.1[..results]).unwrap();
        place
    }

    fn open(&self) -> Result<(Journal, Finished), JournalError> {
        Journal::open_with(&self.paths, &description(), Resume::Same, &unsynced)
    }

    /// Stores the results of these rows.
    async fn run(&self, rows: impl IntoIterator<Item = u64>) -> Results {
        let (journal, _) = self.open().unwrap();
        append(&journal, rows).await.unwrap();
        journal.close().await.unwrap()
    }

    /// Returns the bytes of both files.
    fn files(&self) -> (Vec<u8>, Vec<u8>) {
        (std::fs::read(&self.paths.journal).unwrap(), std::fs::read(&self.paths.results).unwrap())
    }

    /// Returns the stored results in the order in which they were stored, and checks that both lists agree.
    async fn stored(&self) -> Result<Vec<ResultLine>, JournalError> {
        let (journal, finished) = self.open()?;
        let mut results = journal.close().await?;
        let lines: Vec<_> = results.lines(Order::Free)?.collect::<Result<_, _>>()?;
        assert_eq!(lines.len() as u64, finished.len());
        for line in &lines {
            let found = finished.get(line.row).unwrap();
            assert_eq!((found.ok, found.hash), (line.ok, hash(line.row)));
        }
        Ok(lines)
    }

    /// Continues the batch, and checks that it ends like one that was never interrupted.
    async fn finish(&self, rows: std::ops::Range<u64>) {
        let (journal, finished) = self.open().unwrap();
        append(&journal, rows.clone().filter(|row| !finished.contains(*row))).await.unwrap();
        let mut results = journal.close().await.unwrap();
        let lines: Result<Vec<_>, _> = results.lines(Order::Input).unwrap().collect();
        assert_eq!(lines.unwrap(), expected(rows));
    }
}

fn description() -> Description {
    Description::default().with("module", "summarize").with("model", "mock")
}

fn is_ok(row: u64) -> bool {
    !row.is_multiple_of(3)
}

fn line(row: u64) -> Vec<u8> {
    format!(r#"{{"row":{row},"ok":{}}}"#, is_ok(row)).into_bytes()
}

fn hash(row: u64) -> RowHash {
    RowHash::from_bytes(&row.to_le_bytes())
}

async fn append(journal: &Journal, rows: impl IntoIterator<Item = u64>) -> Result<(), JournalError> {
    for row in rows {
        journal.append(&RowResult::from_line(row, hash(row), is_ok(row), &line(row))).await?;
    }
    Ok(())
}

/// Stores each row before the next one, so that there is a write for each.
async fn append_each(
    journal: &Journal,
    path: &Path,
    rows: impl IntoIterator<Item = u64>,
) -> Result<(), JournalError> {
    for row in rows {
        let before = std::fs::metadata(path).unwrap().len();
        append(journal, [row]).await?;
        while std::fs::metadata(path).unwrap().len() < before + RECORD_LEN as u64 {
            journal.check()?;
            std::thread::yield_now();
        }
    }
    Ok(())
}

fn expected(rows: impl IntoIterator<Item = u64>) -> Vec<ResultLine> {
    rows.into_iter().map(|row| ResultLine { row, ok: is_ok(row), json: line(row) }).collect()
}

/// A layer that does not wait for the disk.
fn unsynced(file: File) -> Box<dyn Append> {
    Box::new(Layer { file, on_write: |_| Ok(usize::MAX) })
}

/// A layer in which a function decides about each write: how many bytes are written, or why none are.
struct Layer<F> {
    file: File,
    on_write: F,
}

impl<F: FnMut(usize) -> io::Result<usize> + Send> io::Write for Layer<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = (self.on_write)(bytes.len())?.min(bytes.len());
        self.file.write(&bytes[..count])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl<F: FnMut(usize) -> io::Result<usize> + Send> Append for Layer<F> {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        Append::cut(&mut self.file, length)
    }
}

#[tokio::test]
async fn results_return_in_either_order() {
    let place = Place::new();
    drop(place.run([3, 1, 2]).await);
    let (journal, finished) = place.open().unwrap();
    assert_eq!((finished.len(), finished.failed().collect::<Vec<_>>()), (3, vec![3]));
    append(&journal, [0, 3]).await.unwrap();
    let mut results = journal.close().await.unwrap();
    let lines: Result<Vec<_>, _> = results.lines(Order::Input).unwrap().collect();
    assert_eq!(lines.unwrap(), expected([0, 1, 2, 3]));
    let lines: Result<Vec<_>, _> = results.lines(Order::Free).unwrap().collect();
    assert_eq!(lines.unwrap(), expected([1, 2, 0, 3]));
    results.remove().unwrap();
    assert_eq!(std::fs::read_dir(place.directory.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_journal_that_is_dropped_stores_its_queue() {
    let place = Place::new();
    let (journal, _) = place.open().unwrap();
    append(&journal, 0..1000).await.unwrap();
    drop(journal);
    assert_eq!(place.stored().await.unwrap(), expected(0..1000));
}

#[tokio::test]
async fn a_result_longer_than_the_queue_is_stored() {
    let place = Place::new();
    let (journal, _) = place.open().unwrap();
    let long = vec![b'x'; QUEUE_BYTES + 1];
    for row in 0..2 {
        journal.append(&RowResult::from_line(row, hash(row), true, &long)).await.unwrap();
    }
    let mut results = journal.close().await.unwrap();
    let lines: Vec<_> = results.lines(Order::Input).unwrap().map(|line| line.unwrap().json).collect();
    assert!(lines.len() == 2 && lines.iter().all(|line| *line == long));
}

#[tokio::test]
async fn results_are_read_while_the_batch_runs() {
    let place = Place::new();
    drop(place.run([7]).await);
    let (mut journal, finished) = place.open().unwrap();
    let mut positions = vec![(7, finished.get(7).unwrap().position)];
    for row in 0..2000 {
        let position = journal.append(&RowResult::from_line(row, hash(row), true, &line(row))).await.unwrap();
        positions.push((row, position));
        let (row, position) = positions[usize::try_from(row * 7 % (row + 1)).unwrap()];
        assert_eq!(journal.read(position).await.unwrap(), line(row));
    }
    drop(journal.close().await.unwrap());
    let (_, finished) = place.open().unwrap();
    assert!(
        positions
            .iter()
            .all(|(row, position)| finished.get(*row).unwrap().position == *position || *row == 7)
    );
}
