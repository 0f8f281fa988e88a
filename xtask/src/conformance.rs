//! `cargo xtask conformance`: which lines of the specification's checklist a case covers.
//!
//! `conformance/checklist.json` names every line; `conformance/cases/*.json` hold the cases. A case that is known to fail
//! covers nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

use crate::links::page_of_ruling;
use crate::project::{Outcome, read_json, say, tracked, write};

/// The page that counts the cases of each line.
pub(crate) const PAGE: &str = "docs/conformance.md";

/// The list that names them.
pub(crate) const COVERAGE: &str = "conformance/coverage.md";

/// The cases of `cog conformance`, which are part of the program.
pub(crate) const LEVELS: &str = "crates/cog-conformance/src/levels.json";

/// The page of the group whose lines are rulings.
const RULINGS: &str = "spec/first-rulings.md";

const HEADER: &str = "\
# Conformance

This page lists the checklist of the [specification](spec/README.md), with the number of cases that cover each entry. The cases are in
`conformance/cases/`, and `conformance/coverage.md` names the cases of each entry. [Conformance cases](conformance-cases.md) explains
how a case is written and run, and [conformance levels](conformance-levels.md) how a runtime is checked.

The specification has four levels: 1, envelopes and schemas; 2, tiers, error codes, overflow, enums and repair; 3, composition
and context; 4, streaming and media. Every entry must be covered. MUST, SHOULD and MAY have the meaning of RFC 2119.

`cargo xtask conformance` generates this page.
";

const COVERAGE_HEADER: &str = "\
# Coverage

The cases of each entry of the checklist. `cargo xtask conformance` generates this list.
";

/// Prints each line, writes the page, and fails where a line is not covered.
pub(crate) fn run() -> Outcome {
    let coverage = Coverage::read()?;
    for line in &coverage.lines {
        let state = if line.cases.is_empty() { "not covered" } else { "covered" };
        say(format_args!("{:6} {state:11} {}", line.code, line.title));
    }
    for (path, text) in coverage.pages() {
        write(path, &text)?;
    }
    let open: Vec<&str> =
        coverage.lines.iter().filter(|line| line.cases.is_empty()).map(|line| line.code.as_str()).collect();
    say(format_args!("{} of {} lines covered", coverage.lines.len() - open.len(), coverage.lines.len()));
    if open.is_empty() { Ok(()) } else { Err(format!("not covered: {}", open.join(" "))) }
}

