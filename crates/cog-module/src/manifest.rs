//! Reads a [`Manifest`] from YAML and resolves every default (SPEC 2.2, 5.2; docs/spec/modules.md).

mod fields;

use std::ops::Range;

use cog_spec::{
    AcceptedContext, CheckRule, Composition, ContextRule, ContextTtl, DataflowStep, DeniedPolicies,
    EmittedContext, ErrorCode, EvidenceRequest, EvidenceRule, Format, GateRule, IterationRule, Manifest,
    Modality, RequiredSource, Requirement, RiskRule, RoutingRule, Tier,
};

use self::fields::{Fields, is_within, set};
use crate::{
    Rule,
    diagnostic::{Findings, shown},
    layout::Family,
    name::{is_module_name, similar_module_name},
    yaml::{Content, Entry, Node},
};

/// The other files of the module that decide its format and its defaults.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LoadContext<'a> {
    /// The layout of the module.
    pub(crate) family: Family,
    /// The schema, if it could be read.
    pub(crate) schema: Option<&'a serde_json::Value>,
}

/// Reads a manifest and reports every error to `findings`.
///
/// The manifest is complete even then, with defaults for invalid values, so that the other files can be checked
/// against it.
pub(crate) fn read(root: &Node, context: LoadContext<'_>, findings: &Findings<'_>) -> Manifest {
    let fields = Fields::from_root(root, findings);
    let format = format_of(root, context);
    let tier: Option<Tier> = fields.keyword("tier");
    let mut manifest = Manifest::with_defaults(identity(&fields), format, tier);
    manifest.version = fields.version().unwrap_or(manifest.version);
    manifest.responsibility = fields.required_text("responsibility").unwrap_or_default();
    manifest.excludes = excludes(&fields, format);
    if let Some(strictness) = fields.keyword("schema_strictness") {
        manifest.strictness = strictness;
    }
    read_sections(&fields, &mut manifest, context);
    if format.asks_for_envelope() && tier.is_none() && !fields.has("tier") {
        let help = Some(format!("Add `tier:` with one of: {}.", Tier::NAMES.join(", ")));
        fields.missing_but_optional("tier", help);
    }
    fields.finish();
    manifest
}

/// Reads the `constraints.yaml` of v0 over the constraints of the manifest.
pub(crate) fn read_constraints(root: &Node, manifest: &mut Manifest, findings: &Findings<'_>) {
    constraints_of_file(root, manifest, findings);
}

/// Returns the format, decided by files and keys only (ruling R5).
pub(crate) fn format_of(root: &Node, context: LoadContext<'_>) -> Format {
    let has_meta_schema = context.schema.is_some_and(|schema| schema.get("meta").is_some());
    match context.family {
        Family::V0 => Format::V0,
        Family::V1 => Format::V1,
        Family::V2 if root.get("response").is_some() || root.get("modalities").is_some() => Format::V25,
        Family::V2 if root.get("tier").is_some() || has_meta_schema => Format::V22,
        Family::V2 => Format::V21,
    }
}

fn identity(fields: &Fields<'_>) -> String {
    let Some(name) = fields.required_text("name") else { return "unnamed".to_owned() };
    if !is_module_name(&name) {
        let help = similar_module_name(&name).map(|similar| format!("Rename it to `{similar}`."));
        let message = format!(
            "`{}` is not a valid module name: use lower case letters, digits and hyphens, starting with a letter",
            shown(&name)
        );
        fields.error_at("name", Rule::NameForm, message, help);
    }
    name
}

fn excludes(fields: &Fields<'_>, format: Format) -> Vec<String> {
    let excludes = fields.texts("excludes");
    if excludes.is_none() && !fields.has("excludes") {
        let help = Some("Add `excludes:` with a list of things that the module must not do.".to_owned());
        match format {
            Format::V0 | Format::V1 => fields.missing("excludes", help),
            Format::V21 | Format::V22 | Format::V25 => fields.missing_but_optional("excludes", help),
        }
    }
    excludes.unwrap_or_default()
}

