use cog_json::{Node, Path};
use cog_spec::{Code, ErrorCode};
use serde_json::Value;

use super::{absent, below, mistyped, root, unreported};
use crate::contract::Contract;
use crate::finding::found;
use crate::graph::SchemaNode;
use crate::violation::Violation;

impl Contract {
    /// Checks the error of an answer, with paths from `error`, after its code was normalised (ruling R31): first the rules
    /// of the specification (SPEC 2.3), then the module's error schema if `failure.must_return_error_schema` is set.
    /// Every violation is E3001.
    pub fn check_error(&self, error: Node<'_>) -> Vec<Violation> {
        let path = root("error");
        if !error.is_object() {
            return vec![mistyped(&path, error, "an object")];
        }
        let mut violations: Vec<Violation> = [
            self.check_code(error, &path),
            check_field(error, &path, "message", ("a string", true), |node| node.is_string()),
            check_field(error, &path, "recoverable", ("true or false", false), |node| {
                node.as_bool().is_some()
            }),
            check_field(error, &path, "suggestion", ("a string", false), |node| node.is_string()),
            check_field(error, &path, "details", ("an object", false), |node| node.is_object()),
        ]
        .into_iter()
        .flatten()
        .collect();
        let part = self.error.as_ref().filter(|_| self.rules.enforce_error_schema);
        let errors = part.map(|part| self.errors(part.id, error)).unwrap_or_default();
        let own = self.violations(&errors, (&path, error), |_| Code::OutputSchemaViolation);
        violations.extend(unreported(own, &violations));
        violations
    }

    /// Returns whether the module's error schema lists a code, so that it is never unknown (ruling R31).
    pub fn lists_code(&self, text: &str) -> bool {
        let Some(error) = &self.error else { return false };
        let schemas = self.graph.all_possible(&self.graph.members(error.id, "code"));
        let lists = |schema: &SchemaNode| {
            let listed = self.keyword(schema, "enum").and_then(Value::as_array);
            let constant = self.keyword(schema, "const");
            listed.into_iter().flatten().chain(constant).any(|value| value == text)
        };
        schemas.into_iter().any(|id| lists(self.graph.get(id)))
    }

    fn check_code(&self, error: Node<'_>, path: &Path) -> Option<Violation> {
        let code = check_field(error, path, "code", ("a string", true), |node| node.is_string());
        if code.is_some() {
            return code;
        }
        let text = error.get("code")?.as_str()?;
        let is_declared = || self.rules.error_codes.iter().any(|declared| declared == text);
        if is_specified(text) || is_declared() || self.lists_code(text) {
            return None;
        }
        let message = if ErrorCode::is_declarable(text) {
            format!("the manifest does not declare the code `{text}`")
        } else {
            format!(
                "found {}; allowed: E1000 to E4999, or a code that the manifest declares",
                found(error.get("code")?)
            )
        };
        Some(Violation::new(&below(path, "code"), "error_code", Code::OutputSchemaViolation, message))
    }
}

/// Returns whether a code matches `^E[1-4][0-9]{3}$` or is a text code of v2.2.
fn is_specified(text: &str) -> bool {
    let has_form = matches!(text.as_bytes(), [b'E', b'1'..=b'4', rest @ ..] if rest.len() == 3 && rest.iter().all(u8::is_ascii_digit));
    has_form || Code::from_text(text).is_some()
}

fn check_field(
    error: Node<'_>,
    path: &Path,
    key: &str,
    (kind, is_required): (&str, bool),
    fits: impl Fn(Node<'_>) -> bool,
) -> Option<Violation> {
    match error.get(key) {
        Some(node) if fits(node) => None,
        Some(node) => Some(mistyped(&below(path, key), node, kind)),
        None => is_required.then(|| absent(&below(path, key), key)),
    }
}
