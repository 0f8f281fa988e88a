//! `cog run --state-dir`: a composition that is interrupted continues with the parts that are done.

use std::{
    process::{Child, Command, Output, Stdio},
    time::Duration,
};

use cog_testkit::{Mock, Reply, Wire};
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
fn interrupt(command: Command, mock: &Mock, signal: &str) -> Output {
    interrupt_when(command, signal, || calls(mock)[1..3] != [0, 0])
}

/// Starts a run, and sends this signal when it is so far.
fn interrupt_when(mut command: Command, signal: &str, is_so_far: impl Fn() -> bool) -> Output {
    let child: Child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !is_so_far() {
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

const ANSWER: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "Fine."},
    "data": {"answer": "fine", "rationale": "Nothing was unclear."}, "error": null}"#;

/// Returns a place with the module `m`, which may call the module `helper`.
fn with_tool() -> Place {
    let place = Place::new();
    place.write("cognitive/modules/.keep", "");
    for name in ["m", "helper"] {
        assert!(place.cog(["new", name]).output().unwrap().status.success());
    }
    let tools = "policies: { tools_allowed: true }\ntools: { allowed: [helper] }\n";
    let manifest = place.read("cognitive/modules/m/module.yaml");
    place.write("cognitive/modules/m/module.yaml", manifest + tools);
    place
}

/// Returns a model that calls the tool, and is interrupted in its answer after the result.
fn calling() -> Mock {
    let call = Reply::tool_calls([("helper", r#"{"query": "how?"}"#)]);
    let slow = Reply::text(ANSWER).chunk_size(24).pause(SLOW);
    Mock::start([call, Reply::text(ANSWER), slow, Reply::text(ANSWER)])
}

/// Continues a run with the command that it showed, and checks that its tool call does not run again.
fn continue_after_the_call(place: &Place, mock: &Mock, interrupted: &Output) {
    assert_eq!(mock.requests().len(), 3);
    let args = shown(interrupted);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let continued = cog(place, mock, &args).output().unwrap();
    assert_eq!(json(&continued)["data"]["answer"], "fine", "{}", stderr(&continued));
    let requests = mock.requests();
    assert_eq!(requests.len(), 4, "the tool call was executed again");
    assert_eq!(requests[3].body["messages"], requests[2].body["messages"]);
}

#[test]
fn run_with_tools_continues_after_its_calls() {
    for signal in ["INT", "KILL"] {
        let (place, mock) = (with_tool(), calling());
        let run = cog(&place, &mock, &["run", "m", "--args", "why?", "--state-dir", "state"]);
        let interrupted = interrupt_when(run, signal, || mock.requests().len() == 3);
        continue_after_the_call(&place, &mock, &interrupted);
        assert_eq!(files(&place), [""; 0], "the files of a run that has ended are removed");
    }
}

#[test]
fn confirmed_run_that_is_interrupted_continues() {
    for (signal, state) in [("KILL", &["--state-dir", "state"][..]), ("KILL", &[]), ("INT", &[])] {
        let (place, mock) = (with_tool(), calling());
        let cog = |args: &[&str]| {
            let mut command = cog(&place, &mock, args);
            command.env("COG_TOOLS_CONFIRM", "helper");
            command
        };
        let halted = json(&cog(&["run", "m", "--args", "why?"]).output().unwrap());
        let id = halted["error"]["details"]["halted"]["id"].as_str().unwrap();
        let confirm = [&["run", "--continue", id, "--confirm", "YES"], state].concat();
        let interrupted = interrupt_when(cog(&confirm), signal, || mock.requests().len() == 3);
        continue_after_the_call(&place, &mock, &interrupted);
        let again = json(&cog(&confirm).output().unwrap());
        assert_eq!(again["error"]["code"], "E4014", "a confirmation counts once");
    }
}

#[test]
fn continued_run_keeps_its_time_limit() {
    let (place, mock) = (Place::new(), Mock::start([Reply::text("{}").delay(Duration::from_secs(600))]));
    let timed_out = run(&place, &mock, &["--timeout", "1s"]).output().unwrap();
    let args = shown(&timed_out);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let continued = cog(&place, &mock, &args).output().unwrap();
    let error = |output: &Output| json(output)["error"].clone();
    assert_eq!(error(&continued)["code"], error(&timed_out)["code"]);
    assert_eq!(error(&continued)["message"], error(&timed_out)["message"]);
}

/// The answer about a page.
fn of_page(number: usize) -> Reply {
    let answer = ANSWER.replace("fine", &format!("read page {number}"));
    Reply::text(answer).when(format!("page-{number}."))
}

#[test]
fn killed_list_continues_with_the_elements_that_are_not_done() {
    let place = Place::new();
    place.write("cognitive/modules/.keep", "");
    assert!(place.cog(["new", "reader"]).output().unwrap().status.success());
    place.write(
        "m/module.yaml",
        "name: m\nversion: 1.0.0\nresponsibility: Read pages\ntier: exploration\nexcludes: [guessing]\ncomposition:\n  dataflow:\n    \
         - { from: input, to: reader, each: $.pages, max_parallel: 2, mapping: { query: item } }\n    \
         - { from: reader.output, to: output, mapping: { answers: '$.data[*].answer', rationale: '$.data[0].rationale' } }\n",
    );
    place.write("m/prompt.md", "");
    place.write(
        "m/schema.json",
        r#"{"input": {"type": "object", "required": ["pages"], "properties": {"pages": {"type": "array", "items": {"type": "string"}}}},
            "data": {"type": "object", "required": ["answers", "rationale"], "properties": {
                "answers": {"type": "array", "items": {"type": "string"}}, "rationale": {"type": "string"}}}}"#,
    );
    let pages: Vec<String> = (0..6).map(|number| format!("page-{number}.")).collect();
    let input = serde_json::json!({ "pages": pages }).to_string();
    // Two pages at the same time: the last one is sent only when the first four have their answers.
    let endless = |number| of_page(number).delay(Duration::from_secs(600));
    let mock = Mock::start((0..4).map(of_page).chain([endless(4), endless(5)]));
    let args = ["run", "./m", "--input-json", &input, "--state-dir", "state", "--trust"];
    let asked = |number: usize| {
        let mark = format!("page-{number}.");
        mock.requests().iter().filter(|request| request.body.to_string().contains(&mark)).count()
    };
    let killed = interrupt_when(cog(&place, &mock, &args), "KILL", || asked(5) == 1);
    assert_eq!([0, 1, 2, 3, 4, 5].map(asked), [1; 6]);

    mock.reset((0..6).map(of_page));
    let args = shown(&killed);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let continued = cog(&place, &mock, &args).output().unwrap();
    let answer = json(&continued);
    let expected: Vec<String> = (0..6).map(|number| format!("read page {number}")).collect();
    assert_eq!(answer["data"]["answers"], serde_json::json!(expected), "{answer} {}", stderr(&continued));
    assert_eq!([0, 1, 2, 3, 4, 5].map(asked), [0, 0, 0, 0, 1, 1]);
    assert_eq!(files(&place), [""; 0]);
}
