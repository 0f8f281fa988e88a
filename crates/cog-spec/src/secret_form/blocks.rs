//! Secrets that are not in one place after their name: the items of lists, and blocks of YAML.

use std::ops::Range;

use super::names::{QUOTES, SPACE, has_signs, is_elsewhere, is_plain, is_secret_name, unquoted};
use super::{Field, FieldSecrets};

/// The marks of the two blocks of YAML.
const BLOCKS: [char; 2] = ['|', '>'];

/// The characters of types and expressions.
const CODE: [char; 4] = ['(', '{', '[', '<'];

/// Returns the secrets of the list or block that is the value of a field; none if it is neither.
pub(super) fn find(Field { text, start, name, by_colon, rest }: Field<'_>) -> Option<FieldSecrets> {
    let offset = text.len() - rest.len();
    if let Some(items) = rest.strip_prefix('[') {
        return Some(bracketed(items, offset + 1, name, by_colon));
    }
    if !by_colon {
        return None;
    }
    if let Some(lines) = after_line(rest) {
        return Some(listed(lines, text.len() - lines.len(), name));
    }
    let lines = after_line(rest.strip_prefix(BLOCKS)?.trim_start_matches(['+', '-', '1', '2', '4', '8']))?;
    let line = text.get(..start)?.rsplit('\n').next().unwrap_or_default();
    Some(block(lines, text.len() - lines.len(), column_of_name(line), may_be_prose(name)))
}

/// The secrets of a list.
#[derive(Default)]
struct Items {
    found: Vec<Item>,
    /// Whether an item is a sentence.
    is_prose: bool,
}

/// A secret of a list.
struct Item {
    range: Range<usize>,
    /// Whether it can be a word of a sentence.
    is_word: bool,
}

impl Items {
    fn add_quoted(&mut self, value: &str, start: usize) {
        if !is_elsewhere(value) {
            self.found.push(Item { range: start..start + value.len(), is_word: false });
        }
    }

    /// Adds an item without quotes, if it is a secret.
    fn add_plain(&mut self, value: &str, start: usize, name: &str) -> bool {
        let is_secret = is_item(value, name);
        if is_secret {
            self.found.push(Item { range: start..start + value.len(), is_word: !has_signs(value) });
        }
        self.is_prose |= value.contains(char::is_whitespace);
        is_secret
    }

    /// Returns the secrets. In a list that has sentences about tokens, single words are none.
    fn into_secrets(self, name: &str, end: usize) -> FieldSecrets {
        let is_prose = self.is_prose && may_be_prose(name);
        let secrets = self.found.into_iter().filter(|item| !(is_prose && item.is_word));
        FieldSecrets { found: secrets.map(|item| item.range).collect(), end }
    }
}

/// Reads the items of a list in brackets, up to its end or an item that contains other values.
fn bracketed(text: &str, offset: usize, name: &str, by_colon: bool) -> FieldSecrets {
    let mut items = Items::default();
    let mut at = 0;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let item = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        at += rest.len() - item.len();
        if item.is_empty() || item.starts_with([']', '[', '{']) {
            return items.into_secrets(name, offset + at);
        }
        let inner = unquoted(item);
        let quote = item.strip_suffix(inner).filter(|quote| !quote.is_empty());
        let length = match quote {
            Some(quote) => Some(inner.find(quote).unwrap_or(inner.len())),
            None => item_length(inner, &[',', ']', '\n']),
        };
        let value = length.and_then(|length| inner.get(..length));
        let Some(value) = value else { return items.into_secrets(name, offset + at) };
        let start = offset + at + item.len() - inner.len();
        if quote.is_some() {
            items.add_quoted(value, start);
        } else if !(by_colon && items.add_plain(value.trim_end(), start, name)) && assigns(value) {
            return items.into_secrets(name, offset + at);
        }
        at += item.len() - inner.len() + value.len() + quote.map_or(0, str::len);
    }
}

