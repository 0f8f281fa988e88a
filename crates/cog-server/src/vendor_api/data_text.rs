//! The JSON text of the data while they arrive: what is certain, and nothing that is later contradicted.

use std::sync::Arc;

use cog_json::{Path, Segment, ToJson, Writer};
use cog_module::Module;
use cog_spec::{Chunk, ResponseMode, Tier};
use serde_json::{Map, Value};

/// Converts the chunks of a run to the text of its data. What it has returned is always a prefix of the text of the final data.
pub(super) struct DataText {
    live: Live,
    /// The text that was returned.
    sent: String,
    /// The length of the text of the current attempt. An attempt after the first repeats what was returned.
    written: usize,
    /// The path of the last value that was written; its containers are open.
    last: Option<Path>,
    /// The value that is not certain yet.
    pending: Option<Pending>,
    /// Nothing is certain until the end of the run, or the next attempt.
    is_waiting: bool,
}

/// A value that may still change. It is certain when the next one arrives without a violation in between.
struct Pending {
    field: String,
    path: Path,
    value: PendingValue,
}

enum PendingValue {
    /// A value that has arrived at once, as JSON.
    Json(String),
    /// A string that has arrived in part.
    Text { unsent: String, is_live: bool, has_begun: bool },
}

/// The model has corrected data that was returned in part.
#[derive(Debug, PartialEq)]
pub(super) struct CorrectedData;

/// The name of the member whose content is checked and shortened at the end (ruling R30).
const EXTENSIONS: Segment<'_> = Segment::Key("extensions");

impl DataText {
    pub(super) fn new(live: Live) -> Self {
        Self { live, sent: String::new(), written: 0, last: None, pending: None, is_waiting: false }
    }

