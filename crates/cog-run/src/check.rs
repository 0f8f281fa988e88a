//! The interface of a check: what a program requires of an answer, and a schema cannot say.

use std::{fmt, pin::Pin};

use cog_json::Value;
use cog_spec::ErrorBody;

/// A check of an answer that conforms to its contract.
///
/// What it finds is sent to the model with the request for another answer. After the last attempt, the run fails with E3006.
pub trait AnswerCheck: Send + Sync {
    /// Returns what is wrong in the data of an answer; none of a right one. Dropping the future cancels the check, which happens when
    /// the run times out or is cancelled. It runs in the task of the run, so that it must not block.
    ///
    /// # Errors
    /// The check itself failed, which ends the run.
    fn check<'a>(&'a self, data: &'a Value) -> CheckFuture<'a>;
}

/// The future of a check.
pub type CheckFuture<'a> = Pin<Box<dyn Future<Output = Result<Vec<CheckViolation>, ErrorBody>> + Send + 'a>>;

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckViolation {
    /// The path of the value: `data.total`.
    pub path: String,
    /// What is wrong, for the model.
    pub message: String,
}

impl fmt::Debug for dyn AnswerCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnswerCheck")
    }
}
