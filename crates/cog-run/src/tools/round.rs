//! A round: the calls of one reply, and their results.

use std::{collections::HashSet, iter};

use cog_harmony::{Message, ToolCall};
use cog_spec::{FinishReason, ModelEvent, ToolCallDelta};

use super::results;

/// The calls of one reply, and the results that are known.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Round {
    pub(super) calls: Vec<ToolCall>,
    /// The result of each call.
    pub(super) results: Vec<Option<Message>>,
}

/// The end of a round.
pub(crate) enum RoundEnd {
    /// One message for each call, in the order of the calls (appendix A.2.2).
    Complete(Vec<Message>),
    /// A call waits for a confirmation.
    Halted(Round),
}

impl Round {
    pub(super) fn new(calls: Vec<ToolCall>) -> Self {
        let results = calls.iter().map(|_| None).collect();
        Self { calls, results }
    }

    /// Returns the calls without a result, with their positions.
    pub(super) fn open(&self) -> impl Iterator<Item = (usize, &ToolCall)> {
        let open = self.results.iter().enumerate().filter(|(_, result)| result.is_none());
        open.filter_map(|(position, _)| Some((position, self.calls.get(position)?)))
    }

    pub(super) fn set(&mut self, position: usize, result: Message) {
        if let Some(slot) = self.results.get_mut(position) {
            *slot = Some(result);
        }
    }

    /// Returns whether every call has a result.
    pub(super) fn is_complete(&self) -> bool {
        self.results.iter().all(Option::is_some)
    }

    /// Returns the messages of the round if every call has a result.
    pub(super) fn end(self) -> RoundEnd {
        match self.is_complete() {
            true => RoundEnd::Complete(self.results.into_iter().flatten().collect()),
            false => RoundEnd::Halted(self),
        }
    }

    /// Returns one message for each call; the calls that wait for a confirmation are halted.
    pub(crate) fn messages(&self) -> Vec<Message> {
        let results = self.calls.iter().zip(&self.results).map(|(call, result)| match result {
            Some(result) => result.clone(),
            None => results::message(call, results::halted()),
        });
        results.collect()
    }
}

// The calls for which a run was halted, and what was decided about them.

/// The calls for which a run was halted, from the stored state: whether a call runs does not depend on the settings
/// of the process in which the run continues.
#[derive(Debug, Clone, Default)]
pub(super) struct HaltedCalls(Vec<(ToolCall, Standing)>);

/// What was decided about a call that was halted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Confirmed,
    Denied,
    /// Nothing was decided: it stays halted.
    Waiting,
}

impl Standing {
    /// Returns its name in the audit log.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Denied => "denied",
            Self::Waiting => "waiting",
        }
    }
}

impl HaltedCalls {
    /// Returns the calls of a round that was halted. A decision is about the first of them.
    pub(super) fn new(round: &Round, is_confirmed: bool) -> Self {
        let decided = if is_confirmed { Standing::Confirmed } else { Standing::Denied };
        let standings = [decided].into_iter().chain(iter::repeat(Standing::Waiting));
        Self(round.open().zip(standings).map(|((_, call), standing)| (call.clone(), standing)).collect())
    }

    /// Returns what was decided about a call; none if it was not halted. A decision is about a call with its arguments.
    pub(super) fn standing(&self, call: &ToolCall) -> Option<Standing> {
        let (halted, standing) = self.0.iter().find(|(halted, _)| halted.id == call.id)?;
        let is_same = halted.name == call.name && halted.arguments == call.arguments;
        Some(if is_same { *standing } else { Standing::Waiting })
    }
}

// Collects the tool calls of a reply while they arrive.

/// The maximum number of calls in one reply.
const MAX_CALLS: usize = 256;

/// The maximum size of a reply's text that is sent back with its calls, in bytes.
const MAX_TEXT: usize = 16 << 20;

/// The part of a reply that its tool calls need.
#[derive(Default)]
pub(super) struct ReplyCalls {
    text: String,
    calls: Vec<PartialCall>,
    finish: Option<FinishReason>,
}

/// A call that has arrived in part.
struct PartialCall {
    index: u32,
    call: ToolCall,
}

impl ReplyCalls {
    /// Adds an event of the reply. Arguments beyond `max_bytes` are dropped, but for one byte that shows their excess.
    pub(super) fn observe(&mut self, event: &ModelEvent, max_bytes: usize) {
        match event {
            ModelEvent::Text(text) if self.text.len() + text.len() <= MAX_TEXT => self.text.push_str(text),
            ModelEvent::ToolCall(delta) => self.add(delta, max_bytes),
            ModelEvent::Finished(reason) => self.finish = Some(reason.clone()),
            _ => {}
        }
    }

