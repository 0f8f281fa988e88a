//! The requirements for an answer: from the specification, and from the contract and the tier of a module.

use cog_harmony::{Document, Finding, PartSupport, Problem, handoff::Handoff};
use cog_json::{Node, Value};
use cog_rules::{CheckedAnswer, Checks, Verdict as CheckVerdict};
use cog_schema::{Contract, Member, Rules, Violation};
use cog_spec::{CheckSeverity, Code, ErrorCode, ErrorOrigin, Format, Manifest, Meta, Tier};
use serde_json::json;

use super::{BEYOND, Form, Kind, Verdict, absent, below, beyond, envelope, mistyped, warn_of_unknown};
use crate::{
    error::{self, violation},
    finalize,
};

/// What a module requires of a document.
#[derive(Debug, Clone, Copy)]
pub struct ModuleRules<'a> {
    /// Its manifest.
    pub manifest: &'a Manifest,
    /// Its contract.
    pub contract: &'a Contract,
    /// Its named checks.
    pub checks: Option<&'a Checks>,
    /// The input of the run. Checks that read it are not run without it.
    pub input: Option<Node<'a>>,
}

impl<'a> ModuleRules<'a> {
    /// Returns the rules of a module without named checks.
    pub const fn new(manifest: &'a Manifest, contract: &'a Contract) -> Self {
        Self { manifest, contract, checks: None, input: None }
    }
}

/// The requirements for an answer.
pub(super) struct Standard<'a> {
    module: Option<ModuleRules<'a>>,
    /// A contract without a schema, which has the specification's own rules.
    bare: Contract,
}

impl<'a> Standard<'a> {
    pub(super) fn new(module: Option<ModuleRules<'a>>) -> Self {
        Self { module, bare: bare() }
    }

    /// Returns the contract of an answer, or of the error of a failed run. The module's schemas describe what a model answers, so they
    /// do not apply to an error that the runtime or the provider reports (ruling R88).
    fn contract(&self, error: Option<Node<'_>>) -> &Contract {
        let origin = error.and_then(origin).and_then(|origin| origin.as_str()?.parse().ok());
        match (self.module, origin) {
            (None, _) | (_, Some(ErrorOrigin::Runtime | ErrorOrigin::Provider)) => &self.bare,
            (Some(rules), _) => rules.contract,
        }
    }

    /// Checks a meta: the three required fields, the module's schema, and the members that the runtime writes.
    pub(super) fn check_meta(&self, meta: Node<'_>, error: Option<Node<'_>>, found: &mut Vec<Violation>) {
        found.extend(self.contract(error).check_meta(meta));
        envelope::check_meta(meta, "meta", found);
    }

    /// Checks a successful answer: its data, and the rules of the tier.
    pub(super) fn check_success(&self, meta: Node<'_>, data: Node<'_>, found: &mut Vec<Violation>) {
        if let Some(rules) = self.module {
            check_tier(rules.manifest, meta, data, found);
        }
        self.check_data(Some(meta), data, found);
    }

    /// Checks that the data of an envelope have a rationale; a module's contract decides itself (ruling R67).
    pub(super) fn check_rationale(&self, data: Node<'_>, found: &mut Vec<Violation>) {
        let missing = self.bare.check_rationale(data).filter(|one| one.rule == "rationale");
        found.extend(missing.filter(|_| self.module.is_none()));
    }

    /// Returns whether a violation is only a warning: it is beyond the specification (ruling R77), or the rationale is missing, and
    /// neither the module's schema nor its constraints name it (ruling R67).
    pub(super) fn is_warning(&self, violation: &Violation) -> bool {
        if violation.rule == BEYOND {
            return true;
        }
        let Some(ModuleRules { manifest, contract, checks, .. }) = self.module else { return false };
        let is_named = contract.names_rationale() || manifest.constraints.require_rationale;
        let is_noted = |name: &str| {
            let mut checks = checks.into_iter().flat_map(Checks::iter);
            checks.any(|check| check.name == name && check.severity == CheckSeverity::Warning)
        };
        match violation.rule.strip_prefix("check:") {
            Some(name) => is_noted(name),
            None => violation.rule == NOT_RUN || violation.rule == "rationale" && !is_named,
        }
    }

