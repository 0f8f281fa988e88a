//! The files of a batch: none replaces another one.

#![expect(clippy::disallowed_methods, reason = "tests read what a batch has written")]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use super::{batch, model, place};
use crate::support::{snapshot, stderr};

#[test]
fn summary_never_replaces_results() {
    let (place, mock) = (place(), model());
    place.write("rows.jsonl", "\"one\"\n");
    snapshot!("summary_as_results", batch(&place, &mock, "rows.jsonl -o out.jsonl --summary out.jsonl"));
    let files = ["./out.jsonl", "out.jsonl.journal", "m/../out.jsonl.results", "out.jsonl.jobs"];
    for file in files.into_iter().chain(["out.jsonl.jobs-1"]) {
        let output = batch(&place, &mock, &format!("rows.jsonl -o out.jsonl --summary {file}"));
        let output = { output }.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{file}: {}", stderr(&output));
        assert!(stderr(&output).contains("is a file of the results"), "{file}: {}", stderr(&output));
    }
    assert_eq!(mock.requests().len(), 0);
    assert!(!place.path().join("out.jsonl").exists());
    let args = "rows.jsonl -o out.jsonl --summary out.jsonl.summary";
    assert!(batch(&place, &mock, args).status().unwrap().success());
}

#[cfg(unix)]
#[test]
fn summary_is_no_link_to_results() {
    let (place, mock) = (place(), model());
    place.write("rows.jsonl", "\"one\"\n");
    std::os::unix::fs::symlink("out.jsonl", place.path().join("s.json")).unwrap();
    for content in [None, Some("an earlier result\n")] {
        content.map(|content| place.write("out.jsonl", content));
        let output = batch(&place, &mock, "rows.jsonl -o out.jsonl --force --summary s.json").output();
        let output = output.unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("is a file of the results"), "{}", stderr(&output));
        assert_eq!(fs::read_to_string(place.path().join("out.jsonl")).ok().as_deref(), content);
    }
}

#[test]
fn input_is_no_file_of_the_results() {
    let (place, mock) = (place(), model());
    place.write("out.jsonl.results", "\"one\"\n");
    let output = batch(&place, &mock, "out.jsonl.results -o out.jsonl --format jsonl").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("is the input"), "{}", stderr(&output));
    assert_eq!(place.read("out.jsonl.results"), "\"one\"\n");
}

#[test]
fn summary_is_not_written_to_stdout() {
    let (place, mock) = (place(), model());
    place.write("rows.jsonl", "\"one\"\n");
    snapshot!("summary_on_stdout", batch(&place, &mock, "rows.jsonl -o out.jsonl --summary -"));
    assert_eq!(mock.requests().len(), 0);
    assert!(!place.path().join("-").exists());
}

#[test]
fn reader_that_ends_early_stops_the_batch() {
    let (place, mock) = (place(), model());
    place.write("rows.jsonl", "\"one\"\n".repeat(2_000));
    let mut command = batch(&place, &mock, "rows.jsonl -o - --concurrency 1");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut reader = BufReader::with_capacity(1, child.stdout.take().unwrap());
    reader.read_line(&mut line).unwrap();
    drop(reader);
    let output = child.wait_with_output().unwrap();
    assert!(line.contains("\"row\":0"), "{line}");
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(stderr(&output).contains("the reader of stdout has ended"), "{}", stderr(&output));
}