// The sections of a manifest, over the defaults of the tier.

fn read_sections(fields: &Fields<'_>, manifest: &mut Manifest, files: LoadContext<'_>) {
    policies(fields, manifest);
    tools(fields, manifest);
    overflow(fields, manifest);
    enums(fields, manifest);
    failure(fields, manifest);
    requirements(fields, manifest);
    generation(fields, manifest);
    io(fields, manifest, files.schema);
    compat(fields, manifest);
    meta(fields, manifest);
    fields.section("constraints", |f| constraints(f, manifest));
    invocation(fields, manifest);
    read_context(fields, &mut manifest.context);
    read_composition(fields, manifest);
    confidence(fields, manifest);
    manifest.cache = fields.either("cache", ALLOW_OR_DENY);
    set(&mut manifest.needs_rationale, fields.either("rationale", &["required", "optional"]));
    manifest.generation.ask = fields.keyword("ask");
    response(fields, manifest);
    modalities(fields, manifest);
    error_codes(fields, manifest);
    tests(fields, manifest);
    manifest.checks = checks(fields);
}

const ALLOW_OR_DENY: &[&str; 2] = &["allow", "deny"];

/// Reads both forms: keywords (v2.2) and booleans (v2.5), ruling R10.
fn policies(fields: &Fields<'_>, manifest: &mut Manifest) {
    let policies = &mut manifest.policies;
    fields.section("policies", |f| {
        let network = f.either("network", ALLOW_OR_DENY);
        let filesystem_write = f.either("filesystem_write", ALLOW_OR_DENY);
        let side_effects = f.either("side_effects", ALLOW_OR_DENY);
        let code_execution = f.either("code_execution", ALLOW_OR_DENY);
        set(&mut policies.tools_allowed, f.flag("tools_allowed"));
        let network = f.flag("network_allowed").or(network);
        set(&mut policies.network_allowed, network);
        set(&mut policies.filesystem_write_allowed, filesystem_write);
        set(&mut policies.side_effects_allowed, side_effects);
        set(&mut policies.code_execution_allowed, code_execution);
        policies.denied = DeniedPolicies {
            network: network == Some(false),
            filesystem_write: filesystem_write == Some(false),
            side_effects: side_effects == Some(false),
            code_execution: code_execution == Some(false),
        };
    });
}

fn tools(fields: &Fields<'_>, manifest: &mut Manifest) {
    let tools = &mut manifest.tools;
    fields.section("tools", |f| {
        set(&mut tools.allow_by_default, f.either("policy", &["allow_by_default", "deny_by_default"]));
        set(&mut tools.allowed, f.texts("allowed"));
        set(&mut tools.denied, f.texts("denied"));
    });
}

fn overflow(fields: &Fields<'_>, manifest: &mut Manifest) {
    let overflow = &mut manifest.overflow;
    fields.section("overflow", |f| {
        set(&mut overflow.enabled, f.flag("enabled"));
        set(&mut overflow.recoverable, f.flag("recoverable"));
        set(&mut overflow.max_items, f.integer("max_items", 0));
        set(&mut overflow.require_suggested_mapping, f.flag("require_suggested_mapping"));
    });
}

fn enums(fields: &Fields<'_>, manifest: &mut Manifest) {
    let enums = &mut manifest.enums;
    fields.section("enums", |f| {
        set(&mut enums.strategy, f.keyword("strategy"));
        set(&mut enums.unknown_tag, f.text("unknown_tag"));
    });
}

fn failure(fields: &Fields<'_>, manifest: &mut Manifest) {
    let failure = &mut manifest.failure;
    fields.section("failure", |f| {
        if let Some(node) = f.node("contract")
            && !matches!(&node.content, Content::Text(keyword) if keyword == "error_union")
        {
            f.error_at("contract", Rule::KeyValue, "`failure.contract` must be `error_union`".into(), None);
        }
        set(&mut failure.partial_allowed, f.flag("partial_allowed"));
        set(&mut failure.must_return_error_schema, f.flag("must_return_error_schema"));
        set(&mut failure.escalate, f.flag("escalate"));
        if f.either("model_errors", &["allowed", "never"]) == Some(false) {
            (failure.model_errors, failure.must_return_error_schema) = (false, false);
        }
    });
}