    /// Checks data against the schema and the named checks of the module, if there is a module.
    pub(super) fn check_data(&self, meta: Option<Node<'_>>, data: Node<'_>, found: &mut Vec<Violation>) {
        let Some(rules) = self.module else { return };
        let check = rules.contract.check_data(data);
        // A rule about values says nothing of an answer that has others than its schema allows.
        if check.violations.is_empty() {
            rules.run_checks(meta, data, found);
        }
        found.extend(check.violations);
        found.extend(check.excess_insights.map(|excess| {
            let message = format!("found {} insights; allowed: at most {}", excess.found, excess.max);
            violation("data.extensions.insights", "overflow", message)
        }));
    }

    /// Checks an error: code, message, and the module's schema, for the code as written or normalised (ruling R31).
    pub(super) fn check_error(&self, error: Node<'_>, found: &mut Vec<Violation>) {
        let reported = error.get_str("code");
        let declared = self.module.map_or(&[][..], |rules| &rules.manifest.error_codes);
        let contract = self.contract(Some(error));
        let code = reported.and_then(|text| error::normalise(text, declared, contract));
        let is_declarable = self.module.is_none() && reported.is_some_and(ErrorCode::is_declarable);
        let mut violations = match &code {
            Some(code) => error::check(error, code, contract),
            None => contract.check_error(error),
        };
        violations.retain(|violation| !(is_declarable && violation.path == "error.code"));
        let is_known = violations.iter().any(|violation| violation.path == "error.code");
        found.extend(violations);
        if code.is_none()
            && !is_known
            && !is_declarable
            && let Some(reported) = reported
        {
            let message = format!("`{reported}` is not an error code of the specification");
            found.push(violation("error.code", "error_code", message));
        }
        found.extend(unknown_origin(error));
        self.warn_of_unknown_members(error, found);
    }

    /// Warns of the members of an error that neither the specification nor the module's schema names.
    fn warn_of_unknown_members(&self, error: Node<'_>, found: &mut Vec<Violation>) {
        let own = self.module.and_then(|rules| rules.contract.shape("error"));
        let named = error.members().filter_map(|(key, _)| {
            let is_known = matches!(own.as_ref()?.member(key), Member::Known(_));
            is_known.then(|| below("error", key))
        });
        let named: Vec<String> = named.collect();
        warn_of_unknown(error, "error", "streamError", found);
        found.retain(|one| !(one.rule == BEYOND && named.contains(&one.path)));
    }
}

/// The rule of a check that was not run.
const NOT_RUN: &str = "check_not_run";

impl ModuleRules<'_> {
    fn run_checks(&self, meta: Option<Node<'_>>, data: Node<'_>, found: &mut Vec<Violation>) {
        let answer = CheckedAnswer::new(self.input, data);
        let answer = match meta {
            Some(meta) => answer.with_meta(meta),
            None => answer,
        };
        for check in self.checks.into_iter().flat_map(Checks::iter) {
            let missing =
                match (check.reads_input() && self.input.is_none(), check.reads_meta() && meta.is_none()) {
                    (true, _) => Some("the input, which is not given"),
                    (false, true) => Some("the meta, which the document does not have"),
                    (false, false) => None,
                };
            if let Some(missing) = missing {
                let message = format!("the check `{}` was not run: it reads {missing}", check.name);
                found.push(violation("", NOT_RUN, message));
            } else if let CheckVerdict::Failed { failure, .. } = answer.run(check) {
                found.push(error::check_violation(&failure));
            }
        }
    }
}

