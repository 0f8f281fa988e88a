//! The report on forms as one HTML page, without scripts and without other files.

use super::report::{Comparison, FormsReport, HEADER, Measured, ModuleForms};
use crate::{
    commands::test::formats,
    output::{self, Escaped},
};

/// Formats the report: for each module the table, the outcome of each case in each form, and the details of every case.
pub(super) fn page(report: &FormsReport) -> String {
    let mut body = "<h1>cog test --forms</h1>\n".to_owned();
    report.modules.iter().for_each(|module| body += &section(module));
    output::page("cog test --forms", "", &body)
}

fn section(module: &ModuleForms) -> String {
    match &module.comparison {
        Ok(comparison) => {
            let title = module.title(comparison);
            format!("<h2>{}</h2>\n{}", Escaped(&title), body(comparison))
        }
        Err(error) => format!(
            "<h2>{}</h2>\n<p class=\"failed\">{}: {}</p>\n",
            Escaped(&module.module),
            Escaped(error.code.as_str()),
            Escaped(&error.message)
        ),
    }
}

fn body(comparison: &Comparison) -> String {
    let mut body = "<table>\n<tr>".to_owned();
    HEADER.iter().for_each(|name| body += &format!("<th>{name}"));
    for row in comparison.cells() {
        body += "\n<tr>";
        row.iter().for_each(|cell| body += &format!("<td>{}", Escaped(cell)));
    }
    body += &format!("\n</table>\n<p><b>{}</b></p>\n<ul>\n", Escaped(&comparison.verdict()));
    comparison.notes().iter().for_each(|note| body += &format!("<li>{}\n", Escaped(note)));
    body += "</ul>\n";
    let suites: Vec<_> = comparison.measured.iter().map(|Measured { suite, .. }| suite).collect();
    body += &formats::grid(&suites);
    suites.iter().for_each(|suite| body += &formats::section(suite));
    body
}
