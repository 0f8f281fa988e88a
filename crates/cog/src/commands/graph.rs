//! `cog graph`: draws a composition.

use std::sync::Arc;

use cog_flow::{Diagram, check};
use cog_host::settings::Environment;
use cog_module::{Diagnostic, Severity};

use super::targets::default_finder;
use crate::{
    args::{GraphArgs, GraphFormat},
    error::CliError,
    exit::Exit,
    output::Console,
};

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
