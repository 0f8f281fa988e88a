//! Checks the four parts of a run against the contract.

mod context;
mod custom_value;
mod data;
mod error;
mod insights;
mod live;
mod meta;

use cog_json::{Node, Path};
use cog_spec::Code;

use crate::contract::Contract;
use crate::engine::EngineError;
use crate::finding::{Finding, findings, found};
use crate::locate::Locator;
use crate::violation::{Violation, rooted};

pub use self::data::DataCheck;
pub use self::insights::ExcessInsights;

impl Contract {
    /// Checks the input of a caller, with paths from `input` (SPEC 2.3).
    ///
    /// A missing required field is E1002, a wrong type E1003, an unsupported value E1004, an unsupported media type
    /// E1010, and everything else E1001.
    pub fn check_input(&self, input: Node<'_>) -> Vec<Violation> {
        let Some(part) = &self.input else { return Vec::new() };
        let path = root("input");
        self.violations(&self.errors(part.id, input), (&path, input), |finding| self.input_code(finding))
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
        (base, node): (&Path, Node<'_>),
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

#[cfg(test)]
mod tests;
