//! A batch that was interrupted or killed continues, and no row is sent twice.

use std::{
    collections::BTreeMap,
    process::{Command, Stdio},
    time::Duration,
};

use cog_testkit::{Mock, Reply};
use serde_json::Value;

use super::{ANSWER, batch, codes, inputs, model, place};
use crate::support::{Place, snapshot, stderr};

/// Rows with these texts, `[3]`.
pub(super) fn rows(count: usize) -> String {
    (0..count).map(|row| format!("{{\"text\": \"[{row}]\"}}\n")).collect()
}

/// Returns how often each row was sent.
fn sent(mock: &Mock) -> BTreeMap<usize, usize> {
    let mut sent = BTreeMap::new();
    for input in inputs(mock) {
        *sent.entry(row_in(&input)).or_default() += 1;
    }
    sent
}

/// Returns the row whose input this is.
pub(super) fn row_in(input: &str) -> usize {
    let number = input.split('[').find_map(|part| part.split(']').next()?.parse().ok());
    number.unwrap_or_else(|| panic!("{input}"))
}

/// Returns the results of the output, without times.
pub(super) fn output(place: &Place) -> Vec<Value> {
    let parse = |line: &str| {
        let mut result: Value = serde_json::from_str(line).unwrap();
        result["meta"]["processing_time_ms"] = Value::Null;
        result
    };
    place.read("out.jsonl").lines().map(parse).collect()
}

fn has(place: &Place, file: &str) -> bool {
    place.path().join(file).exists()
}

#[test]
fn complete_batch_leaves_only_its_output() {
    let (place, mock) = (place(), model());
    place.write("rows.jsonl", rows(10));
    assert!(batch(&place, &mock, "rows.jsonl -o out.jsonl").status().unwrap().success());
    assert_eq!(
        output(&place).iter().map(|it| it["row"].as_u64().unwrap()).collect::<Vec<_>>(),
        Vec::from_iter(0..10)
    );
    assert!(!has(&place, "out.jsonl.journal") && !has(&place, "out.jsonl.results"));
    snapshot!("output_exists", batch(&place, &mock, "rows.jsonl -o out.jsonl"));
    assert_eq!(mock.requests().len(), 10);
    assert!(
        batch(&place, &mock, "rows.jsonl -o out.jsonl --force --keep-journal").status().unwrap().success()
    );
    assert!(has(&place, "out.jsonl.journal") && has(&place, "out.jsonl.results"));
    assert!(batch(&place, &mock, "rows.jsonl -o out.csv").status().unwrap().success());
    assert_eq!(place.read("out.csv").lines().count(), 11);
}

/// Returns the temporary files of the output.
fn temporary(place: &Place) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(place.path()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(".out.")).collect()
}

/// The command, which the kernel kills when a file becomes longer than this.
fn killed_at(command: &Command, bytes: u64) -> Command {
    let mut killed = Command::new("sh");
    killed.args(["-c", "ulimit -c 0 && ulimit -f $0 && exec \"$@\""]).arg((bytes / 512).to_string());
    killed.arg(command.get_program()).args(command.get_args()).env_clear();
    killed.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    killed.current_dir(command.get_current_dir().unwrap()).stdout(Stdio::null()).stderr(Stdio::null());
    killed
}

#[test]
fn batch_killed_while_its_output_is_written_leaves_the_old_one() {
    let place = place();
    let long = ANSWER.replace("It says so.", &"It says so. ".repeat(400));
    let mock = Mock::start([Reply::text(long)]);
    place.write("rows.jsonl", rows(120));
    for out in ["out.jsonl", "out.csv"] {
        let args = format!("rows.jsonl -o {out}");
        let first = batch(&place, &mock, &format!("{args} --keep-journal")).status().unwrap();
        let (complete, asked) = (place.read(out), mock.requests().len());
        assert!(first.success() && complete.len() > 500_000);
        place.write(out, "old");
        let mut seed = 7_u64;
        for _ in 0..6 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let bytes = (seed >> 8) % (complete.len() as u64 - 512);
            let died = killed_at(&batch(&place, &mock, &args), bytes).status().unwrap();
            assert_eq!(died.code(), None, "killed at {bytes} bytes");
            assert_eq!((place.read(out).as_str(), temporary(&place).len()), ("old", 1));
        }
        assert!(batch(&place, &mock, &args).status().unwrap().success());
        assert!(place.read(out) == complete, "{out}");
        assert!(temporary(&place).is_empty() && !has(&place, &format!("{out}.journal")));
        assert_eq!(mock.requests().len(), asked, "no row is sent again");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the journal is not text")]
fn batch_killed_after_its_output_was_complete_is_not_run_again() {
    let (place, mock) = (place(), model());
    place.write("rows.jsonl", rows(3));
    assert!(batch(&place, &mock, "rows.jsonl -o out.jsonl --keep-journal").status().unwrap().success());
    let mut journal = std::fs::read(place.path().join("out.jsonl.journal")).unwrap();
    journal[..8].copy_from_slice(b"cog-done");
    place.write("out.jsonl.journal", journal);
    let again = batch(&place, &mock, "rows.jsonl -o out.jsonl").output().unwrap();
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("out.jsonl exists already"), "{}", stderr(&again));
    assert!(!has(&place, "out.jsonl.journal") && !has(&place, "out.jsonl.results"));
    assert_eq!((output(&place).len(), mock.requests().len()), (3, 3));
}

