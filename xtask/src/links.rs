//! Links of pages and citations in the source: each leads to a file and a heading of this repository. Run with
//! `cargo xtask generate`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use regex::Regex;

use crate::project::{Outcome, read, root, tracked};

/// Returns the page with a ruling.
pub(crate) fn page_of_ruling(number: u32) -> &'static str {
    match number {
        ..=55 => "docs/spec/first-rulings.md",
        _ => "docs/spec/rulings.md",
    }
}

/// Lists the links and citations that lead nowhere.
pub(crate) fn broken() -> Outcome<Vec<String>> {
    let mut anchors = Anchors::default();
    let mut broken = Vec::new();
    for page in tracked("*.md", ".md")? {
        // Prompts of modules are not pages.
        if page.starts_with("modules/") || page.starts_with("conformance/") || page.contains("/tests/") {
            continue;
        }
        let directory = Path::new(&page).parent().unwrap_or(Path::new("")).to_path_buf();
        for target in targets(&read(&page)?) {
            if !anchors.leads_somewhere(&directory, Path::new(&page), target)? {
                broken.push(format!("{page}: {target}"));
            }
        }
    }
    let citations = Citations::new()?;
    for path in tracked("crates", ".rs")? {
        for cited in citations.find(&read(&path)?) {
            if !anchors.leads_somewhere(Path::new(""), Path::new(&path), &cited)? {
                broken.push(format!("{path}: {cited}"));
            }
        }
    }
    Ok(broken)
}

/// The anchors of each page that was looked at.
#[derive(Default)]
struct Anchors {
    by_page: BTreeMap<PathBuf, BTreeSet<String>>,
}

impl Anchors {
    /// Returns whether a target exists: a file, and behind `#` the heading of a page or a function of a source file.
    fn leads_somewhere(&mut self, directory: &Path, page: &Path, target: &str) -> Outcome<bool> {
        if target.contains("://") || target.starts_with("mailto:") {
            return Ok(true);
        }
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        let file = if path.is_empty() { page.to_path_buf() } else { normal(&directory.join(path)) };
        if !root().join(&file).exists() {
            return Ok(false);
        }
        match file.extension().and_then(|extension| extension.to_str()) {
            _ if anchor.is_empty() => return Ok(true),
            Some("md") => {}
            Some("rs") => return Ok(read(&file)?.contains(&format!("fn {anchor}("))),
            _ => return Ok(true),
        }
        if !self.by_page.contains_key(&file) {
            let anchors = anchors(&read(&file)?);
            self.by_page.insert(file.clone(), anchors);
        }
        Ok(self.by_page.get(&file).is_some_and(|anchors| anchors.contains(anchor)))
    }
}

/// Resolves `..` without looking at the disk.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(resolved.pop()),
            Component::CurDir => {}
            other => resolved.push(other),
        }
    }
    resolved
}

/// What Markdown links have in their parentheses.
pub(crate) fn targets(text: &str) -> Vec<&str> {
    let after = text.split("](").skip(1);
    after.filter_map(|rest| rest.split(')').next()).filter(|target| !target.contains(' ')).collect()
}

/// The anchors of a page's headings, as GitHub writes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut is_code = false;
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        if let Some(heading) = line.strip_prefix('#').filter(|_| !is_code) {
            let heading = heading.trim_start_matches('#').trim().to_lowercase();
            let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
            anchors.insert(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
        }
    }
    anchors
}

/// Finds the pages and rulings that comments cite.
struct Citations {
    page: Regex,
    rulings: Regex,
    number: Regex,
}

fn expression(text: &str) -> Outcome<Regex> {
    Regex::new(text).map_err(|error| error.to_string())
}

impl Citations {
    fn new() -> Outcome<Self> {
        Ok(Self {
            page: expression(r"\bdocs/[a-z0-9/-]+\.md(#[a-z0-9-]+)?")?,
            rulings: expression(r"\brulings? R\d+((, | and |–| to )R\d+)*")?,
            number: expression(r"R\d+")?,
        })
    }

    fn find(&self, text: &str) -> Vec<String> {
        let mut found: Vec<String> = self.page.find_iter(text).map(|page| page.as_str().to_owned()).collect();
        for rulings in self.rulings.find_iter(text) {
            let numbers = self.number.find_iter(rulings.as_str());
            let numbers = numbers.filter_map(|number| number.as_str().strip_prefix('R')?.parse().ok());
            found.extend(numbers.map(|number| format!("{}#r{number}", page_of_ruling(number))));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_targets_in_parentheses() {
        assert_eq!(targets("see [a](b.md#c) and [`d`](e/f.rs), not (g)"), ["b.md#c", "e/f.rs"]);
    }

    #[test]
    fn anchors_are_headings_outside_code() {
        let page = "# The `a` page\n```sh\n# a comment\n```\n### R24\n## Who, and when?\n";
        assert_eq!(anchors(page).into_iter().collect::<Vec<_>>(), ["r24", "the-a-page", "who-and-when"]);
    }

    #[test]
    fn finds_pages_and_rulings_that_comments_cite() {
        let source = "/// One (SPEC 3, docs/spec/media.md, rulings R24–R26).\n/// Two (ruling R66).\n";
        let expected = [
            "docs/spec/media.md",
            "docs/spec/first-rulings.md#r24",
            "docs/spec/first-rulings.md#r26",
            "docs/spec/rulings.md#r66",
        ];
        assert_eq!(Citations::new().unwrap().find(source), expected);
    }

    #[test]
    fn a_missing_file_or_heading_leads_nowhere() {
        let mut anchors = Anchors::default();
        let mut leads =
            |target| anchors.leads_somewhere(Path::new("docs"), Path::new("docs/flow.md"), target).unwrap();
        assert!(leads("spec/rulings.md#r66") && leads("../README.md") && leads("https://example.org"));
        assert!(!leads("spec/rulings.md#r99") && !leads("spec/nothing.md"));
        assert!(leads("../xtask/src/links.rs#broken") && !leads("../xtask/src/links.rs#mended"));
    }
}
