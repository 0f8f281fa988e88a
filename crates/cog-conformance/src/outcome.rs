//! The outcome of a step, and how it differs from what the case expects.

use std::path::Path;

use cog_answer::verify::{self, Kind, Verdict};
use cog_json::ToJson as _;
use cog_schema::Violation;
use serde_json::{Map, Value};

use crate::{
    directory,
    matching::{differences, missing},
    scene::Scene,
    server::wait_until,
    site::Site,
    stream::{self, Stream},
};

/// The outcome of a step: a response, or what a command printed.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The exit code of a command, or of a server that was ended.
    pub(crate) exit: Option<i32>,
    pub(crate) stderr: String,
    /// The status of a response.
    pub(crate) status: Option<u16>,
    /// Names in lower case.
    pub(crate) headers: Map<String, Value>,
    /// The body, or stdout.
    pub(crate) text: String,
    /// The chunks of the text.
    pub(crate) stream: Stream,
    /// The bodies of the requests to the model until the step ended.
    pub(crate) requests: Vec<Value>,
    /// The sync answer to the same request, if it is compared.
    pub(crate) sync: Option<Value>,
}

impl Outcome {
    /// Returns every difference, each with the key of its expectation.
    pub(crate) fn differences(&self, expect: &Map<String, Value>, scene: &Scene<'_>) -> Vec<String> {
        let mut all = Vec::new();
        for (key, expected) in expect {
            let found = self.check(key, &scene.filled_in(expected), scene);
            all.extend(found.into_iter().map(|difference| format!("{key}{difference}")));
        }
        all
    }

    /// Describes everything that the step gave, for a case that failed.
    pub(crate) fn report(&self) -> String {
        format!(
            "-- exit {:?}, status {:?}, headers {}\n-- stdout or body\n{}\n-- chunks {}\n-- stderr\n{}\n-- requests {}",
            self.exit,
            self.status,
            Value::from(self.headers.clone()),
            self.text,
            Value::from(self.stream.chunks.clone()),
            self.stderr,
            self.requests.len(),
        )
    }

    /// Returns the differences from one expectation.
    fn check(&self, key: &str, expected: &Value, scene: &Scene<'_>) -> Vec<String> {
        let chunks = &self.stream.chunks;
        match key {
            "exit" => differences(&self.exit.into(), expected),
            "status" => differences(&self.status.into(), expected),
            "headers" => differences(&self.headers.clone().into(), expected),
            "stdout" | "body" => match serde_json::from_str(&self.text) {
                Ok(found) => differences(&found, expected),
                Err(error) => vec![format!(": not JSON: {error}")],
            },
            "stdout_members" | "body_members" => self.check_members(expected),
            "stdout_text" | "body_text" => absent(&self.text, &strings(expected)),
            "stdout_without" | "body_without" => present(&self.text, &strings(expected)),
            "stderr" => absent(&self.stderr, &strings(expected)),
            "stderr_without" => present(&self.stderr, &strings(expected)),
            "chunks" => differences(&chunks.clone().into(), expected),
            "kinds" => differences(&stream::kinds(chunks), expected),
            "events" => differences(&self.stream.events.clone().into(), expected),
            "heartbeats" => differences(&self.stream.heartbeats.into(), expected),
            "stream" => self.check_stream(expected, scene.applies_rulings()),
            "folds" => self.check_fold(),
            "same_chunks" => scene.check_same(chunks),
            "distinct" => scene.check_distinct(&strings(expected)),
            "calls" => differences(&self.requests.len().into(), expected),
            "request" => match self.requests.last() {
                Some(request) => differences(request, expected),
                None => vec![": no request".to_owned()],
            },
            "request_text" => absent(&self.last_request(), &strings(expected)),
            "request_without" => present(&self.last_request(), &strings(expected)),
            "same_request" if scene.last_request.as_ref() == self.requests.last() => Vec::new(),
            "same_request" => vec![": the request differs from the one of the step before".to_owned()],
            "interrupted" => check_interrupted(scene, expected),
            "asked" => {
                let asked = scene.site.as_ref().map(Site::asked).unwrap_or_default();
                differences(&asked.into(), expected)
            }
            "files" => check_files(scene.directory, expected),
            _ => vec![": there is no such expectation".to_owned()],
        }
    }

    /// Returns the differences from the names of all members of the object.
    fn check_members(&self, expected: &Value) -> Vec<String> {
        let found: Value = serde_json::from_str(&self.text).unwrap_or_default();
        let mut names: Vec<String> =
            found.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
        let mut expected = strings(expected);
        names.sort_unstable();
        expected.sort_unstable();
        if names == expected { Vec::new() } else { vec![format!(": found {names:?}, expected {expected:?}")] }
    }

    /// Verifies the response as an envelope or a stream; none if it is neither.
    pub(crate) fn verify(&self) -> Option<Verdict> {
        if !self.stream.chunks.is_empty() {
            return Some(self.verify_stream());
        }
        let body: Value = serde_json::from_str(&self.text).ok()?;
        let is_envelope = body.get("ok").is_some_and(Value::is_boolean) && body.get("meta").is_some();
        is_envelope.then(|| verify::verify(&self.text, Some(Kind::Envelope), None))
    }

