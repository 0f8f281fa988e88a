//! One run of the `cog` binary and what must come of it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::folder;
use crate::matching::{differences, missing};
use crate::model::{Model, Reply};

/// The longest that a command may take before the case fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// The name by which the program is called.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Program {
    #[default]
    Cog,
    Cogn,
}

impl Program {
    const fn path(self) -> &'static str {
        match self {
            Self::Cog => env!("CARGO_BIN_EXE_cog"),
            Self::Cogn => env!("CARGO_BIN_EXE_cogn"),
        }
    }
}

/// What the steps of a case share.
pub(crate) struct Scene<'a> {
    folder: &'a Path,
    reply: Option<&'a Reply>,
    base: &'a Value,
    /// The last request of the steps so far.
    earlier: Option<Value>,
}

impl<'a> Scene<'a> {
    /// A folder, the case's reply, and the envelope that replies change.
    pub(crate) fn new(folder: &'a Path, reply: Option<&'a Reply>, base: &'a Value) -> Self {
        Self { folder, reply, base, earlier: None }
    }
}

/// A command, and what is expected of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// `cog`, or `cogn`.
    #[serde(default)]
    pub(crate) program: Program,
    /// Arguments of `cog`; `{folder}` stands for the case's folder.
    pub(crate) command: Vec<String>,
    /// Standard input.
    #[serde(default)]
    pub(crate) stdin: String,
    /// Environment variables; there are no others.
    #[serde(default)]
    pub(crate) env: BTreeMap<String, String>,
    /// What the model answers, where it differs from the case's.
    pub(crate) reply: Option<Reply>,
    /// What must come out: see `check_one`.
    #[serde(default)]
    pub(crate) expect: Map<String, Value>,
}

/// What a command left behind.
struct Outcome {
    exit: Option<i32>,
    stdout: String,
    stderr: String,
    requests: Vec<Value>,
    /// The last request of an earlier step.
    earlier: Option<Value>,
}

impl Step {
    /// Runs the command in the folder and lists everything that differs.
    pub(crate) fn check(&self, scene: &mut Scene<'_>) -> Result<(), String> {
        let reply = self.reply.as_ref().or(scene.reply);
        let model = reply.map(|reply| Model::start(reply, scene.base)).transpose()?;
        let output = self.run(scene.folder, model.as_ref())?;
        let outcome = Outcome {
            exit: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            requests: model.map(|model| model.requests()).unwrap_or_default(),
            earlier: scene.earlier.take(),
        };
        scene.earlier = outcome.requests.last().cloned();
        let expectations = self.expect.iter();
        let faults: Vec<String> = expectations
            .flat_map(|(what, expected)| check_one(&outcome, scene.folder, what, expected))
            .collect();
        if faults.is_empty() {
            return Ok(());
        }
        Err(format!(
            "cog {}\n  {}\n-- exit {:?}\n-- stdout\n{}\n-- stderr\n{}\n-- requests {}",
            self.command.join(" "),
            faults.join("\n  "),
            outcome.exit,
            outcome.stdout,
            outcome.stderr,
            outcome.requests.len(),
        ))
    }

    fn run(&self, folder: &Path, model: Option<&Model>) -> Result<Output, String> {
        let here = folder.to_string_lossy();
        let mut command = Command::new(self.program.path());
        command.args(self.command.iter().map(|argument| argument.replace("{folder}", &here)));
        command.current_dir(folder).env_clear().env("HOME", folder.join("home"));
        command.envs(model.map(Model::environment).into_iter().flatten()).envs(&self.env);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let mut input = child.stdin.take();
        let text = self.stdin.clone();
        let (send, receive) = mpsc::channel();
        std::thread::spawn(move || {
            // A command that does not read its input closes the pipe; that is its right.
            let _ = input.take().map(|mut pipe| pipe.write_all(text.as_bytes()));
            let _ = send.send(child.wait_with_output());
        });
        let ended =
            receive.recv_timeout(PATIENCE).map_err(|_| format!("cog {:?} does not end", self.command))?;
        ended.map_err(|error| error.to_string())
    }
}

/// Compares one thing that is expected.
fn check_one(outcome: &Outcome, folder: &Path, what: &str, expected: &Value) -> Vec<String> {
    let texts = texts(expected);
    let faults = match what {
        "exit" => differences(&Value::from(outcome.exit), expected),
        "stdout" => match serde_json::from_str(&outcome.stdout) {
            Ok(found) => differences(&found, expected),
            Err(error) => vec![format!("not JSON: {error}")],
        },
        "stdout_text" => absent(&outcome.stdout, &texts),
        "stdout_without" => present(&outcome.stdout, &texts),
        "stderr" => absent(&outcome.stderr, &texts),
        "stderr_without" => present(&outcome.stderr, &texts),
        "calls" => differences(&Value::from(outcome.requests.len()), expected),
        "request" => match outcome.requests.last() {
            Some(request) => differences(request, expected),
            None => vec!["no request".to_owned()],
        },
        "same_request" => match outcome.earlier == outcome.requests.last().cloned() {
            true => Vec::new(),
            false => vec![": the request differs from that of the step before".to_owned()],
        },
        "request_text" => absent(&last_request(outcome), &texts),
        "request_without" => present(&last_request(outcome), &texts),
        "files" => files(folder, expected),
        _ => vec!["no such expectation".to_owned()],
    };
    faults.into_iter().map(|fault| format!("{what}{fault}")).collect()
}

fn texts(expected: &Value) -> Vec<String> {
    expected.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn absent(found: &str, texts: &[String]) -> Vec<String> {
    missing(found, texts).into_iter().map(|text| format!(": no {text:?}")).collect()
}

fn present(found: &str, texts: &[String]) -> Vec<String> {
    texts.iter().filter(|text| found.contains(*text)).map(|text| format!(": has {text:?}")).collect()
}

/// All texts of the last request, so that what a model is told can be looked for as it reads it.
fn last_request(outcome: &Outcome) -> String {
    fn collect(value: &Value, into: &mut String) {
        match value {
            Value::String(text) => {
                into.push_str(text);
                into.push('\n');
            }
            Value::Array(items) => items.iter().for_each(|item| collect(item, into)),
            Value::Object(members) => members.values().for_each(|member| collect(member, into)),
            _ => {}
        }
    }
    let mut told = String::new();
    outcome.requests.last().into_iter().for_each(|request| collect(request, &mut told));
    told
}

/// Files that must contain texts, or, with null, not be there.
fn files(folder: &Path, expected: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, expected) in expected.as_object().into_iter().flatten() {
        match (folder::read(&folder.join(name)), expected.is_null()) {
            (Ok(_), true) => faults.push(format!(" {name}: is there")),
            (Ok(found), false) => {
                faults.extend(absent(&found, &texts(expected)).iter().map(|fault| format!(" {name}{fault}")));
            }
            (Err(_), true) => {}
            (Err(error), false) => faults.push(format!(" {error}")),
        }
    }
    faults
}
