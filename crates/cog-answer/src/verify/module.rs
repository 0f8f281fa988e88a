//! What an answer is held to: the specification alone, or a module's contract and tier as well.

use cog_json::Node;
use cog_schema::{Contract, Rules, Violation};
use cog_spec::{Code, ErrorCode, Format, Manifest, Meta, Tier};
use serde_json::json;

use super::runtime;
use crate::{error::violation, error_code, judge::risk};

/// What is checked.
pub(super) struct Standard<'a> {
    module: Option<(&'a Manifest, &'a Contract)>,
    /// The specification's own rules, which a contract without a schema knows.
    bare: Contract,
}

impl<'a> Standard<'a> {
    pub(super) fn new(module: Option<(&'a Manifest, &'a Contract)>) -> Self {
        Self { module, bare: bare() }
    }

    /// Meta: three fields and their limits, the runtime's own keys, and the module's schema.
    pub(super) fn check_meta(&self, meta: Node<'_>, found: &mut Vec<Violation>) {
        let contract = self.module.map_or(&self.bare, |(_, contract)| contract);
        found.extend(contract.check_meta(meta));
        runtime::check(meta, "meta", found);
    }

    /// A success: data against the schema, and what its tier allows.
    pub(super) fn check_success(&self, meta: Node<'_>, data: Node<'_>, found: &mut Vec<Violation>) {
        if let Some((manifest, _)) = self.module {
            check_tier(manifest, meta, data, found);
        }
        self.check_data(data, found);
    }

    /// Data against the module's schema; without a module there is nothing to hold them to.
    pub(super) fn check_data(&self, data: Node<'_>, found: &mut Vec<Violation>) {
        let Some((_, contract)) = self.module else { return };
        let check = contract.check_data(data);
        found.extend(check.violations);
        found.extend(check.excess_insights.map(|excess| {
            let message = format!("found {} insights; allowed: at most {}", excess.found, excess.max);
            violation("data.extensions.insights", "overflow", message)
        }));
    }

    /// An error: code and message, and the module's schema, which sees the code normalised (ruling R31).
    pub(super) fn check_error(&self, error: Node<'_>, found: &mut Vec<Violation>) {
        let said = error.get("code").and_then(Node::as_str);
        let declared = self.module.map_or(&[][..], |(manifest, _)| &manifest.error_codes);
        let code = said.and_then(|said| error_code::normalise(said, declared));
        let contract = self.module.map_or(&self.bare, |(_, contract)| contract);
        let is_of_a_module = self.module.is_none() && said.is_some_and(ErrorCode::is_declarable);
        let mut violations = match &code {
            Some(code) => contract.check_error(error_code::with_code(error, code).node()),
            None => contract.check_error(error),
        };
        violations.retain(|violation| !(is_of_a_module && violation.path == "error.code"));
        let is_told = violations.iter().any(|violation| violation.path == "error.code");
        found.extend(violations);
        if let (None, Some(said), false, false) = (code, said, is_told, is_of_a_module) {
            let message = format!("`{said}` is not an error code of the specification");
            found.push(violation("error.code", "error_code", message));
        }
    }
}

/// A contract whose module says nothing.
#[expect(clippy::expect_used, reason = "the document is this one, and compiling it is tested")]
fn bare() -> Contract {
    let manifest = Manifest::with_defaults("none", Format::V25, None);
    Contract::compile(&json!({ "data": {} }), &Rules::from(&manifest)).expect("an empty schema compiles")
}

/// Supplement R2, R3, R21.
fn check_tier(manifest: &Manifest, meta: Node<'_>, data: Node<'_>, found: &mut Vec<Violation>) {
    let Some(meta) = Meta::read(meta) else { return };
    let confidence = meta.confidence.unwrap_or_default();
    let mut refuse = |path: &str, rule: &str, code: Code, message: String| {
        found.push(Violation { code, ..violation(path, rule, message) });
    };
    if let Some(tier) = manifest.tier
        && let Some(least) = tier.least_confidence()
        && confidence < least
    {
        let message = format!("found {confidence}; tier {tier} requires at least {least}");
        refuse("meta.confidence", "tier", Code::LowConfidence, message);
    }
    let level = meta.risk.level();
    if manifest.tier == Some(Tier::Exec) && level > cog_spec::Risk::Low {
        let message = format!("found `{level}`; tier exec allows `none` and `low`");
        refuse("meta.risk", "tier", Code::ConstraintViolation, message);
    }
    if let Some(greatest) = risk::aggregate(manifest.risk_rule, data).filter(|greatest| *greatest != level) {
        let rule = manifest.risk_rule;
        let message = format!("found `{level}`; by `{rule}` it is `{greatest}`");
        refuse("meta.risk", "risk_rule", Code::OutputSchemaViolation, message);
    }
}
