//! Errors of lower crates as the `error` of an envelope.

use cog_json::{Path, ToJson, Value};
use cog_media::MediaError;
use cog_module::{Diagnostic, FindError, LoadError, Severity};
use cog_schema::Violation;
use cog_spec::{Code, ErrorBody};
use tokio::task::JoinError;

pub(crate) fn from_search(error: &FindError) -> ErrorBody {
    ErrorBody::new(error.code(), error.to_string()).suggest(error.suggestion())
}

pub(crate) fn from_loading(name: &str, error: &LoadError) -> ErrorBody {
    let errors = error.diagnostics.iter().filter(|found| found.severity == Severity::Error);
    let findings: Vec<_> = errors.map(as_json).collect();
    ErrorBody::new(error.code(), format!("{name}: {error}"))
        .suggest(format!("`cog validate {name}` shows each location."))
        .with_details(Value::from(serde_json::json!({ "diagnostics": findings })))
}

/// Returns the error of work on another thread that panicked or was cancelled. The text of the panic goes to the log only: it can
/// contain anything.
pub(crate) fn from_task(error: &JoinError) -> ErrorBody {
    ErrorBody::new(Code::InternalError, task_failed(error).to_string()).suggest(Code::InternalError.advice())
}

/// As [`from_task`], for work that returns errors of the disk.
pub(crate) fn task_failed(error: &JoinError) -> std::io::Error {
    tracing::error!(%error, "a background task failed");
    std::io::Error::other("a background task failed")
}

/// Returns the error of a run whose media were rejected.
pub(crate) fn media_rejected(errors: &[(Path, MediaError)]) -> ErrorBody {
    let messages: Vec<String> = errors.iter().map(|(path, error)| format!("{path}: {error}")).collect();
    let mut body = match errors.first() {
        Some((_, first)) => ErrorBody::from(first),
        None => ErrorBody::new(Code::InternalError, ""),
    };
    body.message = messages.join("; ");
    body
}

fn as_json(diagnostic: &Diagnostic) -> serde_json::Value {
    serde_json::from_str(&diagnostic.to_json()).unwrap_or_default()
}

/// The maximum number of violations in a message; `details.violations` contains all of them.
const MAX_LISTED: usize = 20;

/// Returns the error of an invalid input. Its code is the code of the violations if they agree, otherwise E1001.
pub(crate) fn from_violations(violations: &[Violation]) -> ErrorBody {
    let code = match violations {
        [first, rest @ ..] if rest.iter().all(|other| other.code == first.code) => first.code,
        _ => Code::InvalidInput,
    };
    let message = match violations {
        [only] => format!("{}: {}", only.path, only.message),
        many => {
            let list: Vec<_> = many
                .iter()
                .take(MAX_LISTED)
                .map(|found| format!("{}: {}", found.path, found.message))
                .collect();
            let more = if many.len() > MAX_LISTED { "; …" } else { "" };
            format!("the input violates its schema in {} locations: {}{more}", many.len(), list.join("; "))
        }
    };
    let mut error = ErrorBody::new(code, message).with_details(Value::from(
        serde_json::json!({ "violations": violations.iter().map(entry).collect::<Vec<_>>() }),
    ));
    error.suggestion = violations.iter().find_map(|found| found.suggestion.clone());
    error
}

fn entry(violation: &Violation) -> serde_json::Value {
    serde_json::json!({
        "path": violation.path,
        "rule": violation.rule,
        "message": violation.message,
        "code": violation.code.as_str(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn text_of_a_panic_is_not_in_the_error() {
        let failed = tokio::task::spawn_blocking(|| panic!("canary")).await.unwrap_err();
        let error = from_task(&failed);
        assert_eq!((&error.code, &*error.message), (&Code::InternalError.into(), "a background task failed"));
        assert!(!error.to_json().contains("canary"), "{error:?}");
    }
}
