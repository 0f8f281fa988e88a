//! `cargo xtask words [PATH]`: help, messages, pages, public names and comments avoid the words of `xtask/words.toml`.

mod list;
mod python;

use std::collections::BTreeSet;

use self::list::{List, Place};
use crate::project::{Outcome, read, say, tracked};
use crate::source;

/// One use of a word to avoid.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Use {
    path: String,
    line: usize,
    place: Place,
    found: String,
    write: String,
}

/// A line of text to check.
type Line = (Place, usize, String);

/// What a generated page says. Its words come from the code.
const GENERATED: &str = "This page is printed by `cargo xtask generate`.";

/// The maximum number of terms in the glossary.
const MAX_TERMS: usize = 40;

/// Checks every file, or the files under one path.
pub(crate) fn run(under: Option<&str>) -> Outcome {
    let list = List::read()?;
    let mut uses = BTreeSet::new();
    let mut test_files = Vec::new();
    for path in paths()? {
        if under.is_none_or(|prefix| path.starts_with(prefix)) {
            let page = Page::read(&path)?;
            uses.extend(uses_in(&list, &path, page.lines));
            test_files.extend(page.test_files);
        }
    }
    uses.retain(|found: &Use| found.place == Place::Comment || !test_files.contains(&found.path));
    for found in &uses {
        say(format_args!("{}:{}: `{}`; write: {}", found.path, found.line, found.found, found.write));
    }
    check_glossary(&read("docs/glossary.md")?)?;
    verdict(uses.len())
}

/// Fails if the glossary has too many terms. Two rows of its table are the header.
fn check_glossary(page: &str) -> Outcome {
    let terms = page.lines().filter(|line| line.starts_with('|')).count().saturating_sub(2);
    match terms {
        1..=MAX_TERMS => Ok(()),
        _ => Err(format!("docs/glossary.md: {terms} terms; allowed: 1 to {MAX_TERMS}")),
    }
}

/// Fails if words were found.
fn verdict(found: usize) -> Outcome {
    if found > 0 {
        return Err(format!("words to avoid: {found}"));
    }
    say(format_args!("words: none to avoid"));
    Ok(())
}

/// The files whose text people read, and all code for its comments.
fn paths() -> Outcome<Vec<String>> {
    let mut paths = tracked("docs", ".md")?;
    paths.retain(|path| path != crate::conformance::PAGE);
    let others = [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "SECURITY.md",
        "fuzz/README.md",
        "docs/openapi.json",
    ];
    paths.extend(others.map(str::to_owned));
    paths.extend(tracked("crates", "README.md")?);
    paths.extend(tracked("crates/cog-spec/schemas", ".json")?);
    paths.extend(tracked("crates/cog-server/pages", "")?);
    paths.extend(tracked("crates/cog-py/python", ".py")?);
    paths.extend(tracked("crates/cog-py/python", ".pyi")?);
    paths.extend(tracked(".", ".rs")?);
    Ok(paths)
}

/// Returns whether only the comments of a file are checked: tests, mocks, benchmarks and examples.
fn has_comments_only(path: &str) -> bool {
    let is_code = path.starts_with("xtask/") || (path.starts_with("crates/") && path.contains("/src/"));
    let is_test = path.ends_with("/tests.rs") || path.ends_with("/testing.rs") || path.contains("/tests/");
    !is_code || is_test || path.starts_with("crates/cog-testkit/")
}

/// The lines of a file that are checked.
struct Page {
    lines: Vec<Line>,
    /// Files that this one declares as modules for tests only.
    test_files: Vec<String>,
}

impl Page {
    fn read(path: &str) -> Outcome<Self> {
        Self::parse(path, &read(path)?)
    }

    fn parse(path: &str, text: &str) -> Outcome<Self> {
        let lines = match path.rsplit('.').next() {
            Some("rs") => {
                let file = source::parse(path, text)?;
                let comments = source::comments(text).into_iter();
                let mut lines: Vec<Line> =
                    comments.map(|(line, text)| (Place::Comment, line, without_code(&text))).collect();
                if !has_comments_only(path) {
                    lines.extend(rust_lines(path, &file));
                }
                return Ok(Self { lines, test_files: source::test_files(path, &file) });
            }
            Some("md") => {
                markdown_lines(if text.contains(GENERATED) { Place::Prose } else { Place::Page }, text)
            }
            Some("py" | "pyi") => python::lines(text),
            _ => text
                .lines()
                .enumerate()
                .map(|(index, line)| (Place::Prose, index + 1, line.to_owned()))
                .collect(),
        };
        Ok(Self { lines, test_files: Vec::new() })
    }
}

fn uses_in(list: &List, path: &str, lines: Vec<Line>) -> Vec<Use> {
    let mut uses = Vec::new();
    for (place, line, text) in lines {
        for word in &list.words {
            if let Some(found) = word.find(place, path, &text) {
                let path = path.to_owned();
                let found = found.to_owned();
                let write = word.write.clone();
                uses.push(Use { path, line, place, found, write });
            }
        }
    }
    uses
}

