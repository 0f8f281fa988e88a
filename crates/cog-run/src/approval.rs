/// Continues a run that waits for a confirmation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Continuation {
    /// The id of the halted run: `error.details.halted.id`.
    pub id: String,
    /// The decision about the halted call.
    pub decision: Decision,
}

/// The decision about a halted call. It counts once, for this call with these arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The text that a person typed. Only `YES` confirms the call; after any other text it stays halted.
    Confirm(String),
    /// The call is not executed, and the model continues without it.
    Deny,
}

impl Decision {
    /// The text that confirms a call (appendix A, exercise 2).
    pub const YES: &'static str = "YES";

    /// Returns the decision that confirms the call.
    pub fn yes() -> Self {
        Self::Confirm(Self::YES.to_owned())
    }
}
