//! 20,000 mutated files of all types: each returns a result or an error with a code, in time, without a panic.
#![expect(clippy::disallowed_methods, reason = "the files of the tests")]

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

use fastrand::Rng;

use super::{container::Handle, reader, report::PDF};
use crate::{
    MediaCapabilities, MediaDeclaration, MediaError, MediaRules, Store, check::check_now, normalise, sniff,
};

#[path = "../../tests/tool/mutate.rs"]
mod mutate;
#[path = "../../tests/tool/samples.rs"]
mod samples;

/// Mutated files per type; one of the twelve types is not supported.
const FILES_PER_TYPE: usize = 1850;

/// The maximum time per file, at the best of three attempts, because the machine may be busy.
const MAX_TIME: Duration = Duration::from_secs(2);

#[test]
fn mutated_files_return_results_and_never_panic() {
    let corpus = samples::corpus();
    let threads: Vec<_> = (0..corpus.len())
        .map(|at| {
            let corpus = corpus.clone();
            std::thread::spawn(move || mutate_and_read(&corpus, at))
        })
        .collect();
    for thread in threads {
        let (kind, codes) = thread.join().unwrap();
        assert_eq!(codes.values().sum::<usize>(), FILES_PER_TYPE + 1);
        println!("{kind}: {codes:?}");
    }
}

/// Reads the original of a type and its mutations. Returns how often each code occurred.
fn mutate_and_read(corpus: &[(&'static str, Vec<u8>)], at: usize) -> (&'static str, BTreeMap<String, usize>) {
    let (kind, original) = &corpus[at];
    let mut rng = Rng::with_seed(at as u64);
    let mut codes = BTreeMap::new();
    let mut bytes = original.clone();
    for round in 0..=FILES_PER_TYPE {
        let (outcome, took) = timed(&bytes, original);
        if outcome.is_err() || took > MAX_TIME {
            let saved = std::env::temp_dir().join(format!("cog-media-{kind}-{round}"));
            std::fs::write(&saved, &bytes).unwrap();
            panic!("{} took {took:?}; panicked: {}", saved.display(), outcome.is_err());
        }
        let code = outcome.unwrap().map_or_else(|error| error.code().to_string(), |()| "ok".to_owned());
        assert!(round > 0 || code == "ok" || *kind == "flac", "{kind}: {code}");
        *codes.entry(code).or_default() += 1;
        let other = &corpus[rng.usize(..corpus.len())].1;
        bytes = mutate::mutated(original, other, &mut rng);
    }
    (kind, codes)
}

/// Returns the result or panic of reading a file, and the time it took.
fn timed(bytes: &[u8], original: &[u8]) -> (std::thread::Result<Result<(), MediaError>>, Duration) {
    let attempt = || {
        let begin = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| read(bytes, original)));
        (outcome, begin.elapsed())
    };
    let mut attempts = std::iter::repeat_with(attempt).take(2);
    attempts.find(|(_, took)| *took <= MAX_TIME).unwrap_or_else(attempt)
}

/// Reads a file as a run does before it calls a provider. The work of the reader process runs here, with the original
/// type, so that a panic is seen.
fn read(bytes: &[u8], original: &[u8]) -> Result<(), MediaError> {
    let mut store = Store::with_limit(1 << 30);
    store.push(bytes)?;
    let stored = store.finish();
    let media_type = sniff(original).unwrap();
    if media_type.starts_with("image/") || media_type.ends_with("flac") {
        let media = check_now(stored, &MediaDeclaration::default(), &MediaRules::default())?;
        return normalise(&media, &MediaCapabilities::default(), &MediaRules::default()).map(drop);
    }
    let damaged = |what| MediaError::Damaged { media_type, what };
    reader::facts(Handle::new(stored.handle()?)?, media_type).map_err(|error| damaged(error.what()))?;
    if media_type == PDF {
        reader::text(Handle::new(stored.handle()?)?).map_err(|error| damaged(error.what()))?;
    }
    Ok(())
}