#[test]
fn interrupted_batch_says_how_it_goes_on() {
    let place = place();
    let mock = Mock::start([Reply::text(ANSWER).delay(Duration::from_millis(20))]);
    place.write("rows.jsonl", rows(400));
    let mut command = batch(&place, &mock, "rows.jsonl -o out.jsonl --concurrency 2");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while mock.requests().len() < 10 {
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(Command::new("kill").arg("-INT").arg(child.id().to_string()).status().unwrap().success());
    let stopped = child.wait_with_output().unwrap();
    assert_eq!(stopped.status.code(), Some(130), "{}", stderr(&stopped));
    assert!(stderr(&stopped).contains("run the same command again"), "{}", stderr(&stopped));
    assert!(!has(&place, "out.jsonl") && has(&place, "out.jsonl.journal"));
    let continued = batch(&place, &mock, "rows.jsonl -o out.jsonl").output().unwrap();
    assert!(continued.status.success(), "{}", stderr(&continued));
    assert!(stderr(&continued).contains("rows have a result"), "{}", stderr(&continued));
    assert!(sent(&mock).values().all(|times| *times == 1), "rows that ran were finished");
    assert_eq!(output(&place).len(), 400);
}

#[test]
fn failed_rows_run_again_only_if_requested() {
    let place = place();
    let mock = Mock::start([Reply::text(ANSWER), Reply::text("no JSON").when("[3]")]);
    place.write("rows.jsonl", rows(6));
    let args = "rows.jsonl -o out.jsonl --max-attempts 1";
    let run = |mock: &Mock, more: &str| batch(&place, mock, &format!("{args} {more}")).output().unwrap();
    assert_eq!(run(&mock, "").status.code(), Some(1));
    assert_eq!(codes(&output(&place)), ["ok", "ok", "ok", "E1000", "ok", "ok"]);
    assert_eq!((run(&mock, "").status.code(), mock.requests().len()), (Some(1), 6));
    let mock = model();
    let again = run(&mock, "--retry-failed");
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    assert_eq!((codes(&output(&place)), sent(&mock)), (vec!["ok"; 6], BTreeMap::from([(3, 1)])));
    assert!(!has(&place, "out.jsonl.journal"));
}

#[test]
fn sample_goes_on_without_it() {
    let (place, mock) = (place(), model());
    place.write("rows.jsonl", rows(20));
    assert!(batch(&place, &mock, "rows.jsonl -o out.jsonl --sample 5").status().unwrap().success());
    assert_eq!(output(&place).len(), 5);
    assert!(batch(&place, &mock, "rows.jsonl -o out.jsonl").status().unwrap().success());
    assert_eq!((output(&place).len(), mock.requests().len()), (20, 20));
}

#[test]
fn changed_batch_is_refused_unless_changes_are_allowed() {
    let (place, mock) = (place(), model());
    place.write("rows.jsonl", rows(20));
    let run = |args: &str| batch(&place, &mock, &format!("rows.jsonl -o out.jsonl {args}"));
    assert!(run("--sample 5").status().unwrap().success());
    snapshot!("changed_model", run("--model other"));
    place.write("m/prompt.md", "Label the text well.");
    let output = run("").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("module files: "), "{}", stderr(&output));
    place.write("m/prompt.md", "Label the text.");
    place.write("rows.jsonl", rows(20).replace("[2]", "[x]"));
    let output = run("").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("row 2 of the input has changed"), "{}", stderr(&output));
    place.write("rows.jsonl", rows(21));
    snapshot!("changed_input", run(""));
    assert_eq!(mock.requests().len(), 5);
    assert!(run("--allow-changes --model other --keep-journal").status().unwrap().success());
    assert_eq!(mock.requests().len(), 21);
    let output = run("").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "the journal is that of the batch which was accepted last");
    assert!(stderr(&output).contains("model: `openai/other` in the journal"), "{}", stderr(&output));
    assert!(run("--model other").status().unwrap().success());
    assert_eq!(mock.requests().len(), 21);
}

