//! `--dedupe`: equal inputs run once.

use std::{process::Stdio, time::Duration};

use cog_testkit::{Mock, Reply};
use serde_json::Value;

use super::{ANSWER, batch, codes, inputs, model, place, results};
use crate::support::{Place, stderr};

fn output(place: &Place) -> Vec<Value> {
    lines(&place.read("out.jsonl"))
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns the row and the first row of each duplicate.
fn duplicates(results: &[Value]) -> Vec<(u64, u64)> {
    let pair = |result: &Value| Some((result["row"].as_u64()?, result["duplicate_of"].as_u64()?));
    results.iter().filter_map(pair).collect()
}

fn count(mock: &Mock, text: &str) -> usize {
    inputs(mock).iter().filter(|input| input.contains(text)).count()
}

#[test]
fn equal_inputs_run_once_and_each_row_has_a_result() {
    let (place, mock) = (place(), model());
    let rows = "{\"text\": \"[a]\"}\n{\"text\": \"[b]\"}\n{\"text\":\"[a]\"}\nno JSON\nno JSON\n{\"text\": \"[a]\"}\n";
    place.write("rows.jsonl", rows);
    for args in ["-o -", "-o - --order free", "-o out.jsonl", "-o free.jsonl --order free"] {
        let before = mock.requests().len();
        let args = format!("rows.jsonl --dedupe --summary s.json --max-failures 90% {args}");
        let run = batch(&place, &mock, &args).output().unwrap();
        let mut found = match args.split("-o ").nth(1).and_then(|rest| rest.split(' ').next()) {
            Some("-") | None => results(&run),
            Some(file) => lines(&place.read(file)),
        };
        found.sort_by_key(|result| result["row"].as_u64());
        assert_eq!(codes(&found), ["ok", "ok", "ok", "E1000", "E1000", "ok"], "{args}: {}", stderr(&run));
        assert_eq!(duplicates(&found), [(2, 0), (5, 0)], "{args}");
        assert_eq!((found[2]["data"].clone(), mock.requests().len() - before), (found[0]["data"].clone(), 2));
        assert_eq!(found[0]["meta"]["usage"]["input_tokens"], 12);
        assert_eq!(found[5]["meta"]["usage"], serde_json::json!({ "input_tokens": 0, "output_tokens": 0 }));
        let summary: Value = serde_json::from_str(&place.read("s.json")).unwrap();
        assert_eq!(summary["rows"]["duplicates"], 2);
        assert_eq!((&summary["rows"]["ok"], &summary["tokens"]["input"]), (&2.into(), &24.into()), "{args}");
        assert!(stderr(&run).contains("2 ok, 2 failed, 2 duplicates"), "{}", stderr(&run));
    }
    let run = batch(&place, &mock, "rows.jsonl -o -").output().unwrap();
    assert_eq!((duplicates(&results(&run)), mock.requests().len()), (vec![], 12), "not without --dedupe");
}

#[test]
fn duplicates_of_a_failed_row_fail_and_run_once_again() {
    let place = place();
    let mock = Mock::start([Reply::text("no JSON")]);
    place.write("rows.csv", "text\n[a]\n[a]\n\"[a]\"\n");
    let args = "rows.csv -o out.jsonl --dedupe --max-attempts 1";
    let run = batch(&place, &mock, args).output().unwrap();
    assert_eq!((run.status.code(), mock.requests().len()), (Some(1), 1), "{}", stderr(&run));
    assert_eq!(codes(&output(&place)), ["E1000"; 3]);
    assert_eq!(duplicates(&output(&place)), [(1, 0), (2, 0)]);
    let mock = model();
    let again = batch(&place, &mock, &format!("{args} --retry-failed")).output().unwrap();
    assert_eq!((again.status.code(), mock.requests().len()), (Some(0), 1), "{}", stderr(&again));
    assert_eq!((codes(&output(&place)), duplicates(&output(&place))), (vec!["ok"; 3], vec![(1, 0), (2, 0)]));
}

#[test]
fn condition_and_sample_count_duplicates_as_rows() {
    let (place, mock) = (place(), model());
    let rows: String =
        (0..30).map(|row| format!("{{\"text\": \"[a]\", \"count\": {}}}\n", row % 3)).collect();
    place.write("rows.jsonl", rows);
    let mut command = batch(&place, &mock, "rows.jsonl -o - --dedupe --sample 12 --where");
    let run = command.arg("$.count > 0").output().unwrap();
    let found = results(&run);
    assert_eq!(
        (found.len(), duplicates(&found).len(), mock.requests().len()),
        (12, 10, 2),
        "{}",
        stderr(&run)
    );
}

#[test]
fn killed_batch_sends_no_duplicate() {
    let place = place();
    let slow = Reply::text(ANSWER).usage(1, 2).delay(Duration::from_millis(5));
    let mock = Mock::start([slow]);
    // Each text is in three rows: two near each other, and one far away.
    let text = |row: usize| if row < 120 { row / 2 } else { row - 120 };
    let rows: String = (0..180).map(|row| format!("\"[{}]\"\n", text(row))).collect();
    place.write("rows.jsonl", rows);
    let mut starts = 0;
    let last = loop {
        let mut command =
            batch(&place, &mock, "rows.jsonl -o out.jsonl --dedupe --concurrency 3 --summary s.json");
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let goal = mock.requests().len() + 5 + starts % 3;
        starts += 1;
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break Some(status);
            }
            if mock.requests().len() >= goal {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        if status.is_some() {
            break child.wait_with_output().unwrap();
        }
    };
    assert!(last.status.success() && starts > 5, "{starts} {}", stderr(&last));
    let found = output(&place);
    assert_eq!(
        found.iter().map(|it| it["row"].as_u64().unwrap()).collect::<Vec<_>>(),
        Vec::from_iter(0..180)
    );
    let expected = (0..180_u64).filter_map(|row| match row {
        120.. => Some((row, (row - 120) * 2)),
        _ => (row % 2 == 1).then(|| (row, row - 1)),
    });
    assert_eq!(duplicates(&found), expected.collect::<Vec<_>>());
    let sent: Vec<usize> = (0..60).map(|text| count(&mock, &format!("[{text}]"))).collect();
    assert!(sent.iter().all(|times| *times >= 1), "{sent:?}");
    let again: usize = sent.iter().map(|times| times - 1).sum();
    // Three rows run at once, and on a busy machine as many results wait for the thread that writes them.
    assert!(again <= 6 * (starts - 1), "only rows in flight are sent again: {again} in {starts} starts");
}

#[test]
fn stored_result_that_is_damaged_is_not_copied() {
    let (place, mock) = (place(), model());
    // The first result is far from the end, where a batch that continues checks each line.
    let rows: String = (0..4200).map(|row| format!("\"[{row}]\"\n")).collect();
    place.write("rows.jsonl", format!("{rows}\"[0]\"\n"));
    let args = "rows.jsonl -o out.jsonl --dedupe --concurrency 32";
    assert!(batch(&place, &mock, &format!("{args} --sample 4200")).status().unwrap().success());
    let stored = place.read("out.jsonl.results");
    let at = stored.find("{\"row\":0,").unwrap();
    let mut damaged = stored.into_bytes();
    damaged[at + 1] = b'#';
    place.write("out.jsonl.results", damaged);
    let run = batch(&place, &mock, args).output().unwrap();
    assert_eq!(count(&mock, "[0]"), 2, "{}", stderr(&run));
    assert!(stderr(&run).contains("damaged results: 1, the first is of row 0"), "{}", stderr(&run));
    let again = batch(&place, &mock, args).output().unwrap();
    assert!(again.status.success(), "{}", stderr(&again));
    assert_eq!((output(&place).len(), codes(&output(&place))), (4201, vec!["ok"; 4201]));
}

#[test]
fn duplicates_of_a_row_that_was_not_answered_get_its_next_result() {
    let place = place();
    let mock = Mock::start([Reply::text(ANSWER).interrupt_after(60).when("[a]"), Reply::text(ANSWER)]);
    place.write("rows.jsonl", "\"[a]\"\n\"[b]\"\n\"[a]\"\n");
    let args = "rows.jsonl -o out.jsonl --dedupe --concurrency 1";
    let mut command = batch(&place, &mock, args);
    command.env("COG_RETRIES", "0").env("COG_BREAKER_FAILURES", "0");
    let run = command.output().unwrap();
    assert_eq!(codes(&output(&place)), ["E2010", "ok", "E2010"], "{}", stderr(&run));
    let mock = model();
    let again = batch(&place, &mock, args).output().unwrap();
    assert_eq!((again.status.code(), mock.requests().len()), (Some(0), 1), "{}", stderr(&again));
    assert_eq!((codes(&output(&place)), duplicates(&output(&place))), (vec!["ok"; 3], vec![(2, 0)]));
}
