//! The report as one HTML page, without scripts and without other files.

use cog_module::golden::Mismatch;
use similar::ChangeTag;

use super::{
    answer::Answer,
    report::{CaseReport, Report, Suite},
};
use crate::output::{self, Escaped};

/// Formats the report.
pub(super) fn page(report: &Report) -> String {
    let summary = report.summary();
    let mut body = format!("<h1>cog test</h1>\n<p>{}</p>\n", Escaped(&summary));
    body += &table(report);
    body += &comparison(report);
    report.suites.iter().for_each(|suite| body += &section(suite));
    output::page(&format!("cog test: {summary}"), "", &body)
}

/// The table of all modules; with several models it compares them.
fn table(report: &Report) -> String {
    const HEADER: [&str; 7] =
        ["Module", "Model", "Passed", "Input tokens", "Output tokens", "Cost", "Time per run"];
    let mut table = "<table>\n<tr>".to_owned();
    HEADER.iter().for_each(|name| table += &format!("<th>{name}"));
    let links = report.suites.iter().map(Some).chain(std::iter::repeat(None));
    for (row, suite) in report.comparison().iter().zip(links) {
        let [module, cells @ ..] = row;
        let module = Escaped(module);
        let link = |suite| format!("<a href=\"#{}\">{module}</a>", Escaped(&id(suite)));
        table += &format!("\n<tr><td>{}", suite.map_or_else(|| module.to_string(), link));
        cells.iter().for_each(|cell| table += &format!("<td>{}", Escaped(cell)));
    }
    table + "\n</table>\n"
}

/// A table for each module that runs on several models: the verdict of each case on each of them.
fn comparison(report: &Report) -> String {
    let modules = report.suites.chunk_by(|one, other| one.module == other.module);
    modules.filter(|suites| suites.len() > 1).map(grid).collect()
}

fn grid(suites: &[Suite]) -> String {
    let Some((name, Ok(cases))) = suites.first().map(|suite| (&suite.module, &suite.cases)) else {
        return String::new();
    };
    let mut table = format!("<h2>{}</h2>\n<table>\n<tr><th>Case", Escaped(name));
    for column in suites.iter().filter_map(|suite| suite.column.as_ref()) {
        table += &format!("<th>{}", Escaped(&column.to_string()));
    }
    for (index, case) in cases.iter().enumerate() {
        table += &format!("\n<tr><td>{}", Escaped(&case.name));
        for suite in suites {
            let case = suite.cases.iter().flatten().nth(index);
            table += &case.map(|case| verdict_cell(suite, case)).unwrap_or_default();
        }
    }
    table + "\n</table>\n"
}

/// The verdict of a case, with a link to its details.
fn verdict_cell(suite: &Suite, case: &CaseReport) -> String {
    let (verdict, (passed, all)) = (case.verdict().as_str(), case.passed());
    let share = if all > 1 { format!(" {passed} of {all}") } else { String::new() };
    let link = Escaped(&anchor(suite, case)).to_string();
    format!("<td><a class=\"{}\" href=\"#{link}\">{verdict}</a>{share}", class_of(verdict))
}

/// Returns the ID of the section of a suite. An ID contains no spaces.
fn id(suite: &Suite) -> String {
    suite.title().replace(char::is_whitespace, "-")
}

fn anchor(suite: &Suite, case: &CaseReport) -> String {
    format!("{}-{}", id(suite), case.name.replace(char::is_whitespace, "-"))
}

fn class_of(verdict: &str) -> &'static str {
    match verdict {
        "passed" => "passed",
        "failed" => "failed",
        _ => "other",
    }
}

fn section(suite: &Suite) -> String {
    let title = suite.title();
    let mut section = format!("<h2 id=\"{}\">{}</h2>\n", Escaped(&id(suite)), Escaped(&title));
    match &suite.cases {
        Ok(cases) => cases.iter().for_each(|case| section += &details(suite, case)),
        Err(error) => section += &format!("<p class=\"failed\">{}</p>\n", Escaped(&error.message)),
    }
    section
}

/// A case; one that failed is open.
fn details(suite: &Suite, case: &CaseReport) -> String {
    let verdict = case.verdict().as_str();
    let class = class_of(verdict);
    let open = if verdict == "failed" { " open" } else { "" };
    let mut text = format!(
        "<details{open} id=\"{}\"><summary><b class=\"{class}\">{verdict}</b> {} <small>{}</small></summary>\n",
        Escaped(&anchor(suite, case)),
        Escaped(&case.name),
        Escaped(&case.facts())
    );
    for Mismatch { path, message, .. } in case.verdict().mismatches() {
        text += &format!("<p><code>{}</code> {}</p>\n", Escaped(path), Escaped(message));
    }
    if let Some(answer) = case.decisive().and_then(|attempt| attempt.answer.as_ref()) {
        text += &diff(answer);
    }
    text + "</details>\n"
}

fn diff(answer: &Answer) -> String {
    let line = |(tag, line): (ChangeTag, String)| match tag {
        ChangeTag::Equal => format!("  {}\n", Escaped(&line)),
        ChangeTag::Delete => format!("<del>- {}</del>\n", Escaped(&line)),
        ChangeTag::Insert => format!("<ins>+ {}</ins>\n", Escaped(&line)),
    };
    format!("<pre>{}</pre>\n", answer.lines().into_iter().map(line).collect::<String>())
}
