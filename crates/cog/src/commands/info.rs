//! `cog info`: a module's manifest, input and output.

mod fields;
mod manifest;

use cog_json::{Array, ToJson, Writer};
use cog_module::{Module, golden};

pub(super) use self::fields::Fields;
use self::manifest::ManifestJson;
use super::{
    example,
    targets::{default_finder, location},
};
use crate::{
    args::InfoArgs,
    error::CliError,
    exit::Exit,
    output::{Console, wrap},
    settings::Environment,
};

/// Prints a module with all defaults resolved.
pub(crate) fn info(args: &InfoArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let origin = default_finder(environment, console)?.find(&args.module)?;
    let module = cog_module::load(&origin)?;
    if args.format.is_json() {
        console.print_json(&Report::new(&module))?;
        return Ok(Exit::Ok);
    }
    console.diagnose(&module.warnings);
    console.print(&describe(&args.module, &Report::new(&module), console))?;
    Ok(Exit::Ok)
}

struct Report<'a> {
    module: &'a Module,
    tests: Vec<String>,
}

impl<'a> Report<'a> {
    fn new(module: &'a Module) -> Self {
        let cases = golden::discover(module).cases;
        Self { module, tests: cases.into_iter().map(|case| case.name).collect() }
    }
}

/// Written by hand: its members are those of a module.
impl ToJson for Report<'_> {
    fn write_json(&self, w: &mut Writer<'_>) {
        let Report { module, tests } = self;
        let schema = |schema: Option<&serde_json::Value>| schema.map(cog_json::Value::from);
        w.object(|w| {
            w.field("path", module.origin.path_of("").to_string_lossy().as_ref());
            w.field("manifest", &ManifestJson(&module.manifest));
            w.optional("input", &schema(module.contract.input_schema()));
            w.optional("data", &schema(module.contract.data_schema()));
            w.field("tests", tests);
            w.field("warnings", &Array(&module.warnings));
        });
    }
}

/// The column at which values begin.
const INDENT: usize = 15;

/// Formats a module for a terminal: title, properties, input, data, and an example command.
fn describe(name_given: &str, report: &Report<'_>, console: &Console) -> String {
    let palette = console.out().palette;
    let module = report.module;
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

fn facts(report: &Report<'_>) -> Vec<(&'static str, String)> {
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
    if !manifest.excludes.is_empty() {
        facts.push(("excludes", manifest.excludes.join("; ")));
    }
    if !report.tests.is_empty() {
        facts.push(("tests", report.tests.join(", ")));
    }
    facts
}

fn insights(report: &Report<'_>) -> String {
    let overflow = report.module.manifest.overflow;
    if overflow.enabled { format!("at most {}", overflow.max_items) } else { "none".to_owned() }
}

fn names(modalities: &[cog_spec::Modality]) -> String {
    modalities.iter().map(|modality| modality.as_str()).collect::<Vec<_>>().join(", ")
}
