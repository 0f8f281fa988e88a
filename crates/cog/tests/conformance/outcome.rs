//! The outcome of a step, and its expectation.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Map, Value};

use crate::chunks::{self, Arrived};
use crate::directory;
use crate::matching::{differences, missing};
use crate::scene::Scene;
use crate::server::wait_until;
use crate::site::Site;

/// The outcome of a step.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) exit: Option<i32>,
    pub(crate) status: Option<u16>,
    pub(crate) headers: Map<String, Value>,
    /// stdout, or the body of a response.
    pub(crate) text: String,
    pub(crate) stderr: String,
    pub(crate) arrived: Arrived,
    /// The requests to the model.
    pub(crate) requests: Vec<Value>,
    /// The sync answer to the same request, if it is compared.
    pub(crate) sync: Option<Value>,
}

impl Outcome {
    /// Returns all differences from the expectation.
    pub(crate) fn check(&self, expect: &Map<String, Value>, scene: &Scene<'_>) -> Result<(), String> {
        let expect = expect.iter().map(|(what, expected)| (what, scene.filled_in(expected)));
        let faults: Vec<String> =
            expect.flat_map(|(what, expected)| self.check_one(scene, what, &expected)).collect();
        if faults.is_empty() {
            return Ok(());
        }
        Err(format!(
            "{}\n-- exit {:?}, status {:?}, headers {}\n-- stdout or body\n{}\n-- chunks {}\n-- stderr\n{}\n-- requests {}",
            faults.join("\n"),
            self.exit,
            self.status,
            Value::from(self.headers.clone()),
            self.text,
            Value::from(self.arrived.chunks.clone()),
            self.stderr,
            self.requests.len(),
        ))
    }

    fn check_one(&self, scene: &Scene<'_>, what: &str, expected: &Value) -> Vec<String> {
        let wanted = texts(expected);
        let chunks = &self.arrived.chunks;
        let faults = match what {
            "exit" => differences(&Value::from(self.exit), expected),
            "status" => differences(&Value::from(self.status), expected),
            "headers" => differences(&Value::from(self.headers.clone()), expected),
            "stdout" | "body" => match serde_json::from_str(&self.text) {
                Ok(found) => differences(&found, expected),
                Err(error) => vec![format!("not JSON: {error}")],
            },
            "stdout_text" | "body_text" => absent(&self.text, &wanted),
            "stdout_without" | "body_without" => present(&self.text, &wanted),
            "stderr" => absent(&self.stderr, &wanted),
            "stderr_without" => present(&self.stderr, &wanted),
            "chunks" => differences(&Value::from(chunks.clone()), expected),
            "kinds" => differences(&chunks::kinds(chunks), expected),
            "events" => differences(&Value::from(self.arrived.events.clone()), expected),
            "heartbeats" => differences(&Value::from(self.arrived.heartbeats), expected),
            "stream" => self.check_stream(scene.directory, expected),
            "folds" => self.check_fold(),
            "same_chunks" => scene.check_same(chunks),
            "distinct" => scene.check_distinct(&wanted),
            "interrupted" => check_interrupted(scene, expected),
            "calls" => differences(&Value::from(self.requests.len()), expected),
            "asked" => {
                let asked = scene.site.as_ref().map(Site::asked).unwrap_or_default();
                differences(&Value::from(asked), expected)
            }
            "request" => match self.requests.last() {
                Some(request) => differences(request, expected),
                None => vec!["no request".to_owned()],
            },
            "same_request" => match scene.earlier.as_ref() == self.requests.last() {
                true => Vec::new(),
                false => vec![": the request differs from that of the step before".to_owned()],
            },
            "request_text" => absent(&self.last_request(), &wanted),
            "request_without" => present(&self.last_request(), &wanted),
            "files" => files(scene.directory, expected),
            _ => vec!["no such expectation".to_owned()],
        };
        faults.into_iter().map(|fault| format!("{what}{fault}")).collect()
    }

    /// Whether the stream is valid for `cog verify`, and its chunks result in `final.data`.
    fn check_stream(&self, directory: &Path, expected: &Value) -> Vec<String> {
        let chunks = &self.arrived.chunks;
        let mut faults = differences(&verdict(directory, chunks), expected);
        if let Some(data) = chunks.last().and_then(|end| end.get("data"))
            && chunks::applied(chunks).as_ref() != Some(data)
        {
            faults.push(format!(": its chunks give {:?}, not final.data", chunks::applied(chunks)));
        }
        faults
    }

    /// Whether the envelope of the chunks equals the sync answer.
    fn check_fold(&self) -> Vec<String> {
        let sync = self.sync.clone().map(chunks::folded).unwrap_or_default();
        match chunks::fold(&self.arrived.chunks) {
            Ok(fold) if fold == sync => Vec::new(),
            Ok(fold) => vec![format!(": the chunks give {fold}\n, the sync answer is {sync}")],
            Err(error) => vec![error],
        }
    }

    /// Returns all texts of the last request, as the model reads them.
    fn last_request(&self) -> String {
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
        let mut text = String::new();
        self.requests.last().into_iter().for_each(|request| collect(request, &mut text));
        text
    }
}

/// Runs `cog verify` on the chunks.
fn verdict(directory: &Path, chunks: &[Value]) -> Value {
    let lines: String = chunks.iter().map(|chunk| format!("{chunk}\n")).collect();
    let path = directory.join("stream-of-a-step.ndjson");
    if let Err(error) = directory::write(&path, &lines) {
        return Value::from(error);
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_cog"));
    command
        .args(["verify", "--kind", "stream", "--format", "json"])
        .arg(path)
        .env_clear()
        .env("COG_DETECT_OLLAMA", "off")
        .stdin(Stdio::null());
    let said = command.output().ok().and_then(|output| serde_json::from_slice(&output.stdout).ok());
    said.unwrap_or_default()
}

/// The model may notice a disconnect later.
fn check_interrupted(scene: &Scene<'_>, expected: &Value) -> Vec<String> {
    let count = || Value::from(scene.model.as_ref().map(|model| model.interrupted()));
    let is_so = wait_until(|| differences(&count(), expected).is_empty().then_some(()));
    is_so.map_or_else(|| differences(&count(), expected), |()| Vec::new())
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

/// Files that must contain texts, or, with null, not be there.
fn files(directory: &Path, expected: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, expected) in expected.as_object().into_iter().flatten() {
        match (directory::read(&directory.join(name)), expected.is_null()) {
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
