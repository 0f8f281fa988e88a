//! `xtask/words.toml`: the words to avoid.

use regex::{Regex, RegexBuilder};
use toml::{Table, Value};

use crate::project::{Outcome, read};

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

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = r#"
        [[word]]
        find = '\bis no\b'
        write = "is not a"
        except = ['is no longer']
        in = ["messages", "prose"]
        allow = [{ path = "docs/quote.md", reason = "quotes a vendor" }]
    "#;

    #[test]
    fn finds_a_word_and_not_its_exception() {
        let list = List::parse(LIST).unwrap();
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
}