fn requirements(fields: &Fields<'_>, manifest: &mut Manifest) {
    let requirements = &mut manifest.requirements;
    fields.section("runtime_requirements", |f| {
        set(&mut requirements.structured_output, f.flag("structured_output"));
        requirements.max_input_tokens = f.integer("max_input_tokens", 0);
        set(&mut requirements.preferred_capabilities, f.texts("preferred_capabilities"));
    });
}

fn generation(fields: &Fields<'_>, manifest: &mut Manifest) {
    let generation = &mut manifest.generation;
    fields.section("generation", |f| {
        generation.temperature = f.number("temperature", 0.0..=2.0);
        generation.max_tokens = f.integer("max_tokens", 0);
        generation.seed = f.integer("seed", i64::MIN);
        set(&mut generation.stop, f.texts("stop"));
        generation.effort = f.keyword("effort");
        generation.verbosity = f.keyword("verbosity");
        generation.service_tier = f.keyword("service_tier");
    });
}

/// Reads `io`: JSON pointers, with or without the file (`./schema.json#/input`).
fn io(fields: &Fields<'_>, manifest: &mut Manifest, schema: Option<&serde_json::Value>) {
    let io = &mut manifest.io;
    fields.section("io", |f| {
        io.input = pointer(f, "input", schema);
        io.data = pointer(f, "data", schema);
        io.meta = pointer(f, "meta", schema);
        io.error = pointer(f, "error", schema);
    });
}

fn pointer(fields: &Fields<'_>, key: &'static str, schema: Option<&serde_json::Value>) -> Option<String> {
    let text = fields.text(key)?;
    let within = text.strip_prefix("./").unwrap_or(&text);
    let within = within.strip_prefix("schema.json").unwrap_or(within);
    let within = within.strip_prefix('#').unwrap_or(within);
    let leads_somewhere = schema.is_none_or(|schema| schema.pointer(within).is_some());
    if within.starts_with('/') && leads_somewhere {
        return Some(within.to_owned());
    }
    let message = format!("`{}` does not exist in schema.json", shown(&text));
    fields.error_at(key, Rule::IoPointer, message, Some(format!("Write `{key}: \"#/{key}\"`.")));
    None
}

fn compat(fields: &Fields<'_>, manifest: &mut Manifest) {
    let compat = &mut manifest.compat;
    fields.section("compat", |f| {
        set(&mut compat.accepts_v21_payload, f.flag("accepts_v21_payload"));
        set(&mut compat.accepts_v22_payload, f.flag("accepts_v22_payload"));
        set(&mut compat.runtime_auto_wrap, f.flag("runtime_auto_wrap"));
        set(&mut compat.schema_output_alias, f.text("schema_output_alias"));
    });
}

fn meta(fields: &Fields<'_>, manifest: &mut Manifest) {
    let risk_rule: &mut RiskRule = &mut manifest.risk_rule;
    fields.section("meta", |f| set(risk_rule, f.keyword("risk_rule")));
}

/// Reads `constraints.yaml` of v0: the keys of `constraints`, at the top or one level down, under any name.
fn constraints_of_file(root: &Node, manifest: &mut Manifest, findings: &Findings<'_>) {
    let entries = match &root.content {
        Content::Map(entries) => entries,
        Content::Null => return,
        _ => {
            let message = format!("constraints.yaml is {}, not a mapping of keys to values", root.kind());
            return findings.error(Rule::KeyType, root.span.clone(), message, None);
        }
    };
    let fields = Fields::from_root(root, findings);
    for Entry { key, value, .. } in entries {
        if let Content::Map(_) = value.content {
            fields.know(key);
            fields.within(key, value, |section| constraints(section, manifest));
        }
    }
    constraints(&fields, manifest);
    fields.finish();
}

