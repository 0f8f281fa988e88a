//! The answer of a failed case, compared with the expected one.

use cog_json::Value;
use cog_module::{
    Module, Origin,
    files::{self, FileError},
    golden::{Expected, GoldenCase},
};
use cog_spec::{Code, ErrorBody, RUNTIME_KEYS};
use serde_json::Value as Json;
use similar::{ChangeTag, TextDiff};

use crate::output::Palette;

/// The maximum number of lines in a report on a terminal.
const MAX_LINES: usize = 200;

/// An answer and what was expected, as indented JSON.
pub(super) struct Answer {
    /// The exact answer that was expected; none if the expected file has rules.
    expected: Option<String>,
    /// The same part of the answer.
    found: String,
}

impl Answer {
    pub(super) fn new(case: &GoldenCase, envelope: &Value) -> Self {
        let envelope = without_runtime_keys(envelope);
        let data = envelope.get("data").filter(|data| !data.is_null()).unwrap_or(&envelope);
        let (expected, found) = match &case.expected {
            Expected::Exact(answer) if answer.get("ok").is_some_and(|ok| ok.as_bool().is_some()) => {
                (Some(answer), &envelope)
            }
            Expected::Exact(answer) => (Some(answer), data),
            _ => (None, data),
        };
        let expected = expected.map(|answer| in_order_of(answer.to_serde(), found));
        Self { expected: expected.map(|answer| format!("{answer:#}\n")), found: format!("{found:#}\n") }
    }

    /// Returns the answer.
    pub(super) fn found_value(&self) -> Value {
        Value::parse(&self.found).unwrap_or_default()
    }

    /// Returns the lines of the difference; of the answer, if the expected file has rules.
    pub(super) fn lines(&self) -> Vec<(ChangeTag, String)> {
        let expected = self.expected.as_ref().unwrap_or(&self.found);
        let diff = TextDiff::from_lines(expected, &self.found);
        diff.iter_all_changes().map(|change| (change.tag(), change.value().trim_end().to_owned())).collect()
    }

    /// Formats the lines for a terminal.
    pub(super) fn describe(&self, palette: Palette) -> String {
        let lines = self.lines();
        let shown = lines.iter().take(MAX_LINES).map(|(tag, line)| match tag {
            ChangeTag::Equal => format!("      {}\n", palette.dim(format_args!("  {line}"))),
            ChangeTag::Delete => format!("      {}\n", palette.error(format_args!("- {line}"))),
            ChangeTag::Insert => format!("      {}\n", palette.success(format_args!("+ {line}"))),
        });
        let mut text: String = shown.collect();
        if let Some(more) = lines.len().checked_sub(MAX_LINES).filter(|more| *more > 0) {
            let hint = format!("… {more} more lines; --format json contains all of the answer");
            text += &format!("      {}\n", palette.dim(hint));
        }
        text
    }
}

/// Puts the members of objects in the order that they have in another value, so that only differences are shown.
fn in_order_of(value: Json, other: &Json) -> Json {
    match (value, other) {
        (Json::Object(mut members), Json::Object(others)) => {
            let mut ordered = serde_json::Map::new();
            for (key, other) in others {
                if let Some(value) = members.shift_remove(key) {
                    ordered.insert(key.clone(), in_order_of(value, other));
                }
            }
            ordered.extend(members);
            Json::Object(ordered)
        }
        (Json::Array(items), Json::Array(others)) => {
            let others = others.iter().map(Some).chain(std::iter::repeat(None));
            let ordered = items.into_iter().zip(others);
            Json::Array(
                ordered
                    .map(|(item, other)| match other {
                        Some(other) => in_order_of(item, other),
                        None => item,
                    })
                    .collect(),
            )
        }
        (value, _) => value,
    }
}

/// Returns the envelope without the members that differ from run to run (ruling R27).
pub(super) fn without_runtime_keys(envelope: &Value) -> Json {
    let mut envelope = envelope.to_serde();
    if let Some(meta) = envelope.get_mut("meta").and_then(Json::as_object_mut) {
        meta.retain(|key, _| !RUNTIME_KEYS.contains(&key.as_str()));
    }
    if let Some(envelope) = envelope.as_object_mut() {
        envelope.retain(|key, _| !key.starts_with('_'));
    }
    envelope
}

/// Replaces the expected file, in its own form. Returns false for a file with rules, which only a person can change.
pub(super) fn write(module: &Module, case: &GoldenCase, envelope: &Value) -> Result<bool, ErrorBody> {
    if !matches!(module.origin, Origin::Directory(_)) {
        return Err(built_in(module));
    }
    let Some(content) = content(case, envelope) else {
        return Ok(false);
    };
    let text = format!("{content:#}\n");
    files::write_atomic(&case.expected_file, &text).map_err(|error| unwritable(case, &error))?;
    Ok(true)
}

/// Creates the error of a change to a built-in module.
pub(super) fn built_in(module: &Module) -> ErrorBody {
    let name = &module.manifest.name;
    ErrorBody::new(Code::PermissionDenied, format!("`{name}` is built in, so its tests cannot be changed"))
        .suggest(format!("Copy it with `cog new NAME --from {name}`."))
}

fn content(case: &GoldenCase, envelope: &Value) -> Option<Json> {
    let answer = without_runtime_keys(envelope);
    match &case.expected {
        Expected::Exact(old) if old.get("ok").is_some_and(|ok| ok.as_bool().is_some()) => Some(answer),
        Expected::Exact(_) => answer.get("data").cloned(),
        _ => None,
    }
}

fn unwritable(case: &GoldenCase, error: &FileError) -> ErrorBody {
    ErrorBody::new(Code::InvalidReference, format!("{}: {error}", case.expected_file.display()))
}
