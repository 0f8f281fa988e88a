//! Fixes what is wrong with a history and can be fixed without inventing anything.
//!
//! Arguments that are an object become a string. Results move behind their calls. A result that belongs to no call moves
//! to `orphans`, next to the messages. Nothing else changes, and fixing a fixed history changes nothing.

use std::collections::HashMap;

use cog_json::{Node, Writer};
use serde::{Serialize, Serializer, ser::SerializeStruct};

use crate::{
    Document, Problem,
    assign::{Assigned, Orphan, Slot, assign, calls, is_result},
    check,
    rules::{ARGUMENTS_TYPE, COMMENT, RESULT_PLACE, Rule},
};

/// A fixed document, with the changes and the remaining problems.
#[derive(Debug, Clone)]
pub struct FixReport {
    /// The document as compact JSON, in the form of the original. With orphans it is an object.
    pub text: String,
    /// What changed, in the order of the original.
    pub changes: Vec<Change>,
    /// The problems that are left.
    pub problems: Vec<Problem>,
}

/// A change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The path in the original.
    pub path: String,
    /// The rule that was violated.
    pub rule: &'static Rule,
    /// What changed.
    pub message: String,
}

impl Serialize for Change {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut change = serializer.serialize_struct("Change", 3)?;
        change.serialize_field("path", &self.path)?;
        change.serialize_field("rule", self.rule.name)?;
        change.serialize_field("message", &self.message)?;
        change.end()
    }
}

/// Fixes a document. Comments that were removed from its text are changes too.
///
/// # Errors
/// If it has no array of messages.
pub fn fix(document: &Document) -> Result<FixReport, Problem> {
    let messages: Vec<Node<'_>> = document.messages()?.elements().collect();
    let mut changes: Vec<Change> = document.comments().iter().map(|line| Change::comment(*line)).collect();
    let order = Order::new(&messages);
    order.report(&messages, &mut changes);
    let fixed: Vec<String> = order
        .messages
        .iter()
        .filter_map(|at| Some(write_message(*at, *messages.get(*at)?, &mut changes)))
        .collect();
    let orphans: Vec<Node<'_>> =
        order.orphans.iter().filter_map(|orphan| messages.get(orphan.message).copied()).collect();
    let text = document.write(&fixed, &orphans);
    let result = Document::parse(&text)?;
    let problems = check::check(result.messages()?, None);
    Ok(FixReport { text, changes, problems })
}

/// The messages in their new order, as indexes of the original.
struct Order {
    messages: Vec<usize>,
    orphans: Vec<Orphan>,
}

impl Order {
    fn new(messages: &[Node<'_>]) -> Self {
        let Assigned { calls: slots, orphans } = assign(messages);
        let results: HashMap<Slot, usize> = slots.into_iter().map(|(result, slot)| (slot, result)).collect();
        let mut order = Vec::with_capacity(messages.len());
        for (at, message) in messages.iter().enumerate().filter(|(_, message)| !is_result(**message)) {
            order.push(at);
            let slots = calls(*message).enumerate();
            order.extend(slots.filter_map(|(index, _)| results.get(&(at, index)).copied()));
        }
        Self { messages: order, orphans }
    }

    /// Lists the results that follow another message than before, and the orphans.
    fn report(&self, messages: &[Node<'_>], changes: &mut Vec<Change>) {
        let is_orphan: HashMap<usize, &'static Rule> =
            self.orphans.iter().map(|orphan| (orphan.message, orphan.rule)).collect();
        // A result has moved if it follows another message than before. Its index says less: that changes for every message
        // behind a result that moved.
        let mut before = HashMap::new();
        let mut last = None;
        for at in (0..messages.len()).filter(|at| !is_orphan.contains_key(at)) {
            before.insert(at, last);
            last = Some(at);
        }
        let mut last = None;
        for at in &self.messages {
            let moved =
                messages.get(*at).is_some_and(|message| is_result(*message)) && before.get(at) != Some(&last);
            if moved {
                let id = call_id(messages, *at);
                changes.push(Change::new(*at, "", &RESULT_PLACE, format!("moved behind the call `{id}`")));
            }
            last = Some(*at);
        }
        for Orphan { message, rule } in &self.orphans {
            let id = call_id(messages, *message);
            changes.push(Change::new(*message, "", rule, format!("moved the result of `{id}` to `orphans`")));
        }
    }
}

impl Change {
    fn comment(line: usize) -> Self {
        Self { path: format!("line {line}"), rule: &COMMENT, message: "removed a comment".to_owned() }
    }

    fn new(message: usize, below: &str, rule: &'static Rule, what: String) -> Self {
        Self { path: format!("messages[{message}]{below}"), rule, message: what }
    }
}

fn call_id<'a>(messages: &[Node<'a>], at: usize) -> &'a str {
    let id = messages.get(at).and_then(|message| message.get_str("tool_call_id"));
    id.map_or("", crate::read::shown)
}

/// Writes a message, with arguments that are an object as a string.
fn write_message(at: usize, message: Node<'_>, changes: &mut Vec<Change>) -> String {
    let mut out = String::new();
    if !calls(message).any(|call| arguments(call).is_some_and(Node::is_object)) {
        message.write(&mut out);
        return out;
    }
    Writer::compact(&mut out).object(|w| {
        for (key, value) in message.members() {
            match key {
                "tool_calls" => w.key(key).array(|w| write_calls(w, at, value, changes)),
                _ => w.key(key).node(value),
            }
        }
    });
    out
}

fn arguments(call: Node<'_>) -> Option<Node<'_>> {
    call.get("function")?.get("arguments")
}

fn write_calls(w: &mut Writer<'_>, at: usize, calls: Node<'_>, changes: &mut Vec<Change>) {
    for (index, call) in calls.elements().enumerate() {
        let Some(object) = arguments(call).filter(|arguments| arguments.is_object()) else {
            w.node(call);
            continue;
        };
        let below = format!(".tool_calls[{index}].function.arguments");
        changes.push(Change::new(at, &below, &ARGUMENTS_TYPE, "wrote the object as a string".to_owned()));
        w.object(|w| {
            for (key, value) in call.members() {
                match key {
                    "function" => w.key(key).object(|w| write_function(w, value, object)),
                    _ => w.key(key).node(value),
                }
            }
        });
    }
}

fn write_function(w: &mut Writer<'_>, function: Node<'_>, arguments: Node<'_>) {
    for (key, value) in function.members() {
        match key {
            "arguments" => w.key(key).string(&arguments.to_string()),
            _ => w.key(key).node(value),
        }
    }
}

#[cfg(test)]
mod tests;
