//! The report as one HTML page, without scripts and without other files.

use std::fmt::{self, Display, Formatter, Write as _};

use cog_module::golden::Mismatch;
use similar::ChangeTag;

use super::{
    answer::Answer,
    report::{CaseReport, Report, Suite},
};

const STYLE: &str = include_str!("report.css");

/// Formats the report.
pub(super) fn page(report: &Report) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>cog test: {0}</title>\n\
         <style>\n{STYLE}</style>\n<h1>cog test</h1>\n<p>{0}</p>\n",
        Escaped(&report.summary())
    );
    page += &table(report);
    report.suites.iter().for_each(|suite| page += &section(suite));
    page + "</html>\n"
}

/// The table of all modules; with several providers it compares them.
fn table(report: &Report) -> String {
    const HEADER: [&str; 7] =
        ["Module", "Provider", "Passed", "Input tokens", "Output tokens", "Cost", "Time per run"];
    let mut table = "<table>\n<tr>".to_owned();
    HEADER.iter().for_each(|name| table += &format!("<th>{name}"));
    for suite in &report.suites {
        let figures = suite.figures();
        let link = format!("<a href=\"#{0}\">{0}</a>", Escaped(&suite.title()));
        let cells = [
            suite.provider.unwrap_or("").to_owned(),
            suite.passed(),
            figures.input(),
            figures.output(),
            figures.shown_cost(),
            figures.time(),
        ];
        table += &format!("\n<tr><td>{link}");
        cells.iter().for_each(|cell| table += &format!("<td>{}", Escaped(cell)));
    }
    table + "\n</table>\n"
}

fn section(suite: &Suite) -> String {
    let title = suite.title();
    let mut section = format!("<h2 id=\"{0}\">{0}</h2>\n", Escaped(&title));
    match &suite.cases {
        Ok(cases) => cases.iter().for_each(|case| section += &details(case)),
        Err(error) => section += &format!("<p class=\"failed\">{}</p>\n", Escaped(&error.message)),
    }
    section
}

/// A case; one that failed is open.
fn details(case: &CaseReport) -> String {
    let verdict = case.verdict().as_str();
    let (class, open) = match verdict {
        "passed" => ("passed", ""),
        "failed" => ("failed", " open"),
        _ => ("other", ""),
    };
    let mut text = format!(
        "<details{open}><summary><b class=\"{class}\">{verdict}</b> {} <small>{}</small></summary>\n",
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

/// Text in HTML, also in an attribute.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| match character {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            _ => f.write_char(character),
        })
    }
}
