/// What a person decided about a run that waits for a confirmation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// The id of the halted run: `error.details.halted.id`.
    pub id: String,
    /// The decision about the halted call.
    pub decision: Decision,
}

/// The decision about a halted call. It counts once, for this call with these arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Decision {
    /// The string that a person typed. Only `YES` approves the call; after any other string it stays halted.
    Approve(String),
    /// The call is not executed, and the model continues without it.
    Deny,
}

impl Decision {
    /// The string that approves a call (appendix A, exercise 2).
    pub const YES: &'static str = "YES";

    /// Returns the decision that approves the call.
    pub fn yes() -> Self {
        Self::Approve(Self::YES.to_owned())
    }
}