fn constraints(fields: &Fields<'_>, manifest: &mut Manifest) {
    let constraints = &mut manifest.constraints;
    set(&mut constraints.no_network, fields.flag("no_network"));
    set(&mut constraints.no_side_effects, fields.flag("no_side_effects"));
    set(&mut constraints.no_inventing_data, fields.flag("no_inventing_data"));
    set(&mut constraints.require_confidence, fields.flag("require_confidence"));
    set(&mut constraints.require_rationale, fields.flag("require_rationale"));
    if let Some(max) = fields.number("behavior_equivalence_false_max_confidence", 0.0..=1.0) {
        constraints.behavior_equivalence_false_max_confidence = Some(max);
    }
}

fn invocation(fields: &Fields<'_>, manifest: &mut Manifest) {
    let invocation = &mut manifest.invocation;
    fields.section("invocation", |f| {
        set(&mut invocation.user_invocable, f.flag("user_invocable"));
        set(&mut invocation.agent_invocable, f.flag("agent_invocable"));
    });
}

fn confidence(fields: &Fields<'_>, manifest: &mut Manifest) {
    let Manifest { confidence: rule, evidence: collected, .. } = manifest;
    fields.section("confidence", |f| {
        evidence(f, collected);
        set(&mut rule.source, f.keyword("source"));
        set(&mut rule.below, f.keyword("below"));
        f.section("gate", |f| {
            if !f.has("accuracy") {
                f.missing(
                    "accuracy",
                    Some("Add the share of accepted answers that must be right: 0.95.".to_owned()),
                );
            }
            let accuracy = f.number("accuracy", GateRule::RANGE);
            let risk = f.number("risk", GateRule::RANGE).unwrap_or(GateRule::RISK);
            rule.gate = accuracy.map(|accuracy| GateRule { accuracy, risk });
        });
        if rule.gate.is_some() && rule.source == RequiredSource::Stated {
            let message = "a gate needs a measured confidence, and the source is `stated`";
            f.error_at(
                "gate",
                Rule::KeyValue,
                message.to_owned(),
                Some("Write `source: calibrated`.".to_owned()),
            );
        }
        if rule.gate.is_none() && f.has("below") && !f.has("gate") {
            let help = "Add `gate: {accuracy: 0.95}`, or remove `below`.";
            f.warning_at(
                "below",
                Rule::KeyValue,
                "without a gate, `below` has no effect".to_owned(),
                Some(help.to_owned()),
            );
        }
    });
}

fn response(fields: &Fields<'_>, manifest: &mut Manifest) {
    let response = &mut manifest.response;
    fields.section("response", |f| {
        set(&mut response.mode, f.keyword("mode"));
        set(&mut response.chunk_type, f.keyword("chunk_type"));
        set(&mut response.buffer_size, f.integer("buffer_size", 0));
        response.on_violation = f.keyword("on_violation");
        response.max_attempts = f.integer("max_attempts", 1);
    });
}

fn modalities(fields: &Fields<'_>, manifest: &mut Manifest) {
    let modalities = &mut manifest.modalities;
    fields.section("modalities", |f| {
        set(&mut modalities.input, f.keywords("input").map(with_text));
        set(&mut modalities.output, f.keywords("output").map(with_text));
        let limits = &mut modalities.constraints;
        f.section("constraints", |f| {
            limits.max_size_mb = f.number("max_size_mb", 0.0..=1e6);
            limits.max_dimension = f.integer("max_dimension", 0);
            limits.min_dimension = f.integer("min_dimension", 0);
            limits.max_pixels = f.integer("max_pixels", 0);
            limits.max_duration_s = f.number("max_duration_s", 0.0..=1e6);
            limits.max_items = f.integer("max_items", 0);
            set(&mut limits.strip_metadata, f.flag("strip_metadata"));
        });
    });
}

/// Adds text, which is always supported (ruling R12), and removes duplicates.
fn with_text(listed: Vec<Modality>) -> Vec<Modality> {
    let listed = [Modality::Text].into_iter().chain(listed);
    listed.fold(Vec::new(), |mut unique, modality| {
        if !unique.contains(&modality) {
            unique.push(modality);
        }
        unique
    })
}

