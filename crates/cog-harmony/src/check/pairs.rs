//! Each tool call has one result, directly after it (appendix A.2.2).

use std::collections::{HashMap, HashSet};

use cog_json::Node;

use super::{calls, role};
use crate::{
    assign::{Assigned, Slot, assign},
    problem::{Path, Problems},
    read::shown,
    rules::{
        CALL_ID, CALL_ROLE, RESULT_ERROR, RESULT_MISSING, RESULT_NAME, RESULT_ORDER, RESULT_PLACE,
        RESULT_REPEATED, RESULT_UNKNOWN,
    },
};

pub(super) fn check(messages: Node<'_>, problems: &mut Problems) {
    let all: Vec<Node<'_>> = messages.elements().collect();
    let Assigned { calls, orphans } = assign(&all);
    let repeated = orphans.iter().filter(|orphan| orphan.rule.name == RESULT_REPEATED.name);
    let mut history = History {
        assigned: calls,
        repeated: repeated.map(|orphan| orphan.message).collect(),
        ..History::default()
    };
    // All calls first: a result may be before its call, which is an error of its own.
    for (index, message) in all.iter().enumerate() {
        history.add_calls(index, *message, problems);
    }
    for (index, message) in all.iter().enumerate() {
        history.follow(index, *message, problems);
    }
    history.report_missing(problems);
}

/// The calls of a history.
#[derive(Default)]
struct History<'a> {
    /// The call of each result, by the indexes of their messages.
    assigned: HashMap<usize, Slot>,
    /// The results whose calls have one already.
    repeated: HashSet<usize>,
    calls: Vec<Call<'a>>,
    by_slot: HashMap<Slot, usize>,
    /// The first call with each identifier.
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
    /// Whether no call before it has its identifier.
    is_first: bool,
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
            self.add_call((at, index), call, &path, problems);
        }
    }

    fn add_call(&mut self, slot: Slot, call: Node<'a>, path: &Path<'_>, problems: &mut Problems) {
        let Some(id) = call.get_str("id") else { return };
        let (message, index) = slot;
        let first = self.by_id.get(id).and_then(|first| self.calls.get(*first));
        let reason = match first {
            Some(first) => Some(format!("`{}` is also the id of {}", shown(id), first.path())),
            None => id.is_empty().then(|| "the id is empty".to_owned()),
        };
        let name = call.get("function").and_then(|function| function.get_str("name"));
        self.by_id.entry(id).or_insert(self.calls.len());
        self.by_slot.insert(slot, self.calls.len());
        self.calls.push(Call { message, index, id, name, is_first: reason.is_none(), result: None });
        if let Some(reason) = reason {
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
        let Some(id) = message.get_str("tool_call_id") else { return };
        let call = self.assigned.get(&at).and_then(|slot| self.by_slot.get(slot)).copied();
        let Some(call) = call.and_then(|call| self.calls.get_mut(call)) else {
            return self.report_orphan(at, id, &path, problems);
        };
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
        let name = message.get_str("name");
        if let (Some(name), Some(function)) = (name, call.name.filter(|function| Some(*function) != name)) {
            let reason = format!("found `{}`, but `{}` was called", shown(name), shown(function));
            problems.add(&path.key("name"), &RESULT_NAME, reason);
        }
    }

    /// Reports a result that belongs to no call.
    fn report_orphan(&self, at: usize, id: &str, path: &Path<'_>, problems: &mut Problems) {
        let path = path.key("tool_call_id");
        if !self.repeated.contains(&at) {
            return problems.add(&path, &RESULT_UNKNOWN, format!("no call has the id `{}`", shown(id)));
        }
        let first = self.by_id.get(id).and_then(|call| self.calls.get(*call)?.result);
        let reason = match first {
            Some(first) => format!("messages[{first}] is the result of `{}`", shown(id)),
            None => format!("`{}` has a result already", shown(id)),
        };
        problems.add(&path, &RESULT_REPEATED, reason);
    }

    /// Reports the calls without a result. Those with an identifier of another call have that error.
    fn report_missing(&self, problems: &mut Problems) {
        for call in self.calls.iter().filter(|call| call.is_first && call.result.is_none()) {
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
        None => content.and_then(|parts| parts.at(0)?.get_str("text")),
    };
    // Results can be long, and most report no error. Only one that may do so is parsed.
    let Some(text) = text.filter(|text| text.contains("\"error\"")) else { return };
    let Ok(value) = cog_json::Value::parse(text) else { return };
    if value.get_str("status") != Some("error") {
        return;
    }
    for key in ["error_type", "message"] {
        if value.get_str(key).is_none_or(str::is_empty) {
            let reason = format!("the error has no `{key}`");
            problems.add(&path.key("content"), &RESULT_ERROR, reason);
        }
    }
}
