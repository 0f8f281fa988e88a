//! The time to store results and to open a journal, and the memory of the rows that are finished.
//!
//! `cargo bench -p cog-batch` prints each figure with its limit, and fails if one exceeds it. Both sides of a ratio
//! run alternately, and the best run of each counts.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark makes its own files, prints its table and stops when it cannot run"
)]

use std::{
    fs::File,
    hint::black_box,
    io::{BufWriter, Write as _},
    path::Path,
    process::ExitCode,
    time::Duration,
};

use cog_batch::{Description, Finished, Journal, JournalPaths, Resume, RowHash, RowResult};
use cog_testkit::bench::{limit, ratio, time};

/// The results that are stored, of 1 KB each.
const RESULTS: u64 = 100_000;
/// The records of a journal that is opened.
const RECORDS: u64 = 1_000_000;
/// The maximum memory for a finished row, in bytes.
const ROW_BYTES: f64 = 20.0;
/// The memory that does not depend on the number of rows: the buffers.
const FIXED: u64 = 1 << 20;

fn main() -> ExitCode {
    let place = tempfile::tempdir().unwrap();
    let (many, few) = (journal(place.path(), RECORDS), journal(place.path(), RECORDS / 10));
    let memory = memory(&many);
    let line = line(1_000);
    let stored = JournalPaths::beside(&place.path().join("stored"));
    let plain = place.path().join("plain");
    let results = [
        limit(1.0, "memory of a million finished rows ÷ 20 bytes each", memory / ROW_BYTES),
        limit(
            4.0,
            "storing 100,000 results of 1 KB ÷ a buffered write of the same lines, synced once",
            ratio(|| append(&stored, RESULTS, &line), || write(&plain, &line)),
        ),
        limit(1.0, "opening a million records ÷ 1 s", best(|| drop(open(&many))).as_secs_f64()),
        limit(
            12.0,
            "opening a million records ÷ 100,000",
            ratio(|| drop(black_box(open(&many))), || drop(black_box(open(&few)))),
        ),
    ];
    if results.iter().all(|within| *within) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Creates a journal with short results.
fn journal(directory: &Path, records: u64) -> JournalPaths {
    let paths = JournalPaths::beside(&directory.join(records.to_string()));
    append(&paths, records, &line(20));
    paths
}

fn line(length: usize) -> Vec<u8> {
    vec![b'x'; length]
}

fn open(paths: &JournalPaths) -> (Journal, Finished) {
    Journal::open(paths, &Description::default(), Resume::Same).unwrap()
}

/// Stores results in a new journal.
fn append(paths: &JournalPaths, count: u64, line: &[u8]) {
    for path in [&paths.journal, &paths.results] {
        let _ = std::fs::remove_file(path);
    }
    let (journal, _) = open(paths);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        for row in 0..count {
            journal.append(&RowResult::from_line(row, RowHash::from_u64(0), true, line)).await.unwrap();
        }
        drop(journal.close().await.unwrap());
    });
}

fn write(path: &Path, line: &[u8]) {
    let mut file = BufWriter::new(File::create(path).unwrap());
    for _ in 0..RESULTS {
        let line = black_box(line.to_vec());
        file.write_all(&line).unwrap();
        file.write_all(b"\n").unwrap();
    }
    file.into_inner().unwrap().sync_data().unwrap();
}

/// Returns the best time of several calls.
fn best(run: impl Fn()) -> Duration {
    let best = (0..5).map(|_| time(&run)).min().unwrap_or_default();
    println!("        {best:?}");
    best
}

/// Returns the memory of each finished row at its peak, in bytes.
fn memory(paths: &JournalPaths) -> f64 {
    std::fs::write("/proc/self/clear_refs", "5").unwrap(); // resets the peak
    let before = status("VmRSS:");
    let opened = black_box(open(paths));
    let grown = status("VmHWM:").saturating_sub(before + FIXED);
    println!("        {} KiB for {} rows", grown / 1024, opened.1.len());
    #[expect(clippy::cast_precision_loss, reason = "exact up to 2^52")]
    (grown as f64 / opened.1.len() as f64)
}

/// Returns a value of the memory of this process, in bytes.
fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}
