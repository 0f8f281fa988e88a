//! Converts errors of the engine to messages: what was found, what is allowed, and a suggestion.

use std::sync::Arc;

use cog_json::{Kind, Node};
use serde_json::{Map, Value};

use crate::engine::{Allowed, Bound, EngineError, MAX_VIOLATIONS, Reason};
use crate::locate::Locator;
use crate::subschema::token;
use crate::wording::{Suggestions, either, quoted};

/// A violation in a value, with its message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Its JSON pointer, from the checked value. For a missing member, the pointer that it would have.
    pub(crate) at: String,
    /// The keyword, or the name of a rule of the runtime.
    pub(crate) rule: String,
    /// What was found and what is allowed.
    pub(crate) message: String,
    /// What the author probably meant.
    pub(crate) suggestion: Option<String>,
    /// The JSON pointer of the keyword in the document.
    pub(crate) schema: String,
}

/// Returns the findings of errors: of alternatives only the best branch, one finding per pointer and rule, at most
/// [`MAX_VIOLATIONS`].
///
/// `locator` finds values in the checked value, and `document` contains its schema.
pub(crate) fn findings(errors: &[EngineError], locator: &Locator<'_>, document: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    let reporter = Reporter { locator, document, suggestions: Suggestions::default() };
    reporter.report_all("", errors, &mut findings);
    findings.truncate(MAX_VIOLATIONS);
    drop_repeated(findings)
}

/// Describes a value for a message: the value itself if it is short and without white space, otherwise its kind and
/// size, so that a message never repeats content.
pub(crate) fn found(node: Node<'_>) -> String {
    match node.kind() {
        Kind::Null => "null".to_owned(),
        Kind::Bool => node.to_string(),
        Kind::Number => short(&node.to_string()).unwrap_or_else(|| "a number".to_owned()),
        Kind::String => text(node.as_str().unwrap_or_default()),
        Kind::Array => format!("an array of {}", counted(node.len(), "item")),
        Kind::Object => "an object".to_owned(),
    }
}

