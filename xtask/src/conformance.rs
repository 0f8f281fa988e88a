//! `cargo xtask conformance`: which lines of the specification's checklist a case covers.
//!
//! `conformance/checklist.json` names every line and which of them are due; `conformance/cases/*.json` hold the
//! cases. A case that is known to fail covers nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

use crate::project::{Outcome, read_json, say, tracked, write};

/// The page that shows the same.
pub(crate) const PAGE: &str = "docs/conformance.md";

const HEAD: &str = "\
# Conformance

Which lines of the specification a case in `conformance/cases/` holds the program to. The specification's four levels are:
1, envelopes and schemas; 2, tiers, error codes, overflow, enums and repair; 3, composition and context; 4, streaming and
media. A line that is *due* must be covered in this release; the others belong to later ones. The words MUST, SHOULD and
MAY are used as in RFC 2119.

This page is printed by `cargo xtask conformance`.
";

/// Prints each line, writes the page, and fails where a due line is not covered.
pub(crate) fn run() -> Outcome {
    let coverage = Coverage::read()?;
    for line in &coverage.lines {
        let state = if line.cases.is_empty() { "not covered" } else { "covered" };
        let due = if line.due { "due  " } else { "later" };
        say(format_args!("{:6} {due} {state:11} {}", line.code, line.title));
    }
    write(PAGE, &coverage.page())?;
    let open: Vec<&str> = coverage
        .lines
        .iter()
        .filter(|line| line.due && line.cases.is_empty())
        .map(|line| line.code.as_str())
        .collect();
    let covered = coverage.lines.iter().filter(|line| !line.cases.is_empty()).count();
    say(format_args!("{covered} of {} lines covered", coverage.lines.len()));
    if open.is_empty() { Ok(()) } else { Err(format!("due and not covered: {}", open.join(" "))) }
}

/// The page as it should be.
pub(crate) fn page() -> Outcome<String> {
    Ok(Coverage::read()?.page())
}

struct Line {
    group: String,
    code: String,
    title: String,
    due: bool,
    cases: BTreeSet<String>,
}

struct Coverage {
    lines: Vec<Line>,
}

impl Coverage {
    fn read() -> Outcome<Self> {
        let checklist = read_json("conformance/checklist.json")?;
        let due = Due::read(&checklist);
        let cases = cases_by_code()?;
        let mut lines = Vec::new();
        for group in array(&checklist, "groups") {
            let heading = format!("{}. {}", text(group, "group"), text(group, "title"));
            for (code, title) in group.get("lines").and_then(Value::as_object).into_iter().flatten() {
                lines.push(Line {
                    group: heading.clone(),
                    code: code.clone(),
                    title: title.as_str().unwrap_or_default().to_owned(),
                    due: due.includes(code),
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

    fn page(&self) -> String {
        let mut page = HEAD.to_owned();
        let mut group = "";
        for line in &self.lines {
            if line.group != group {
                group = &line.group;
                let _ = write!(page, "\n## {group}\n\n| Line | What | Cases |\n|---|---|---|\n");
            }
            let cases: Vec<&str> = line.cases.iter().map(String::as_str).collect();
            let shown = match (cases.is_empty(), line.due) {
                (false, _) => cases.join(", "),
                (true, true) => "**missing**".to_owned(),
                (true, false) => "later".to_owned(),
            };
            let _ = writeln!(page, "| {} | {} | {shown} |", line.code, line.title);
        }
        page
    }
}

/// The lines that this release must cover: whole groups, single lines, and exceptions with a minus.
struct Due {
    words: Vec<String>,
}

impl Due {
    fn read(checklist: &Value) -> Self {
        let words = array(checklist, "due").iter().filter_map(Value::as_str).map(str::to_owned).collect();
        Self { words }
    }

    fn includes(&self, code: &str) -> bool {
        let group = code.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let has = |word: &str| self.words.iter().any(|known| known == word);
        !has(&format!("-{code}")) && (has(code) || has(group))
    }
}

/// The names of the cases that cover each code.
fn cases_by_code() -> Outcome<BTreeMap<String, BTreeSet<String>>> {
    let failing = read_json("conformance/known-failures.json")?;
    let mut by_code: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in tracked("conformance/cases", ".json")? {
        let group = path.rsplit('/').next().unwrap_or_default().trim_end_matches(".json").to_owned();
        for case in read_json(&path)?.as_array().into_iter().flatten() {
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

fn array<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
