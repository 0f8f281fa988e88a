//! A disk that is full: at each byte, a clear error, nothing stored is lost, and the batch continues with room.

use super::*;

const ROWS: u64 = 5;

/// Opens a journal on a disk with room for this number of bytes.
fn open_full(place: &Place, bytes: i64) -> Result<(Journal, Finished), JournalError> {
    let room = Arc::new(AtomicI64::new(bytes));
    let wrap = move |file| -> Box<dyn Append> {
        let room = Arc::clone(&room);
        let on_write = move |count: usize| {
            let room = room.fetch_sub(i64::try_from(count).unwrap(), Ordering::SeqCst);
            usize::try_from(room).ok().filter(|room| *room > 0).ok_or(io::ErrorKind::StorageFull.into())
        };
        Box::new(Layer { file, on_write })
    };
    Journal::open_with(&place.paths, &description(), Resume::Same, &wrap)
}

async fn run_full(place: &Place, bytes: i64) -> Result<(), JournalError> {
    let (journal, finished) = open_full(place, bytes)?;
    let rows = (0..ROWS).filter(|row| !finished.contains(*row));
    append_each(&journal, &place.paths.journal, rows).await?;
    journal.close().await.map(drop)
}

fn check_error(error: &JournalError, place: &Place) {
    let JournalError::Write { path, source } = error else { panic!("{error}") };
    assert!([&place.paths.journal, &place.paths.results].contains(&path), "{error}");
    assert_eq!(source.kind(), io::ErrorKind::StorageFull);
    assert!(error.suggestion().starts_with("Free space, then run the same command again"));
}

#[tokio::test]
async fn a_disk_that_is_full_at_any_byte_loses_nothing() {
    let mut most_stored = 0;
    for bytes in 0.. {
        let place = Place::new();
        let Err(error) = run_full(&place, bytes).await else {
            assert_eq!(most_stored, ROWS as usize - 1);
            return;
        };
        check_error(&error, &place);
        let stored = place.stored().await.unwrap();
        assert_eq!(stored, expected(0..stored.len() as u64));
        assert!(stored.len() >= most_stored, "more room stores as much");
        most_stored = stored.len();
        place.finish(0..ROWS).await;
    }
}

#[tokio::test]
async fn a_disk_that_is_full_again_and_again_loses_nothing() {
    let place = Place::new();
    let mut count = 0;
    // Room for a header, then for a row each time.
    while let Err(error) = run_full(&place, if count == 0 { 100 } else { 64 }).await {
        check_error(&error, &place);
        count += 1;
        assert!(count < 20);
    }
    assert!(count > 3, "{count}");
    place.finish(0..ROWS).await;
}

#[tokio::test]
async fn a_group_keeps_the_lines_that_were_written() {
    let place = Place::new();
    drop(place.run([]).await);
    // The buffer of several lines is cut within the third. The rest of any group has another length than a record, because the
    // layer knows records by their length.
    let room = i64::try_from(line(0).len() + line(1).len() + 8).unwrap();
    let is_blocked = Arc::new((std::sync::Mutex::new(true), std::sync::Condvar::new()));
    let gate = Arc::clone(&is_blocked);
    let left = Arc::new(AtomicI64::new(room));
    let wrap = move |file| -> Box<dyn Append> {
        let gate = Arc::clone(&gate);
        let left = Arc::clone(&left);
        let on_write = move |count: usize| {
            drop(gate.1.wait_while(gate.0.lock().unwrap(), |blocked| *blocked).unwrap());
            if count.is_multiple_of(RECORD_LEN) {
                return Ok(count); // records replace what was cut
            }
            let left = left.fetch_sub(i64::try_from(count).unwrap(), Ordering::SeqCst);
            usize::try_from(left).ok().filter(|left| *left > 0).ok_or(io::ErrorKind::StorageFull.into())
        };
        Box::new(Layer { file, on_write })
    };
    let (journal, _) = Journal::open_with(&place.paths, &description(), Resume::Same, &wrap).unwrap();
    append(&journal, 0..ROWS).await.unwrap();
    *is_blocked.0.lock().unwrap() = false;
    is_blocked.1.notify_all();
    check_error(&journal.close().await.map(drop).unwrap_err(), &place);
    assert_eq!(place.stored().await.unwrap(), expected(0..2));
    place.finish(0..ROWS).await;
}

#[tokio::test]
async fn rows_after_the_error_are_refused_with_it() {
    let place = Place::new();
    let (journal, _) = open_full(&place, 200).unwrap();
    let mut row = 0;
    let error = loop {
        row += 1;
        if let Err(error) = append(&journal, [row]).await {
            break error;
        }
    };
    check_error(&error, &place);
    check_error(&journal.check().unwrap_err(), &place);
    check_error(&append(&journal, [0]).await.unwrap_err(), &place);
}

#[tokio::test]
async fn a_writer_that_panics_is_an_error() {
    let place = Place::new();
    let wrap = |file| -> Box<dyn Append> {
        let on_write =
            |count: usize| if count.is_multiple_of(RECORD_LEN) { panic!("a defect") } else { Ok(count) };
        Box::new(Layer { file, on_write })
    };
    let (journal, _) = Journal::open_with(&place.paths, &description(), Resume::Same, &wrap).unwrap();
    append(&journal, [0]).await.unwrap();
    assert!(matches!(journal.close().await, Err(JournalError::Stopped)));
}

#[tokio::test]
async fn both_files_are_synced_before_a_batch_ends_and_after_each_group() {
    let place = Place::new();
    let syncs = Arc::new(AtomicI64::new(0));
    let count = Arc::clone(&syncs);
    let wrap = move |file| -> Box<dyn Append> { Box::new(Counted { file, syncs: Arc::clone(&count) }) };
    let (journal, _) = Journal::open_with(&place.paths, &description(), Resume::Same, &wrap).unwrap();
    assert_eq!(syncs.load(Ordering::SeqCst), 1, "the header");
    append(&journal, 0..2 * writer::GROUP_ROWS as u64 + 1).await.unwrap();
    journal.close().await.unwrap();
    let count = syncs.load(Ordering::SeqCst);
    assert!(count > 3 * 2, "two groups and the end: {count}");
}

/// A layer that counts syncs.
struct Counted {
    file: File,
    syncs: Arc<AtomicI64>,
}

impl io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Append for Counted {
    fn sync(&mut self) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        Append::cut(&mut self.file, length)
    }
}
