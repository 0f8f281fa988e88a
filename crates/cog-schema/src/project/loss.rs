use cog_spec::Dialect;
use serde::Serialize;

/// A keyword of a contract that is not sent to the provider as written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// The JSON pointer of the schema in the module's document, or in the schema that is sent if the engine does not enforce
    /// it; empty for the complete contract.
    pub pointer: String,
    /// The keyword; empty for the complete schema.
    pub keyword: String,
    /// How it is handled.
    pub kind: LossKind,
    /// The reason.
    pub reason: String,
}

/// How a keyword is handled that is not sent as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LossKind {
    /// It is sent in another form.
    Projected,
    /// It is not sent; the check of the answer enforces it.
    EnforcedLocally,
    /// It is sent, and the engine ignores it; the check of the answer enforces it.
    NotEnforced,
}

impl LossKind {
    /// Returns its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            LossKind::Projected => "projected",
            LossKind::EnforcedLocally => "enforced_locally",
            LossKind::NotEnforced => "not_enforced",
        }
    }
}

impl Loss {
    /// Returns the loss of a contract that a dialect cannot express.
    pub(super) fn for_dialect(dialect: Dialect, reason: &str) -> Self {
        Self {
            pointer: String::new(),
            keyword: String::new(),
            kind: LossKind::EnforcedLocally,
            reason: format!("{dialect}: {reason}"),
        }
    }
}
