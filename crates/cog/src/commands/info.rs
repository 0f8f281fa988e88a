//! `cog info`: a module's manifest, input and output. `cog list`: the available modules. `cog graph`: draws a composition.

use std::sync::Arc;

use cog_flow::{CheckResult, Diagram, Part, Plan, check};
use cog_host::settings::{Environment, show_duration};
use cog_json::{Array, ToJson, Writer};
use cog_module::{Diagnostic, Finder, ListedModule, Module, Severity, golden};
use cog_spec::{
    AcceptedContext, Ask, Composition, Constraints, ContextRule, DataflowStep, EmittedContext, Enums,
    Generation, IterationRule, Manifest, MediaConstraints, Modalities, Overflow, Policies, Requirement,
    Response, RoutingRule, Tier,
};
use serde_json::Value;

use super::{
    input,
    runtime::{default_finder, location},
};
use crate::{
    args::{GraphArgs, GraphFormat, InfoArgs, ListArgs},
    error::{CliError, Exit},
    output::{Console, Table, wrap},
};

/// Prints a module with all defaults resolved.
pub(crate) fn info(args: &InfoArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let finder = default_finder(environment)?;
    let report = Report::new(Arc::new(cog_module::load(&finder.find(&args.module)?)?), &finder);
    if args.format.is_json() {
        console.print_json(&report)?;
        return Ok(Exit::Ok);
    }
    console.diagnose(&report.module.warnings);
    console.print(&describe(&args.module, &report, console))?;
    Ok(Exit::Ok)
}

struct Report {
    module: Arc<Module>,
    parts: Parts,
    tests: Vec<String>,
}

impl Report {
    fn new(module: Arc<Module>, finder: &Finder) -> Self {
        let tests = golden::discover(&module).cases.into_iter().map(|case| case.name).collect();
        Self { parts: Parts::find(&module, finder), module, tests }
    }
}

/// Written by hand: it has the members of a module.
impl ToJson for Report {
    fn write_json(&self, w: &mut Writer<'_>) {
        let Report { module, parts, tests } = self;
        let input = module.contract.input_schema().map(cog_json::Value::from);
        let data = module.contract.data_schema().map(cog_json::Value::from);
        w.object(|w| {
            w.field("path", module.origin.path_of("").to_string_lossy().as_ref());
            w.field("manifest", &ManifestJson(&module.manifest));
            w.optional("input", &input);
            w.optional("data", &data);
            if !parts.is_empty() {
                w.field("parts", parts);
            }
            w.field("tests", tests);
            w.field("warnings", &Array(&module.warnings));
        });
    }
}

/// The column at which values begin.
const INDENT: usize = 15;

/// Formats a module for a terminal: title, properties, input, data, and an example command.
fn describe(name_given: &str, report: &Report, console: &Console) -> String {
    let palette = console.out().palette;
    let module = &report.module;
    let manifest = &module.manifest;
    let mut text = format!("{} {}\n", palette.bold(&manifest.name), palette.dim(&manifest.version));
    for line in wrap(&manifest.responsibility, console.width()) {
        text += &format!("{line}\n");
    }
    text += "\n";
    for (name, value) in facts(report) {
        let lines = wrap(&value, console.width().saturating_sub(INDENT)).join(&format!("\n{:INDENT$}", ""));
        text += &format!("  {}  {lines}\n", palette.dim(format_args!("{name:<11}")));
    }
    if let Some(parts) = report.parts.render(console) {
        text += &format!("\n{}\n{parts}", palette.bold("Parts"));
    }
    for (title, schema) in
        [("Input", module.contract.input_schema()), ("Data", module.contract.data_schema())]
    {
        let fields = schema.map(|schema| Fields::new(schema, module.contract.document())).unwrap_or_default();
        if !fields.is_empty() {
            text += &format!("\n{}\n{}", palette.bold(title), fields.render(console));
        }
    }
    text + &format!("\n{}\n  {}\n", palette.bold("Try"), input::example(name_given, module))
}

