//! From a error of the engine to a sentence: what was found, what is allowed, what was probably meant.

use std::sync::Arc;

use cog_json::{Kind, Node};
use serde_json::{Map, Value};

use crate::engine::{Allowed, Bound, EngineError, MAX_VIOLATIONS, Reason};
use crate::locate::Locator;
use crate::subschema::token;
use crate::words::{Suggestions, either, quoted};

/// One thing that is wrong with a value, ready to be reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Where: a JSON pointer from the value that was checked. Of an absent member, where it should be.
    pub(crate) at: String,
    /// The keyword, or the name of our own rule.
    pub(crate) rule: String,
    /// What was found and what is allowed.
    pub(crate) message: String,
    /// What was probably meant.
    pub(crate) suggestion: Option<String>,
    /// Where the keyword stands in the document.
    pub(crate) schema: String,
}

/// Tells errors: the best branch of alternatives, one finding for each place and rule, at most
/// [`MAX_VIOLATIONS`].
///
/// `locator` finds places in the value that was checked, `document` holds its schema.
pub(crate) fn findings(errors: &[EngineError], locator: &Locator<'_>, document: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    let reporter = Reporter { locator, document, suggestions: Suggestions::default() };
    reporter.report_all("", errors, &mut findings);
    findings.truncate(MAX_VIOLATIONS);
    drop_repeated(findings)
}

/// The words that stand for a value in a message: the value itself where it is a single short word, else
/// its kind and size, so that a message never repeats content.
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