fn error_codes(fields: &Fields<'_>, manifest: &mut Manifest) {
    let Some(node) = fields.node("error_codes") else { return };
    if !matches!(node.content, Content::Map(_)) {
        return fields.wrong_type("error_codes", node, "a mapping of codes to descriptions");
    }
    let codes = &mut manifest.error_codes;
    fields.within("error_codes", node, |f| {
        for entry in f.entries() {
            f.know(&entry.key);
            match &entry.value.content {
                Content::Text(meaning) if ErrorCode::is_declarable(&entry.key) => {
                    codes.push((entry.key.clone(), meaning.clone()));
                }
                Content::Text(_) => {
                    let message =
                        format!("`{}` cannot be declared by a module: use E5000 to E9999", shown(&entry.key));
                    f.error_in(&entry.value, Rule::KeyValue, message);
                }
                _ => f.wrong_type(&entry.key, &entry.value, "a description (string)"),
            }
        }
    });
}

/// Reads `tests`: a list of `input -> expected`, both inside the module's directory.
fn tests(fields: &Fields<'_>, manifest: &mut Manifest) {
    for node in fields.list("tests").unwrap_or_default() {
        let pair = match &node.content {
            Content::Text(line) => {
                line.split_once("->").map(|(input, expected)| (input.trim(), expected.trim()))
            }
            _ => None,
        };
        match pair {
            Some((input, expected)) if is_within(input) && is_within(expected) => {
                manifest.tests.push((input.to_owned(), expected.to_owned()));
            }
            _ => fields.bad_test_pair(node),
        }
    }
}

/// Reads what runs collect about their answers. Each item is reported where it is.
fn evidence(fields: &Fields<'_>, rule: &mut EvidenceRule) {
    let mut items = Vec::new();
    for node in fields.list("evidence").unwrap_or_default() {
        let Content::Text(item) = &node.content else {
            fields.wrong_type("evidence", node, "a list of strings");
            continue;
        };
        match EvidenceRequest::from_items([item.as_str()]) {
            Ok(_) => items.push(item.as_str()),
            Err(error) => fields.error_in(node, Rule::KeyValue, format!("`confidence.evidence`: {error}")),
        }
    }
    rule.request = EvidenceRequest::from_items(items).unwrap_or_default();
    set(&mut rule.fields, fields.texts("fields"));
    set(&mut rule.grounded, fields.texts("grounded"));
}

/// The maximum number of checks.
const MAX_CHECKS: usize = 100;

/// Reads `checks`: only its form. Conditions and paths are compared with the schemas when the contract is compiled.
fn checks(fields: &Fields<'_>) -> Vec<CheckRule> {
    let nodes = fields.list("checks").unwrap_or_default();
    if nodes.len() > MAX_CHECKS {
        let message = format!("`checks` has {} entries; the maximum is {MAX_CHECKS}", nodes.len());
        fields.error_at("checks", Rule::Check, message, Some("Join some of them with `&&`.".to_owned()));
    }
    let mut checks: Vec<CheckRule> = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        let mut check = CheckRule::default();
        match &node.content {
            Content::Map(_) => fields.within(&format!("checks[{index}]"), node, |f| {
                check = check_rule(f);
                check_form(f, node, &check, &checks);
            }),
            _ => fields.wrong_type(&format!("checks[{index}]"), node, "a mapping with `name` and `that`"),
        }
        checks.push(check);
    }
    checks
}

fn check_rule(f: &Fields<'_>) -> CheckRule {
    CheckRule {
        name: f.required_text("name").unwrap_or_default(),
        that: f.text("that"),
        grounded: f.text("grounded"),
        when: f.text("when"),
        message: f.text("message"),
        severity: f.keyword("severity").unwrap_or_default(),
    }
}

