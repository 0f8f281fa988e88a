//! `cog info`: what a module is, takes and answers.

mod fields;
mod manifest;

use cog_json::{ToJson, Writer};
use cog_module::{Module, golden};

pub(super) use self::fields::Fields;
use self::manifest::ManifestJson;
use super::{
    example,
    targets::{default_finder, whereabouts},
};
use crate::{
    args::InfoArgs,
    error::CliError,
    exit::Exit,
    output::{Console, wrap},
    settings::Environment,
};

/// Prints what a module says of itself, with every default resolved.
pub(crate) fn info(args: &InfoArgs, environment: Environment, console: &Console) -> Result<Exit, CliError> {
    let origin = default_finder(environment, console)?.find(&args.module)?;
    let module = cog_module::load(&origin)?;
    if args.format.is_json() {
        console.print_json(&Report::of(&module))?;
        return Ok(Exit::Ok);
    }
    console.diagnose(&module.warnings);
    console.print(&describe(&args.module, &Report::of(&module), console))?;
    Ok(Exit::Ok)
}

struct Report<'a> {
    module: &'a Module,
    tests: Vec<String>,
}

impl<'a> Report<'a> {
    fn of(module: &'a Module) -> Self {
        let cases = golden::discover(module).cases;
        Self { module, tests: cases.into_iter().map(|case| case.name).collect() }
    }
}

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
            w.field("warnings", &module.warnings);
        });
    }
}

/// The columns before a fact.
const INDENT: usize = 15;

/// The card of a module: head, facts, input, data, what to type next.
fn describe(asked: &str, report: &Report<'_>, console: &Console) -> String {
    let paint = console.out().paint;
    let module = report.module;
    let manifest = &module.manifest;
    let mut text = format!("{} {}\n", paint.bold(&manifest.name), paint.dim(&manifest.version));
    for line in wrap(&manifest.responsibility, console.width()) {
        text += &format!("{line}\n");
    }
    text += "\n";
    for (name, value) in facts(report) {
        let lines = wrap(&value, console.width().saturating_sub(INDENT)).join(&format!("\n{:INDENT$}", ""));
        text += &format!("  {}  {lines}\n", paint.dim(format_args!("{name:<11}")));
    }
    for (title, schema) in
        [("Input", module.contract.input_schema()), ("Data", module.contract.data_schema())]
    {
        let fields = schema.map(|schema| Fields::of(schema, module.contract.document())).unwrap_or_default();
        if !fields.is_empty() {
            text += &format!("\n{}\n{}", paint.bold(title), fields.render(console));
        }
    }
    text + &format!("\n{}\n  {}\n", paint.bold("Try"), example::run(asked, module))
}

fn facts(report: &Report<'_>) -> Vec<(&'static str, String)> {
    let manifest = &report.module.manifest;
    let mut facts = vec![
        ("location", whereabouts(&report.module.origin)),
        ("format", manifest.format.to_string()),
        ("tier", manifest.tier.map_or_else(|| "none".to_owned(), |tier| tier.to_string())),
        ("strictness", manifest.strictness.to_string()),
        ("enums", manifest.enums.strategy.to_string()),
        ("insights", insights(report)),
        ("risk", manifest.risk_rule.to_string()),
        ("response", manifest.response.mode.to_string()),
        ("input", words(&manifest.modalities.input)),
        ("output", words(&manifest.modalities.output)),
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

fn words(modalities: &[cog_spec::Modality]) -> String {
    modalities.iter().map(|modality| modality.as_str()).collect::<Vec<_>>().join(", ")
}