/// Literals, names, and the doc comments that `clap` prints as help.
fn rust_lines(path: &str, file: &syn::File) -> Vec<Line> {
    let texts = source::texts(file);
    let mut lines: Vec<Line> = Vec::new();
    for (line, literal) in texts.literals {
        if literal.contains(' ') {
            lines.push((Place::Message, line, without_placeholders(&literal)));
        } else {
            lines.push((Place::Name, line, as_phrase(&literal)));
        }
    }
    lines.extend(texts.names.into_iter().map(|(line, name)| (Place::Name, line, as_phrase(&name))));
    if path.starts_with("crates/cog/src/args") {
        lines.extend(texts.docs.into_iter().map(|(line, doc)| (Place::Prose, line, doc)));
    }
    lines
}

/// The lines of a page, without inline code and without blocks of code in a language.
fn markdown_lines(place: Place, text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut skips = false;
    for (index, line) in text.lines().enumerate() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            skips = !skips && !matches!(language, "" | "text" | "sh" | "bash" | "console");
            continue;
        }
        if !skips {
            lines.push((place, index + 1, without_code(line)));
        }
    }
    lines
}

/// Blanks out `…` spans: names are checked where they are declared.
fn without_code(line: &str) -> String {
    line.split('`')
        .enumerate()
        .filter(|(index, _)| index % 2 == 0)
        .map(|(_, part)| part)
        .collect::<Vec<_>>()
        .join("``")
}

/// Blanks out the text in braces: names of variables in a format string.
fn without_placeholders(literal: &str) -> String {
    let mut text = String::new();
    let mut depth = 0usize;
    for character in literal.chars() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ if depth == 0 => text.push(character),
            _ => {}
        }
    }
    without_code(&text)
}

/// `MOST_TOLD`, `mostTold` and `MostTold` as `most told`.
fn as_phrase(name: &str) -> String {
    let mut phrase = String::new();
    let mut was_lower = false;
    for character in name.chars() {
        if character.is_uppercase() && was_lower {
            phrase.push(' ');
        }
        was_lower = character.is_lowercase() || character.is_ascii_digit();
        phrase.extend(if character.is_alphanumeric() { character.to_lowercase().next() } else { Some(' ') });
    }
    phrase
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r"
        [[word]]
        find = '\btold\b'
        write = 'reported'
        [[word]]
        find = '\bfolders?\b'
        write = 'directory'
    ";

    fn uses(path: &str, text: &str) -> Vec<Use> {
        uses_in(&List::parse(LIST).unwrap(), path, Page::parse(path, text).unwrap().lines)
    }

    fn found(path: &str, text: &str) -> Vec<(usize, String)> {
        uses(path, text).into_iter().map(|found| (found.line, found.found)).collect()
    }

    #[test]
    fn finds_words_in_messages_and_names() {
        let source =
            "pub struct MostTold;\nfn f() {\n    error(format!(\"no folder {told}\"));\n}\nfn told() {}\n";
        assert_eq!(found("crates/a/src/lib.rs", source), [(3, "folder".to_owned()), (1, "told".to_owned())]);
    }

    #[test]
    fn glossary_has_at_most_40_terms() {
        let page =
            |terms| format!("# Glossary\n\n| Term | Meaning |\n|---|---|\n{}", "| a | b |\n".repeat(terms));
        assert_eq!(check_glossary(&page(40)), Ok(()));
        assert!(check_glossary(&page(41)).is_err() && check_glossary(&page(0)).is_err());
    }

    #[test]
    fn finds_words_in_keys() {
        assert_eq!(
            found("crates/a/src/lib.rs", "const A: &str = \"media.folder\";"),
            [(1, "folder".to_owned())]
        );
    }

    #[test]
    fn doc_comments_of_the_command_line_are_prose() {
        let source = "/// What is told.\nfn f() {}\n";
        let places = |path| uses(path, source).into_iter().map(|found| found.place).collect::<Vec<_>>();
        assert_eq!(places("crates/cog/src/args/run.rs"), [Place::Comment, Place::Prose]);
        assert_eq!(places("crates/cog/src/main.rs"), [Place::Comment]);
    }

    #[test]
    fn finds_words_in_comments() {
        let source =
            "//! Told.\n/// A `folder`.\nfn f() {} // a folder\nconst URL: &str = \"a://folder b\";\n";
        let doc = uses("crates/a/tests/a.rs", source);
        assert_eq!(doc.iter().map(|found| found.line).collect::<Vec<_>>(), [1, 3]);
    }

    #[test]
    fn pages_are_checked_outside_code() {
        let page = "A folder.\nA `folder`.\n```json\n\"folder\"\n```\n```text\nfolder\n```\n";
        assert_eq!(found("docs/a.md", page), [(1, "folder".to_owned()), (7, "folder".to_owned())]);
    }

    #[test]
    fn fails_if_a_word_is_found() {
        assert!(verdict(0).is_ok());
        assert_eq!(verdict(1).unwrap_err(), "words to avoid: 1");
    }

    #[test]
    fn generated_pages_are_not_pages_that_people_write() {
        let places = |text| uses("docs/a.md", text).into_iter().map(|found| found.place).collect::<Vec<_>>();
        assert_eq!(places("A folder.\n"), [Place::Page]);
        assert_eq!(places(&format!("A folder.\n{GENERATED}\n")), [Place::Prose]);
    }

    #[test]
    fn names_become_phrases() {
        assert_eq!(
            ["MOST_TOLD", "MostTold", "media.by_address"].map(as_phrase),
            ["most told", "most told", "media by address"]
        );
    }
}
