//! `cargo xtask docs [--check]`: the pages as a site, made by mdBook, with search that needs no network.
//!
//! `docs/README.md` is the table of contents: its headings are the parts of the site, and its links the chapters. A file of the
//! source that a page links to is part of the site as text, so no link leaves it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::{Captures, Regex};

use crate::links::normal;
use crate::project::{Outcome, cargo, emptied, execute, read, root, say, tracked, write_new};

const VERSION: &str = "0.5.4";

/// The table of contents.
const START: &str = "docs/README.md";

/// The pages whose own links are chapters below them, with the directory of these chapters.
const PARTS: [(&str, &str); 3] = [
    ("docs/cli.md", "docs/cli/"),
    ("docs/decisions/README.md", "docs/decisions/"),
    ("docs/spec/README.md", "docs/spec/"),
];

/// The maximum number of words of a page: twelve minutes at 238 words a minute.
const MAX_WORDS: usize = 2_850;

const CONFIGURATION: &str = r#"[book]
title = "cog"
language = "en"

[build]
create-missing = false

[output.html]
default-theme = "light"
preferred-dark-theme = "navy"
no-section-label = true
additional-css = ["site.css"]
additional-js = ["site.js"]
input-404 = ""

[output.html.fold]
enable = true

[output.html.playground]
runnable = false

[output.html.print]
enable = false
"#;

/// Builds the site, and returns its directory: `target/docs/book`.
pub(crate) fn build() -> Outcome<PathBuf> {
    let directory = emptied("docs")?;
    let site = Site::read()?;
    site.write(&directory)?;
    execute(Command::new(install()?).arg("build").arg(&directory))?;
    let book = directory.join("book");
    say(format_args!("docs: {}", book.join("index.html").display()));
    Ok(book)
}

/// Builds the site, and fails if a link of it leads nowhere or a page loads something from another host.
pub(crate) fn check() -> Outcome {
    let book = build()?;
    let mut problems = Vec::new();
    let mut pages = Pages::default();
    let files = files_below(&book, "html")?;
    for file in &files {
        pages.check(file, &mut problems)?;
    }
    for style in files_below(&book, "css")? {
        let text = content(&style)?;
        if text.contains("@import") || text.contains("url(http") || text.contains("url(\"http") {
            problems.push(format!("{}: loads a style or font from another host", style.display()));
        }
    }
    if !problems.is_empty() {
        return Err(format!("what is wrong with the site:\n  {}", problems.join("\n  ")));
    }
    say(format_args!("docs: {} pages, no dead link, nothing from another host", files.len()));
    Ok(())
}

/// Lists pages that are not part of the site, and pages that take longer to read than they should.
pub(crate) fn problems() -> Outcome<Vec<String>> {
    let site = Site::read()?;
    let mut problems = Vec::new();
    for page in tracked("docs", ".md")? {
        if !site.chapters.contains_key(&page) {
            problems.push(format!("{page}: neither {START} nor a page of its directory links to it"));
        }
        let words = words(&read(&page)?);
        if words > MAX_WORDS {
            problems.push(format!("{page}: {words} words; split pages over {MAX_WORDS}"));
        }
    }
    Ok(problems)
}

/// Counts the words of a page as a reader sees them: without link targets, table lines and punctuation.
fn words(page: &str) -> usize {
    let mut parts = page.split("](");
    let first = parts.next().unwrap_or_default();
    // Each further part begins with the target of a link.
    let others = parts.map(|part| part.split_once(')').map_or(part, |(_, seen)| seen));
    let seen = std::iter::once(first).chain(others).flat_map(str::split_whitespace);
    seen.filter(|word| word.contains(char::is_alphanumeric)).count()
}

/// The pages of the site.
struct Site {
    /// The text of each page, by its path in the repository.
    chapters: BTreeMap<String, String>,
    /// The table of contents as mdBook reads it.
    summary: String,
}

impl Site {
    fn read() -> Outcome<Self> {
        let start = read(START)?;
        let mut site = Self {
            chapters: BTreeMap::from([(START.to_owned(), start.clone())]),
            summary: "# Summary\n\n[Documentation](index.md)\n".to_owned(),
        };
        for line in start.lines() {
            if let Some(heading) = line.strip_prefix("## ") {
                let _ = write!(site.summary, "\n# {heading}\n\n");
            }
            for page in pages_of(START, line) {
                site.add(&page, 0)?;
            }
        }
        Ok(site)
    }

