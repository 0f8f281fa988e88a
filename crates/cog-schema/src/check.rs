//! Checks the four parts of a run against the contract.

mod data;
mod insights;
mod live;
mod meta;

use cog_json::{Node, Path};
use cog_spec::{Code, EnumStrategy, ErrorCode};
use serde_json::Value;

pub use self::{data::DataCheck, insights::ExcessInsights};
use crate::{
    context_pointer::context_pointer,
    contract::Contract,
    engine::EngineError,
    finding::{Finding, counted, findings, found},
    locate::Locator,
    violation::{Violation, rooted},
};

impl Contract {
    /// Checks the input of a caller, with paths from `input` (SPEC 2.3).
    ///
    /// The code is E1002 for a missing required field, E1003 for a wrong type, E1004 for an unsupported value, E1010 for an
    /// unsupported media type, and E1001 for everything else.
    pub fn check_input(&self, input: Node<'_>) -> Vec<Violation> {
        let Some(part) = &self.input else { return Vec::new() };
        let path = root("input");
        self.violations(&self.errors(part.id, input), &path, input, |finding| self.input_code(finding))
    }

    fn input_code(&self, finding: &Finding) -> Code {
        match finding.rule.as_str() {
            "required" => Code::MissingRequiredField,
            "type" => Code::TypeMismatch,
            "enum" | "const" => Code::UnsupportedValue,
            "pattern" if self.is_media_type(&finding.schema) => Code::UnsupportedMediaType,
            _ => Code::InvalidInput,
        }
    }

    /// Returns whether a keyword of the document belongs to the `media_type` of a media input.
    fn is_media_type(&self, schema: &str) -> bool {
        schema.ends_with("/media_type/pattern")
            && self
                .document
                .media
                .iter()
                .any(|media| schema.strip_prefix(media.as_str()).is_some_and(|inner| inner.starts_with('/')))
    }

    /// Returns the errors of a value at `base` as violations, with the codes that `code` returns.
    fn violations(
        &self,
        errors: &[EngineError],
        base: &Path,
        node: Node<'_>,
        code: impl Fn(&Finding) -> Code,
    ) -> Vec<Violation> {
        if errors.is_empty() {
            return Vec::new();
        }
        let locator = Locator::new(node);
        findings(errors, &locator, self.document())
            .into_iter()
            .map(|finding| {
                let code = code(&finding);
                let path = locator.path(base, &finding.at);
                rooted(finding, &path, code)
            })
            .collect()
    }
}

/// Returns the path of a part of the envelope.
fn root(part: &str) -> Path {
    let mut path = Path::root();
    path.push_key(part);
    path
}

/// Returns the path of a member.
fn below(path: &Path, key: &str) -> Path {
    let mut path = path.clone();
    path.push_key(key);
    path
}

/// Returns the violation of a missing required field.
fn absent(path: &Path, key: &str) -> Violation {
    Violation::new(path, "required", Code::OutputSchemaViolation, format!("`{key}` is required but missing"))
}

/// Returns the violation of a field with the wrong type.
fn mistyped(path: &Path, node: Node<'_>, allowed: &str) -> Violation {
    let message = format!("found {}; allowed: {allowed}", found(node));
    Violation::new(path, "type", Code::OutputSchemaViolation, message)
}

/// Returns the new violations whose path has no violation yet.
fn unreported(mut new: Vec<Violation>, reported: &[Violation]) -> Vec<Violation> {
    new.retain(|one| !reported.iter().any(|other| other.path == one.path));
    new
}

/// Returns the code of a finding in a model's answer (ruling R30).
fn answer_code(finding: &Finding) -> Code {
    match finding.rule.as_str() {
        "enum" => Code::InvalidEnum,
        _ => Code::OutputSchemaViolation,
    }
}

impl Contract {
    /// Checks a context that the module reads, with paths from `input._context` (docs/spec/context.md).
    pub fn check_context(&self, name: &str, node: Node<'_>) -> Vec<Violation> {
        let base = path(&["input", "_context", name]);
        self.check_at_pointer(&context_pointer("accepts", name), &base, node, Code::InvalidInput)
    }

    /// Checks a context that the module emits, with paths from `_emitted_context`.
    pub fn check_emitted(&self, name: &str, node: Node<'_>) -> Vec<Violation> {
        let base = path(&["_emitted_context", name]);
        self.check_at_pointer(&context_pointer("emits", name), &base, node, Code::OutputSchemaViolation)
    }

