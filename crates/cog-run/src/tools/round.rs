//! A round: the calls of one reply, and their results.

use cog_harmony::{Message, ToolCall};

use super::content;

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
        let results = self.calls.iter().zip(&self.results);
        let message = |(call, result): (&ToolCall, &Option<Message>)| match result {
            Some(result) => result.clone(),
            None => content::message(call, content::halted()),
        };
        results.map(message).collect()
    }
}
