//! `cog info`: a module's manifest, input and output. `cog list`: the available modules. `cog graph`: draws a composition.

mod composition;
mod manifest;

use std::sync::Arc;

use cog_flow::{Diagram, check};
use cog_host::settings::Environment;
use cog_json::{Array, ToJson, Writer};
use cog_module::{Diagnostic, Finder, ListedModule, Module, Severity, golden};
use cog_spec::Manifest;
use serde_json::Value;

use self::{composition::Parts, manifest::ManifestJson};
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