fn facts(report: &Report) -> Vec<(&'static str, String)> {
    let manifest = &report.module.manifest;
    let mut facts = vec![
        ("location", location(&report.module.origin)),
        ("format", manifest.format.to_string()),
        ("tier", manifest.tier.map_or_else(|| "none".to_owned(), |tier| tier.to_string())),
        ("strictness", manifest.strictness.to_string()),
        ("enums", manifest.enums.strategy.to_string()),
        ("insights", insights(report)),
        ("risk", manifest.risk_rule.to_string()),
        ("response", manifest.response.mode.to_string()),
        ("input", names(&manifest.modalities.input)),
        ("output", names(&manifest.modalities.output)),
    ];
    facts.extend(report.parts.pattern().map(|pattern| ("pattern", pattern)));
    if !manifest.excludes.is_empty() {
        facts.push(("excludes", manifest.excludes.join("; ")));
    }
    if !report.tests.is_empty() {
        facts.push(("tests", report.tests.join(", ")));
    }
    facts
}

fn insights(report: &Report) -> String {
    let overflow = report.module.manifest.overflow;
    if overflow.enabled { format!("at most {}", overflow.max_items) } else { "none".to_owned() }
}

fn names(modalities: &[cog_spec::Modality]) -> String {
    modalities.iter().map(|modality| modality.as_str()).collect::<Vec<_>>().join(", ")
}

/// The fields of an object schema.
#[derive(Debug, Default)]
pub(super) struct Fields(Vec<Field>);

#[derive(Debug, PartialEq, Eq)]
struct Field {
    name: String,
    kind: String,
    about: String,
}

impl Fields {
    /// Reads the properties of `schema`; references are resolved in `document`.
    fn new(schema: &Value, document: &Value) -> Self {
        let schema = resolve(schema, document);
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
        let mut fields = Vec::new();
        for (name, schema) in properties {
            fields.push(Field {
                name: if required.contains(&name.as_str()) { format!("{name}*") } else { name.clone() },
                kind: kind(schema),
                about: about(resolve(schema, document)),
            });
        }
        Self(fields)
    }

    /// Returns the fields of a module's input.
    pub(super) fn for_input(module: &Module) -> Self {
        let contract = &module.contract;
        contract.input_schema().map(|schema| Self::new(schema, contract.document())).unwrap_or_default()
    }

    /// Returns the names; required fields have a `*`.
    pub(super) fn names(&self) -> Vec<&str> {
        self.0.iter().map(|field| field.name.as_str()).collect()
    }

    /// Whether the schema has no fields.
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Formats the fields as a table; required fields have a `*`.
    fn render(&self, console: &Console) -> String {
        let mut table = Table::new(["field", "type", "description"]);
        for Field { name, kind, about } in &self.0 {
            table.row([name.clone(), kind.clone(), about.clone()]);
        }
        let columns = console.out_columns().map(|columns| columns.saturating_sub(2));
        table.render(console.out().palette, columns).lines().map(|line| format!("  {line}\n")).collect()
    }
}

/// Resolves a reference; returns the reference itself if there is no target.
fn resolve<'a>(schema: &'a Value, document: &'a Value) -> &'a Value {
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#'));
    target.and_then(|pointer| document.pointer(pointer)).unwrap_or(schema)
}

/// Returns the type: `string`, `array of object`, `MediaInput`.
fn kind(schema: &Value) -> String {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return reference.rsplit('/').next().unwrap_or(reference).to_owned();
    }
    match schema.get("type") {
        Some(Value::String(value)) if value == "array" => match schema.get("items") {
            Some(items) => format!("array of {}", kind(items)),
            None => value.clone(),
        },
        Some(Value::String(value)) => value.clone(),
        Some(Value::Array(values)) => {
            values.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or ")
        }
        _ if schema.get("enum").is_some() => "enum".to_owned(),
        _ if schema.get("oneOf").is_some() || schema.get("anyOf").is_some() => "one of several".to_owned(),
        _ => "any".to_owned(),
    }
}

/// Returns the description, with the values of an enum.
fn about(schema: &Value) -> String {
    let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let Some(values) = schema.get("enum").and_then(Value::as_array) else { return text.to_owned() };
    let values: Vec<String> =
        values.iter().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)).collect();
    if text.is_empty() { values.join(", ") } else { format!("{text} ({})", values.join(", ")) }
}

/// Prints one line per module; for a module that does not load, the error.
pub(crate) fn list(args: &ListArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let listed = default_finder(environment)?.list();
    if args.format.is_json() {
        console.print_json(&Array(&listed.iter().map(Entry).collect::<Vec<_>>()))?;
        return Ok(Exit::Ok);
    }
    let mut table = Table::new(["name", "version", "format", "tier", "location", "description"]);
    for module in &listed {
        table.row(cells(module));
    }
    console.print(&table.render(console.out().palette, console.out_columns()))?;
    Ok(Exit::Ok)
}

