//! `cog info`: a module's manifest, input and output.

mod composition;
mod fields;
mod manifest;

use std::sync::Arc;

use cog_host::settings::Environment;
use cog_json::{Array, ToJson, Writer};
use cog_module::{Finder, Module, golden};

pub(super) use self::fields::Fields;
use self::{composition::Parts, manifest::ManifestJson};
use super::{
    example,
    targets::{default_finder, location},
};
use crate::{
    args::InfoArgs,
    error::CliError,
    exit::Exit,
    output::{Console, wrap},
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

/// Written by hand: its members are those of a module.
impl ToJson for Report {
    fn write_json(&self, w: &mut Writer<'_>) {
        let Report { module, parts, tests } = self;
        let schema = |schema: Option<&serde_json::Value>| schema.map(cog_json::Value::from);
        w.object(|w| {
            w.field("path", module.origin.path_of("").to_string_lossy().as_ref());
            w.field("manifest", &ManifestJson(&module.manifest));
            w.optional("input", &schema(module.contract.input_schema()));
            w.optional("data", &schema(module.contract.data_schema()));
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
    text + &format!("\n{}\n  {}\n", palette.bold("Try"), example::run(name_given, module))
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
