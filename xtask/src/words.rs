//! `cargo xtask words [PATH]`: help, messages, pages, public names and comments avoid the words of `xtask/words.toml`.

use std::collections::BTreeSet;

use regex::{Regex, RegexBuilder};
use toml::{Table, Value};

use crate::{
    project::{Outcome, read, say, tracked},
    source,
};

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
            Some("py" | "pyi") => lines(text),
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

// `xtask/words.toml`: the words to avoid.

const FILE: &str = "xtask/words.toml";

/// Where a word may not be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// String literals: errors, warnings, and the text of help.
    Message,
    /// Pages in HTML or JSON, generated pages, and the doc comments that become help.
    Prose,
    /// Pages in Markdown that people write. What applies to prose applies to them too.
    Page,
    /// Names of items, and keys without a space.
    Name,
    /// Comments in Rust code.
    Comment,
}

/// One word to avoid.
#[derive(Debug)]
pub(crate) struct Word {
    find: Regex,
    /// What to write instead.
    pub(crate) write: String,
    places: Vec<Place>,
    except: Vec<Regex>,
    allowed: Vec<String>,
}

/// The list.
#[derive(Debug)]
pub(crate) struct List {
    pub(crate) words: Vec<Word>,
}

impl List {
    pub(crate) fn read() -> Outcome<Self> {
        Self::parse(&read(FILE)?).map_err(|reason| format!("{FILE}: {reason}"))
    }

    pub(crate) fn parse(text: &str) -> Outcome<Self> {
        let table: Table = toml::from_str(text).map_err(|error| error.to_string())?;
        let words = table.get("word").and_then(Value::as_array).ok_or("missing `[[word]]`")?;
        Ok(Self { words: words.iter().map(Word::parse).collect::<Outcome<_>>()? })
    }
}

impl Word {
    fn parse(entry: &Value) -> Outcome<Self> {
        let entry = entry.as_table().ok_or("a `[[word]]` is a table")?;
        let find = string(entry, "find")?;
        let places = strings(entry, "in")?;
        let allowed = entry.get("allow").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        Ok(Self {
            find: expression(find)?,
            write: string(entry, "write")?.to_owned(),
            places: places.iter().map(|place| place_named(place)).collect::<Outcome<_>>()?,
            except: strings(entry, "except")?.iter().map(|text| expression(text)).collect::<Outcome<_>>()?,
            allowed: allowed.iter().map(|entry| allowance(find, entry)).collect::<Outcome<_>>()?,
        })
    }

    /// The first use of this word in a line that no exception covers.
    pub(crate) fn find<'t>(&self, place: Place, path: &str, text: &'t str) -> Option<&'t str> {
        if !self.applies_to(place) || self.allowed.iter().any(|prefix| is_under(path, prefix)) {
            return None;
        }
        self.find.find_iter(text).find(|found| !self.is_excepted(text, found)).map(|found| found.as_str())
    }

    fn is_excepted(&self, text: &str, found: &regex::Match<'_>) -> bool {
        self.except
            .iter()
            .flat_map(|except| except.find_iter(text))
            .any(|other| other.start() < found.end() && found.start() < other.end())
    }

    fn applies_to(&self, place: Place) -> bool {
        self.places.is_empty()
            || self.places.contains(&place)
            || (place == Place::Page && self.places.contains(&Place::Prose))
    }
}

/// Returns whether a path is a prefix itself or lies under it.
fn is_under(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || prefix.ends_with('/'))
}

fn place_named(name: &str) -> Outcome<Place> {
    match name {
        "messages" => Ok(Place::Message),
        "prose" => Ok(Place::Prose),
        "pages" => Ok(Place::Page),
        "names" => Ok(Place::Name),
        "comments" => Ok(Place::Comment),
        _ => Err(format!("unknown place `{name}` under `in`; use messages, prose, pages, names or comments")),
    }
}

/// A path where a word is right, which needs a reason.
fn allowance(find: &str, entry: &Value) -> Outcome<String> {
    let entry =
        entry.as_table().ok_or_else(|| format!("`{find}`: an `allow` entry has `path` and `reason`"))?;
    string(entry, "reason").map_err(|reason| format!("`{find}`: {reason}"))?;
    Ok(string(entry, "path")?.to_owned())
}

fn expression(text: &str) -> Outcome<Regex> {
    RegexBuilder::new(text).case_insensitive(true).build().map_err(|error| error.to_string())
}

fn string<'a>(table: &'a Table, key: &str) -> Outcome<&'a str> {
    table.get(key).and_then(Value::as_str).ok_or_else(|| format!("missing `{key}`"))
}

fn strings(table: &Table, key: &str) -> Outcome<Vec<String>> {
    let Some(value) = table.get(key) else { return Ok(Vec::new()) };
    let list = value.as_array().ok_or_else(|| format!("`{key}` is a list of strings"))?;
    list.iter()
        .map(|item| item.as_str().map(str::to_owned).ok_or_else(|| format!("`{key}` is a list of strings")))
        .collect()
}