/// `1 item`, `2 items`.
pub(crate) fn counted(count: usize, unit: &str) -> String {
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

fn text(text: &str) -> String {
    match short(text) {
        Some(word) if !word.is_empty() => quoted(&word),
        Some(_) => "an empty string".to_owned(),
        None => format!("a string of {}", counted(text.chars().count(), "character")),
    }
}

fn short(text: &str) -> Option<String> {
    const MAX_LEN: usize = 24;
    let is_word =
        text.len() <= MAX_LEN && !text.contains(|char: char| char.is_whitespace() || char.is_control());
    is_word.then(|| text.to_owned())
}

/// A type error makes what else is said of the same place moot; the same thing is said once.
fn drop_repeated(findings: Vec<Finding>) -> Vec<Finding> {
    let mistyped: Vec<String> =
        findings.iter().filter(|one| one.rule == "type").map(|one| one.at.clone()).collect();
    let mut kept: Vec<Finding> = Vec::with_capacity(findings.len());
    for finding in findings {
        let is_moot = finding.rule != "type" && mistyped.contains(&finding.at);
        let is_known = kept.iter().any(|other| other.at == finding.at && other.rule == finding.rule);
        if !is_moot && !is_known {
            kept.push(finding);
        }
    }
    kept
}

struct Reporter<'a, 'v> {
    locator: &'a Locator<'v>,
    document: &'a Value,
    suggestions: Suggestions,
}

impl<'v> Reporter<'_, 'v> {
    /// Tells errors whose places start at `base`, until there are enough.
    fn report_all(&self, base: &str, errors: &[EngineError], into: &mut Vec<Finding>) {
        for error in errors {
            if into.len() >= MAX_VIOLATIONS {
                return;
            }
            self.report(&error.below(base), into);
        }
    }

    /// The place of the error starts at the root.
    fn report(&self, error: &EngineError, into: &mut Vec<Finding>) {
        match &error.reason {
            Reason::Required(key) => into.push(self.absent(error, key)),
            Reason::Unexpected(keys) => {
                into.extend(keys.iter().take(MAX_VIOLATIONS).map(|key| self.unexpected(error, key)));
            }
            Reason::NoBranch(branches) => self.report_branches(error, branches, into),
            Reason::Name(inner) => into.push(self.misnamed(error, inner)),
            reason => {
                let (message, suggestion) = self.sentence(error, reason);
                into.push(finding(error, error.at.clone(), message, suggestion));
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
        let names = self.named_beside(error).filter(|names| !names.is_empty());
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
        let (sentence, _) = self.sentence(error, &inner.reason);
        let message = format!("invalid field name: {sentence}");
        finding(error, error.at.clone(), message, None)
    }

    fn sentence(&self, error: &EngineError, reason: &Reason) -> (String, Option<String>) {
        let node = self.at(error);
        let found = node.map_or_else(|| "nothing".to_owned(), found);
        match reason {
            Reason::Type(types) => (
                format!("found {found}; allowed: {}", either(types.iter().map(|name| with_article(name)))),
                None,
            ),
            Reason::Allowed(allowed) => {
                let values: Vec<&Value> = allowed.iter().flat_map(Allowed::values).collect();
                let suggestion = node.and_then(Node::as_str).and_then(|word| self.meant(word, &values));
                (format!("found {found}; allowed: {}", either(values.into_iter().map(literal))), suggestion)
            }
            Reason::Bound(bound) => (bounded(node, &found, bound), None),
            Reason::Pattern(pattern) => {
                (format!("{found} does not match the pattern {}", quoted(pattern)), None)
            }
            Reason::Format(format) => (format!("{found} is not a valid {format}"), None),
            Reason::ManyBranches => {
                (format!("{found} matches several alternatives; exactly one is allowed"), None)
            }
            Reason::Other(words) => (words.clone(), None),
            _ => (format!("{found} is not valid"), None),
        }
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

    fn meant(&self, word: &str, values: &[&Value]) -> Option<String> {
        let near = self.suggestions.nearest(word, values.iter().filter_map(|value| value.as_str()))?;
        Some(format!("Did you mean {}?", quoted(near)))
    }

    fn at(&self, error: &EngineError) -> Option<Node<'v>> {
        self.locator.find(&error.at)
    }

    /// The fields that the schema names beside the keyword of a error.
    fn named_beside(&self, error: &EngineError) -> Option<&Map<String, Value>> {
        let (outer, _) = error.schema.rsplit_once('/')?;
        self.document.pointer(outer)?.get("properties")?.as_object()
    }
}

fn finding(error: &EngineError, at: String, message: String, suggestion: Option<String>) -> Finding {
    Finding { at, rule: error.keyword.clone(), message, suggestion, schema: error.schema.clone() }
}

/// Alternatives that all fail in the same simple way fail as one: a field that each requires is absent, no type
/// fits, or no word does.
fn merged(branches: &[Arc<[EngineError]>]) -> Option<EngineError> {
    if let Some(absent) = absent_in_all(branches) {
        return Some(absent.clone());
    }
    let decisive: Vec<&EngineError> =
        branches.iter().map(|branch| decisive(branch)).collect::<Option<_>>()?;
    let (head, tail) = decisive.split_first()?;
    let mut merged = (*head).clone();
    for other in tail {
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
    let (head, tail) = branches.split_first()?;
    let is_shared = |error: &&EngineError| {
        let same = |other: &EngineError| other.at == error.at && other.reason == error.reason;
        matches!(error.reason, Reason::Required(_)) && tail.iter().all(|branch| branch.iter().any(same))
    };
    head.iter().find(is_shared)
}

/// The error that says a branch was not the one meant: another type, or another word in a field right below.
fn decisive(branch: &[EngineError]) -> Option<&EngineError> {
    let mistyped = branch.iter().find(|inner| inner.at.is_empty() && matches!(inner.reason, Reason::Type(_)));
    mistyped.or_else(|| branch.iter().find(|inner| is_discriminator(inner)))
}

fn is_discriminator(inner: &EngineError) -> bool {
    matches!(inner.reason, Reason::Allowed(_)) && inner.at.matches('/').count() <= 1
}

/// The branch that was most likely meant: right type, right discriminator, fewest errors.
fn best(branches: &[Arc<[EngineError]>]) -> Option<&Arc<[EngineError]>> {
    let open = branches.iter().filter(|branch| decisive(branch).is_none());
    let meant = open.min_by_key(|branch| branch.len());
    meant.or_else(|| branches.iter().find(|branch| branch.iter().any(is_word_of)))
}

/// A word that is none of an enum, where the enum stands for the value itself (ruling R22).
fn is_word_of(inner: &EngineError) -> bool {
    inner.at.is_empty() && matches!(inner.reason, Reason::Allowed(_))
}

fn with_article(name: &str) -> String {
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
