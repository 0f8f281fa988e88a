use crate::string_enum::string_enum;

/// `checks`: a rule of an answer that its schema cannot express.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckRule {
    /// Its name, unique in the module.
    pub name: String,
    /// The condition that must be true; none if `grounded` is set.
    pub that: Option<String>,
    /// The path of texts that must occur in the input.
    pub grounded: Option<String>,
    /// The condition under which it applies; none if it always does.
    pub when: Option<String>,
    /// What is wrong with an answer that fails, for a person and for the model.
    pub message: Option<String>,
    /// What a failure is.
    pub severity: CheckSeverity,
}

string_enum! {
    /// What it is if an answer fails a check.
    #[derive(Default)]
    CheckSeverity {
        /// An error: the answer is rejected (E3006).
        #[default]
        Error = "error",
        /// A warning (W3011): the answer is accepted.
        Warning = "warning",
    }
}
