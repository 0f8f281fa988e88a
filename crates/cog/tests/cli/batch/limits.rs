//! The limits of a batch: concurrency, overload, cost and failures.

use cog_testkit::{Mock, Reply};

use super::{ANSWER, batch, codes, model, place, results};
use crate::support::{snapshot, stderr};

/// Rows with these texts.
fn rows(count: usize) -> String {
    (0..count).map(|row| format!("\"row {row}\"\n")).collect()
}

#[test]
fn overload_delays_rows_and_fails_none() {
    let place = place();
    let busy = || Reply::error(429, "slow down").header("retry-after-ms", "40");
    let replies = (0..12).map(|_| busy()).chain([Reply::text(ANSWER)]);
    let mock = Mock::start(replies);
    place.write("rows.jsonl", rows(30));
    let mut command = batch(&place, &mock, "rows.jsonl -o -");
    let output = command.env("COG_RETRIES", "0").env("COG_BREAKER_FAILURES", "0").output().unwrap();
    assert_eq!(codes(&results(&output)), vec!["ok"; 30], "{}", stderr(&output));
    assert_eq!(mock.requests().len(), 42);
    assert!(
        stderr(&output).contains("12 repeated because the provider was overloaded"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn provider_that_fails_every_row_stops_the_batch() {
    let place = place();
    let mock = Mock::start([Reply::error(401, "the key is wrong")]);
    place.write("rows.jsonl", rows(500));
    snapshot!("wrong_key", batch(&place, &mock, "rows.jsonl -o out.jsonl --concurrency 1"));
    let mock = model();
    assert!(batch(&place, &mock, "rows.jsonl -o out.jsonl").status().unwrap().success());
    assert_eq!(mock.requests().len(), 500, "no row has a result that the provider failed");
}

#[test]
fn provider_that_fails_some_rows_fails_no_others() {
    let place = place();
    let failures = |count| (0..count).map(|_| Reply::error(401, "the key is wrong"));
    let mock = Mock::start(failures(19).chain([Reply::text(ANSWER)]).chain(failures(2)));
    place.write("rows.jsonl", rows(22));
    let output = batch(&place, &mock, "rows.jsonl -o out.jsonl --concurrency 1").output().unwrap();
    assert!(stderr(&output).contains("1 ok, 21 failed"), "{}", stderr(&output));
    assert!(stderr(&output).contains("the same command with --retry-failed"), "{}", stderr(&output));
    let output = batch(&place, &mock, "rows.jsonl -o out.jsonl").output().unwrap();
    assert!(stderr(&output).contains("22 with an earlier result (21 failed)"), "{}", stderr(&output));
    let mock = model();
    assert!(batch(&place, &mock, "rows.jsonl -o out.jsonl --retry-failed").status().unwrap().success());
    assert_eq!(mock.requests().len(), 21);
}

#[test]
fn too_many_failures_stop_the_batch() {
    let place = place();
    let mock = Mock::start([Reply::text("no JSON")]);
    place.write("rows.jsonl", rows(500));
    let args = "rows.jsonl -o - --max-failures 3 --concurrency 1 --max-attempts 1 --summary s.json";
    let output = batch(&place, &mock, args).output().unwrap();
    assert_eq!((results(&output).len(), output.status.code()), (4, Some(4)));
    assert!(
        stderr(&output).contains("4 of 4 rows have failed, and --max-failures is 3"),
        "{}",
        stderr(&output)
    );
    assert!(place.read("s.json").contains("\"stopped\": \"max_failures\""));
}

#[test]
fn cost_is_limited() {
    let (place, mock) = (place(), Mock::start([Reply::text(ANSWER).usage(1_000_000, 0)]));
    place.write("rows.jsonl", rows(100));
    snapshot!("unknown_price", batch(&place, &mock, "rows.jsonl -o - --max-cost 5"));
    assert_eq!(mock.requests().len(), 0);
    for invalid in ["0", "-1", "NaN", "much"] {
        let output =
            batch(&place, &model(), &format!("rows.jsonl -o - --max-cost {invalid}")).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{invalid}");
    }
}

#[test]
fn cut_connections_are_tried_again_like_refused_ones() {
    let place = place();
    let cut = || Reply::text(ANSWER).interrupt_after(60);
    // Each row is cut once, and one of them always.
    let mock =
        Mock::start([cut().when("row 3"), cut(), cut(), Reply::text(ANSWER), cut(), Reply::text(ANSWER)]);
    place.write("rows.jsonl", rows(6));
    let args = "rows.jsonl -o out.jsonl --concurrency 1 --summary s.json";
    let mut command = batch(&place, &mock, args);
    let output = command.env("COG_RETRIES", "0").env("COG_BREAKER_FAILURES", "0").output().unwrap();
    let lines: Vec<serde_json::Value> =
        place.read("out.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(codes(&lines), ["ok", "ok", "ok", "E2010", "ok", "ok"], "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(1));
    let summary: serde_json::Value = serde_json::from_str(&place.read("s.json")).unwrap();
    assert_eq!(summary["rows"]["unanswered"], 1, "{summary}");
    assert!(
        stderr(&output).contains("runs the row again that the provider did not answer"),
        "{}",
        stderr(&output)
    );
    // Nothing is wrong with the row, so the same command runs it again.
    let mock = model();
    let again = batch(&place, &mock, args).output().unwrap();
    assert_eq!((again.status.code(), mock.requests().len()), (Some(0), 1), "{}", stderr(&again));
}

#[test]
fn provider_that_cuts_every_answer_stops_the_batch() {
    let place = place();
    let mock = Mock::start([Reply::text(ANSWER).interrupt_after(60)]);
    place.write("rows.jsonl", rows(500));
    let mut command = batch(&place, &mock, "rows.jsonl -o out.jsonl --concurrency 64 --summary s.json");
    let output = command.env("COG_RETRIES", "0").env("COG_BREAKER_FAILURES", "0").output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(place.read("s.json").contains("\"stopped\": \"provider\""), "{}", place.read("s.json"));
    assert!(mock.requests().len() < 400, "{}", mock.requests().len());
    let mock = model();
    assert!(batch(&place, &mock, "rows.jsonl -o out.jsonl").status().unwrap().success());
    assert_eq!(mock.requests().len(), 500, "no row has a result that was cut");
}
