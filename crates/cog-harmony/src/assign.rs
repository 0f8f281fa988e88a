//! Which call each result of a history belongs to.

use std::collections::{HashMap, VecDeque};

use cog_json::Node;

use crate::rules::{RESULT_REPEATED, RESULT_UNKNOWN, Rule};

/// A call: the index of its message, and its own in it.
pub(crate) type Slot = (usize, usize);

/// The results of a history, as indexes of messages.
pub(crate) struct Assigned {
    /// The call of each result.
    pub(crate) calls: HashMap<usize, Slot>,
    pub(crate) orphans: Vec<Orphan>,
}

/// A result that belongs to no call.
pub(crate) struct Orphan {
    pub(crate) message: usize,
    pub(crate) rule: &'static Rule,
}

/// The calls of one message with the same identifier that have no result.
struct Open {
    message: usize,
    calls: VecDeque<usize>,
}

/// Assigns each result to a call with its identifier that has no result: the first one of the last message before it,
/// otherwise the first one after it.
pub(crate) fn assign(messages: &[Node<'_>]) -> Assigned {
    let mut open: HashMap<&str, Vec<Open>> = HashMap::new();
    let mut early: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut assigned = Assigned { calls: HashMap::new(), orphans: Vec::new() };
    for (at, message) in messages.iter().enumerate() {
        for (index, call) in calls(*message).enumerate() {
            if let Some(id) = call.get_str("id") {
                add(open.entry(id).or_default(), (at, index));
            }
        }
        if is_result(*message) {
            match message.get_str("tool_call_id") {
                None => assigned.orphans.push(Orphan { message: at, rule: &RESULT_UNKNOWN }),
                Some(id) => match open.get_mut(id).map(take) {
                    Some(Some(slot)) => drop(assigned.calls.insert(at, slot)),
                    Some(None) => assigned.orphans.push(Orphan { message: at, rule: &RESULT_REPEATED }),
                    None => early.entry(id).or_default().push(at),
                },
            }
        }
    }
    for (id, early) in early {
        let open = open.remove(id);
        let rule = if open.is_some() { &RESULT_REPEATED } else { &RESULT_UNKNOWN };
        let slots =
            open.iter().flatten().flat_map(|open| open.calls.iter().map(|index| (open.message, *index)));
        let mut early = early.into_iter();
        assigned.calls.extend(slots.map_while(|slot| Some((early.next()?, slot))));
        assigned.orphans.extend(early.map(|message| Orphan { message, rule }));
    }
    assigned.orphans.sort_by_key(|orphan| orphan.message);
    assigned
}

fn add(open: &mut Vec<Open>, (message, index): Slot) {
    match open.last_mut().filter(|last| last.message == message) {
        Some(last) => last.calls.push_back(index),
        None => open.push(Open { message, calls: VecDeque::from([index]) }),
    }
}

/// Takes the first call of the last message.
fn take(open: &mut Vec<Open>) -> Option<Slot> {
    let last = open.last_mut()?;
    let slot = last.calls.pop_front().map(|index| (last.message, index));
    if last.calls.is_empty() {
        open.pop();
    }
    slot
}

pub(crate) fn is_result(message: Node<'_>) -> bool {
    message.get_str("role") == Some("tool")
}

/// Returns the calls of a message, if it is one of an assistant.
pub(crate) fn calls(message: Node<'_>) -> impl Iterator<Item = Node<'_>> {
    let is_caller = message.get_str("role") == Some("assistant");
    message.get("tool_calls").filter(|_| is_caller).into_iter().flat_map(Node::elements)
}
