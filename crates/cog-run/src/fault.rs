//! Faults of the crates below, as the `error` of an envelope.

use cog_json::{ToJson, Value};
use cog_module::{Diagnostic, FindError, LoadError, Severity};
use cog_spec::ErrorBody;

pub(crate) fn of_search(error: &FindError) -> ErrorBody {
    ErrorBody::new(error.code(), error.to_string()).suggest(error.suggestion())
}

pub(crate) fn of_loading(name: &str, error: &LoadError) -> ErrorBody {
    let errors = error.diagnostics.iter().filter(|found| found.severity == Severity::Error);
    let findings: Vec<_> = errors.map(as_json).collect();
    ErrorBody::new(error.code(), format!("{name}: {error}"))
        .suggest(format!("`cog validate {name}` shows each place"))
        .with_details(Value::from(serde_json::json!({ "diagnostics": findings })))
}

fn as_json(diagnostic: &Diagnostic) -> serde_json::Value {
    serde_json::from_str(&diagnostic.to_json()).unwrap_or_default()
}
