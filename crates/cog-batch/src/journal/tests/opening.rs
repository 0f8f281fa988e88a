//! What is refused when a journal is opened.

use super::*;

fn message(error: &JournalError) -> (String, &'static str) {
    (error.to_string(), error.suggestion())
}

fn refused(place: &Place) -> JournalError {
    let before = place.files();
    let error = place.open().map(drop).unwrap_err();
    assert_eq!(place.files(), before, "{error}");
    error
}

#[tokio::test]
async fn two_batches_on_one_journal_are_refused() {
    let place = Place::new();
    let (first, _) = place.open().unwrap();
    append(&first, [0]).await.unwrap();
    let error = place.open().map(drop).unwrap_err();
    let path = place.paths.journal.display();
    assert_eq!(error.to_string(), format!("{path}: another batch uses this journal"));
    let results = first.close().await.unwrap();
    assert!(matches!(place.open(), Err(JournalError::InUse { .. })), "the output is not written yet");
    drop(results);
    assert_eq!(place.stored().await.unwrap(), expected([0]));
}

#[tokio::test]
async fn a_different_batch_is_refused_unless_changes_are_allowed() {
    let place = Place::new();
    drop(place.run([0]).await);
    let other = Description::default().with("module", "summarize").with("model", "other");
    let before = place.files();
    let error = Journal::open(&place.paths, &other, Resume::Same).map(drop).unwrap_err();
    let path = place.paths.journal.display();
    let expected = format!(
        "{path}: the journal belongs to a different batch: model: `mock` in the journal, `other` now"
    );
    assert_eq!(error.to_string(), expected);
    assert!(error.suggestion().contains("--allow-changes"));
    assert_eq!(place.files(), before);
    let (journal, finished) = Journal::open(&place.paths, &other, Resume::Changed).unwrap();
    assert!(finished.contains(0));
    append(&journal, [1]).await.unwrap();
    drop(journal.close().await.unwrap());
    assert_eq!(std::fs::read_dir(place.directory.path()).unwrap().count(), 2);
}

#[tokio::test]
async fn a_journal_has_the_description_that_was_accepted_last() {
    let place = Place::new();
    drop(place.run(0..5000).await);
    let long = "a model with a longer name, so that the records move";
    let other = Description::default().with("module", "summarize").with("model", long);
    let (journal, finished) = Journal::open(&place.paths, &other, Resume::Changed).unwrap();
    assert_eq!(finished.len(), 5000);
    assert!(matches!(Journal::open(&place.paths, &other, Resume::Changed), Err(JournalError::InUse { .. })));
    append(&journal, 5000..5010).await.unwrap();
    drop(journal.close().await.unwrap());
    assert!(
        matches!(refused(&place), JournalError::Changed { .. }),
        "its first description is of another batch"
    );
    assert_eq!(Journal::finished(&place.paths, &other, Resume::Same).unwrap().len(), 5010);
    let (journal, _) = Journal::open(&place.paths, &other, Resume::Same).unwrap();
    let lines: Vec<_> =
        journal.close().await.unwrap().lines(Order::Input).unwrap().map(Result::unwrap).collect();
    assert_eq!(lines, expected(0..5010));
}

#[tokio::test]
async fn looking_at_a_journal_changes_nothing() {
    let place = Place::new();
    let look = |resume| Journal::finished(&place.paths, &description(), resume);
    assert!(look(Resume::Same).unwrap().is_empty());
    assert!(!place.paths.journal.exists());
    drop(place.run(0..7).await);
    let (mut journal, results) = place.files();
    journal.extend_from_slice(b"cut");
    std::fs::write(&place.paths.journal, &journal).unwrap();
    assert_eq!(look(Resume::Changed).unwrap().len(), 7);
    assert_eq!(place.files(), (journal, results));
    let other = Description::default();
    assert!(matches!(
        Journal::finished(&place.paths, &other, Resume::Same),
        Err(JournalError::Changed { .. })
    ));
}

#[tokio::test]
async fn another_version_is_refused() {
    let place = Place::new();
    drop(place.run([0]).await);
    let (mut journal, _) = place.files();
    journal[8] = 2;
    std::fs::write(&place.paths.journal, journal).unwrap();
    let (text, suggestion) = message(&refused(&place));
    assert!(text.ends_with("version 2 of the journal is not supported, only version 1"), "{text}");
    assert!(suggestion.contains("the version of cog that started the batch"));
}

#[test]
fn another_file_at_the_path_is_refused() {
    let place = Place::new();
    for text in ["{}", "a long text that is not a journal at all"] {
        std::fs::write(&place.paths.journal, text).unwrap();
        std::fs::write(&place.paths.results, "").unwrap();
        assert!(matches!(refused(&place), JournalError::NotAJournal { .. }));
    }
}

#[tokio::test]
async fn a_file_without_the_other_is_refused() {
    let place = Place::new();
    drop(place.run(0..3).await);
    let (journal, results) = place.files();
    std::fs::remove_file(&place.paths.results).unwrap();
    let error = place.open().map(drop).unwrap_err();
    assert!(error.to_string().ends_with("out.results: the results of the journal are missing"), "{error}");
    assert!(!place.paths.results.exists());
    std::fs::remove_file(&place.paths.journal).unwrap();
    std::fs::write(&place.paths.results, &results).unwrap();
    assert!(matches!(place.open(), Err(JournalError::JournalMissing { .. })));
    assert!(!place.paths.journal.exists());
    std::fs::write(&place.paths.journal, journal).unwrap();
    assert_eq!(place.stored().await.unwrap(), expected(0..3));
}

#[tokio::test]
async fn a_batch_that_was_killed_while_it_removed_its_files_is_over() {
    let place = Place::new();
    let (journal, results) = {
        let mut results = place.run(0..3).await;
        results.mark_done().unwrap();
        place.files()
    };
    for keeps_results in [true, false] {
        std::fs::write(&place.paths.journal, &journal).unwrap();
        if keeps_results {
            std::fs::write(&place.paths.results, &results).unwrap();
        }
        assert_eq!(place.stored().await.unwrap(), []);
        place.finish(0..2).await;
        std::fs::remove_file(&place.paths.results).unwrap();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_directory_that_cannot_be_written_is_an_error_with_the_path() {
    for (directory, suggestion) in [("/sys", "that you may write to"), ("/missing/directory", "Create the")] {
        let paths = JournalPaths::beside(&Path::new(directory).join("out"));
        let error = Journal::open(&paths, &description(), Resume::Same).map(drop).unwrap_err();
        assert!(error.to_string().starts_with(&format!("{directory}/out.journal: cannot write")), "{error}");
        assert!(error.suggestion().contains(suggestion), "{error:?}");
    }
}

#[test]
fn a_directory_at_the_path_is_an_error() {
    let place = Place::new();
    std::fs::create_dir(&place.paths.journal).unwrap();
    assert!(matches!(place.open(), Err(JournalError::Write { .. })));
}

#[cfg(unix)]
#[test]
fn a_device_at_the_path_is_an_error() {
    let place = Place::new();
    std::os::unix::fs::symlink("/dev/null", &place.paths.journal).unwrap();
    let error = place.open().map(drop).unwrap_err();
    assert!(error.to_string().ends_with("out.journal: cannot write: not a regular file"), "{error}");
}

#[test]
fn a_long_description_is_refused_and_leaves_no_file() {
    let place = Place::new();
    let description = Description::default().with("module", "x".repeat(2 << 20));
    let opened = Journal::open(&place.paths, &description, Resume::Same);
    assert!(opened.is_err() && std::fs::read_dir(place.directory.path()).unwrap().count() == 0);
}