#[test]
fn changed_part_is_noticed() {
    let (place, mock) = (place(), model());
    place.write("rows.jsonl", rows(3)).write("m/prompt.md", "@call:part\n\nLabel the text.");
    for file in ["module.yaml", "schema.json"] {
        let text = place.read(&format!("m/{file}")).replace("name: m", "name: part");
        place.write(&format!("cognitive/modules/part/{file}"), text);
    }
    place.write("cognitive/modules/part/prompt.md", "Read the text.");
    let run = |args: &str| batch(&place, &mock, &format!("rows.jsonl -o out.jsonl {args}")).output().unwrap();
    let first = run("--sample 1");
    assert_eq!((first.status.code(), mock.requests().len()), (Some(0), 2), "{}", stderr(&first));
    place.write("cognitive/modules/part/prompt.md", "Read the text well.");
    let refused = run("");
    assert_eq!((refused.status.code(), mock.requests().len()), (Some(2), 2), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("parts: `part 1.0.0 "), "{}", stderr(&refused));
    place.write("cognitive/modules/part/prompt.md", "Read the text.");
    assert_eq!((run("").status.code(), mock.requests().len()), (Some(0), 6));
}

#[test]
fn journal_in_use_is_refused() {
    let place = place();
    let mock = Mock::start([Reply::text(ANSWER).delay(Duration::from_secs(3))]);
    place.write("rows.jsonl", rows(2));
    let mut command = batch(&place, &mock, "rows.jsonl -o out.jsonl");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    while mock.requests().is_empty() {
        std::thread::sleep(Duration::from_millis(2));
    }
    snapshot!("journal_in_use", batch(&place, &mock, "rows.jsonl -o out.jsonl"));
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Returns the label of each row of the output, by the texts of the rows.
fn answered(place: &Place) -> Vec<(u64, String)> {
    let label = |result: &Value| result["data"]["rationale"].as_str().unwrap_or_default().to_owned();
    output(place).iter().map(|result| (result["row"].as_u64().unwrap(), label(result))).collect()
}

/// A model whose rationale is the text of the row.
fn telling_model(texts: &[&str]) -> Mock {
    let reply = |text: &&str| Reply::text(ANSWER.replace("It says so.", text)).when(format!("[{text}]"));
    Mock::start(texts.iter().map(reply))
}

fn texts(texts: &[&str]) -> String {
    texts.iter().map(|text| format!("{{\"text\": \"[{text}]\"}}\n")).collect()
}

fn expected(texts: &[&str]) -> Vec<(u64, String)> {
    (0..).zip(texts).map(|(row, text)| (row, (*text).to_owned())).collect()
}

#[test]
fn result_follows_its_row_when_the_input_changes() {
    let place = place();
    let mock = telling_model(&["a", "b", "c", "d", "x", "y"]);
    let run = |rows: &[&str], args: &str| {
        place.write("rows.jsonl", texts(rows));
        let args = format!("rows.jsonl -o out.jsonl --keep-journal {args}");
        let output = batch(&place, &mock, &args).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stderr(&output)
    };
    run(&["a", "b", "c"], "");
    for (rows, asked) in [
        (&["x", "a", "b", "c"][..], 4),  // inserted
        (&["x", "a", "y", "c"], 5),      // replaced
        (&["c", "y", "a", "x"], 5),      // in another order
        (&["y", "a"], 5),                // removed
        (&["x", "c", "b", "d", "y"], 6), // what was there before comes back
    ] {
        let said = run(rows, "--allow-changes");
        assert_eq!((answered(&place), mock.requests().len()), (expected(rows), asked), "{said}");
    }
    let said = run(&["d", "x", "c", "b", "y"], "--allow-changes --where $.text!='[x]'");
    let without: Vec<_> =
        expected(&["d", "x", "c", "b", "y"]).into_iter().filter(|(row, _)| *row != 1).collect();
    assert_eq!((answered(&place), mock.requests().len()), (without, 6), "{said}");
}

#[test]
fn end_says_how_many_rows_ran_again() {
    let place = place();
    let mock = telling_model(&["a", "b", "c", "x"]);
    place.write("rows.jsonl", texts(&["a", "b", "c"]));
    assert!(
        batch(&place, &mock, "rows.jsonl -o out.jsonl --sample 3 --keep-journal").status().unwrap().success()
    );
    place.write("rows.jsonl", texts(&["x", "a", "c"]));
    let args = "rows.jsonl -o out.jsonl --allow-changes --summary summary.json --concurrency 1";
    let output = batch(&place, &mock, args).output().unwrap();
    let said = stderr(&output);
    assert!(said.contains("2 with an earlier result, 1 run again because their row has changed"), "{said}");
    let summary: Value = serde_json::from_str(&place.read("summary.json")).unwrap();
    assert_eq!((&summary["rows"]["earlier"], &summary["rows"]["changed"]), (&2.into(), &1.into()));
}

#[test]
fn input_is_the_same_by_another_path() {
    let (place, mock) = (place(), model());
    place.write("rows.jsonl", rows(6)).write("inner/there", "");
    assert!(batch(&place, &mock, "rows.jsonl -o out.jsonl --sample 2").status().unwrap().success());
    let absolute = place.path().join("rows.jsonl");
    let output =
        batch(&place, &mock, &format!("{} -o out.jsonl --sample 4", absolute.display())).output().unwrap();
    assert_eq!((output.status.code(), mock.requests().len()), (Some(0), 4), "{}", stderr(&output));
    let output = batch(&place, &mock, "inner/../rows.jsonl -o ./out.jsonl").output().unwrap();
    assert_eq!((output.status.code(), mock.requests().len()), (Some(0), 6), "{}", stderr(&output));
}

#[test]
fn columns_under_other_names_are_another_input() {
    let (place, mock) = (place(), model());
    place.write("rows.csv", "text,other\nred,blue\ngreen,grey\n");
    let args = "rows.csv -o out.jsonl --ignore-unknown --keep-journal";
    assert!(batch(&place, &mock, &format!("{args} --sample 1")).status().unwrap().success());
    place.write("rows.csv", "other,text\nred,blue\ngreen,grey\n");
    let refused = batch(&place, &mock, args).output().unwrap();
    assert!(stderr(&refused).contains("row 0 of the input has changed"), "{}", stderr(&refused));
    assert!(batch(&place, &mock, &format!("{args} --allow-changes")).status().unwrap().success());
    assert_eq!((inputs(&mock).len(), inputs(&mock)[1].contains("blue")), (3, true));
}

#[test]
fn id_follows_its_row_and_may_be_added_later() {
    let (place, mock) = (place(), model());
    let run = |rows: &str, args: &str| {
        place.write("rows.csv", format!("key,text\n{rows}"));
        let args = format!("rows.csv -o out.jsonl --keep-journal --allow-changes {args}");
        let output = batch(&place, &mock, &args).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let ids = self::output(&place).into_iter().map(|result| result["id"].clone());
        (Vec::from_iter(ids), mock.requests().len())
    };
    let null = Value::Null;
    assert_eq!(run("k1,one\nk2,two\n", "--ignore-unknown"), (vec![null.clone(), null], 2));
    assert_eq!(run("k1,one\nk2,two\n", "--id key"), (vec!["k1".into(), "k2".into()], 2));
    let ids = vec!["k0".into(), "k2".into(), "k1".into()];
    assert_eq!(run("k0,new\nk2,two\nk1,one\n", "--id key"), (ids, 3));
    let (ids, asked) = run("k0,new\nk2,two\nk1,one\n", "--ignore-unknown");
    assert_eq!((ids, asked), (vec![Value::Null; 3], 3), "the option was taken away");
    // Another key makes another row, whose result would have the wrong one.
    assert_eq!(run("k9,new\nk2,two\nk1,one\n", "--ignore-unknown").1, 4);
}

#[test]
fn batch_with_a_journal_that_is_kept_is_complete() {
    let (place, mock) = (place(), model());
    place.write("rows.jsonl", rows(4));
    let state = || {
        let json = place.cog(["batch", "status", "out.jsonl", "--format", "json"]).output().unwrap();
        let text = place.cog(["batch", "status", "out.jsonl", "--format", "human"]).output().unwrap();
        let found: Value = serde_json::from_slice(&json.stdout).unwrap();
        let text = String::from_utf8(text.stdout).unwrap();
        (found["state"].as_str().unwrap().to_owned(), found["rows"]["done"].clone(), text)
    };
    let run = |args: &str| {
        let args = format!("rows.jsonl -o out.jsonl --keep-journal {args}");
        assert!(batch(&place, &mock, &args).status().unwrap().success());
    };
    run("--sample 3");
    assert!(
        matches!(state(), (state, done, text) if state == "stopped" && done == 3 && text.contains("stopped"))
    );
    run("");
    assert!(
        matches!(state(), (state, done, text) if state == "complete" && done == 4 && text.contains("complete"))
    );
    // The note at the end of the journal does not change what continues.
    run("--summary summary.json");
    assert_eq!((state().0.as_str(), mock.requests().len()), ("complete", 4));
    let summary: Value = serde_json::from_str(&place.read("summary.json")).unwrap();
    assert_eq!(
        (&summary["module"], &summary["input"], &summary["output"], &summary["rows"]["earlier"]),
        (&"m 1.0.0".into(), &"rows.jsonl".into(), &"out.jsonl".into(), &4.into())
    );
    assert!(summary["model"].as_str().unwrap().starts_with("openai/"), "{summary}");
    assert_eq!(summary["started_at"].as_str().unwrap().len(), "2026-01-01T00:00:00Z".len());
    place.write("rows.jsonl", rows(6));
    run("--sample 5 --allow-changes");
    assert_eq!(state().0, "stopped");
}