    /// Checks a value against the schema at a pointer of the document, if there is one.
    fn check_at_pointer(&self, pointer: &str, base: &Path, node: Node<'_>, code: Code) -> Vec<Violation> {
        let Some(id) = self.graph.at(pointer) else { return Vec::new() };
        self.violations(&self.errors(id, node), base, node, |_| code)
    }
}

fn path(keys: &[&str]) -> Path {
    let mut path = Path::root();
    keys.iter().for_each(|key| path.push_key(key));
    path
}

// Extensible enums: `{custom, reason}` instead of a listed value (rulings R20, R22).

/// The maximum length of a custom value, in characters.
const MAX_LEN: usize = 32;

impl Contract {
    /// Checks an object that replaces a listed value.
    fn check_custom(&self, object: Node<'_>, path: &Path) -> Result<(), Violation> {
        if self.rules.enums.strategy == EnumStrategy::Strict {
            let message = "found an object; `enums.strategy: strict` allows only the values of the enum";
            return Err(Violation::new(path, "extensible_enum", Code::InvalidEnum, message));
        }
        let tag = self.rules.enums.unknown_tag.as_str();
        let value = text_of(object, tag, path)?;
        text_of(object, "reason", path)?;
        let length = value.chars().count();
        if length <= MAX_LEN {
            return Ok(());
        }
        let message = format!("found {}; allowed: at most {MAX_LEN}", counted(length, "character"));
        Err(Violation::new(&below(path, tag), "maxLength", Code::OutputSchemaViolation, message))
    }
}

fn text_of<'a>(object: Node<'a>, key: &str, path: &Path) -> Result<&'a str, Violation> {
    let node = object.get(key).ok_or_else(|| absent(&below(path, key), key))?;
    node.as_str().ok_or_else(|| mistyped(&below(path, key), node, "a string"))
}

impl Contract {
    /// Checks the error of an answer, with paths from `error`, after its code was normalised (ruling R31): first the rules
    /// of the specification (SPEC 2.3), then the module's error schema if `failure.must_return_error_schema` is set.
    /// Every violation has the code E3001.
    pub fn check_error(&self, error: Node<'_>) -> Vec<Violation> {
        let path = root("error");
        if !error.is_object() {
            return vec![mistyped(&path, error, "an object")];
        }
        let mut violations: Vec<Violation> = [
            self.check_code(error, &path),
            check_string(error, &path, "message"),
            check_optional(error, &path, "recoverable", "true or false", |node| node.as_bool().is_some()),
            check_optional(error, &path, "suggestion", "a string", |node| node.is_string()),
            check_optional(error, &path, "details", "an object", |node| node.is_object()),
        ]
        .into_iter()
        .flatten()
        .collect();
        let part = self.error.as_ref().filter(|_| self.rules.enforce_error_schema);
        let errors = part.map(|part| self.errors(part.id, error)).unwrap_or_default();
        let own = self.violations(&errors, &path, error, |_| Code::OutputSchemaViolation);
        violations.extend(unreported(own, &violations));
        violations
    }

    /// Returns whether the module's error schema lists a code, so that it is never unknown (ruling R31).
    pub fn lists_code(&self, text: &str) -> bool {
        let Some(error) = &self.error else { return false };
        let schemas = self.graph.all_possible(&self.graph.members(error.id, "code"));
        schemas.into_iter().any(|id| {
            let schema = self.graph.get(id);
            let listed = self.keyword(schema, "enum").and_then(Value::as_array);
            let constant = self.keyword(schema, "const");
            listed.into_iter().flatten().chain(constant).any(|value| value == text)
        })
    }

    fn check_code(&self, error: Node<'_>, path: &Path) -> Option<Violation> {
        let mistyped = check_string(error, path, "code");
        if mistyped.is_some() {
            return mistyped;
        }
        let text = error.get("code")?.as_str()?;
        let mut declared = self.rules.error_codes.iter();
        if is_specified(text) || declared.any(|declared| declared == text) || self.lists_code(text) {
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

/// Checks a required member that is a string.
fn check_string(error: Node<'_>, path: &Path, key: &str) -> Option<Violation> {
    match error.get(key) {
        Some(_) => check_optional(error, path, key, "a string", |node| node.is_string()),
        None => Some(absent(&below(path, key), key)),
    }
}

/// Checks a member, if it is present; `allowed` describes what fits.
fn check_optional(
    error: Node<'_>,
    path: &Path,
    key: &str,
    allowed: &str,
    fits: impl Fn(Node<'_>) -> bool,
) -> Option<Violation> {
    let node = error.get(key)?;
    (!fits(node)).then(|| mistyped(&below(path, key), node, allowed))
}

#[cfg(test)]
mod tests;
