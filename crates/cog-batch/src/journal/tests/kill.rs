//! A batch that is killed at each write, sync and cut of its files ends like one that was never interrupted.

use std::process::Command;

use super::*;

const ROWS: u64 = 12;
/// The directory of the batch, for the child.
const PLACE: &str = "COG_TEST_BATCH";
/// The number of operations after which the child dies.
const OPERATIONS: &str = "COG_TEST_OPERATIONS";

/// Stores a batch, and dies at an operation. It is only called in a child process.
#[tokio::test]
async fn child() {
    let (Ok(place), Ok(operations)) = (std::env::var(PLACE), std::env::var(OPERATIONS)) else { return };
    let left = Arc::new(AtomicI64::new(operations.parse().unwrap()));
    let wrap = move |file| -> Box<dyn Append> { Box::new(Deadly { file, left: Arc::clone(&left) }) };
    let paths = JournalPaths::beside(&Path::new(&place).join("out"));
    let (journal, finished) = Journal::open_with(&paths, &description(), Resume::Same, &wrap).unwrap();
    let rows = (0..ROWS).filter(|row| !finished.contains(*row));
    append_each(&journal, &paths.journal, rows).await.unwrap();
    journal.close().await.unwrap();
}

/// Runs the child, and returns whether it survived.
fn run(place: &Place, operations: u32) -> bool {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "journal::tests::kill::child"]);
    child.env(PLACE, place.directory.path()).env(OPERATIONS, operations.to_string());
    child.output().unwrap().status.success()
}

/// Returns the number of complete records in the journal.
fn records(place: &Place) -> u64 {
    let header = crate::journal::description::encode(&description()).unwrap().len() as u64;
    let length = std::fs::metadata(&place.paths.journal).map_or(0, |about| about.len());
    length.saturating_sub(header) / RECORD_LEN as u64
}

/// Checks that each complete record counts.
async fn check(place: &Place) {
    let records = records(place);
    assert_eq!(place.stored().await.unwrap(), expected(0..records));
}

#[tokio::test]
async fn a_batch_that_is_killed_at_each_operation_loses_no_record() {
    let mut deaths = 0;
    let mut operations = 0;
    loop {
        let place = Place::new();
        let survives = run(&place, operations);
        check(&place).await;
        place.finish(0..ROWS).await;
        if survives {
            break;
        }
        (deaths, operations) = (deaths + 1, operations + 1);
    }
    assert!(deaths >= 2 * ROWS, "a line and a record for each row: {deaths}");
}

#[tokio::test]
async fn a_batch_that_is_killed_again_and_again_ends() {
    let place = Place::new();
    let mut before = 0;
    let mut deaths = 0;
    // After the header, a row needs two operations; repairs need two more for each file.
    while !run(&place, if deaths == 0 { 4 } else { 7 }) {
        deaths += 1;
        let now = records(&place);
        assert!(now > before, "each run stores a row");
        before = now;
    }
    assert!(deaths > 2, "{deaths}");
    check(&place).await;
    place.finish(0..ROWS).await;
}

/// A layer that ends the process in the middle of a write, or before another operation.
struct Deadly {
    file: File,
    left: Arc<AtomicI64>,
}

impl Deadly {
    fn is_last(&self) -> bool {
        self.left.fetch_sub(1, Ordering::SeqCst) == 0
    }
}

impl io::Write for Deadly {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_last() {
            self.file.write_all(&bytes[..bytes.len() / 2]).unwrap();
            std::process::abort();
        }
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Append for Deadly {
    fn sync(&mut self) -> io::Result<()> {
        if self.is_last() {
            std::process::abort();
        }
        Ok(())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        if self.is_last() {
            std::process::abort();
        }
        Append::cut(&mut self.file, length)
    }
}
