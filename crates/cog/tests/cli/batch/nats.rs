//! `--nats`: what is refused before a job is added. The tests of `tools` run jobs with a real server.

use super::place;
use crate::support::{stderr, stdout};

/// A port at which nothing listens.
const NOWHERE: &str = "nats://127.0.0.1:1";

fn refused(args: &str) -> (Option<i32>, String) {
    let place = place();
    place.write("rows.jsonl", "\"a\"\n");
    let line = format!("batch ./m rows.jsonl -o out.jsonl {args}");
    let output = place.cog(line.split_whitespace()).output().unwrap();
    assert_eq!(stdout(&output), "");
    (output.status.code(), stderr(&output))
}

#[test]
fn option_that_a_job_cannot_have_is_refused_with_a_suggestion() {
    for (option, suggestion) in [
        ("--via openai", "use one of them"),
        ("--max-cost 1", "--sample"),
        ("--rpm 5", "--concurrency of `cog worker`"),
        ("--tpm 5", "--concurrency of `cog worker`"),
        ("--cache answers", "COG_CACHE_DIRECTORY"),
        ("--temperature 1", "manifest"),
        ("--max-tokens 5", "manifest"),
        ("--seed 5", "manifest"),
        ("--max-attempts 11", "10"),
    ] {
        let (code, message) = refused(&format!("--nats {NOWHERE} {option}"));
        let name = option.split(' ').next().unwrap();
        assert_eq!(code, Some(2), "{option}: {message}");
        assert!(message.contains(&format!("{name} cannot be used with --nats")), "{message}");
        assert!(message.contains(suggestion), "{option}: {message}");
    }
}

#[test]
fn batch_that_cannot_reach_the_server_leaves_no_files() {
    let place = place();
    place.write("rows.jsonl", "\"a\"\n");
    let line = format!("batch ./m rows.jsonl -o out.jsonl --nats {NOWHERE}");
    let output = place.cog(line.split_whitespace()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let entries = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["m", "rows.jsonl"]);
}

#[test]
fn server_that_cannot_be_used_ends_the_batch() {
    let (code, message) = refused(&format!("--nats {NOWHERE}"));
    assert!(code == Some(1) && message.contains("E4001") && message.contains("127.0.0.1:1"), "{message}");
    let (code, message) = refused("--nats nats://me:sk-canary@localhost");
    assert!(code == Some(2) && !message.contains("canary"), "{message}");
}