    /// Verifies the chunks, with the names of their events.
    fn verify_stream(&self) -> Verdict {
        let events = &self.stream.events;
        let lines: String = match events.is_empty() {
            true => self.stream.chunks.iter().map(|chunk| format!("{chunk}\n")).collect(),
            false => events.iter().map(event_text).collect(),
        };
        verify::verify(&lines, Some(Kind::Stream), None)
    }

    /// Returns the violations of the stream, and its data if they are not equal to `final.data`.
    fn check_stream(&self, expected: &Value, applies_rulings: bool) -> Vec<String> {
        let chunks = &self.stream.chunks;
        let verdict = self.verify_stream();
        let beyond = if applies_rulings { verdict.warnings.as_slice() } else { &[] };
        let beyond: Vec<String> = beyond.iter().map(describe).collect();
        let verdict: Value = serde_json::from_str(&verdict.to_json()).unwrap_or_default();
        let mut found = differences(&verdict, expected);
        if !found.is_empty() {
            let violations = verdict.get("violations").and_then(Value::as_array).into_iter().flatten();
            found = violations.map(|violation| format!(": {violation}")).chain(found).collect();
        }
        found.extend(beyond);
        if let Some(data) = chunks.last().and_then(|end| end.get("data")) {
            found.extend(match stream::applied(chunks) {
                Some(applied) if applied == *data => None,
                Some(applied) => Some(format!(": the chunks give {applied}, and `final.data` is {data}")),
                None => Some(": a chunk has an invalid path".to_owned()),
            });
        }
        found
    }

    /// Returns the difference between the envelope of the chunks and the sync answer.
    fn check_fold(&self) -> Vec<String> {
        let sync = self.sync.clone().map(stream::folded).unwrap_or_default();
        match stream::fold(&self.stream.chunks) {
            Ok(fold) if fold == sync => Vec::new(),
            Ok(fold) => vec![format!(": the chunks give {fold}, and the sync answer is {sync}")],
            Err(error) => vec![format!(": {error}")],
        }
    }

    /// Returns all strings of the last request, as the model reads them.
    fn last_request(&self) -> String {
        let mut text = String::new();
        if let Some(request) = self.requests.last() {
            collect_strings(request, &mut text);
        }
        text
    }
}

fn collect_strings(value: &Value, into: &mut String) {
    match value {
        Value::String(text) => {
            into.push_str(text);
            into.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| collect_strings(item, into)),
        Value::Object(members) => members.values().for_each(|member| collect_strings(member, into)),
        _ => {}
    }
}

/// Describes a violation, or a warning.
pub(crate) fn describe(violation: &Violation) -> String {
    let Violation { path, rule, message, .. } = violation;
    format!(": {path}: {message} [{rule}]")
}

/// Returns a server-sent event as it was sent, with its data on one line.
fn event_text(event: &Value) -> String {
    let name = event.get("event").and_then(Value::as_str);
    let name = name.map(|name| format!("event: {name}\n")).unwrap_or_default();
    let data = event.get("data").map(Value::to_string).unwrap_or_default();
    format!("{name}data: {data}\n\n")
}

/// Returns the strings of a list.
fn strings(expected: &Value) -> Vec<String> {
    expected.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns the strings that must be contained and are not.
fn absent(found: &str, strings: &[String]) -> Vec<String> {
    missing(found, strings).into_iter().map(|text| format!(": no {text:?}")).collect()
}

/// Returns the strings that must not be contained and are.
fn present(found: &str, strings: &[String]) -> Vec<String> {
    strings.iter().filter(|text| found.contains(*text)).map(|text| format!(": has {text:?}")).collect()
}

/// The model may notice a disconnect later.
fn check_interrupted(scene: &Scene<'_>, expected: &Value) -> Vec<String> {
    let found = || {
        let count = scene.model.as_ref().map(|model| model.interrupted());
        differences(&count.into(), expected)
    };
    wait_until(|| found().is_empty().then(Vec::new)).unwrap_or_else(found)
}

/// Files that must contain strings, or match as JSON, or with null not exist.
fn check_files(directory: &Path, expected: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, expected) in expected.as_object().into_iter().flatten() {
        let found = match (directory::read(&directory.join(name)), expected) {
            (Ok(_), Value::Null) => vec![": is there".to_owned()],
            (Ok(found), Value::Array(_)) => absent(&found, &strings(expected)),
            (Ok(found), expected) => match serde_json::from_str(&found) {
                Ok(found) => differences(&found, expected),
                Err(error) => vec![format!(": not JSON: {error}")],
            },
            (Err(_), Value::Null) => Vec::new(),
            (Err(error), _) => vec![format!(": {error}")],
        };
        faults.extend(found.iter().map(|fault| format!(" {name}{fault}")));
    }
    faults
}