/// Checks the name of a check, and that it has one test.
fn check_form(f: &Fields<'_>, node: &Node, check: &CheckRule, earlier: &[CheckRule]) {
    let CheckRule { name, that, grounded, .. } = check;
    let is_name = name.len() <= MAX_NAME
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if !is_name && f.has("name") {
        let message = format!(
            "`{}` is not a valid name of a check: use at most {MAX_NAME} letters, digits, `_` and `-`",
            shown(name)
        );
        f.error_at("name", Rule::Check, message, None);
    }
    if is_name && earlier.iter().any(|other| other.name == *name) {
        f.error_at("name", Rule::Check, format!("the name `{name}` is used twice"), None);
    }
    match (that, grounded) {
        (Some(_), Some(_)) => {
            let help = "Write two checks: one with `that`, one with `grounded`.".to_owned();
            f.error_at("grounded", Rule::Check, "a check has one test".to_owned(), Some(help));
        }
        (None, None) if !f.has("that") && !f.has("grounded") => {
            f.error_in(node, Rule::Check, "the check has neither `that` nor `grounded`".to_owned());
        }
        _ => {}
    }
}

// Reads `composition`: only its form. `cog-flow` checks the names, versions, paths and conditions in it.

/// The maximum of `max_depth`.
const MAX_DEPTH: u32 = 32;
/// The maximum of `max_parallel`.
const MAX_PARALLEL: u32 = 1_000;
/// The maximum of `iteration.max_rounds`.
const MAX_ROUNDS: u32 = 100;
/// The maximum of a duration in milliseconds: one day.
const MAX_TIMEOUT: u64 = 24 * 60 * 60 * 1000;

fn read_composition(fields: &Fields<'_>, manifest: &mut Manifest) {
    fields.section("composition", |f| {
        let defaults = Composition::default();
        manifest.composition = Some(Composition {
            requires: items(f, "requires", requirement),
            pattern: f.keyword("pattern").unwrap_or(defaults.pattern),
            max_depth: at_most(f, "max_depth", MAX_DEPTH).unwrap_or(defaults.max_depth),
            timeout_ms: at_most(f, "timeout_ms", MAX_TIMEOUT).unwrap_or(defaults.timeout_ms),
            dataflow: items(f, "dataflow", step),
            routing: items(f, "routing", rule),
            iteration: iteration(f),
        });
    });
}

fn requirement(f: &Fields<'_>) -> Requirement {
    Requirement {
        name: f.required_text("name").unwrap_or_default(),
        version: f.text("version"),
        optional: f.flag("optional").unwrap_or_default(),
        fallback: f.text("fallback"),
        timeout_ms: at_most(f, "timeout_ms", MAX_TIMEOUT),
    }
}

fn step(f: &Fields<'_>) -> DataflowStep {
    DataflowStep {
        from: required_texts(f, "from"),
        to: required_texts(f, "to"),
        mapping: mapping(f),
        condition: f.text("condition"),
        aggregate: f.keyword("aggregate"),
        result_name: f.text("as"),
        each: f.text("each"),
        max_parallel: at_most(f, "max_parallel", MAX_PARALLEL),
    }
}

fn rule(f: &Fields<'_>) -> RoutingRule {
    if !f.has("next") {
        let help = "Write the name of a module, or `next: null` to return the result so far.";
        f.missing("next", Some(help.to_owned()));
    }
    RoutingRule {
        from: f.texts("from").unwrap_or_default(),
        condition: f.text("condition"),
        next: f.text("next"),
    }
}

fn iteration(fields: &Fields<'_>) -> Option<IterationRule> {
    let mut rule = None;
    fields.section("iteration", |f| {
        rule = Some(IterationRule {
            from: f.texts("from").unwrap_or_default(),
            until: f.text("until"),
            max_rounds: at_most(f, "max_rounds", MAX_ROUNDS).unwrap_or(IterationRule::MAX_ROUNDS),
            best: f.text("best"),
        });
    });
    rule
}

