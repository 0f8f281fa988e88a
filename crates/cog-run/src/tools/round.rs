//! A round: the calls of one reply, and their results.

use std::iter;

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
        let results = self.calls.iter().zip(&self.results).map(|(call, result)| match result {
            Some(result) => result.clone(),
            None => content::message(call, content::halted()),
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