/// Returns a count with its unit: `1 item`, `2 items`.
pub(crate) fn counted(count: usize, unit: &str) -> String {
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

fn text(text: &str) -> String {
    match short(text) {
        Some(short) if !short.is_empty() => quoted(&short),
        Some(_) => "an empty string".to_owned(),
        None => format!("a string of {}", counted(text.chars().count(), "character")),
    }
}

fn short(text: &str) -> Option<String> {
    const MAX_LEN: usize = 24;
    let is_short =
        text.len() <= MAX_LEN && !text.contains(|char: char| char.is_whitespace() || char.is_control());
    is_short.then(|| text.to_owned())
}

/// Removes repeated findings, and other findings of a value that has the wrong type.
fn drop_repeated(findings: Vec<Finding>) -> Vec<Finding> {
    let mistyped: Vec<String> =
        findings.iter().filter(|one| one.rule == "type").map(|one| one.at.clone()).collect();
    let mut remaining: Vec<Finding> = Vec::with_capacity(findings.len());
    for finding in findings {
        // A number where a string is expected matches no pattern either, which says nothing new.
        let is_moot = finding.rule != "type" && mistyped.contains(&finding.at);
        let is_known = remaining.iter().any(|other| other.at == finding.at && other.rule == finding.rule);
        if !is_moot && !is_known {
            remaining.push(finding);
        }
    }
    remaining
}

struct Reporter<'a, 'v> {
    locator: &'a Locator<'v>,
    document: &'a Value,
    suggestions: Suggestions,
}

impl<'v> Reporter<'_, 'v> {
    /// Reports errors with pointers from `base`, up to the maximum.
    fn report_all(&self, base: &str, errors: &[EngineError], into: &mut Vec<Finding>) {
        for error in errors {
            if into.len() >= MAX_VIOLATIONS {
                return;
            }
            self.report(&error.below(base), into);
        }
    }

    /// Reports an error with a pointer from the root.
    fn report(&self, error: &EngineError, into: &mut Vec<Finding>) {
        match &error.reason {
            Reason::Required(key) => into.push(self.absent(error, key)),
            Reason::Unexpected(keys) => {
                into.extend(keys.iter().take(MAX_VIOLATIONS).map(|key| self.unexpected(error, key)));
            }
            Reason::NoBranch(branches) => self.report_branches(error, branches, into),
            Reason::Name(inner) => into.push(self.misnamed(error, inner)),
            reason => {
                let suggestion = self.suggest(error, reason);
                into.push(finding(error, error.at.clone(), self.message(error, reason), suggestion));
            }
        }
    }

    fn absent(&self, error: &EngineError, key: &str) -> Finding {
        let names = self.at(error).map(|object| object.members().map(|(name, _)| name));
        let near = names.and_then(|names| self.suggestions.nearest(key, names));
        let suggestion = near.map(|name| format!("Rename {} to {}?", quoted(name), quoted(key)));
        let at = format!("{}/{}", error.at, token(key));
        finding(error, at, format!("{} is required but missing", quoted(key)), suggestion)
    }

    fn unexpected(&self, error: &EngineError, key: &str) -> Finding {
        let names = self.sibling_fields(error).filter(|names| !names.is_empty());
        let message = match names {
            None => format!("{} is not allowed; the schema allows no field here", quoted(key)),
            Some(names) => {
                let allowed = either(names.keys().map(|name| quoted(name)));
                format!("unknown field {}; allowed: {allowed}", quoted(key))
            }
        };
        let near = names.and_then(|names| self.suggestions.nearest(key, names.keys().map(String::as_str)));
        let suggestion = near.map(|name| format!("Did you mean {}?", quoted(name)));
        finding(error, format!("{}/{}", error.at, token(key)), message, suggestion)
    }

    fn misnamed(&self, error: &EngineError, inner: &EngineError) -> Finding {
        let message = format!("invalid field name: {}", self.message(error, &inner.reason));
        finding(error, error.at.clone(), message, None)
    }

    fn message(&self, error: &EngineError, reason: &Reason) -> String {
        let node = self.at(error);
        let found = node.map_or_else(|| "nothing".to_owned(), found);
        match reason {
            Reason::Type(types) => {
                format!("found {found}; allowed: {}", either(types.iter().map(|name| with_article(name))))
            }
            Reason::Allowed(allowed) => {
                let values: Vec<&Value> = allowed.iter().flat_map(Allowed::values).collect();
                format!("found {found}; allowed: {}", either(values.into_iter().map(literal)))
            }
            Reason::Bound(bound) => bounded(node, &found, bound),
            Reason::Pattern(pattern) => format!("{found} does not match the pattern {}", quoted(pattern)),
            Reason::Format(format) => format!("{found} is not a valid {format}"),
            Reason::ManyBranches => format!("{found} matches several alternatives; exactly one is allowed"),
            Reason::Other(message) => message.clone(),
            _ => format!("{found} is not valid"),
        }
    }

    /// Suggests the allowed value that the author probably meant.
    fn suggest(&self, error: &EngineError, reason: &Reason) -> Option<String> {
        let Reason::Allowed(allowed) = reason else { return None };
        let text = self.at(error)?.as_str()?;
        let values = allowed.iter().flat_map(Allowed::values).filter_map(Value::as_str);
        let near = self.suggestions.nearest(text, values)?;
        Some(format!("Did you mean {}?", quoted(near)))
    }

    fn report_branches(&self, error: &EngineError, branches: &[Arc<[EngineError]>], into: &mut Vec<Finding>) {
        if let Some(merged) = merged(branches) {
            return self.report(&merged.below(&error.at), into);
        }
        match best(branches) {
            Some(branch) => self.report_all(&error.at, branch, into),
            None => {
                let found = self.at(error).map_or_else(|| "nothing".to_owned(), found);
                let message = format!("{found} matches none of the {} alternatives", branches.len());
                into.push(finding(error, error.at.clone(), message, None));
            }
        }
    }

    fn at(&self, error: &EngineError) -> Option<Node<'v>> {
        self.locator.find(&error.at)
    }

    /// Returns the fields that the schema defines next to the keyword of an error.
    fn sibling_fields(&self, error: &EngineError) -> Option<&Map<String, Value>> {
        let (outer, _) = error.schema.rsplit_once('/')?;
        self.document.pointer(outer)?.get("properties")?.as_object()
    }
}