    /// Processes a chunk. Adds the text that is certain because of it.
    ///
    /// # Errors
    /// The chunk contradicts what was returned before.
    pub(super) fn add(&mut self, chunk: &Chunk, new: &mut String) -> Result<(), CorrectedData> {
        match chunk {
            Chunk::Snapshot { field: None, .. } => {
                self.restart();
                Ok(())
            }
            Chunk::Progress(progress) => {
                self.is_waiting |= progress.violation.is_some();
                Ok(())
            }
            _ if self.is_waiting => Ok(()),
            Chunk::Delta { field, delta, .. } => self.delta(field, delta, new),
            Chunk::Snapshot { field: Some(field), data, .. } => {
                self.settle(new)?;
                self.expect(field, PendingValue::Json(data.to_json()));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Adds the rest of the text of the final data.
    ///
    /// # Errors
    /// It does not begin with what was returned before.
    pub(super) fn finish(&mut self, text: &str, new: &mut String) -> Result<(), CorrectedData> {
        self.restart();
        self.write(text, new)?;
        if self.written == self.sent.len() { Ok(()) } else { Err(CorrectedData) }
    }

    /// Starts another attempt.
    fn restart(&mut self) {
        self.written = 0;
        self.last = None;
        self.pending = None;
        self.is_waiting = false;
    }

    fn delta(&mut self, field: &str, delta: &str, new: &mut String) -> Result<(), CorrectedData> {
        if self.pending.as_ref().is_none_or(|pending| pending.field != field) {
            self.settle(new)?;
            self.expect(
                field,
                PendingValue::Text { unsent: String::new(), is_live: false, has_begun: false },
            );
        }
        let Some(Pending { value: PendingValue::Text { unsent, is_live, .. }, .. }) = &mut self.pending
        else {
            self.is_waiting = true; // its string was skipped, or another value replaced it
            return Ok(());
        };
        unsent.push_str(delta);
        // A rationale of white space alone is a violation.
        if *is_live && !unsent.trim().is_empty() { self.write_part(new) } else { Ok(()) }
    }

    /// Sets the next value.
    fn expect(&mut self, field: &str, mut value: PendingValue) {
        let Ok(path) = field.parse::<Path>() else { return };
        if path.first() != Some(Segment::Key("data")) {
            return; // a part of meta
        }
        if path.segments().nth(1).is_none_or(|step| step == EXTENSIONS) {
            self.is_waiting = true;
            return;
        }
        if let PendingValue::Text { is_live, .. } = &mut value {
            *is_live = self.live.accepts_any_text(&path);
        }
        self.pending = Some(Pending { field: field.to_owned(), path, value });
    }

    /// Writes the value that is certain now.
    fn settle(&mut self, new: &mut String) -> Result<(), CorrectedData> {
        let Some(pending) = self.pending.take() else { return Ok(()) };
        match pending.value {
            PendingValue::Json(json) => self.write_at(pending.path, &json, new),
            PendingValue::Text { unsent, has_begun: false, .. } => {
                self.write_at(pending.path, &unsent.to_json(), new)
            }
            PendingValue::Text { unsent, has_begun: true, .. } => {
                let rest = unsent.to_json();
                self.write(rest.strip_prefix('"').unwrap_or_default(), new)
            }
        }
    }

    /// Writes the part of a string that has arrived.
    fn write_part(&mut self, new: &mut String) -> Result<(), CorrectedData> {
        let Some(pending) = &mut self.pending else { return Ok(()) };
        let PendingValue::Text { unsent, has_begun, .. } = &mut pending.value else { return Ok(()) };
        let json = std::mem::take(unsent).to_json();
        let open = json.strip_suffix('"').unwrap_or_default();
        if std::mem::replace(has_begun, true) {
            return self.write(open.strip_prefix('"').unwrap_or_default(), new);
        }
        let path = pending.path.clone();
        self.write_at(path, open, new)
    }

    /// Writes a value at its path. Waits for the end if it does not follow the last one.
    fn write_at(&mut self, path: Path, json: &str, new: &mut String) -> Result<(), CorrectedData> {
        let Some(mut text) = between(self.last.as_ref(), &path) else {
            self.is_waiting = true;
            return Ok(());
        };
        self.last = Some(path);
        text.push_str(json);
        self.write(&text, new)
    }

    /// Adds what was not returned before.
    fn write(&mut self, text: &str, new: &mut String) -> Result<(), CorrectedData> {
        let known = self.sent.get(self.written..).ok_or(CorrectedData)?;
        self.written += text.len();
        if known.starts_with(text) {
            return Ok(());
        }
        let rest = text.strip_prefix(known).ok_or(CorrectedData)?;
        new.push_str(rest);
        self.sent.push_str(rest);
        Ok(())
    }
}

/// Returns the text between two values: what closes the containers of the last one, and opens the containers of the next one. None if the
/// next one does not follow.
fn between(last: Option<&Path>, next: &Path) -> Option<String> {
    let mut text = String::new();
    let steps: Vec<Segment<'_>> = next.segments().skip(1).collect();
    let Some(last) = last else {
        let first = steps.iter().all(|step| !matches!(step, Segment::Index(1..)));
        return first.then(|| {
            open(&mut text, &steps);
            text
        });
    };
    let before: Vec<Segment<'_>> = last.segments().skip(1).collect();
    let common = before.iter().zip(&steps).take_while(|(one, other)| one == other).count();
    for step in before.get(common + 1..)?.iter().rev() {
        text.push(if matches!(step, Segment::Key(_)) { '}' } else { ']' });
    }
    text.push(',');
    match (before.get(common)?, steps.get(common)?) {
        (Segment::Key(_), Segment::Key(key)) => write_key(&mut text, key),
        (Segment::Index(index), Segment::Index(next)) if *next == index + 1 => {}
        _ => return None,
    }
    let inner = steps.get(common + 1..)?;
    let is_first = inner.iter().all(|step| !matches!(step, Segment::Index(1..)));
    is_first.then(|| {
        open(&mut text, inner);
        text
    })
}

/// Opens the containers of these steps.
fn open(text: &mut String, steps: &[Segment<'_>]) {
    for step in steps {
        match step {
            Segment::Key(key) => {
                text.push('{');
                write_key(text, key);
            }
            Segment::Index(_) => text.push('['),
        }
    }
}

fn write_key(text: &mut String, key: &str) {
    Writer::compact(text).string(key);
    text.push(':');
}

// Which modules, and which of their values, are sent before an answer is complete.

/// A module whose data are sent while they arrive.
pub(super) struct Live(Arc<Module>);

/// The keywords that no text violates.
const ANNOTATIONS: &[&str] =
    &["title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly"];
/// The keywords of one value.
const SIMPLE: &[&str] = &[
    "required",
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];
/// The keywords whose schemas may say more about a value that `properties` and `items` define.
const COMBINING: &[&str] = &["anyOf", "oneOf", "allOf"];

impl Live {
    /// Returns none for a module whose answer is known only at its end:
    ///
    /// - it has no streams, or its tier refuses complete answers because of their confidence or risk;
    /// - media are inserted into its data;
    /// - its data may contain nulls. Some dialects write them for absent members, so that they arrive at the end.
    pub(super) fn from_module(module: &Arc<Module>) -> Option<Self> {
        let manifest = &module.manifest;
        let is_gated = manifest.tier == Some(Tier::Exec)
            || manifest.constraints.behavior_equivalence_false_max_confidence.is_some();
        let makes_media = manifest.modalities.output.iter().any(|kind| !kind.output_types().is_empty());
        if manifest.response.mode == ResponseMode::Sync || is_gated || makes_media {
            return None;
        }
        let live = Self(Arc::clone(module));
        let data = live.0.contract.data_schema()?;
        live.is_plain(data, &mut Vec::new()).then_some(live)
    }

    /// Returns whether every text is valid at a path of the envelope, so that a string may be sent before its end.
    pub(super) fn accepts_any_text(&self, path: &Path) -> bool {
        let Some(mut schema) = self.0.contract.data_schema() else { return false };
        for step in path.segments().skip(1) {
            let Some(members) = self.resolve(schema) else { return false };
            if COMBINING.iter().any(|keyword| members.contains_key(*keyword)) {
                return false;
            }
            let next = match step {
                Segment::Key(key) => members.get("properties").and_then(|properties| properties.get(key)),
                Segment::Index(_) => members.get("items"),
            };
            let Some(next) = next else { return false };
            schema = next;
        }
        self.resolve(schema).is_some_and(|members| {
            members.get("type").and_then(Value::as_str) == Some("string")
                && members.keys().all(|keyword| keyword == "type" || ANNOTATIONS.contains(&keyword.as_str()))
        })
    }

    /// Returns whether a schema allows no null, and what it says about a value is known without the values around it.
    fn is_plain<'m>(&'m self, schema: &'m Value, visited: &mut Vec<&'m str>) -> bool {
        let Some(members) = schema.as_object() else { return false };
        let states_type = ["type", "enum", "const", "$ref", "anyOf", "oneOf"];
        states_type.iter().any(|keyword| members.contains_key(*keyword))
            && members.iter().all(|(keyword, value)| self.is_plain_keyword(keyword, value, visited))
    }

    fn is_plain_keyword<'m>(
        &'m self,
        keyword: &'m str,
        value: &'m Value,
        visited: &mut Vec<&'m str>,
    ) -> bool {
        match (keyword, value) {
            ("type", Value::String(name)) => name != "null",
            ("type" | "enum", Value::Array(values)) => {
                !values.iter().any(|value| value.is_null() || value == "null" && keyword == "type")
            }
            ("const", value) => !value.is_null(),
            ("properties", Value::Object(properties)) => {
                properties.iter().all(|(name, schema)| name == "extensions" || self.is_plain(schema, visited))
            }
            ("additionalProperties", Value::Bool(_)) => true,
            ("items" | "additionalProperties", schema) => self.is_plain(schema, visited),
            ("anyOf" | "oneOf" | "allOf", Value::Array(schemas)) => {
                schemas.iter().all(|schema| self.is_plain(schema, visited))
            }
            ("$ref", Value::String(pointer)) => {
                if visited.contains(&pointer.as_str()) {
                    return true; // it was checked, or is being checked
                }
                visited.push(pointer);
                self.at(pointer).is_some_and(|schema| self.is_plain(schema, visited))
            }
            _ => SIMPLE.contains(&keyword) || ANNOTATIONS.contains(&keyword),
        }
    }

    /// Returns the keywords of a schema, or of the one that it refers to.
    fn resolve<'m>(&'m self, schema: &'m Value) -> Option<&'m Map<String, Value>> {
        let mut members = schema.as_object()?;
        for _ in 0..16 {
            let Some(pointer) = members.get("$ref") else { return Some(members) };
            if members.len() > 1 {
                return None;
            }
            members = self.at(pointer.as_str()?)?.as_object()?;
        }
        None
    }

    fn at(&self, pointer: &str) -> Option<&Value> {
        self.0.contract.document().pointer(pointer.strip_prefix('#')?)
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod live_tests {
    use cog_module::files::write_atomic;
    use cog_run::Runtime;
    use serde_json::json;

    use super::*;

    fn live(manifest: &str, data: &Value) -> Option<Live> {
        let directory = tempfile::tempdir().unwrap();
        let manifest =
            format!("name: live\nversion: 1.0.0\nresponsibility: Answer\nexcludes: []\n{manifest}");
        let schema = json!({ "data": data, "$defs": { "node": {
            "type": "object", "properties": { "next": { "$ref": "#/$defs/node" }, "label": { "type": "string" } } } } });
        let files = [
            ("module.yaml", manifest),
            ("prompt.md", "Answer.".to_owned()),
            ("schema.json", schema.to_string()),
        ];
        for (file, text) in files {
            write_atomic(&directory.path().join(file), &text).unwrap();
        }
        Live::from_module(&Runtime::offline().load(directory.path().to_str().unwrap()).unwrap())
    }

    fn object(property: &Value) -> Value {
        json!({ "type": "object", "properties": { "a": property, "extensions": { "type": ["object", "null"] } } })
    }

    #[test]
    fn modules_whose_answers_are_known_at_the_end_are_not_live() {
        let plain = object(&json!({ "type": "string" }));
        for manifest in ["response: { mode: both }\n", "response: { mode: streaming }\ntier: decision\n"] {
            assert!(live(manifest, &plain).is_some(), "{manifest}");
        }
        for manifest in [
            "response: { mode: sync }\n",
            "response: { mode: both }\ntier: exec\n",
            "response: { mode: both }\nmodalities: { output: [text, image] }\n",
            "response: { mode: both }\nconstraints: { behavior_equivalence_false_max_confidence: 0.7 }\n",
        ] {
            assert!(live(manifest, &plain).is_none(), "{manifest}");
        }
    }

    #[test]
    fn data_that_may_contain_nulls_are_not_live() {
        let is_live = |property| live("response: { mode: both }\n", &object(&property)).is_some();
        for property in [
            json!({ "type": "array", "items": { "type": "integer", "minimum": 1 } }),
            json!({ "anyOf": [{ "enum": ["x"] }, { "type": "object", "properties": { "b": { "const": 1 } } }] }),
            json!({ "$ref": "#/$defs/node" }),
            json!({ "type": "object", "additionalProperties": { "type": "number" } }),
        ] {
            assert!(is_live(property.clone()), "{property}");
        }
        for property in [
            json!({ "type": ["string", "null"] }),
            json!({ "enum": ["x", null] }),
            json!({ "description": "anything" }),
            json!({ "type": "array", "items": { "type": "null" } }),
            json!({ "type": "object", "if": { "required": ["b"] } }),
        ] {
            assert!(!is_live(property.clone()), "{property}");
        }
    }

    #[test]
    fn only_strings_without_constraints_accept_any_text() {
        let accepts = |property, path: &str| {
            let live = live("response: { mode: both }\n", &object(&property)).unwrap();
            live.accepts_any_text(&path.parse().unwrap())
        };
        assert!(accepts(json!({ "type": "string", "description": "d" }), "data.a"));
        assert!(accepts(
            json!({ "type": "array", "items": { "$ref": "#/$defs/node" } }),
            "data.a[3].next.label"
        ));
        for property in [
            json!({ "type": "string", "maxLength": 5 }),
            json!({ "type": "string", "enum": ["x"] }),
            json!({ "type": "integer" }),
            json!({ "allOf": [{ "type": "string" }], "type": "string" }),
        ] {
            assert!(!accepts(property.clone(), "data.a"), "{property}");
        }
        assert!(!accepts(json!({ "type": "string" }), "data.b"));
    }
}