fn cells(module: &ListedModule) -> [String; 6] {
    let (version, format, tier, what) = match &module.manifest {
        Ok(manifest) => {
            let Manifest { version, format, tier, responsibility, .. } = manifest;
            let tier = tier.map_or("-", |tier| tier.as_str());
            (version.as_str(), format.as_str(), tier, responsibility.clone())
        }
        Err(error) => ("-", "-", "-", error.to_string()),
    };
    [&module.name, version, format, tier, &location(&module.origin), &what].map(str::to_owned)
}

struct Entry<'a>(&'a ListedModule);

/// Written by hand: a module that does not load has only an error.
impl ToJson for Entry<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let ListedModule { name, origin, manifest, .. } = self.0;
        w.object(|w| {
            w.field("name", name);
            w.field("path", origin.path_of("").to_string_lossy().as_ref());
            match manifest {
                Ok(manifest) => {
                    w.field("version", &manifest.version);
                    w.field("format", manifest.format.as_str());
                    w.optional("tier", &manifest.tier.map(|tier| tier.as_str()));
                    w.field("responsibility", &manifest.responsibility);
                }
                Err(error) => {
                    w.field("error", &error.to_string());
                }
            }
        });
    }
}

/// Prints the drawing of a module, and what its check found to stderr.
pub(crate) fn graph(args: &GraphArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let finder = default_finder(environment)?;
    let module = Arc::new(cog_module::load(&finder.find(&args.module)?)?);
    let checked = check(module, &finder);
    let diagnostics: Vec<Diagnostic> = checked.findings.iter().map(cog_flow::Finding::diagnostic).collect();
    console.diagnose(&diagnostics);
    let diagram = Diagram::new(checked.flow());
    match args.format {
        GraphFormat::Text => console.print(diagram.to_text().trim_end())?,
        GraphFormat::Mermaid => console.print(diagram.to_mermaid().trim_end())?,
        GraphFormat::Dot => console.print(diagram.to_dot().trim_end())?,
        GraphFormat::Svg => console.print(diagram.to_svg().trim_end())?,
        GraphFormat::Json => console.print_json(&diagram)?,
    }
    let is_invalid = diagnostics.iter().any(|found| found.severity == Severity::Error);
    Ok(if is_invalid { Exit::Invalid } else { Exit::Ok })
}

// A manifest as JSON, with the keys of `module.yaml` and all defaults resolved.

/// The JSON form of a manifest.
struct ManifestJson<'a>(&'a Manifest);

/// Written by hand: sections with defaults are not written.
impl ToJson for ManifestJson<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let manifest = self.0;
        w.object(|w| {
            w.field("name", &manifest.name);
            w.field("version", &manifest.version);
            w.field("responsibility", &manifest.responsibility);
            w.field("format", manifest.format.as_str());
            w.optional("tier", &manifest.tier.map(|tier| tier.as_str()));
            w.field("schema_strictness", manifest.strictness.as_str());
            w.field("excludes", &manifest.excludes);
            section(w, "policies", &manifest.policies, policies);
            section(w, "overflow", &manifest.overflow, overflow);
            section(w, "enums", &manifest.enums, enums);
            write_rules(w, manifest);
            section(w, "constraints", &manifest.constraints, constraints);
            section(w, "generation", &manifest.generation, generation);
            context(w.key("context"), &manifest.context);
            if let Some(composed) = &manifest.composition {
                section(w, "composition", composed, composition);
            }
            w.key("response").object(|w| response(w, &manifest.response, manifest.tier));
            section(w, "modalities", &manifest.modalities, modalities);
            write_error_codes(w, manifest);
        });
    }
}

/// Writes a section of the manifest as an object.
fn section<T>(w: &mut Writer<'_>, key: &str, value: &T, write: fn(&mut Writer<'_>, &T)) {
    w.key(key).object(|w| write(w, value));
}

/// Writes the context as a manifest does: a word, or an object with what the module reads and emits.
fn context(w: &mut Writer<'_>, rule: &ContextRule) {
    let mode = if rule.fork { "fork" } else { "main" };
    if rule.accepts.is_empty() && rule.emits.is_empty() {
        return mode.write_json(w);
    }
    w.object(|w| {
        w.field("mode", mode);
        w.key("accepts").array(|w| {
            rule.accepts.iter().for_each(|accepted| w.object(|w| write_accepted(w, accepted)));
        });
        w.key("emits")
            .array(|w| rule.emits.iter().for_each(|emitted| w.object(|w| write_emitted(w, emitted))));
    });
}