/// The pages as they should be, with their paths.
pub(crate) fn pages() -> Outcome<[(&'static str, String); 2]> {
    Ok(Coverage::read()?.pages())
}

/// Returns the cases of each level: those with a `level` in `conformance/cases`, and all of `conformance/levels.json`.
pub(crate) fn levels() -> Outcome<String> {
    let own = read_json("conformance/levels.json")?;
    let failing = read_json("conformance/known-failures.json")?;
    let mut by_level: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
    let mut add = |group: &str, case: &Value| {
        let name = format!("{group}/{}", text(case, "name"));
        let Some(level) = case.get("level").and_then(Value::as_u64) else { return };
        let mut case = case.clone();
        if let Some(members) = case.as_object_mut().filter(|_| failing.get(&name).is_none()) {
            members.remove("level");
            members.insert("name".to_owned(), name.into());
            by_level.entry(level).or_default().push(case);
        }
    };
    array(&own, "cases").iter().for_each(|case| add("levels", case));
    for (group, cases) in case_files()? {
        cases.iter().for_each(|case| add(&group, case));
    }
    let titles = array(&own, "titles").iter().filter_map(Value::as_str);
    let mut levels = Vec::new();
    for ((level, cases), title) in by_level.into_iter().zip(titles) {
        // A case is a line, so that a change of one is a change of one line.
        let cases: Vec<String> = cases.iter().map(Value::to_string).collect();
        let title = Value::from(title);
        levels.push(format!("{{\"level\":{level},\"title\":{title},\"cases\":[\n{}\n]}}", cases.join(",\n")));
    }
    let base = read_json("conformance/base.json")?;
    Ok(format!("{{\"base\":{base},\"levels\":[\n{}\n]}}\n", levels.join(",\n")))
}

struct Line {
    group: String,
    /// The page of the specification, from `docs/`.
    page: String,
    code: String,
    title: String,
    cases: BTreeSet<String>,
}

impl Line {
    /// The code, with a link where it is the number of a ruling.
    fn linked_code(&self) -> String {
        let number = self.code.strip_prefix('R').and_then(|number| number.parse().ok());
        match number.filter(|_| self.page == RULINGS) {
            Some(number) => {
                let page = page_of_ruling(number).trim_start_matches("docs/");
                format!("[{}]({page}#r{number})", self.code)
            }
            None => self.code.clone(),
        }
    }
}

struct Coverage {
    lines: Vec<Line>,
}

impl Coverage {
    fn read() -> Outcome<Self> {
        let checklist = read_json("conformance/checklist.json")?;
        let cases = cases_by_code()?;
        let mut lines = Vec::new();
        for group in array(&checklist, "groups") {
            let heading = format!("{}. {}", text(group, "group"), text(group, "title"));
            let page = text(group, "page");
            for (code, title) in group.get("lines").and_then(Value::as_object).into_iter().flatten() {
                lines.push(Line {
                    group: heading.clone(),
                    page: page.to_owned(),
                    code: code.clone(),
                    title: title.as_str().unwrap_or_default().to_owned(),
                    cases: cases.get(code).cloned().unwrap_or_default(),
                });
            }
        }
        let known: BTreeSet<&str> = lines.iter().map(|line| line.code.as_str()).collect();
        let unknown: Vec<&str> =
            cases.keys().map(String::as_str).filter(|code| !known.contains(code)).collect();
        if unknown.is_empty() {
            Ok(Self { lines })
        } else {
            Err(format!("no such lines: {}", unknown.join(" ")))
        }
    }

    fn pages(&self) -> [(&'static str, String); 2] {
        let mut page = HEADER.to_owned();
        let mut list = COVERAGE_HEADER.to_owned();
        let mut group = "";
        for line in &self.lines {
            if line.group != group {
                group = &line.group;
                let _ = write!(page, "\n## {group}\n");
                if !line.page.is_empty() {
                    let _ = write!(page, "\nSpecification: [{0}]({0})\n", line.page);
                }
                page.push_str("\n| Entry | Subject | Cases |\n|---|---|---|\n");
                let _ = write!(list, "\n## {group}\n\n");
            }
            let count = match line.cases.len() {
                0 => "**missing**".to_owned(),
                count => count.to_string(),
            };
            let _ = writeln!(page, "| {} | {} | {count} |", line.linked_code(), line.title);
            let cases: Vec<&str> = line.cases.iter().map(String::as_str).collect();
            let _ = writeln!(list, "- {}: {}", line.code, cases.join(", "));
        }
        [(PAGE, page), (COVERAGE, list)]
    }
}

/// The names of the cases that cover each code.
fn cases_by_code() -> Outcome<BTreeMap<String, BTreeSet<String>>> {
    let failing = read_json("conformance/known-failures.json")?;
    let mut by_code: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (group, cases) in case_files()? {
        for case in &cases {
            let name = format!("{group}/{}", text(case, "name"));
            if failing.get(&name).is_some() {
                continue;
            }
            for code in array(case, "codes").iter().filter_map(Value::as_str) {
                by_code.entry(code.to_owned()).or_default().insert(name.clone());
            }
        }
    }
    Ok(by_code)
}

/// Returns the cases of each file, with the name of the file.
fn case_files() -> Outcome<Vec<(String, Vec<Value>)>> {
    let mut files = Vec::new();
    for path in tracked("conformance/cases", ".json")? {
        let group = path.rsplit('/').next().unwrap_or_default().trim_end_matches(".json").to_owned();
        files.push((group, read_json(&path)?.as_array().cloned().unwrap_or_default()));
    }
    Ok(files)
}

fn array<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
