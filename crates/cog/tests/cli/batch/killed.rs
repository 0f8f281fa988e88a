//! A batch that is killed at random moments ends with the output of one that was not, and asks for no stored row again.

#![expect(clippy::disallowed_methods, reason = "the number of kills, and the journal between them")]

use std::{
    collections::{BTreeMap, BTreeSet},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use cog_testkit::{Mock, Reply};
use serde_json::Value;

use super::{
    ANSWER, batch, inputs, place,
    resumed::{output, row_in, rows},
};
use crate::support::{Place, stderr};

/// The rows that run at the same time.
const CONCURRENCY: usize = 4;

/// How often the batch is killed: 20 times, or as often as `COG_TEST_KILLS` says.
fn kills() -> usize {
    std::env::var("COG_TEST_KILLS").map_or(20, |number| number.parse().unwrap())
}

/// A sequence of numbers that looks random, the same in each run of the test.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Returns a model that takes a moment, so that rows are in flight at a kill.
fn model() -> Mock {
    Mock::start([Reply::text(ANSWER).delay(Duration::from_millis(3))])
}

fn start(place: &Place, mock: &Mock) -> Child {
    let args = format!("rows.jsonl -o out.jsonl --concurrency {CONCURRENCY}");
    batch(place, mock, &args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Kills the batch when it has sent some more rows, and a moment later. Returns false if it has ended before.
fn kill(child: &mut Child, mock: &Mock, random: &mut Random) -> bool {
    let goal = mock.request_count() + usize::try_from(random.below(12)).unwrap();
    while mock.request_count() < goal {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::yield_now();
    }
    let (begun, moment) = (Instant::now(), Duration::from_micros(random.below(8_000)));
    while begun.elapsed() < moment {
        std::thread::yield_now();
    }
    let is_killed = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    is_killed
}

/// Returns the rows that have a record in the journal.
fn stored(place: &Place) -> Vec<u64> {
    let Ok(journal) = std::fs::read(place.path().join("out.jsonl.journal")) else { return Vec::new() };
    let Some(length) = journal.get(12..16) else { return Vec::new() };
    let header = 20 + u32::from_le_bytes(length.try_into().unwrap()) as usize;
    let records = journal.get(header..).unwrap_or_default().chunks_exact(36);
    records.map(|record| u64::from_le_bytes(record[..8].try_into().unwrap())).collect()
}

#[test]
fn batch_killed_at_random_moments_ends_like_one_that_was_not() {
    let (place, mock, kills) = (place(), model(), kills());
    let count = kills * 10;
    place.write("rows.jsonl", rows(count));
    let mut random = Random(7);
    // For each row, the number of requests at the first kill after which it was stored.
    let mut settled = BTreeMap::new();
    let (mut killed, mut open) = (0, 0);
    while killed < kills && kill(&mut start(&place, &mock), &mock, &mut random) {
        killed += 1;
        let requests = mock.request_count();
        for row in stored(&place) {
            settled.entry(usize::try_from(row).unwrap()).or_insert(requests);
        }
        let sent: BTreeSet<usize> = inputs(&mock).iter().map(|input| row_in(input)).collect();
        // Others may be on their way to the model.
        open += sent.len() - settled.len() + CONCURRENCY;
    }
    assert_eq!(killed, kills, "the batch was complete before");
    assert!(settled.len() > kills, "{} rows were stored before the last kill", settled.len());
    let last = batch(&place, &mock, "rows.jsonl -o out.jsonl").output().unwrap();
    assert!(last.status.success(), "{}", stderr(&last));
    check_requests(&mock, &settled, (count, open));
    assert_eq!(output(&place), uninterrupted(count));
}

/// Checks that stored rows were not sent again, and that rows which were sent but not stored at a kill were sent once more at
/// most: `open` is their number, added up over all kills.
fn check_requests(mock: &Mock, settled: &BTreeMap<usize, usize>, (count, open): (usize, usize)) {
    let mut sent = vec![0; count];
    for (position, input) in inputs(mock).iter().enumerate() {
        let row = row_in(input);
        sent[row] += 1;
        let is_again = settled.get(&row).is_some_and(|requests| position >= *requests);
        assert!(!is_again, "row {row} was stored, and sent again");
    }
    assert!(sent.iter().all(|times| *times >= 1));
    let again: usize = sent.iter().map(|times| times - 1).sum();
    assert!(again <= open, "{again} rows were sent again, but only {open} were not stored at a kill");
    assert!(again > 0, "no kill met a row in flight");
}

/// Returns the output of a batch that is not killed.
fn uninterrupted(count: usize) -> Vec<Value> {
    let (place, mock) = (place(), model());
    place.write("rows.jsonl", rows(count));
    let output_of = batch(&place, &mock, "rows.jsonl -o out.jsonl").output().unwrap();
    assert!(output_of.status.success(), "{}", stderr(&output_of));
    output(&place)
}