/// Returns the origin that an error states.
fn origin(error: Node<'_>) -> Option<Node<'_>> {
    error::details_of(error, error::ORIGIN)
}

/// Returns the warning for an origin that ruling R88 does not list.
fn unknown_origin(error: Node<'_>) -> Option<Violation> {
    let origin = origin(error)?;
    let is_known = origin.as_str().is_some_and(|origin| ErrorOrigin::NAMES.contains(&origin));
    let message = format!("found {origin}; allowed: {}", ErrorOrigin::NAMES.join(", "));
    (!is_known).then(|| beyond("error.details.origin", &message))
}

/// Returns the contract of an empty module.
#[expect(clippy::expect_used, reason = "the document is this one, and compiling it is tested")]
fn bare() -> Contract {
    let manifest = Manifest::with_defaults("none", Format::V25, None);
    Contract::compile(&json!({ "data": {} }), &Rules::from(&manifest)).expect("an empty schema compiles")
}

/// Checks confidence and risk by the rules of the tier (rulings R2, R3, R21).
fn check_tier(manifest: &Manifest, meta: Node<'_>, data: Node<'_>, found: &mut Vec<Violation>) {
    let Some(meta) = Meta::read(meta) else { return };
    let confidence = meta.confidence.unwrap_or_default();
    if let Some(tier) = manifest.tier
        && let Some(min) = tier.min_confidence()
        && confidence < min
    {
        let message = format!("found {confidence}; tier {tier} requires at least {min}");
        found.push(Violation { code: Code::LowConfidence, ..violation("meta.confidence", "tier", message) });
    }
    let level = meta.risk.level();
    if manifest.tier == Some(Tier::Exec) && level > cog_spec::Risk::Low {
        let message = format!("found `{level}`; tier exec allows `none` and `low`");
        found.push(Violation { code: Code::ConstraintViolation, ..violation("meta.risk", "tier", message) });
    }
    if let Some(aggregated) = finalize::aggregated_risk(manifest.risk_rule, data).filter(|it| *it != level) {
        let rule = manifest.risk_rule;
        let message = format!("found `{level}`; by `{rule}` it is `{aggregated}`");
        let code = Code::OutputSchemaViolation;
        found.push(Violation { code, ..violation("meta.risk", "risk_rule", message) });
    }
}

/// Checks the form of a media source or a generated media item (SPEC 4.2, 4.3). Its bytes are not decoded.
pub(super) fn check_media(item: Node<'_>, found: &mut Vec<Violation>) {
    if !item.is_object() {
        return found.push(mistyped(item, "", "an object"));
    }
    let Some(kind) = item.get("type") else { return found.push(absent("type", "type")) };
    let form = match kind.as_str() {
        Some("url") => Form::MediaUrl,
        Some("base64") => Form::MediaBase64,
        Some("file") => Form::MediaFile,
        Some("upload_ref") => Form::MediaUpload,
        _ => return found.push(mistyped(kind, "type", "`url`, `base64`, `file` or `upload_ref`")),
    };
    form.check(item, "", &[], found);
}

// Harmony messages (appendix A), checked by `cog-harmony`.

/// Checks a history; with a model also whether it accepts the parts.
pub fn verify_messages(text: &str, model: Option<&PartSupport>) -> Verdict {
    let document = Document::parse(text);
    let problems = match document.as_ref().map(Document::messages) {
        Ok(Ok(messages)) => cog_harmony::check(messages, model),
        Ok(Err(problem)) => vec![problem],
        Err(problem) => vec![problem.clone()],
    };
    let (errors, warnings): (Vec<_>, Vec<_>) =
        problems.into_iter().partition(|problem| problem.rule.is_error());
    let warnings = warnings.into_iter().map(message_violation).collect();
    Verdict {
        warnings,
        ..Verdict::new(Some(Kind::Messages), errors.into_iter().map(message_violation).collect())
    }
}

fn message_violation(problem: Problem) -> Violation {
    let suggestion = Some(problem.rule.suggestion.to_owned());
    Violation { suggestion, ..violation(&problem.path, problem.rule.name, problem.message) }
}

// Handoff packets.

/// Checks a handoff packet: its form, and the hashes that it declares (appendix A.3).
pub(super) fn check_handoff(packet: &Value, violations: &mut Vec<Violation>) {
    let findings = match Handoff::read(packet.clone()) {
        Ok(packet) => packet.check_seal(),
        Err(findings) => findings,
    };
    violations.extend(findings.into_iter().map(packet_violation));
}

fn packet_violation(finding: Finding) -> Violation {
    let Finding { path, rule, message, suggestion } = finding;
    Violation { suggestion, ..violation(&path, rule, message) }
}