    /// Adds a chapter with the chapters below it, unless the site has it.
    fn add(&mut self, page: &str, depth: usize) -> Outcome {
        if self.chapters.contains_key(page) {
            return Ok(());
        }
        let text = read(page)?;
        let title = text.lines().find_map(|line| line.strip_prefix("# "));
        let title = title.ok_or_else(|| format!("{page}: the page has no title"))?;
        let _ = writeln!(self.summary, "{}- [{title}]({})", "  ".repeat(depth), place(page));
        self.chapters.insert(page.to_owned(), text.clone());
        if let Some((_, directory)) = PARTS.iter().find(|(part, _)| *part == page) {
            for below in pages_of(page, &text).iter().filter(|below| below.starts_with(directory)) {
                self.add(below, depth + 1)?;
            }
        }
        Ok(())
    }

    /// Writes the source of the book.
    fn write(&self, directory: &Path) -> Outcome {
        let source = directory.join("src");
        let mut files = BTreeSet::new();
        for (page, text) in &self.chapters {
            write_new(source.join(place(page)), &self.with_links(page, text, &mut files)?)?;
        }
        for file in &files {
            copy(&root().join(file), &source.join(place(file)))?;
        }
        write_new(source.join("SUMMARY.md"), &self.summary)?;
        write_new(directory.join("site.js"), include_str!("docs.js"))?;
        write_new(directory.join("site.css"), include_str!("docs.css"))?;
        write_new(directory.join("book.toml"), CONFIGURATION)
    }

    /// Returns the text with links to where the targets are in the book.
    fn with_links(&self, page: &str, text: &str, files: &mut BTreeSet<String>) -> Outcome<String> {
        let link = Regex::new(r"\[([^\[\]]*)\]\(([^) ]+)\)").map_err(|error| error.to_string())?;
        let mut is_code = false;
        let mut lines = Vec::new();
        for line in text.lines() {
            is_code ^= line.trim_start().starts_with("```");
            lines.push(match is_code {
                true => line.into(),
                false => link.replace_all(line, |found: &Captures<'_>| {
                    self.link(page, group(found, 1), group(found, 2), files)
                }),
            });
        }
        Ok(lines.join("\n") + "\n")
    }

    fn link(&self, page: &str, label: &str, target: &str, files: &mut BTreeSet<String>) -> String {
        let Some(path) = path_of(page, target) else { return format!("[{label}]({target})") };
        if root().join(&path).is_dir() {
            return label.to_owned();
        }
        let mut anchor = target.split_once('#').map_or("", |(_, anchor)| anchor);
        if !self.chapters.contains_key(&path) {
            files.insert(path.clone());
            anchor = "";
        }
        let up = "../".repeat(place(page).matches('/').count());
        let anchor = if anchor.is_empty() { String::new() } else { format!("#{anchor}") };
        format!("[{label}]({up}{}{anchor})", place(&path))
    }
}

fn group<'a>(found: &Captures<'a>, number: usize) -> &'a str {
    found.get(number).map_or("", |part| part.as_str())
}

/// Returns the pages that a text of this page links to.
fn pages_of(page: &str, text: &str) -> Vec<String> {
    let targets = crate::links::targets(text).into_iter();
    targets.filter_map(|target| path_of(page, target)).filter(|path| path.ends_with(".md")).collect()
}

/// Returns the path in the repository of a link's target, unless it is on the same page or on another host.
fn path_of(page: &str, target: &str) -> Option<String> {
    let path = target.split_once('#').map_or(target, |(path, _)| path);
    if path.is_empty() || target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let directory = Path::new(page).parent()?;
    Some(normal(&directory.join(path)).display().to_string())
}

/// Returns where a file of the repository is in the book.
fn place(path: &str) -> String {
    let Some(page) = path.strip_suffix(".md") else {
        return match path.strip_prefix("docs/") {
            Some(file) => file.to_owned(),
            None => format!("files/{path}.txt"),
        };
    };
    let page = page
        .strip_suffix("README")
        .map_or_else(|| page.to_owned(), |directory| directory.to_owned() + "index");
    page.strip_prefix("docs/").map_or_else(|| format!("project/{page}.md"), |page| format!("{page}.md"))
}

/// Returns the pinned mdBook under `target/tools/`, which is compiled when it is missing.
fn install() -> Outcome<PathBuf> {
    let directory = root().join("target/tools").join(format!("mdbook-{VERSION}"));
    let program = directory.join("bin/mdbook");
    if !program.exists() {
        let install = ["install", "mdbook", "--locked", "--no-default-features", "--features", "search"];
        execute(cargo().args(install).args(["--version", VERSION, "--root"]).arg(directory))?;
    }
    Ok(program)
}

