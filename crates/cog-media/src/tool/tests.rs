//! Twenty thousand changed files of all types: each is an answer with a code, in time, and no panic.
#![expect(clippy::disallowed_methods, reason = "the files of the tests")]

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

use fastrand::Rng;

use super::{handle::Handle, page, reader};
use crate::{Expected, MediaCapabilities, MediaError, MediaRules, Store, check::check_now, normalise, sniff};

#[path = "../../tests/tool/made.rs"]
mod made;
#[path = "../../tests/tool/mutate.rs"]
mod mutate;

/// How many files of each of twelve types, eleven of which are taken.
const EACH: usize = 1850;

/// How long one may take, at the best of three times: a machine may be busy with other things.
const PATIENCE: Duration = Duration::from_secs(2);

#[test]
fn changed_files_of_every_type_are_answers_and_no_panics() {
    let corpus = made::corpus();
    let threads: Vec<_> = (0..corpus.len())
        .map(|at| {
            let corpus = corpus.clone();
            std::thread::spawn(move || changed(&corpus, at))
        })
        .collect();
    for thread in threads {
        let (kind, told) = thread.join().unwrap();
        assert_eq!(told.values().sum::<usize>(), EACH + 1);
        println!("{kind}: {told:?}");
    }
}

/// Reads the original of a type and its changed copies; how often each code was the answer.
fn changed(corpus: &[(&'static str, Vec<u8>)], at: usize) -> (&'static str, BTreeMap<String, usize>) {
    let (kind, original) = &corpus[at];
    let mut rng = Rng::with_seed(at as u64);
    let mut told = BTreeMap::new();
    let mut bytes = original.clone();
    for round in 0..=EACH {
        let (outcome, took) = timed(&bytes, original);
        if outcome.is_err() || took > PATIENCE {
            let kept = std::env::temp_dir().join(format!("cog-media-{kind}-{round}"));
            std::fs::write(&kept, &bytes).unwrap();
            panic!("{} took {took:?}; panicked: {}", kept.display(), outcome.is_err());
        }
        let code = outcome.unwrap().map_or_else(|error| error.code().to_string(), |()| "ok".to_owned());
        assert!(round > 0 || code == "ok" || *kind == "flac", "{kind}: {code}");
        *told.entry(code).or_default() += 1;
        let other = &corpus[rng.usize(..corpus.len())].1;
        bytes = mutate::mutated(original, other, &mut rng);
    }
    (kind, told)
}

/// What comes of bytes, or of a panic, and how long that took.
fn timed(bytes: &[u8], original: &[u8]) -> (std::thread::Result<Result<(), MediaError>>, Duration) {
    let attempt = || {
        let begin = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| read(bytes, original)));
        (outcome, begin.elapsed())
    };
    let mut attempts = std::iter::repeat_with(attempt).take(2);
    attempts.find(|(_, took)| *took <= PATIENCE).unwrap_or_else(attempt)
}

/// Reads bytes as far as a run does before a provider is asked. What the reading process does is done here, whatever
/// the type that changed bytes seem to be of, so that a panic is seen.
fn read(bytes: &[u8], original: &[u8]) -> Result<(), MediaError> {
    let mut store = Store::within(1 << 30);
    store.push(bytes)?;
    let stored = store.finish();
    let media_type = sniff(original).unwrap();
    if media_type.starts_with("image/") || media_type.ends_with("flac") {
        let media = check_now(stored, &Expected::default(), &MediaRules::default())?;
        return normalise(&media, &MediaCapabilities::default(), &MediaRules::default()).map(drop);
    }
    let damaged = |what| MediaError::Damaged { media_type, what };
    reader::facts(Handle::new(stored.handle()?)?, media_type).map_err(|fault| damaged(fault.what()))?;
    if media_type == page::PDF {
        reader::text(Handle::new(stored.handle()?)?).map_err(|fault| damaged(fault.what()))?;
    }
    Ok(())
}