// The comments, docstrings and messages of a Python file.

/// Returns the comments and the strings of a file, line by line. A string of one word is a name or a key, and is left out.
fn lines(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while let Some(start) = rest.find(['#', '"', '\'']) {
        let (before, from) = rest.split_at(start);
        line += count_lines(before);
        let (place, content, after) = token(from);
        let parts = content.lines().enumerate().filter(|(_, part)| part.contains(' '));
        lines.extend(parts.map(|(offset, part)| (place, line + offset, readable(place, part))));
        line += count_lines(content);
        rest = after;
    }
    lines
}

/// The comment or string at the start of a text, and the text after it.
fn token(text: &str) -> (Place, &str, &str) {
    if text.starts_with('#') {
        let (comment, after) = text.split_at(text.find('\n').unwrap_or(text.len()));
        return (Place::Comment, comment, after);
    }
    for quote in ["\"\"\"", "'''"] {
        if let Some(inner) = text.strip_prefix(quote) {
            let (content, after) = split_at_quote(inner, quote);
            return (Place::Prose, content, after);
        }
    }
    let (quote, inner) = text.split_at(1);
    let (content, after) = split_at_quote(inner, quote);
    (Place::Message, content, after)
}

/// Splits after a string: before the first quote that is not escaped.
fn split_at_quote<'t>(text: &'t str, quote: &str) -> (&'t str, &'t str) {
    let mut quotes = text.match_indices(quote).map(|(at, _)| at);
    let end = quotes.find(|at| !text.get(..*at).is_some_and(|before| before.ends_with('\\')));
    let end = end.unwrap_or(text.len());
    (text.get(..end).unwrap_or_default(), text.get(end + quote.len()..).unwrap_or_default())
}

fn readable(place: Place, part: &str) -> String {
    if place == Place::Message { without_placeholders(part) } else { without_code(&part.replace("``", "`")) }
}

fn count_lines(text: &str) -> usize {
    text.matches('\n').count()
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

    const WORDS_TOML: &str = r#"
        [[word]]
        find = '\bis no\b'
        write = "is not a"
        except = ['is no longer']
        in = ["messages", "prose"]
        allow = [{ path = "docs/quote.md", reason = "quotes a vendor" }]
    "#;

    #[test]
    fn finds_a_word_and_not_its_exception() {
        let list = List::parse(WORDS_TOML).unwrap();
        let find = |path, text| list.words[0].find(Place::Prose, path, text);
        assert_eq!(find("docs/a.md", "This Is no key"), Some("Is no"));
        assert_eq!(find("docs/a.md", "It is no longer a key"), None);
        assert_eq!(find("docs/a.md", "It is no longer a key, it is no name"), Some("is no"));
        assert_eq!(find("docs/quote.md", "is no key"), None);
        assert_eq!(list.words[0].find(Place::Name, "docs/a.md", "is no key"), None);
    }

    #[test]
    fn pages_are_prose_that_people_write() {
        let list = List::parse("[[word]]\nfind = 'a'\nwrite = 'b'\nin = ['pages']").unwrap();
        let find = |list: &List, place| list.words[0].find(place, "a.md", "a").is_some();
        assert_eq!([Place::Page, Place::Prose].map(|place| find(&list, place)), [true, false]);
        let list = List::parse("[[word]]\nfind = 'a'\nwrite = 'b'\nin = ['prose']").unwrap();
        assert_eq!([Place::Page, Place::Prose].map(|place| find(&list, place)), [true, true]);
    }

    #[test]
    fn an_allowance_needs_a_reason() {
        let error = List::parse("[[word]]\nfind = 'a'\nwrite = 'b'\nallow = [{ path = 'c' }]").unwrap_err();
        assert_eq!(error, "`a`: missing `reason`");
    }

    #[test]
    fn rejects_unknown_place() {
        let error = List::parse("[[word]]\nfind = 'a'\nwrite = 'b'\nin = ['code']").unwrap_err();
        assert!(error.contains("unknown place `code`"), "{error}");
    }

    #[test]
    fn finds_comments_docstrings_and_messages() {
        let source = concat!(
            "\"\"\"First.\n\nWhat ``told us`` is # not one.\n\"\"\"\n",
            "key = 'told'  # a key\n",
            "raise ValueError(f\"say \\\"{told + ''}\\\" again\")\n",
        );
        let found = lines(source);
        let expected = [
            (Place::Prose, 3, "What `` is # not one."),
            (Place::Comment, 5, "# a key"),
            (Place::Message, 6, "say \\\"\\\" again"),
        ];
        assert_eq!(found, expected.map(|(place, line, text)| (place, line, text.to_owned())));
    }
}