/// The anchors of the pages that were looked at.
#[derive(Default)]
struct Pages {
    anchors: BTreeMap<PathBuf, BTreeSet<String>>,
}

impl Pages {
    /// Checks the links of a page, and what it loads.
    fn check(&mut self, page: &Path, problems: &mut Vec<String>) -> Outcome {
        let reference =
            Regex::new(r#"<(\w+)[^>]*?\s(?:href|src)="([^"]*)""#).map_err(|error| error.to_string())?;
        let text = content(page)?;
        // mdBook's script asks another host which crates such a block may use.
        if text.contains("class=\"playground\"") {
            problems.push(format!("{}: a block of code that runs on another host", page.display()));
        }
        for found in reference.captures_iter(&text) {
            let element = group(&found, 1);
            let target = group(&found, 2);
            if target.contains("://") || target.starts_with("//") {
                if element != "a" {
                    problems.push(format!("{}: <{element}> loads {target}", page.display()));
                }
            } else if !target.starts_with("data:") && !self.leads_somewhere(page, target)? {
                problems.push(format!("{}: {target}", page.display()));
            }
        }
        Ok(())
    }

    fn leads_somewhere(&mut self, page: &Path, target: &str) -> Outcome<bool> {
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        let file = match path {
            "" => page.to_owned(),
            path => normal(&page.parent().unwrap_or(Path::new("")).join(path)),
        };
        if !file.is_file() {
            return Ok(false);
        }
        if anchor.is_empty() || file.extension().is_none_or(|extension| extension != "html") {
            return Ok(true);
        }
        if !self.anchors.contains_key(&file) {
            let text = content(&file)?;
            let ids = text.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next());
            self.anchors.insert(file.clone(), ids.map(str::to_owned).collect());
        }
        Ok(self.anchors.get(&file).is_some_and(|anchors| anchors.contains(anchor)))
    }
}

#[expect(clippy::disallowed_methods, reason = "the site is below the target directory")]
fn content(path: &Path) -> Outcome<String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Outcome {
    let parent = to.parent().unwrap_or(Path::new(""));
    let copied = std::fs::create_dir_all(parent).and_then(|()| std::fs::copy(from, to));
    copied.map(drop).map_err(|error| format!("{}: {error}", from.display()))
}

/// Returns the files below a directory with this extension.
fn files_below(directory: &Path, extension: &str) -> Outcome<Vec<PathBuf>> {
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            files.extend(files_below(&path, extension)?);
        } else if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_a_place_in_the_book() {
        let places = [
            ("docs/README.md", "index.md"),
            ("docs/spec/README.md", "spec/index.md"),
            ("docs/cli/run.md", "cli/run.md"),
            ("docs/openapi.json", "openapi.json"),
            ("SECURITY.md", "project/SECURITY.md"),
            ("crates/cog-py/README.md", "project/crates/cog-py/index.md"),
            ("crates/cog-json/src/lib.rs", "files/crates/cog-json/src/lib.rs.txt"),
        ];
        for (path, expected) in places {
            assert_eq!(place(path), expected);
        }
    }

    #[test]
    fn links_lead_to_places_in_the_book() {
        let chapters = ["docs/README.md", "docs/spec/media.md", "SECURITY.md"]
            .map(|page| (page.to_owned(), String::new()));
        let site = Site { chapters: chapters.into(), summary: String::new() };
        let mut files = BTreeSet::new();
        let text = "[a](../../SECURITY.md#b), [`c`](../README.md), [d](https://e.example), [f](#g), [h](../../xtask/src/docs.rs#place), \
                    [i](../../modules)\n```\n[k](../README.md)\n```\n";
        let linked = site.with_links("docs/spec/media.md", text, &mut files).unwrap();
        let expected = "[a](../project/SECURITY.md#b), [`c`](../index.md), [d](https://e.example), [f](#g), \
                        [h](../files/xtask/src/docs.rs.txt), i\n```\n[k](../README.md)\n```\n";
        assert_eq!(linked, expected);
        assert_eq!(files.into_iter().collect::<Vec<_>>(), ["xtask/src/docs.rs"]);
    }

    #[test]
    fn words_are_counted_without_targets() {
        assert_eq!(words("A [link to a page](somewhere/far away.md) – and | `code` |\n"), 7);
        assert_eq!(words("](x) one"), 1);
    }
}
