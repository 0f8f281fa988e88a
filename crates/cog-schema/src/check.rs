//! Checking the four parts of a run against the contract.

mod data;
mod error;
mod input;
mod insights;
mod meta;
mod place;
mod rationale;
mod words;

use cog_json::{Node, Path};
use cog_spec::Code;

use crate::contract::Contract;
use crate::engine::EngineError;
use crate::finding::{Finding, findings, found};
use crate::locate::Locator;
use crate::violation::{Violation, rooted};

pub use self::data::{CustomValue, DataCheck, ExcessInsights};

impl Contract {
    /// Tells the errors of a value at `base` as violations, each with the code that `code` gives it.
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

/// The path of a part of the envelope.
fn root(part: &str) -> Path {
    let mut path = Path::root();
    path.push_key(part);
    path
}

/// The path of a member.
fn below(path: &Path, key: &str) -> Path {
    let mut path = path.clone();
    path.push_key(key);
    path
}

/// A field that an answer must have and has not.
fn absent(path: &Path, key: &str) -> Violation {
    Violation::new(path, "required", Code::OutputSchemaViolation, format!("`{key}` is required but missing"))
}

/// A field of an answer that is of another kind than allowed.
fn mistyped(path: &Path, node: Node<'_>, allowed: &str) -> Violation {
    let message = format!("found {}; allowed: {allowed}", found(node));
    Violation::new(path, "type", Code::OutputSchemaViolation, message)
}

/// Those of `new` whose place is not yet among `reported`.
fn unreported(mut new: Vec<Violation>, reported: &[Violation]) -> Vec<Violation> {
    new.retain(|one| !reported.iter().any(|other| other.path == one.path));
    new
}

/// The code of a finding in what a model answered (ruling R30).
fn answer_code(finding: &Finding) -> Code {
    match finding.rule.as_str() {
        "enum" => Code::InvalidEnum,
        _ => Code::OutputSchemaViolation,
    }
}

#[cfg(test)]
mod tests;
