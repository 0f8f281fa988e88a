//! The expectations about a response, and about the requests to the model.

use cog_answer::verify::{self, Kind};
use cog_json::ToJson as _;
use serde_json::{Map, Value};

use super::{
    chunks::{self, Arrived},
    matching::{differences, missing},
};

/// A response, and the requests to the model until it ended.
#[derive(Debug, Default)]
pub(crate) struct Received {
    pub(crate) status: Option<u16>,
    /// Names in lower case.
    pub(crate) headers: Map<String, Value>,
    /// The body.
    pub(crate) text: String,
    /// The chunks of the body.
    pub(crate) arrived: Arrived,
    /// The bodies of the requests to the model.
    pub(crate) requests: Vec<Value>,
    /// The sync answer to the same request, if it is compared.
    pub(crate) sync: Option<Value>,
}

impl Received {
    /// Returns the differences from one expectation; none if it is not about a response.
    pub(crate) fn check(&self, what: &str, expected: &Value) -> Option<Vec<String>> {
        let chunks = &self.arrived.chunks;
        let compare = |found: Value| differences(&found, expected);
        Some(match what {
            "status" => compare(self.status.into()),
            "headers" => compare(self.headers.clone().into()),
            "body" => match serde_json::from_str(&self.text) {
                Ok(found) => compare(found),
                Err(error) => vec![format!(": not JSON: {error}")],
            },
            "body_text" => absent(&self.text, &texts(expected)),
            "body_without" => present(&self.text, &texts(expected)),
            "chunks" => compare(chunks.clone().into()),
            "kinds" => compare(chunks::kinds(chunks)),
            "events" => compare(self.arrived.events.clone().into()),
            "heartbeats" => compare(self.arrived.heartbeats.into()),
            "stream" => self.check_stream(expected),
            "folds" => self.check_fold(),
            "calls" => compare(self.requests.len().into()),
            "request" => match self.requests.last() {
                Some(request) => differences(request, expected),
                None => vec![": no request".to_owned()],
            },
            "request_text" => absent(&self.last_request(), &texts(expected)),
            "request_without" => present(&self.last_request(), &texts(expected)),
            _ => return None,
        })
    }

    /// Returns the violations of the stream, and its data if they are not those of `final.data`.
    fn check_stream(&self, expected: &Value) -> Vec<String> {
        let chunks = &self.arrived.chunks;
        let lines: String = chunks.iter().map(|chunk| format!("{chunk}\n")).collect();
        let verdict = verify::verify(&lines, Some(Kind::Stream), None).to_json();
        let verdict: Value = serde_json::from_str(&verdict).unwrap_or_default();
        let mut found = differences(&verdict, expected);
        if !found.is_empty() {
            let violations = verdict.get("violations").and_then(Value::as_array).into_iter().flatten();
            found = violations.map(|violation| format!(": {violation}")).chain(found).collect();
        }
        if let Some(data) = chunks.last().and_then(|end| end.get("data")) {
            found.extend(match chunks::applied(chunks) {
                Some(applied) if applied == *data => None,
                Some(applied) => Some(format!(": the chunks give {applied}, and `final.data` is {data}")),
                None => Some(": a chunk has an invalid path".to_owned()),
            });
        }
        found
    }

    /// Returns the difference between the envelope of the chunks and the sync answer.
    fn check_fold(&self) -> Vec<String> {
        let sync = self.sync.clone().map(chunks::folded).unwrap_or_default();
        match chunks::fold(&self.arrived.chunks) {
            Ok(fold) if fold == sync => Vec::new(),
            Ok(fold) => vec![format!(": the chunks give {fold}, and the sync answer is {sync}")],
            Err(error) => vec![format!(": {error}")],
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

/// Returns the strings of a list.
pub(crate) fn texts(expected: &Value) -> Vec<String> {
    expected.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns the texts that must be contained and are not.
pub(crate) fn absent(found: &str, texts: &[String]) -> Vec<String> {
    missing(found, texts).into_iter().map(|text| format!(": no {text:?}")).collect()
}

/// Returns the texts that must not be contained and are.
pub(crate) fn present(found: &str, texts: &[String]) -> Vec<String> {
    texts.iter().filter(|text| found.contains(*text)).map(|text| format!(": has {text:?}")).collect()
}
