//! Each tool call has one result, directly after it (appendix A.2.2).

use std::collections::HashMap;

use cog_json::Node;

use super::fields::{calls, role};
use crate::{
    problem::{Path, Problems},
    read::shown,
    rules::{
        CALL_ID, CALL_ROLE, RESULT_ERROR, RESULT_MISSING, RESULT_NAME, RESULT_ORDER, RESULT_PLACE,
        RESULT_REPEATED, RESULT_UNKNOWN,
    },
};

pub(super) fn check(messages: Node<'_>, problems: &mut Problems) {
    let mut history = History::default();
    for (index, message) in messages.elements().enumerate() {
        history.add_calls(index, message, problems);
    }
    for (index, message) in messages.elements().enumerate() {
        history.follow(index, message, problems);
    }
    history.report_missing(problems);
}

/// The calls of a history.
#[derive(Default)]
struct History<'a> {
    calls: Vec<Call<'a>>,
    by_id: HashMap<&'a str, usize>,
    /// The message whose results may follow now.
    open: Option<usize>,
    /// The index of the last result's call in that message.
    last: usize,
}

struct Call<'a> {
    message: usize,
    index: usize,
    id: &'a str,
    name: Option<&'a str>,
    result: Option<usize>,
}

impl<'a> History<'a> {
    fn add_calls(&mut self, at: usize, message: Node<'a>, problems: &mut Problems) {
        let root = Path::root("messages");
        let path = root.index(at);
        let is_caller = role(message) == "assistant";
        if !is_caller && calls(message).next().is_some() {
            problems.add(
                &path.key("tool_calls"),
                &CALL_ROLE,
                format!("found in a {} message", shown(role(message))),
            );
        }
        if role(message) != "tool" && message.get("tool_call_id").is_some_and(|id| !id.is_null()) {
            problems.add(
                &path.key("tool_call_id"),
                &CALL_ROLE,
                format!("found in a {} message", shown(role(message))),
            );
        }
        for (index, call) in calls(message).enumerate().filter(|_| is_caller) {
            let Some(id) = call.get("id").and_then(Node::as_str) else { continue };
            let first = self.by_id.get(id).and_then(|first| self.calls.get(*first));
            let reason = match first {
                Some(first) => format!("`{}` is also the id of {}", shown(id), first.path()),
                None if id.is_empty() => "the id is empty".to_owned(),
                None => {
                    let name = call.get("function").and_then(|function| function.get("name")?.as_str());
                    self.by_id.insert(id, self.calls.len());
                    self.calls.push(Call { message: at, index, id, name, result: None });
                    continue;
                }
            };
            problems.add(&path.key("tool_calls").index(index).key("id"), &CALL_ID, reason);
        }
    }

    fn follow(&mut self, at: usize, message: Node<'a>, problems: &mut Problems) {
        if role(message) != "tool" {
            self.open = calls(message).next().map(|_| at);
            self.last = 0;
            return;
        }
        let root = Path::root("messages");
        let path = root.index(at);
        check_error(message, &path, problems);
        let Some(id) = message.get("tool_call_id").and_then(Node::as_str) else { return };
        let call = self.by_id.get(id).and_then(|call| self.calls.get_mut(*call));
        let id_path = path.key("tool_call_id");
        let Some(call) = call else {
            return problems.add(&id_path, &RESULT_UNKNOWN, format!("no call has the id `{}`", shown(id)));
        };
        if let Some(first) = call.result {
            let reason = format!("messages[{first}] is the result of `{}`", shown(id));
            return problems.add(&id_path, &RESULT_REPEATED, reason);
        }
        call.result = Some(at);
        if self.open != Some(call.message) {
            let reason = format!(
                "the call `{}` is in messages[{}]; other messages are between",
                shown(id),
                call.message
            );
            problems.add(&path, &RESULT_PLACE, reason);
        } else if call.index < self.last {
            problems.add(&path, &RESULT_ORDER, "the result of a later call is before this one");
        } else {
            self.last = call.index;
        }
        let name = message.get("name").and_then(Node::as_str);
        if let (Some(name), Some(function)) = (name, call.name.filter(|function| Some(*function) != name)) {
            let reason = format!("found `{}`, but `{}` was called", shown(name), shown(function));
            problems.add(&path.key("name"), &RESULT_NAME, reason);
        }
    }

    fn report_missing(&self, problems: &mut Problems) {
        for call in self.calls.iter().filter(|call| call.result.is_none()) {
            let reason = format!("the call `{}` has no result", shown(call.id));
            problems.add(&call.path(), &RESULT_MISSING, reason);
        }
    }
}

impl Call<'_> {
    fn path(&self) -> String {
        format!("messages[{}].tool_calls[{}]", self.message, self.index)
    }
}

/// A result with the status `error` has the members that the model needs to try again.
fn check_error(message: Node<'_>, path: &Path<'_>, problems: &mut Problems) {
    let content = message.get("content");
    let text = match content.and_then(Node::as_str) {
        Some(text) => Some(text),
        None => content.and_then(|parts| parts.at(0)?.get("text")?.as_str()),
    };
    let Some(text) = text.filter(|text| text.trim_start().starts_with('{') && text.contains("\"error\""))
    else {
        return;
    };
    let Ok(value) = cog_json::Value::parse(text) else { return };
    if value.get("status").and_then(Node::as_str) != Some("error") {
        return;
    }
    for key in ["error_type", "message"] {
        if value.get(key).and_then(Node::as_str).is_none_or(str::is_empty) {
            let reason = format!("the error has no `{key}`");
            problems.add(&path.key("content"), &RESULT_ERROR, reason);
        }
    }
}
