//! The entries of the log of tool calls: a line of JSON each.

use std::collections::HashSet;

use cog_harmony::{Message, ToolCall};
use cog_json::{Node, Value, Writer};
use cog_spec::Usage;
use serde::Deserialize as _;

use super::{
    Round,
    results::Done,
    state::{self, CallNote, HaltedState, Progressed},
};

/// Returns the entry of a round that begins.
pub(super) fn round(
    message: &Message,
    round: &Round,
    usage: Option<&Usage>,
    hashes: &[(String, String)],
) -> String {
    line(|w| {
        state::write_message(w.key("round"), Some(message));
        w.key("calls").array(|w| round.calls.iter().for_each(|call| state::write_call(w, call)));
        w.optional("usage", &usage);
        state::write_hashes(w.key("hashes"), hashes);
    })
}

/// Returns the entry of a run that continues after a decision about its halted call.
pub(super) fn continued(state: &HaltedState, is_confirmed: bool) -> String {
    line(|w| {
        w.field("continued", &Value::parse(&state.to_text()).unwrap_or_default());
        w.field("is_confirmed", &is_confirmed);
    })
}

/// Returns the entry of a halted run that this run has claimed. It follows the entry of the decision.
pub(super) fn claimed() -> String {
    line(|w| {
        w.field("claimed", &true);
    })
}

/// Returns the entry of a call that begins.
pub(super) fn start(call: &ToolCall) -> String {
    line(|w| {
        w.field("start", &call.id);
    })
}

/// Returns the entry of a result.
pub(super) fn end(done: &Done) -> String {
    line(|w| {
        state::write_message(w.key("end"), Some(&done.message));
        w.field("note", &done.note);
        w.field("is_high_risk", &done.is_high_risk);
        w.optional("usage", &done.usage);
    })
}