fn write_accepted(w: &mut Writer<'_>, accepted: &AcceptedContext) {
    w.field("type", &accepted.name);
    w.field("required", &accepted.required);
    w.optional("max_turns", &accepted.max_turns);
    w.optional("fields", &accepted.fields);
    w.optional("schema", &accepted.schema);
    w.optional("ttl", &accepted.ttl);
    w.optional("from_module", &accepted.from_module);
}

fn write_emitted(w: &mut Writer<'_>, emitted: &EmittedContext) {
    w.field("type", &emitted.name);
    w.field("ttl", &emitted.ttl.seconds());
    w.field("key_pattern", &emitted.key_pattern);
    w.optional("schema", &emitted.schema);
}

fn policies(w: &mut Writer<'_>, policies: &Policies) {
    w.field("tools_allowed", &policies.tools_allowed);
    w.field("network_allowed", &policies.network_allowed);
    w.field("filesystem_write_allowed", &policies.filesystem_write_allowed);
    w.field("side_effects_allowed", &policies.side_effects_allowed);
    w.field("code_execution_allowed", &policies.code_execution_allowed);
}

fn overflow(w: &mut Writer<'_>, overflow: &Overflow) {
    w.field("enabled", &overflow.enabled);
    w.field("recoverable", &overflow.recoverable);
    w.field("max_items", &overflow.max_items);
    w.field("require_suggested_mapping", &overflow.require_suggested_mapping);
}

fn enums(w: &mut Writer<'_>, enums: &Enums) {
    w.field("strategy", enums.strategy.as_str());
    w.field("unknown_tag", &enums.unknown_tag);
}

/// Writes the small sections: tools, failure, requirements, compat, meta, invocation.
fn write_rules(w: &mut Writer<'_>, manifest: &Manifest) {
    w.key("tools").object(|w| {
        let by_default = if manifest.tools.allow_by_default { "allow_by_default" } else { "deny_by_default" };
        w.field("policy", by_default);
        w.field("allowed", &manifest.tools.allowed);
        w.field("denied", &manifest.tools.denied);
    });
    w.key("failure").object(|w| {
        w.field("partial_allowed", &manifest.failure.partial_allowed);
        w.field("must_return_error_schema", &manifest.failure.must_return_error_schema);
    });
    w.key("runtime_requirements").object(|w| {
        w.field("structured_output", &manifest.requirements.structured_output);
        w.optional("max_input_tokens", &manifest.requirements.max_input_tokens);
        w.field("preferred_capabilities", &manifest.requirements.preferred_capabilities);
    });
    w.key("compat").object(|w| {
        w.field("accepts_v21_payload", &manifest.compat.accepts_v21_payload);
        w.field("accepts_v22_payload", &manifest.compat.accepts_v22_payload);
        w.field("runtime_auto_wrap", &manifest.compat.runtime_auto_wrap);
        w.field("schema_output_alias", &manifest.compat.schema_output_alias);
    });
    w.key("meta").object(|w| {
        w.field("risk_rule", manifest.risk_rule.as_str());
    });
    w.key("invocation").object(|w| {
        w.field("user_invocable", &manifest.invocation.user_invocable);
        w.field("agent_invocable", &manifest.invocation.agent_invocable);
    });
}

fn constraints(w: &mut Writer<'_>, constraints: &Constraints) {
    w.field("no_network", &constraints.no_network);
    w.field("no_side_effects", &constraints.no_side_effects);
    w.field("no_inventing_data", &constraints.no_inventing_data);
    w.field("require_confidence", &constraints.require_confidence);
    w.field("require_rationale", &constraints.require_rationale);
    w.optional(
        "behavior_equivalence_false_max_confidence",
        &constraints.behavior_equivalence_false_max_confidence,
    );
}

fn generation(w: &mut Writer<'_>, generation: &Generation) {
    w.optional("temperature", &generation.temperature);
    w.optional("max_tokens", &generation.max_tokens);
    w.optional("seed", &generation.seed);
    w.field("stop", &generation.stop);
    w.optional("effort", &generation.effort);
    w.optional("verbosity", &generation.verbosity);
    w.optional("service_tier", &generation.service_tier);
    w.optional("ask", &generation.ask.map(Ask::as_str));
}

