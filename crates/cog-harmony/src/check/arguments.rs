//! `arguments` is a string that contains a JSON object.

use cog_json::{Event, EventKind, Kind, Limits, Node, Parser};

use super::fields::calls;
use crate::{
    problem::{Path, Problems},
    rules::{ARGUMENTS_JSON, ARGUMENTS_KEY},
};

pub(super) fn check(message: Node<'_>, path: &Path<'_>, problems: &mut Problems) {
    let path = path.key("tool_calls");
    for (index, call) in calls(message).enumerate() {
        let arguments = call.get("function").and_then(|function| function.get("arguments"));
        if let Some(text) = arguments.and_then(Node::as_str) {
            check_text(text, &path.index(index).key("function").key("arguments"), problems);
        }
    }
}

fn check_text(text: &str, path: &Path<'_>, problems: &mut Problems) {
    match find_duplicate(text) {
        Err(message) => problems.add(path, &ARGUMENTS_JSON, message),
        Ok(Some(key)) => problems.add(path, &ARGUMENTS_KEY, format!("the key `{key}` occurs more than once")),
        Ok(None) => {}
    }
}

/// Returns the path of the first key that occurs more than once, or describes why the text is not a JSON object.
fn find_duplicate(text: &str) -> Result<Option<String>, String> {
    if text.trim().is_empty() {
        return Err("the text is empty, expected a JSON object".to_owned());
    }
    let mut parser = Parser::strict(Limits::default());
    let mut duplicate = None;
    let mut sink = |event: Event<'_>| {
        if matches!(event.kind, EventKind::Replaced) && duplicate.is_none() {
            duplicate = Some(event.path.to_string());
        }
    };
    let read = parser.push(text.as_bytes(), &mut sink).and_then(|()| parser.finish(&mut sink));
    if let Err(error) = read {
        let is_truncated = error.offset() >= text.trim_end().len();
        let what = if is_truncated { "the JSON is truncated" } else { "not JSON" };
        return Err(format!("{what}: {}, at byte {}", error.kind(), error.offset()));
    }
    match parser.root().map(Node::kind) {
        Some(Kind::Object) => Ok(duplicate),
        kind => Err(format!("found {}, expected a JSON object", kind.unwrap_or(Kind::Null))),
    }
}
