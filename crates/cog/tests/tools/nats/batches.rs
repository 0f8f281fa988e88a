//! `cog batch --nats`: the rows are jobs.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use cog_testkit::{Mock, Reply};
use serde_json::Value;

use super::{ANSWER, Client, Nats, Working, cog, eventually, place};

/// Writes the rows, and returns the command.
fn batch(place: &Path, mock: &Mock, nats: &Nats, rows: usize, args: &[&str]) -> Command {
    let lines = (0..rows).map(|row| format!("{{\"query\":\"row {row}.\"}}\n"));
    std::fs::write(place.join("rows.jsonl"), lines.collect::<String>()).unwrap();
    let mut command =
        cog(place, mock, &["batch", "m", "rows.jsonl", "-o", "out.jsonl", "--nats", &nats.url()]);
    // The batch calls no provider, so it needs no key.
    command.env_remove("OPENAI_API_KEY").env_remove("LLM_PROVIDER").args(args);
    command
}

fn worker(place: &Path, mock: &Mock, nats: &Nats) -> Working {
    Working::start(cog(place, mock, &["worker", "--concurrency", "4", "--nats", &nats.url()]))
}

/// Starts a command in the background.
fn start(mut command: Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn results(place: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(place.join("out.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn messages(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Checks that every row has one result, in the order of the input.
fn assert_complete(place: &Path, rows: usize) {
    let found: Vec<_> = results(place).iter().map(|result| result["row"].as_u64().unwrap()).collect();
    assert_eq!(found, (0..rows as u64).collect::<Vec<_>>());
}

/// A reply that names its row, a moment later.
fn answers() -> [Reply; 1] {
    [Reply::text(ANSWER).usage(7, 5).delay(Duration::from_millis(30))]
}

#[test]
fn rows_survive_a_killed_worker_and_a_killed_batch() {
    const ROWS: usize = 200;
    let (nats, place, mock) = (Nats::start(), place(), Mock::start(answers()));
    let client = Client::new(&nats);
    let mut killed = worker(place.path(), &mock, &nats);
    let other = worker(place.path(), &mock, &nats);
    let args = ["--concurrency", "40", "--keep-journal"];
    let first = start(batch(place.path(), &mock, &nats, ROWS, &args));
    eventually("no row runs", || (mock.requests().len() >= 40).then_some(()));
    killed.child.kill().unwrap();
    eventually("the rows stop", || (mock.requests().len() >= 90).then_some(()));
    kill(first);
    let output = batch(place.path(), &mock, &nats, ROWS, &args).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", messages(&output));
    assert!(messages(&output).contains("continuing: "), "{}", messages(&output));
    assert_complete(place.path(), ROWS);
    client.all_done();
    // The worker that was killed may have paid for the four jobs that it ran.
    let asked = mock.requests().len();
    assert!((ROWS..=ROWS + 4).contains(&asked), "{asked}");
    assert!(other.stop().contains("0 dead-lettered"));
    assert_eq!(client.messages("cog-jobs"), Some(0));
}

#[test]
fn batch_says_that_no_worker_takes_jobs() {
    let (nats, place, mock) = (Nats::start(), place(), Mock::start(answers()));
    let mut waiting = start(batch(place.path(), &mock, &nats, 3, &[]));
    let mut lines = BufReader::new(waiting.stderr.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.find(|line| line.contains("no worker takes jobs"));
    assert!(line.unwrap().contains("`cog worker --nats`"));
    let worker = worker(place.path(), &mock, &nats);
    assert_eq!(lines.filter(|line| line.contains("failed")).count(), 1, "the summary");
    assert_eq!(waiting.wait().unwrap().code(), Some(0));
    drop(worker.stop());
}

#[test]
fn result_is_the_envelope_of_the_worker() {
    let (nats, place) = (Nats::start(), place());
    let mock = Mock::start([
        Reply::error(400, "the prompt is wrong").when("row 1."),
        Reply::text(ANSWER).usage(7, 5),
    ]);
    let worker = worker(place.path(), &mock, &nats);
    let mut command =
        batch(place.path(), &mock, &nats, 2, &["--summary", "summary.json", "--model", "gpt-5.4"]);
    let rows = "{\"query\":\"row 0.\"}\n{\"query\":\"row 1.\"}\n\"a text\"\n{\"query\":7}\nno JSON\n";
    std::fs::write(place.path().join("rows.jsonl"), rows).unwrap();
    let output = command.output().unwrap();
    let found = results(place.path());
    let codes: Vec<_> = found.iter().map(|it| it["error"]["code"].as_str().unwrap_or("ok")).collect();
    assert_eq!(codes, ["ok", "E4001", "ok", "E1003", "E1000"], "{}", messages(&output));
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(found[0]["data"]["result"], "fine");
    assert_eq!(mock.requests()[0].body["model"], "gpt-5.4");
    let summary: Value =
        serde_json::from_str(&std::fs::read_to_string(place.path().join("summary.json")).unwrap()).unwrap();
    assert_eq!((&summary["rows"]["ok"], &summary["tokens"]["input"]), (&2.into(), &14.into()));
    drop(worker.stop());
}

#[test]
fn failed_rows_are_jobs_again_and_others_are_not() {
    let (nats, place) = (Nats::start(), place());
    let mock = Mock::start([Reply::error(400, "the prompt is wrong").when("row 1."), Reply::text(ANSWER)]);
    let failing = worker(place.path(), &mock, &nats);
    let output = batch(place.path(), &mock, &nats, 3, &[]).output().unwrap();
    assert_eq!((output.status.code(), mock.requests().len()), (Some(1), 3), "{}", messages(&output));
    drop(failing.stop());
    let good = Mock::start([Reply::text(ANSWER)]);
    let worker = worker(place.path(), &good, &nats);
    let output = batch(place.path(), &good, &nats, 3, &["--retry-failed"]).output().unwrap();
    assert_eq!((output.status.code(), good.requests().len()), (Some(0), 1), "{}", messages(&output));
    assert_complete(place.path(), 3);
    drop(worker.stop());
    assert!(!place.path().join("out.jsonl.jobs").exists(), "the batch is complete");
}

#[test]
fn job_that_is_dead_lettered_is_a_failed_row() {
    let (nats, place) = (Nats::start(), place());
    let mock = Mock::start([Reply::error(429, "slow down").when("row 1."), Reply::text(ANSWER)]);
    let mut command = cog(place.path(), &mock, &["worker", "--nats", &nats.url()]);
    command.env("COG_NATS_MAX_DELIVERIES", "2");
    let worker = Working::start(command);
    let output = batch(place.path(), &mock, &nats, 3, &[]).output().unwrap();
    let found = results(place.path());
    assert_eq!(found[1]["error"]["code"], "E4002", "{}", messages(&output));
    assert_eq!((&found[0]["ok"], &found[2]["ok"]), (&true.into(), &true.into()));
    assert!(worker.stop().contains("1 dead-lettered"));
}

#[test]
fn batch_goes_on_when_nats_is_back_also_without_its_jobs() {
    for forgets in [false, true] {
        let (mut nats, place) = (Nats::start(), place());
        let mock = Mock::start(answers());
        let child = start(batch(place.path(), &mock, &nats, 20, &["--concurrency", "20"]));
        {
            let client = Client::new(&nats);
            eventually("no jobs", || (client.messages("cog-jobs")? == 20).then_some(()));
        }
        nats.kill();
        if forgets {
            nats.forget();
        }
        nats.run();
        let worker = worker(place.path(), &mock, &nats);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", messages(&output));
        assert_complete(place.path(), 20);
        assert_eq!(mock.requests().len(), 20, "each row is asked once");
        drop(worker.stop());
    }
}

#[test]
fn job_over_the_limit_of_the_server_is_a_failed_row() {
    let (nats, place) = (Nats::start(), place());
    let mock = Mock::start([Reply::text(ANSWER)]);
    let worker = worker(place.path(), &mock, &nats);
    let mut command = batch(place.path(), &mock, &nats, 0, &[]);
    let rows = format!("{{\"query\":\"{}\"}}\n{{\"query\":\"short\"}}\n", "x".repeat(2 << 20));
    std::fs::write(place.path().join("rows.jsonl"), rows).unwrap();
    let output = command.output().unwrap();
    let found = results(place.path());
    assert_eq!(found[0]["error"]["code"], "E1005", "{}", messages(&output));
    assert!(found[0]["error"]["suggestion"].as_str().unwrap().contains("max_payload"), "{}", found[0]);
    assert_eq!(found[1]["ok"], true);
    drop(worker.stop());
}

#[test]
fn jobs_of_a_batch_are_counted_and_withdrawn() {
    let (nats, place, mock) = (Nats::start(), place(), Mock::start(answers()));
    let client = Client::new(&nats);
    client.publish(Some("other.1"), r#"{"module":"m","input":{"query":"other"}}"#);
    let child = start(batch(place.path(), &mock, &nats, 20, &["--concurrency", "20"]));
    eventually("no jobs", || (client.messages("cog-jobs")? == 21).then_some(()));
    let about = |args: &[&str]| cog(place.path(), &mock, args).output().unwrap();
    let running = about(&["batch", "status", "out.jsonl", "--format", "json"]);
    let running: Value = serde_json::from_slice(&running.stdout).unwrap();
    assert_eq!((&running["state"], &running["queued"]), (&"running".into(), &20.into()), "{running}");
    kill(child);
    let cancelled = about(&["batch", "cancel", "out.jsonl"]);
    assert!(messages(&cancelled).contains("removed 20 jobs"), "{}", messages(&cancelled));
    assert_eq!(client.messages("cog-jobs"), Some(1), "the job of another batch stays");
    let stopped = about(&["batch", "status", "out.jsonl"]);
    assert!(String::from_utf8_lossy(&stopped.stdout).contains("queue   0 jobs"), "{}", messages(&stopped));
    let worker = worker(place.path(), &mock, &nats);
    let output = batch(place.path(), &mock, &nats, 20, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", messages(&output));
    assert_complete(place.path(), 20);
    drop(worker.stop());
}