/// Reads `mapping`: the fields of the target, each with a path or a constant. A constant that is not text is returned as JSON.
fn mapping(fields: &Fields<'_>) -> Option<Vec<(String, String)>> {
    let mut mapping = None;
    fields.section("mapping", |f| {
        let mut paths = Vec::new();
        for entry in f.entries() {
            f.know(&entry.key);
            match &entry.value.content {
                Content::Text(text) => paths.push((entry.key.clone(), text.clone())),
                Content::Null => f.wrong_type(
                    &entry.key,
                    &entry.value,
                    "a path such as `$.text`, or a constant such as `'none'`",
                ),
                _ => paths.push((entry.key.clone(), entry.value.to_json().to_string())),
            }
        }
        mapping = Some(paths);
    });
    mapping
}

/// Reads a list of mappings.
fn items<'a, T: Default>(fields: &Fields<'a>, key: &'static str, read: impl Fn(&Fields<'a>) -> T) -> Vec<T> {
    let nodes = fields.list(key).unwrap_or_default();
    let mut items = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        let name = format!("{key}[{index}]");
        let mut item = T::default();
        match &node.content {
            Content::Map(_) => fields.within(&name, node, |f| item = read(f)),
            _ => fields.wrong_type(&name, node, "a mapping"),
        }
        items.push(item);
    }
    items
}

/// Reads a list of strings that must not be empty.
fn required_texts(fields: &Fields<'_>, key: &'static str) -> Vec<String> {
    let texts = fields.texts(key);
    if texts.as_ref().is_none_or(Vec::is_empty) && fields.node(key).is_none_or(is_empty) {
        fields.missing(key, None);
    }
    texts.unwrap_or_default()
}

fn is_empty(node: &Node) -> bool {
    matches!(&node.content, Content::List(items) if items.is_empty())
}

/// Reads an integer from 1 to a maximum.
fn at_most<T>(fields: &Fields<'_>, key: &'static str, max: T) -> Option<T>
where
    T: TryFrom<i64> + PartialOrd + std::fmt::Display + Copy,
{
    let value: T = fields.integer(key, 1)?;
    if value <= max {
        return Some(value);
    }
    let message = format!("`{key}` is {value}; the maximum is {max}");
    fields.error_at(key, Rule::KeyValue, message, None);
    Some(max)
}

// Reads `context` (docs/spec/context.md).

const FORK_OR_MAIN: &[&str; 2] = &["fork", "main"];

/// The maximum length of the name of a type.
const MAX_NAME: usize = 64;

/// The file of a schema that the manifest names, and where it names it.
pub(crate) struct ContextSchema {
    /// The position of the schema in the document.
    pub(crate) pointer: String,
    pub(crate) file: String,
    pub(crate) span: Range<usize>,
}

/// Reads `context`, a keyword or an object with `mode` (ruling R10).
fn read_context(fields: &Fields<'_>, rule: &mut ContextRule) {
    let Some(node) = fields.node("context") else { return };
    let Content::Map(_) = node.content else {
        return set(&mut rule.fork, fields.either("context", FORK_OR_MAIN));
    };
    fields.within("context", node, |f| {
        set(&mut rule.fork, f.either("mode", FORK_OR_MAIN));
        rule.accepts = context_items(f, "accepts", accepted, |it| &it.name);
        rule.emits = context_items(f, "emits", emitted, |it| &it.name);
    });
}

/// Returns the schema files of a manifest that was read without errors.
pub(crate) fn context_schemas(root: &Node, rule: &ContextRule) -> Vec<ContextSchema> {
    let accepts = rule.accepts.iter().map(|it| ("accepts", &it.name, &it.schema));
    let emits = rule.emits.iter().map(|it| ("emits", &it.name, &it.schema));
    let schemas = accepts.chain(emits).filter_map(|(list, name, file)| {
        Some(ContextSchema {
            pointer: cog_schema::context_pointer(list, name),
            file: file.clone()?,
            span: span_of_schema(root, list, name),
        })
    });
    schemas.collect()
}

fn span_of_schema(root: &Node, list: &str, name: &str) -> Range<usize> {
    let items = root.get("context").and_then(|context| context.get(list)).map(|list| &list.content);
    let Some(Content::List(items)) = items else { return 0..0 };
    let item = items.iter().find(|item| {
        item.get("type").is_some_and(|kind| matches!(&kind.content, Content::Text(text) if text == name))
    });
    item.and_then(|item| item.get("schema")).map_or(0..0, |node| node.span.clone())
}