/// Reads the items of a list of YAML, lines that begin with `-`, up to one that contains other values.
fn listed(text: &str, offset: usize, name: &str) -> FieldSecrets {
    let mut items = Items::default();
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let Some(item) = line.trim_start_matches(SPACE).strip_prefix("- ") else { break };
        let inner = unquoted(item.trim_start_matches(SPACE));
        let start = offset + at + line.len() - inner.len();
        let is_quoted = item.trim_start_matches(SPACE).len() > inner.len();
        let value = inner.trim_end().trim_end_matches(QUOTES);
        if is_quoted {
            items.add_quoted(value, start);
        } else if item_length(value, &[]).is_none() || !items.add_plain(value, start, name) && assigns(value)
        {
            break;
        }
        at += line.len();
    }
    items.into_secrets(name, offset + at)
}

/// Returns the length of an item without quotes, which one of these characters ends. None if it contains other values, such as
/// `name: value` or a call; one word with `:` or `=` is a value itself.
fn item_length(text: &str, ends: &[char]) -> Option<usize> {
    let mut is_word = true;
    let mut is_spaced = false;
    let mut is_assigned = false;
    for (at, c) in text.char_indices() {
        if ends.contains(&c) {
            return text.get(..at).filter(|item| !is_name(item)).map(str::len);
        }
        is_word &= !CODE.contains(&c) && (!is_spaced || c.is_whitespace());
        is_spaced |= c.is_whitespace();
        is_assigned |= matches!(c, ':' | '=');
        if is_assigned && !is_word {
            return None;
        }
    }
    (!is_name(text)).then_some(text.len())
}

/// Whether an item is only a name, whose value follows.
fn is_name(item: &str) -> bool {
    item.trim_end().ends_with(':')
}

/// Whether the name of a list is a word of sentences too.
fn may_be_prose(name: &str) -> bool {
    name.eq_ignore_ascii_case("tokens")
}

/// Whether a text may contain the name of a value, and the value.
fn assigns(text: &str) -> bool {
    text.contains([':', '='])
}

/// Reads a block of YAML: the lines that are indented further than its name, which is in column `outer`.
fn block(text: &str, offset: usize, outer: usize, may_be_prose: bool) -> FieldSecrets {
    let lines = text.split_inclusive('\n');
    let inside = lines.take_while(|line| line.trim().is_empty() || indent(line) > outer);
    let length = inside.map(str::len).sum();
    let block = text.get(..length).unwrap_or_default();
    let value = block.trim();
    let start = offset + block.len() - block.trim_start().len();
    let is_prose = may_be_prose && value.lines().any(|line| line.trim().contains(char::is_whitespace));
    let is_secret = !is_elsewhere(value) && !is_prose;
    let found = is_secret.then_some(start..start + value.len()).into_iter().collect();
    FieldSecrets { found, end: offset + length }
}

/// Whether an item without quotes is a secret: one word that is not part of a sentence, and not a type, a path or the name of a secret.
fn is_item(item: &str, name: &str) -> bool {
    let item = item.trim().to_lowercase();
    let is_code = item.contains(|c: char| c.is_whitespace() || CODE.contains(&c)) || item.contains("::");
    let is_number = item.len() < 6 && item.bytes().all(|byte| byte.is_ascii_digit());
    let is_named = name.to_lowercase().contains(&item) || !assigns(&item) && is_secret_name(&item);
    !is_elsewhere(&item) && !is_code && !is_number && !is_named && !is_plain(&item)
}

/// Returns the text after the end of the line, if nothing else is in the line.
fn after_line(text: &str) -> Option<&str> {
    let text = text.trim_start_matches(SPACE);
    text.strip_prefix("\r\n").or_else(|| text.strip_prefix('\n'))
}

/// Returns the number of spaces before the first other character.
fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(SPACE).len()
}

/// Returns the column of a name in its line: the marks of list items before it count as spaces.
fn column_of_name(line: &str) -> usize {
    let mut rest = line.trim_start_matches(SPACE);
    while let Some(item) = rest.strip_prefix("- ") {
        rest = item.trim_start_matches(SPACE);
    }
    line.len() - rest.len()
}