fn line(members: impl FnOnce(&mut Writer<'_>)) -> String {
    let mut line = String::new();
    Writer::compact(&mut line).object(members);
    line.push('\n');
    line
}

/// The calls in a log.
#[derive(Default)]
pub(super) struct Logged {
    /// The hash of each part of the module.
    pub(super) hashes: Vec<(String, String)>,
    /// The messages of the complete rounds, and the request of the last one.
    pub(super) messages: Vec<Message>,
    /// The last round, unless it is complete.
    pub(super) round: Option<Round>,
    pub(super) progressed: Progressed,
    /// The ids of calls that began, and may have changed something.
    pub(super) started: HashSet<String>,
    /// The halted run that was continued, and whether its call was confirmed.
    pub(super) continued: Option<(Box<HaltedState>, bool)>,
    /// Whether the run has claimed that halted run: no other can continue it.
    pub(super) is_claimed: bool,
}

impl Logged {
    /// Reads the entries; none if there is nothing to continue from. A line that was written only in part is skipped: nothing happened after
    /// it.
    pub(super) fn read(text: &str) -> Option<Self> {
        let mut logged = Self::default();
        for value in text.lines().filter_map(|line| Value::parse(line).ok()) {
            let _ = logged.add(value.node());
        }
        logged.end_round();
        (logged.progressed.rounds > 0 || logged.continued.is_some()).then_some(logged)
    }

    fn add(&mut self, entry: Node<'_>) -> Option<()> {
        if let Some(id) = entry.get("start") {
            self.started.insert(id.as_str()?.to_owned());
        } else if let Some(message) = entry.get("end") {
            self.add_result(state::read_message(message)?, entry)?;
        } else if let Some(state) = entry.get("continued") {
            self.continue_from(HaltedState::from_node(state)?, entry.get("is_confirmed")?.as_bool()?);
        } else if let Some(is_claimed) = entry.get("claimed") {
            self.is_claimed = is_claimed.as_bool()?;
        } else if let Some(message) = entry.get("round") {
            self.end_round();
            self.messages.push(state::read_message(message)?);
            let calls = entry.get("calls")?.elements().map(state::read_call).collect::<Option<Vec<_>>>()?;
            self.progressed.rounds += 1;
            self.progressed.calls += u32::try_from(calls.len()).ok()?;
            self.progressed.usage = entry.get("usage").and_then(Usage::read);
            self.round = Some(Round::new(calls));
            if self.hashes.is_empty() {
                self.hashes = state::read_hashes(entry.get("hashes")?)?;
            }
        }
        Some(())
    }

    /// Begins with the messages of a halted run.
    fn continue_from(&mut self, state: HaltedState, is_confirmed: bool) {
        self.hashes.clone_from(&state.hashes);
        self.messages.clone_from(&state.messages);
        self.round = state.own_round().cloned();
        self.progressed = state.progressed.clone();
        self.continued = Some((Box::new(state), is_confirmed));
    }

    fn add_result(&mut self, message: Message, entry: Node<'_>) -> Option<()> {
        let round = self.round.as_mut()?;
        let id = message.tool_call_id.as_deref();
        let position = round.calls.iter().position(|call| Some(call.id.as_str()) == id)?;
        round.set(position, message);
        let progressed = &mut self.progressed;
        progressed.notes.push(CallNote::deserialize(entry.get("note")?).ok()?);
        progressed.is_high_risk |= entry.get("is_high_risk")?.as_bool()?;
        if let Some(spent) = entry.get("usage").and_then(Usage::read) {
            progressed.usage =
                Some(progressed.usage.take().map_or(spent.clone(), |usage| usage.plus(&spent)));
        }
        Some(())
    }

    /// Moves the results of a complete round to the messages.
    fn end_round(&mut self) {
        if let Some(round) = self.round.take_if(|round| round.is_complete()) {
            self.messages.extend(round.results.into_iter().flatten());
        }
    }
}

#[cfg(test)]
mod tests {
    use cog_harmony::Part;

    use super::*;
    use crate::tools::results;

    fn call(id: &str) -> ToolCall {
        ToolCall::new(id, "look", "{}")
    }

    fn requested(ids: &[&str]) -> String {
        let calls: Vec<_> = ids.iter().map(|id| call(id)).collect();
        let message = Message { tool_calls: calls.clone(), ..Message::assistant("") };
        let usage = Usage { input_tokens: 10, ..Usage::default() };
        round(&message, &Round::new(calls), Some(&usage), &[("prompt".to_owned(), "ab".to_owned())])
    }

    fn ended(id: &str) -> String {
        let note = CallNote { id: id.to_owned(), tool: "look".to_owned(), status: "success".to_owned() };
        let message = results::message(&call(id), vec![Part::text("seen")]);
        let usage = Some(Usage { input_tokens: 5, ..Usage::default() });
        end(&Done { message, note, usage, is_high_risk: id == "c" })
    }

    #[test]
    fn complete_rounds_are_messages_and_the_last_one_is_open() {
        let text =
            [&requested(&["a"]), &ended("a"), &requested(&["b", "c", "d"]), &start(&call("b")), &ended("c")];
        let text = text.map(String::as_str).concat();
        let logged = Logged::read(&text).unwrap();
        let roles: Vec<_> = logged.messages.iter().map(|message| message.role.as_str()).collect();
        assert_eq!(roles, ["assistant", "tool", "assistant"]);
        let round = logged.round.unwrap();
        assert_eq!(round.open().map(|(_, call)| call.id.as_str()).collect::<Vec<_>>(), ["b", "d"]);
        assert_eq!(logged.started, HashSet::from(["b".to_owned()]));
        let Progressed { rounds, calls, is_high_risk, notes, usage, .. } = logged.progressed;
        assert_eq!((rounds, calls, is_high_risk, notes.len()), (2, 4, true, 2));
        assert_eq!(usage.unwrap().input_tokens, 15);
        assert_eq!(logged.hashes, [("prompt".to_owned(), "ab".to_owned())]);
    }

    #[test]
    fn text_that_ends_anywhere_has_the_calls_before() {
        let text = [requested(&["a"]), start(&call("a")), ended("a"), requested(&["b"])].concat();
        let lines: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
        for end in 0..=text.len() {
            let complete = lines.iter().filter(|line| **line <= end).count();
            let messages = Logged::read(&text[..end]).map_or(0, |logged| logged.messages.len());
            assert_eq!(messages, [0, 1, 1, 2, 3][complete], "{end}");
            let continued = format!("{}\n{}{}", &text[..end], requested(&["c"]), ended("c"));
            let messages = Logged::read(&continued).unwrap().messages.len();
            assert_eq!(messages, [2, 3, 3, 4, 5][complete], "{end}");
        }
        assert!(Logged::read("").is_none());
    }
}
