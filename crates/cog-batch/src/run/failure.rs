//! What the error of a row says about the provider.

use std::time::Duration;

use cog_spec::{Code, ErrorBody};

/// What an error says about the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The budget refused the run.
    Budget,
    /// The provider accepts no requests for a while, with the wait that it requests.
    Overloaded(Option<Duration>),
    /// The provider failed.
    Provider,
    /// The row failed.
    Row,
}

impl Failure {
    pub(super) fn from_error(error: &ErrorBody) -> Self {
        let detail = |name: &str| error.details.as_ref().and_then(|details| details.get(name));
        let reason = detail("reason").and_then(cog_json::Node::as_str);
        if matches!(reason, Some("budget" | "unknown_price")) {
            return Self::Budget;
        }
        let wait = detail("retry_after_ms").and_then(cog_json::Node::as_u64).map(Duration::from_millis);
        let is = |code: Code| error.code == code.into();
        match error.recoverable {
            Some(true) if is(Code::RateLimited) && reason != Some("quota") => Self::Overloaded(wait),
            Some(true)
                if is(Code::ProviderUnavailable) && (wait.is_some() || reason == Some("unavailable")) =>
            {
                Self::Overloaded(wait)
            }
            _ if is(Code::RateLimited) || is(Code::ProviderUnavailable) => Self::Provider,
            _ => Self::Row,
        }
    }
}
