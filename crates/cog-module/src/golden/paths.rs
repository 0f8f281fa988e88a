//! Warnings about paths of an expected file that no answer has.

use std::collections::HashSet;

use cog_json::{Path, Segment};

use super::{
    Expected, GoldenCase,
    contract::property_names,
    expected::{OPERATORS, operator, path},
};
use crate::{Diagnostic, Module, Rule, diagnostic::nearest};

/// Members of the data that exist without a schema of their own.
const COMMON: [&str; 2] = ["rationale", "extensions"];

/// Returns a warning for each path that starts with an unknown field of the data, or ends with a length.
pub(crate) fn unknown_paths(module: &Module, case: &GoldenCase) -> Vec<Diagnostic> {
    let names = property_names(&module.schema);
    if module.contract.data_schema().is_none_or(|data| data.get("properties").is_none()) {
        return Vec::new();
    }
    let help = |key: &str| length(key, &names).or_else(|| unknown_field(key, &names));
    let unknown = keys(&case.expected).into_iter().filter_map(|key| Some((help(&key)?, key)));
    unknown.map(|(help, key)| warning(case, &key, help)).collect()
}

/// Returns the keys of an expected file that are paths.
fn keys(expected: &Expected) -> Vec<String> {
    match expected {
        Expected::Exact(_) => Vec::new(),
        Expected::Schemas { fields, .. } => fields.iter().map(|(path, _)| path.to_string()).collect(),
        Expected::Assertions { assertions, .. } => {
            let required = assertions.get("required").into_iter().flat_map(|paths| paths.elements());
            let required = required.filter_map(|path| path.as_str().map(str::to_owned));
            let keys = assertions.members().map(|(key, _)| key.to_owned());
            keys.filter(|key| key != "required").chain(required).collect()
        }
    }
}

/// Returns a suggestion if a key starts with a field that no schema of the module defines.
fn unknown_field(key: &str, names: &HashSet<&str>) -> Option<String> {
    let field = first_field(key)?;
    let is_known = |name: &str| names.contains(name) || COMMON.contains(&name);
    let without_operator = operator(&field).map(|(name, _)| name);
    if is_known(&field) || without_operator.is_some_and(is_known) {
        return None;
    }
    let begins = |name: &&&str| field.strip_prefix(**name).is_some_and(|rest| rest.starts_with('_'));
    Some(match names.iter().find(begins) {
        Some(name) => {
            let operators: Vec<_> = OPERATORS.iter().map(|(suffix, _)| format!("`{name}{suffix}`")).collect();
            format!("Write one of {}.", operators.join(", "))
        }
        None => match nearest(&field, names.iter().copied()) {
            Some(name) => format!("Did you mean `{name}`?"),
            None => "`cog info` lists the fields of the data.".to_owned(),
        },
    })
}

/// Returns a suggestion for `items.length` or `items.length_min`, unless a schema defines a field of that name.
fn length(key: &str, names: &HashSet<&str>) -> Option<String> {
    let (path, rest) = key.rsplit_once(".length")?;
    let is_end = rest.is_empty() || OPERATORS.iter().any(|(suffix, _)| *suffix == rest);
    (is_end && !names.contains("length"))
        .then(|| format!("`{path}_min` and `{path}_max` compare the length of a list or a text."))
}

/// Returns the first field of a path into the data, with the operator if there is one.
fn first_field(key: &str) -> Option<String> {
    let path: Path = path(key).ok()?;
    let mut fields = path.segments().filter_map(|segment| match segment {
        Segment::Key(name) => Some(name),
        Segment::Index(_) => None,
    });
    match fields.next()? {
        "ok" | "meta" | "error" => None,
        "data" => fields.next().map(str::to_owned),
        name => Some(name.to_owned()),
    }
}

fn warning(case: &GoldenCase, key: &str, help: String) -> Diagnostic {
    let message = format!("`{key}` names a field that the schema does not define");
    Diagnostic::warning(Rule::GoldenPath, &case.expected_file, message).suggest(help)
}