fn response(w: &mut Writer<'_>, response: &Response, tier: Option<Tier>) {
    w.field("mode", response.mode.as_str());
    w.field("chunk_type", response.chunk_type.as_str());
    w.field("buffer_size", &response.buffer_size);
    w.optional("on_violation", &response.on_violation.map(|it| it.as_str()));
    w.field("max_attempts", &response.attempts(tier));
}

fn modalities(w: &mut Writer<'_>, modalities: &Modalities) {
    w.field("input", &modalities.input);
    w.field("output", &modalities.output);
    section(w, "constraints", &modalities.constraints, media);
}

fn media(w: &mut Writer<'_>, media: &MediaConstraints) {
    w.optional("max_size_mb", &media.max_size_mb);
    w.optional("max_dimension", &media.max_dimension);
    w.optional("min_dimension", &media.min_dimension);
    w.optional("max_pixels", &media.max_pixels);
    w.optional("max_duration_s", &media.max_duration_s);
    w.optional("max_items", &media.max_items);
    w.field("strip_metadata", &media.strip_metadata);
}

fn write_error_codes(w: &mut Writer<'_>, manifest: &Manifest) {
    if manifest.error_codes.is_empty() {
        return;
    }
    w.key("error_codes").object(|w| {
        for (code, meaning) in &manifest.error_codes {
            w.field(code, meaning);
        }
    });
}

// The modules that a composed module calls.

/// The modules that a module calls.
struct Parts(Option<CheckResult>);

impl Parts {
    /// Finds the modules that a module calls.
    fn find(module: &Arc<Module>, finder: &Finder) -> Self {
        let checked = cog_flow::check(Arc::clone(module), finder);
        Self(checked.flow().is_composed().then_some(checked))
    }

    /// Returns the pattern and the limits; none if the module calls no other.
    fn pattern(&self) -> Option<String> {
        let plan = self.0.as_ref()?.flow().root();
        let timeout = show_duration(plan.timeout);
        Some(format!("{}; at most {timeout}, {} modules deep", plan.pattern.as_str(), plan.max_depth))
    }

    /// Formats the parts as a table; none if there are none.
    fn render(&self, console: &Console) -> Option<String> {
        let rows = self.rows();
        if rows.is_empty() {
            return None;
        }
        let mut table = Table::new(["module", "version", "tier", "options"]);
        for row in rows {
            let manifest = row.manifest;
            let version = manifest.map_or("missing", |manifest| &manifest.version);
            let tier = manifest.and_then(|manifest| manifest.tier).map_or("-", |tier| tier.as_str());
            table.row([row.name(), version.to_owned(), tier.to_owned(), row.options()]);
        }
        let columns = console.out_columns().map(|columns| columns.saturating_sub(2));
        Some(table.render(console.out().palette, columns).lines().map(|line| format!("  {line}\n")).collect())
    }

    /// Whether the module calls no other.
    fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn rows(&self) -> Vec<Row<'_>> {
        let Some(flow) = self.0.as_ref().map(CheckResult::flow) else { return Vec::new() };
        let plan = flow.root();
        let parts = plan.parts.iter().enumerate();
        let rows = parts.map(|(index, part)| Row {
            manifest: part.plan.map(|id| &*flow.plan(id).module.manifest),
            is_optional: part.optional || is_called_optionally(plan, index),
            fallback: part.fallback.and_then(|fallback| Some(plan.parts.get(fallback)?.name.as_str())),
            part,
        });
        rows.collect()
    }
}

/// Returns whether the prompt calls a part, and each call is optional.
fn is_called_optionally(plan: &Plan, part: usize) -> bool {
    let mut calls = plan.calls.iter().filter(|call| call.part == part).peekable();
    calls.peek().is_some() && calls.all(|call| call.optional)
}

struct Row<'a> {
    part: &'a Part,
    /// None if the module is missing.
    manifest: Option<&'a Manifest>,
    is_optional: bool,
    fallback: Option<&'a str>,
}

