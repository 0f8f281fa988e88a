//! The report for other programs: as one HTML page, without scripts and without other files; as JUnit XML, one `testsuite` for each
//! module or column and one `testcase` for each golden test; as annotations of GitHub Actions, one per failed case and the summary.

use std::fmt::{self, Write};

use cog_module::golden::Mismatch;
use similar::ChangeTag;

use super::{
    answer::Answer,
    baseline::Comparison,
    report::{COMPARED, CaseReport, Report, Suite, Verdict},
};
use crate::{
    commands::emit::Annotation,
    output::{self, Escaped},
};

/// Formats the report.
pub(super) fn page(report: &Report) -> String {
    let summary = report.summary();
    let mut body = format!("<h1>cog test</h1>\n<p>{}</p>\n", Escaped(&summary));
    let lines = [report.rate_line()]
        .into_iter()
        .chain(report.flaky().into_iter().map(|case| format!("flaky: {case}")));
    let lines = lines.chain(report.comparison.iter().flat_map(Comparison::lines));
    lines.filter(|line| !line.is_empty()).for_each(|line| body += &format!("<p>{}</p>\n", Escaped(&line)));
    body += &table(report);
    body += &comparison(report);
    report.suites.iter().for_each(|suite| body += &section(suite));
    output::page(&format!("cog test: {summary}"), "", &body)
}

/// The table of all modules; with several models it compares them.
fn table(report: &Report) -> String {
    let mut table = "<table>\n<tr>".to_owned();
    COMPARED.iter().for_each(|name| table += &format!("<th>{name}"));
    let links = report.suites.iter().map(Some).chain(std::iter::repeat(None));
    for (row, suite) in report.comparison().iter().zip(links) {
        let [module, cells @ ..] = row;
        let module = Escaped(module);
        table += &match suite {
            Some(suite) => format!("\n<tr><td><a href=\"#{}\">{module}</a>", Escaped(&id(suite))),
            None => format!("\n<tr><td>{module}"),
        };
        cells.iter().for_each(|cell| table += &format!("<td>{}", Escaped(cell)));
    }
    table + "\n</table>\n"
}

/// A table for each module that runs on several models: the verdict of each case on each of them.
fn comparison(report: &Report) -> String {
    let modules = report.suites.chunk_by(|one, other| one.module == other.module);
    let compared = modules.filter(|suites| suites.len() > 1);
    compared.map(|suites| grid(&suites.iter().collect::<Vec<_>>())).collect()
}

/// The verdict of each case in each suite; the suites have the same cases.
pub(super) fn grid(suites: &[&Suite]) -> String {
    let Some((name, Ok(cases))) = suites.first().map(|suite| (&suite.module, &suite.cases)) else {
        return String::new();
    };
    let mut table = format!("<h2>{}</h2>\n<table>\n<tr><th>Case", Escaped(name));
    for column in suites.iter().filter_map(|suite| suite.column.as_ref()) {
        table += &format!("<th>{}", Escaped(&column.heading()));
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
        "failed" | "error" => "failed",
        _ => "other",
    }
}

/// The details of all cases of a suite.
pub(super) fn section(suite: &Suite) -> String {
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
    let open = if class == "failed" { " open" } else { "" };
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
    let mut lines = String::new();
    for (tag, line) in answer.lines() {
        lines += &match tag {
            ChangeTag::Equal => format!("  {}\n", Escaped(&line)),
            ChangeTag::Delete => format!("<del>- {}</del>\n", Escaped(&line)),
            ChangeTag::Insert => format!("<ins>+ {}</ins>\n", Escaped(&line)),
        };
    }
    format!("<pre>{lines}</pre>\n")
}

/// Formats the report. A case that no model answered or judged is reported as skipped.
pub(super) fn junit(report: &Report) -> String {
    let mut xml = String::new();
    // Writing to a string cannot fail.
    let _ = write_report(&mut xml, report);
    xml
}

