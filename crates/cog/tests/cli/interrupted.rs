//! `cog run --state-dir`: a composition that is interrupted continues with the parts that are done.

use std::{
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use cog_testkit::{Mock, Wire};
use serde_json::Value;

use crate::{
    review_model::{PARTS, calls, model},
    support::{Place, json, snapshot, stderr},
};

/// A pause between the chunks of a reply that leaves time for a signal.
const SLOW: Duration = Duration::from_millis(20);

fn cog(place: &Place, mock: &Mock, args: &[&str]) -> Command {
    let mut command = place.cog(args.iter().copied());
    command.env("OPENAI_API_KEY", "none").env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi));
    command
}

fn run(place: &Place, mock: &Mock, more: &[&str]) -> Command {
    let args = ["run", "review-pipeline", "--input-json", r#"{"code": "def f(u): return db.query(u)"}"#];
    let mut command = cog(place, mock, &args);
    command.args(["--state-dir", "state"]).args(more);
    command
}

/// Starts a run, and sends this signal when the parts after the first are called.
fn interrupt(mut command: Command, mock: &Mock, signal: &str) -> Output {
    let child: Child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while calls(mock)[1..3] == [0, 0] {
        std::thread::sleep(Duration::from_millis(2));
    }
    let sent = Command::new("kill").arg(format!("-{signal}")).arg(child.id().to_string()).status();
    assert!(sent.unwrap().success());
    child.wait_with_output().unwrap()
}

/// Returns the arguments of the command that a message shows.
fn shown(output: &Output) -> Vec<String> {
    let text = stderr(output);
    let command = text.rsplit("`cog ").next().unwrap_or_else(|| panic!("{text}"));
    let command = command.split('`').next().unwrap();
    command.split(' ').map(str::to_owned).collect()
}

fn files(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.path().join("state/runs")).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Interrupts a run with this signal, and continues it with the command that it showed.
fn interrupt_and_continue(signal: &str, more: &[&str]) {
    let (place, mock) = (Place::new(), model(SLOW));
    let interrupted = interrupt(run(&place, &mock, more), &mock, signal);
    if signal == "INT" {
        assert_eq!(interrupted.status.code(), Some(130), "{}", stderr(&interrupted));
    }
    let args = shown(&interrupted);
    assert_eq!((args[0].as_str(), files(&place).len()), ("run", 1), "{}", stderr(&interrupted));
    let before = calls(&mock);
    assert_eq!(before[0], 1);

    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let continued = cog(&place, &mock, &args).output().unwrap();
    let answer = json(&continued);
    assert_eq!(answer["data"]["verdict"], "reject", "{}", stderr(&continued));
    let after = calls(&mock);
    assert_eq!(after[0], 1, "the part that was done ran again");
    assert!(after.iter().zip(before).all(|(after, before)| after - before <= 1), "{after:?}");
    let restored = |part: &str| {
        let parts = answer["meta"]["parts"].as_array().unwrap();
        parts.iter().find(|report| report["path"] == part).unwrap()["restored"].clone()
    };
    assert_eq!((restored(PARTS[0]), restored(PARTS[3])), (Value::Bool(true), Value::Null));
    assert_eq!(files(&place), [""; 0], "the file of a run that has ended is removed");
    let again = cog(&place, &mock, &args).output().unwrap();
    assert_eq!(json(&again)["error"]["code"], "E4013");
}

#[test]
fn ctrl_c_leaves_a_run_that_continues() {
    interrupt_and_continue("INT", &[]);
    interrupt_and_continue("INT", &["--stream"]);
}

#[test]
fn killed_run_continues() {
    interrupt_and_continue("KILL", &[]);
    interrupt_and_continue("KILL", &["--stream"]);
}

#[test]
fn run_that_ends_leaves_no_file() {
    let (place, mock) = (Place::new(), model(Duration::ZERO));
    let output = run(&place, &mock, &["--stream"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        !String::from_utf8_lossy(&output.stdout).contains("\"answer\":"),
        "readers receive no answer of a part"
    );
    assert_eq!(files(&place), [""; 0]);
}

#[test]
fn runs_that_cannot_continue() {
    let place = Place::new();
    let id = "sess_00000000000000000000000000000000";
    snapshot!("unknown_run", place.cog(["run", "--continue", id, "--state-dir", "state"]));
    snapshot!("run_without_its_directory", place.cog(["run", "--continue", id]));
    snapshot!("run_with_a_decision", place.cog(["run", "--continue", id, "--state-dir", "state", "--deny"]));
}