    fn add(&mut self, delta: &ToolCallDelta, max_bytes: usize) {
        let known = self.calls.iter().position(|call| call.index == delta.index);
        if known.is_none() && self.calls.len() < MAX_CALLS {
            self.calls.push(PartialCall { index: delta.index, call: ToolCall::new("", "", "") });
        }
        let position = known.unwrap_or(self.calls.len().saturating_sub(1));
        let Some(partial) = self.calls.get_mut(position).filter(|call| call.index == delta.index) else {
            return;
        };
        let call = &mut partial.call;
        replace(&mut call.id, delta.id.as_ref());
        replace(&mut call.name, delta.name.as_ref());
        if delta.signature.is_some() {
            call.signature.clone_from(&delta.signature);
        }
        let room = (max_bytes + 1).saturating_sub(call.arguments.len()).min(delta.arguments.len());
        let end = delta.arguments.ceil_char_boundary(room);
        call.arguments.push_str(delta.arguments.get(..end).unwrap_or_default());
    }

    /// Returns the text and the calls of a complete reply, in the order of the calls; none without calls, and none if the
    /// reply was truncated or refused. Each call has an id that no call in `known` has.
    pub(super) fn take(&mut self, known: &mut HashSet<String>) -> Option<(String, Vec<ToolCall>)> {
        let Self { text, mut calls, finish } = std::mem::take(self);
        let is_complete = match finish {
            Some(FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Other(_)) => true,
            Some(
                FinishReason::Length
                | FinishReason::Refusal(_)
                | FinishReason::ContentFilter
                | FinishReason::Continue(_),
            )
            | None => false,
        };
        if calls.is_empty() || !is_complete {
            return None;
        }
        calls.sort_by_key(|call| call.index);
        let calls = calls.into_iter().map(|call| with_id(call.call, known)).collect();
        Some((text, calls))
    }
}

fn replace(field: &mut String, part: Option<&String>) {
    if let Some(part) = part.filter(|part| !part.is_empty()) {
        field.clone_from(part);
    }
}

/// Gives a call an id where its provider sends none, or one that another call has.
fn with_id(mut call: ToolCall, known: &mut HashSet<String>) -> ToolCall {
    let mut number = known.len();
    while call.id.is_empty() || known.contains(&call.id) {
        number += 1;
        call.id = format!("call_{number}");
    }
    known.insert(call.id.clone());
    call
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str, arguments: &str) -> ToolCall {
        ToolCall::new(id, "delete", arguments)
    }

    #[test]
    fn decision_is_about_the_first_call_with_its_arguments() {
        let round = Round::new(vec![call("a", "{}"), call("b", "{}")]);
        for (is_confirmed, decided) in [(true, Standing::Confirmed), (false, Standing::Denied)] {
            let halted = HaltedCalls::new(&round, is_confirmed);
            assert_eq!(halted.standing(&call("a", "{}")), Some(decided));
            assert_eq!(halted.standing(&call("a", r#"{"all": true}"#)), Some(Standing::Waiting));
            assert_eq!(halted.standing(&call("b", "{}")), Some(Standing::Waiting));
            assert_eq!(halted.standing(&call("c", "{}")), None);
        }
    }
}

#[cfg(test)]
mod calls_tests {
    use super::*;

    fn delta(index: u32, id: &str, name: &str, arguments: &str) -> ModelEvent {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let arguments = arguments.to_owned();
        ModelEvent::ToolCall(ToolCallDelta {
            index,
            id: some(id),
            name: some(name),
            arguments,
            signature: None,
        })
    }

    fn calls(events: &[ModelEvent], finish: FinishReason) -> Option<Vec<ToolCall>> {
        let mut reply = ReplyCalls::default();
        events.iter().chain([&ModelEvent::Finished(finish)]).for_each(|event| reply.observe(event, 100));
        Some(reply.take(&mut HashSet::new())?.1)
    }

    #[test]
    fn parts_of_interleaved_calls_are_joined() {
        let events = [
            delta(1, "b", "second", r#"{"x""#),
            delta(0, "a", "first", "{"),
            delta(1, "", "", ":1}"),
            delta(0, "", "", "}"),
        ];
        let calls = calls(&events, FinishReason::ToolCalls).unwrap();
        let shown: Vec<_> = calls
            .iter()
            .map(|call| (call.id.as_str(), call.name.as_str(), call.arguments.as_str()))
            .collect();
        assert_eq!(shown, [("a", "first", "{}"), ("b", "second", r#"{"x":1}"#)]);
    }

    #[test]
    fn missing_and_duplicate_ids_become_unique() {
        let events = [delta(0, "", "t", "{}"), delta(1, "same", "t", "{}"), delta(2, "same", "t", "{}")];
        let calls = calls(&events, FinishReason::Stop).unwrap();
        let ids: HashSet<_> = calls.iter().map(|call| call.id.clone()).collect();
        assert_eq!(ids.len(), 3);
        assert_eq!(calls[1].id, "same");
    }

    #[test]
    fn truncated_and_refused_replies_have_no_calls() {
        let events = [delta(0, "a", "t", "{}")];
        for finish in [FinishReason::Length, FinishReason::ContentFilter, FinishReason::Refusal(None)] {
            assert_eq!(calls(&events, finish), None);
        }
    }

    #[test]
    fn long_arguments_are_stored_up_to_the_limit() {
        let events: Vec<_> = (0..1000).map(|_| delta(0, "a", "t", "ääää")).collect();
        let calls = calls(&events, FinishReason::ToolCalls).unwrap();
        assert!((101..110).contains(&calls[0].arguments.len()), "{}", calls[0].arguments.len());
    }
}