fn write_report(xml: &mut String, report: &Report) -> fmt::Result {
    let mut total = Counts::default();
    for suite in &report.suites {
        total.add(&Counts::of(suite));
    }
    writeln!(xml, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(xml, "<testsuites name=\"cog test\" {total}>")?;
    for suite in &report.suites {
        let title = suite.title();
        writeln!(xml, "  <testsuite name=\"{}\" {}>", Escaped(&title), Counts::of(suite))?;
        match &suite.cases {
            Ok(cases) => cases.iter().try_for_each(|case| write_case(xml, &title, case))?,
            Err(error) => {
                writeln!(xml, "    <testcase name=\"load\" classname=\"{}\">", Escaped(&title))?;
                let message = Escaped(&error.message);
                writeln!(
                    xml,
                    "      <error message=\"{message}\" type=\"{}\"/>",
                    Escaped(error.code.as_str())
                )?;
                writeln!(xml, "    </testcase>")?;
            }
        }
        writeln!(xml, "  </testsuite>")?;
    }
    writeln!(xml, "</testsuites>")
}

fn write_case(xml: &mut String, class: &str, case: &CaseReport) -> fmt::Result {
    write!(xml, "    <testcase name=\"{}\" classname=\"{}\"", Escaped(&case.name), Escaped(class))?;
    if let Some(figures) = case.figures() {
        write!(xml, " time=\"{}.{:03}\"", figures.time_ms / 1_000, figures.time_ms % 1_000)?;
    }
    let verdict = case.verdict();
    match verdict {
        Verdict::Passed | Verdict::Updated => return writeln!(xml, "/>"),
        Verdict::Failed(mismatches) => write_failure(xml, "failure", mismatches)?,
        Verdict::Error(mismatches) => write_failure(xml, "error", mismatches)?,
        Verdict::ContractOnly | Verdict::NotJudged => {
            write!(xml, ">\n      <skipped message=\"{}\"/>\n", verdict.as_str())?;
        }
    }
    writeln!(xml, "    </testcase>")
}

/// `element` is `failure` for a wrong answer, and `error` if there is none.
fn write_failure(xml: &mut String, element: &str, mismatches: &[Mismatch]) -> fmt::Result {
    let lines: Vec<_> = mismatches.iter().map(|found| format!("{}: {}", found.path, found.message)).collect();
    let rule = mismatches.first().map_or("", |found| found.rule.as_str());
    let first = lines.first().map_or("", String::as_str);
    write!(xml, ">\n      <{element} message=\"{}\" type=\"{}\">", Escaped(first), Escaped(rule))?;
    writeln!(xml, "{}</{element}>", Escaped(&lines.join("\n")))
}

/// The attributes of a suite, and of all of them.
#[derive(Default)]
struct Counts {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
}

impl Counts {
    fn of(suite: &Suite) -> Self {
        let Ok(cases) = &suite.cases else { return Self { tests: 1, errors: 1, ..Self::default() } };
        let mut counts = Self { tests: cases.len(), ..Self::default() };
        for case in cases {
            match case.verdict() {
                Verdict::Passed | Verdict::Updated => {}
                Verdict::Failed(_) => counts.failures += 1,
                Verdict::Error(_) => counts.errors += 1,
                Verdict::ContractOnly | Verdict::NotJudged => counts.skipped += 1,
            }
        }
        counts
    }

    fn add(&mut self, other: &Self) {
        self.tests += other.tests;
        self.failures += other.failures;
        self.errors += other.errors;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tests, failures, errors, skipped } = self;
        write!(f, r#"tests="{tests}" failures="{failures}" errors="{errors}" skipped="{skipped}""#)
    }
}

/// Formats one line per failure, then the summary.
pub(super) fn annotations(report: &Report) -> String {
    let lines = report.comparison.iter().flat_map(Comparison::lines);
    let summary = std::iter::once(report.summary()).chain(lines).collect::<Vec<_>>().join("\n");
    let summary =
        Annotation { level: "notice", file: None, range: None, title: "cog test", message: &summary };
    let failures: String = report.suites.iter().map(|suite| of_suite(report, suite)).collect();
    format!("{failures}{summary}\n")
}

fn of_suite(report: &Report, suite: &Suite) -> String {
    let title = suite.title();
    match &suite.cases {
        Err(error) => of_module(&title, &error.message),
        Ok(_) if suite.is_empty() && report.requires_tests => of_module(&title, "no golden tests"),
        Ok(cases) => cases.iter().filter_map(|case| of_case(report, &title, case)).collect(),
    }
}

fn of_module(title: &str, message: &str) -> String {
    format!("{}\n", Annotation { level: "error", file: None, range: None, title, message })
}

fn of_case(report: &Report, suite: &str, case: &CaseReport) -> Option<String> {
    let message = match case.verdict() {
        Verdict::Failed(mismatches) | Verdict::Error(mismatches) => {
            mismatches.iter().map(line).collect::<Vec<_>>().join("\n")
        }
        verdict @ (Verdict::ContractOnly | Verdict::NotJudged) if report.requires_model => {
            format!("{}, and --require-model is set", verdict.as_str())
        }
        _ => return None,
    };
    let title = format!("{suite} {}", case.name);
    let file = Some(case.file.as_path());
    let annotation = Annotation { level: "error", file, range: None, title: &title, message: &message };
    Some(format!("{annotation}\n"))
}

fn line(Mismatch { path, message, .. }: &Mismatch) -> String {
    if path.is_empty() { message.clone() } else { format!("{path}: {message}") }
}
