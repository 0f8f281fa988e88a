//! The calls for which a run was halted, and what was decided about them.

use cog_harmony::ToolCall;

use super::Round;

/// The calls for which a run was halted. They are those of the stored state: whether a call runs does not depend on the settings
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
        let standing = |position| if position == 0 { decided } else { Standing::Waiting };
        let calls = round.open().enumerate();
        Self(calls.map(|(position, (_, call))| (call.clone(), standing(position))).collect())
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