fn finding(error: &EngineError, at: String, message: String, suggestion: Option<String>) -> Finding {
    Finding { at, rule: error.keyword.clone(), message, suggestion, schema: error.schema.clone() }
}

/// Returns one error for alternatives that all fail in the same simple way: a field that each requires is missing, no
/// type matches, or no listed value does.
fn merged(branches: &[Arc<[EngineError]>]) -> Option<EngineError> {
    if let Some(absent) = absent_in_all(branches) {
        return Some(absent.clone());
    }
    let decisive: Vec<&EngineError> =
        branches.iter().map(|branch| decisive(branch)).collect::<Option<_>>()?;
    let (first, others) = decisive.split_first()?;
    let mut merged = (*first).clone();
    for other in others {
        if other.at != merged.at {
            return None;
        }
        match (&mut merged.reason, &other.reason) {
            (Reason::Type(all), Reason::Type(more)) => {
                all.extend(more.iter().filter(|one| !all.contains(one)).copied().collect::<Vec<_>>());
            }
            (Reason::Allowed(all), Reason::Allowed(more)) => all.extend(more.iter().cloned()),
            _ => return None,
        }
    }
    Some(merged)
}

fn absent_in_all(branches: &[Arc<[EngineError]>]) -> Option<&EngineError> {
    let (first, others) = branches.split_first()?;
    let mut absent = first.iter().filter(|error| matches!(error.reason, Reason::Required(_)));
    absent.find(|error| {
        others
            .iter()
            .all(|branch| branch.iter().any(|other| other.at == error.at && other.reason == error.reason))
    })
}

/// Returns the error that shows that a branch was not meant: another type, or another value of a direct field.
fn decisive(branch: &[EngineError]) -> Option<&EngineError> {
    let mistyped = branch.iter().find(|inner| inner.at.is_empty() && matches!(inner.reason, Reason::Type(_)));
    mistyped.or_else(|| branch.iter().find(|inner| is_discriminator(inner)))
}

fn is_discriminator(inner: &EngineError) -> bool {
    matches!(inner.reason, Reason::Allowed(_)) && inner.at.matches('/').count() <= 1
}

/// Returns the branch that was most likely meant: matching type and discriminator, and the fewest errors.
fn best(branches: &[Arc<[EngineError]>]) -> Option<&Arc<[EngineError]>> {
    let open = branches.iter().filter(|branch| decisive(branch).is_none());
    let likeliest = open.min_by_key(|branch| branch.len());
    likeliest.or_else(|| branches.iter().find(|branch| branch.iter().any(is_unlisted_value)))
}

/// Returns whether the value itself is not in an enum (ruling R22).
fn is_unlisted_value(inner: &EngineError) -> bool {
    inner.at.is_empty() && matches!(inner.reason, Reason::Allowed(_))
}

pub(crate) fn with_article(name: &str) -> String {
    match name {
        "null" => "null".to_owned(),
        "array" | "integer" | "object" => format!("an {name}"),
        _ => format!("a {name}"),
    }
}

fn literal(value: &Value) -> String {
    quoted(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

fn bounded(node: Option<Node<'_>>, found: &str, bound: &Bound) -> String {
    let Bound { relation, limit, unit } = bound;
    let size = node.and_then(|node| match *unit {
        "characters" => node.as_str().map(|text| text.chars().count()),
        "items" | "members" => Some(node.len()),
        _ => None,
    });
    match size {
        Some(size) => {
            format!("found {}; allowed: {relation} {limit}", counted(size, unit.trim_end_matches('s')))
        }
        None => format!("found {found}; allowed: {relation} {limit}"),
    }
}

#[cfg(test)]
mod tests;