impl Row<'_> {
    /// Returns the name of the module, and the name of its result if it has another one.
    fn name(&self) -> String {
        let Part { name, module, .. } = self.part;
        if self.part.is_named() { format!("{module} as {name}") } else { name.clone() }
    }

    fn options(&self) -> String {
        let optional = self.is_optional.then(|| "optional".to_owned());
        let fallback = self.fallback.map(|name| format!("fallback {name}"));
        let timeout = self.part.timeout.map(|timeout| format!("timeout {}", show_duration(timeout)));
        [optional, fallback, timeout].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Written by hand: it has the members of a part and of its manifest.
impl ToJson for Row<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.object(|w| {
            w.field("name", &self.part.name);
            w.optional("module", &self.part.is_named().then_some(&self.part.module));
            w.optional("version", &self.manifest.map(|manifest| &manifest.version));
            w.optional("tier", &self.manifest.and_then(|manifest| manifest.tier).map(|tier| tier.as_str()));
            w.field("optional", &self.is_optional);
            w.optional("fallback", &self.fallback);
            let millis = self.part.timeout.map(|timeout| timeout.as_millis());
            w.optional("timeout_ms", &millis.map(|millis| u64::try_from(millis).unwrap_or(u64::MAX)));
        });
    }
}

impl ToJson for Parts {
    fn write_json(&self, w: &mut Writer<'_>) {
        w.array(|w| self.rows().iter().for_each(|row| row.write_json(w)));
    }
}

/// Writes `composition` of a manifest.
fn composition(w: &mut Writer<'_>, composition: &Composition) {
    w.field("pattern", composition.pattern.as_str());
    w.field("max_depth", &composition.max_depth);
    w.field("timeout_ms", &composition.timeout_ms);
    write_list(w, "requires", &composition.requires, requirement);
    write_list(w, "dataflow", &composition.dataflow, step);
    write_list(w, "routing", &composition.routing, rule);
    if let Some(rounds) = &composition.iteration {
        w.key("iteration").object(|w| iteration(w, rounds));
    }
}

/// Writes a list of objects.
fn write_list<T>(w: &mut Writer<'_>, key: &str, items: &[T], write: fn(&mut Writer<'_>, &T)) {
    w.key(key).array(|w| items.iter().for_each(|item| w.object(|w| write(w, item))));
}

fn requirement(w: &mut Writer<'_>, requirement: &Requirement) {
    w.field("name", &requirement.name);
    w.field("version", requirement.version.as_deref().unwrap_or("*"));
    w.field("optional", &requirement.optional);
    w.optional("fallback", &requirement.fallback);
    w.optional("timeout_ms", &requirement.timeout_ms);
}

fn step(w: &mut Writer<'_>, step: &DataflowStep) {
    w.field("from", &step.from);
    w.field("to", &step.to);
    if let Some(mapping) = &step.mapping {
        w.key("mapping").object(|w| {
            for (field, path) in mapping {
                w.field(field, path);
            }
        });
    }
    w.optional("condition", &step.condition);
    w.optional("aggregate", &step.aggregate.map(|aggregate| aggregate.as_str()));
    w.optional("as", &step.result_name);
    w.optional("each", &step.each);
    w.optional("max_parallel", &step.max_parallel);
}

fn rule(w: &mut Writer<'_>, rule: &RoutingRule) {
    if !rule.from.is_empty() {
        w.field("from", &rule.from);
    }
    w.optional("condition", &rule.condition);
    w.field("next", &rule.next);
}

fn iteration(w: &mut Writer<'_>, iteration: &IterationRule) {
    if !iteration.from.is_empty() {
        w.field("from", &iteration.from);
    }
    w.optional("until", &iteration.until);
    w.field("max_rounds", &iteration.max_rounds);
    w.optional("best", &iteration.best);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_property_is_a_line() {
        let document = json!({"$defs": {"Pic": {"type": "object"}}});
        let schema = json!({
            "type": "object",
            "required": ["code"],
            "properties": {
                "code": {"type": "string", "description": "The code"},
                "lang": {"enum": ["py", "js"]},
                "pics": {"type": "array", "items": {"$ref": "#/$defs/Pic"}}
            }
        });
        let fields: Vec<_> =
            Fields::new(&schema, &document).0.into_iter().map(|f| (f.name, f.kind, f.about)).collect();
        let line = |name: &str, kind: &str, about: &str| (name.to_owned(), kind.to_owned(), about.to_owned());
        assert_eq!(
            fields,
            [
                line("code*", "string", "The code"),
                line("lang", "enum", "py, js"),
                line("pics", "array of Pic", "")
            ]
        );
    }
}
