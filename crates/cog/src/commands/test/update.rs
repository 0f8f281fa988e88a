//! `--update`: an answer replaces the expected one.

use cog_json::Value;
use cog_module::{
    Module, Origin,
    files::{self, FileError},
    golden::{Expected, GoldenCase},
};
use cog_spec::{Code, ErrorBody};
use serde_json::Value as Json;

use super::answer::without_runtime_keys;

/// Replaces the expected file, in its own form. Returns false for a file with rules, which only a person can change.
pub(super) fn write(module: &Module, case: &GoldenCase, envelope: &Value) -> Result<bool, ErrorBody> {
    if !matches!(module.origin, Origin::Directory(_)) {
        return Err(built_in(module));
    }
    let Some(content) = content(case, envelope) else {
        return Ok(false);
    };
    let text = format!("{content:#}\n");
    files::write_atomic(&case.expected_file, &text).map_err(|error| unwritable(case, &error))?;
    Ok(true)
}

/// Creates the error of a change to a built-in module.
pub(super) fn built_in(module: &Module) -> ErrorBody {
    let name = &module.manifest.name;
    ErrorBody::new(Code::PermissionDenied, format!("`{name}` is built in, so its tests cannot be changed"))
        .suggest(format!("Copy it with `cog new NAME --from {name}`."))
}

fn content(case: &GoldenCase, envelope: &Value) -> Option<Json> {
    let answer = without_runtime_keys(envelope);
    match &case.expected {
        Expected::Exact(old) if old.get("ok").is_some_and(|ok| ok.as_bool().is_some()) => Some(answer),
        Expected::Exact(_) => answer.get("data").cloned(),
        _ => None,
    }
}

fn unwritable(case: &GoldenCase, error: &FileError) -> ErrorBody {
    ErrorBody::new(Code::InvalidReference, format!("{}: {error}", case.expected_file.display()))
}