/// Reads a list of declarations, each with a type of its own.
fn context_items<T>(
    fields: &Fields<'_>,
    key: &'static str,
    read: fn(&Fields<'_>, String) -> T,
    name_of: fn(&T) -> &String,
) -> Vec<T> {
    let mut items: Vec<T> = Vec::new();
    for node in fields.list(key).unwrap_or_default() {
        if !matches!(node.content, Content::Map(_)) {
            fields.wrong_type(key, node, "a list of mappings, each with `type`");
            continue;
        }
        let mut item = None;
        fields.within(key, node, |f| item = type_name(f).map(|name| read(f, name)));
        let Some(item) = item else { continue };
        if items.iter().any(|other| name_of(other) == name_of(&item)) {
            let message = format!("`context.{key}` declares the type `{}` twice", shown(name_of(&item)));
            fields.error_in(node, Rule::KeyValue, message);
            continue;
        }
        items.push(item);
    }
    items
}

fn type_name(fields: &Fields<'_>) -> Option<String> {
    let name = fields.required_text("type")?;
    let is_name = name.len() <= MAX_NAME
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if !is_name {
        let message = format!(
            "`{}` is not a valid type of context: use at most {MAX_NAME} letters, digits, `_` and `-`",
            shown(&name)
        );
        let help = format!("The types of the specification are {}.", ContextRule::TYPES.join(", "));
        fields.error_at("type", Rule::KeyValue, message, Some(help));
    }
    is_name.then_some(name)
}

fn accepted(fields: &Fields<'_>, name: String) -> AcceptedContext {
    AcceptedContext {
        name,
        required: fields.flag("required").unwrap_or_default(),
        max_turns: fields.integer("max_turns", 0),
        fields: fields.texts("fields"),
        schema: schema_file(fields),
        ttl: fields.integer("ttl", 0),
        from_module: fields.text("from_module"),
    }
}

fn emitted(fields: &Fields<'_>, name: String) -> EmittedContext {
    EmittedContext {
        name,
        ttl: fields.integer("ttl", -1).map_or_else(ContextTtl::default, ContextTtl::from_seconds),
        key_pattern: key_pattern(fields).unwrap_or_else(|| EmittedContext::DEFAULT_KEY.to_owned()),
        schema: schema_file(fields),
    }
}

fn schema_file(fields: &Fields<'_>) -> Option<String> {
    let text = fields.text("schema")?;
    let file = text.strip_prefix("./").unwrap_or(&text);
    let is_file_name = is_within(file) && !file.contains(['/', '\\']);
    if !is_file_name {
        let message = format!("`{}` is not a file in the directory of the module", shown(&text));
        let help = "Write the name of a JSON Schema file next to the manifest.".to_owned();
        fields.error_at("schema", Rule::KeyValue, message, Some(help));
    }
    is_file_name.then(|| file.to_owned())
}

/// Reads a key pattern: text with placeholders.
fn key_pattern(fields: &Fields<'_>) -> Option<String> {
    let pattern = fields.text("key_pattern")?;
    let unknown = pattern.match_indices("${").find_map(|(at, _)| {
        let rest = pattern.get(at..).unwrap_or_default();
        let is_known = EmittedContext::PLACEHOLDERS.iter().any(|known| rest.starts_with(known));
        (!is_known).then(|| rest.split_inclusive('}').next().unwrap_or(rest))
    });
    let Some(unknown) = unknown else { return Some(pattern) };
    let message = format!("`key_pattern` has the unknown placeholder `{}`", shown(unknown));
    let known = EmittedContext::PLACEHOLDERS;
    let near = cog_schema::nearest(unknown, known.iter().copied());
    let help =
        near.map_or_else(|| format!("Use {}.", known.join(", ")), |near| format!("Did you mean `{near}`?"));
    fields.error_at("key_pattern", Rule::KeyValue, message, Some(help));
    None
}
