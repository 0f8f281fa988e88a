//! Secrets that are not in one place after their name: the items of lists, and blocks of YAML.

use std::ops::Range;

use super::{
    names::is_secret_name,
    values::{QUOTES, SPACE, is_elsewhere, is_plain, unquoted},
};

/// The marks of the two blocks of YAML.
const BLOCKS: [char; 2] = ['|', '>'];

/// Returns where the secrets of a list or block after a name are, and where the text was read up to. None if neither follows.
pub(super) fn find(
    text: &str,
    (start, name): (usize, &str),
    by_colon: bool,
    rest: &str,
) -> Option<(Vec<Range<usize>>, usize)> {
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
    Some(block(lines, text.len() - lines.len(), indent(line)))
}

/// Reads the items of a list in brackets, up to its end or an item that contains other values.
fn bracketed(text: &str, offset: usize, name: &str, by_colon: bool) -> (Vec<Range<usize>>, usize) {
    let (mut found, mut at) = (Vec::new(), 0);
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let item = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        at += rest.len() - item.len();
        if item.is_empty() || item.starts_with([']', '[', '{']) {
            return (found, offset + at);
        }
        let inner = unquoted(item);
        let quote = item.strip_suffix(inner).filter(|quote| !quote.is_empty());
        let end = match quote {
            Some(quote) => inner.find(quote),
            None => inner.find([',', ']', '\n', ':', '=']),
        };
        if quote.is_none()
            && end.is_some_and(|end| inner.get(end..).is_some_and(|it| it.starts_with([':', '='])))
        {
            return (found, offset + at);
        }
        let value = inner.get(..end.unwrap_or(inner.len())).unwrap_or_default();
        at += item.len() - inner.len();
        let is_secret = if quote.is_some() { !is_elsewhere(value) } else { by_colon && is_item(value, name) };
        if is_secret {
            found.push(offset + at..offset + at + value.trim_end().len());
        }
        at += value.len() + quote.map_or(0, str::len);
    }
}

/// Reads the items of a list of YAML, lines that begin with `-`, up to one that contains other values.
fn listed(text: &str, offset: usize, name: &str) -> (Vec<Range<usize>>, usize) {
    let (mut found, mut at) = (Vec::new(), 0);
    for line in text.split_inclusive('\n') {
        let Some(item) = line.trim_start_matches(SPACE).strip_prefix("- ") else { break };
        let inner = unquoted(item.trim_start_matches(SPACE));
        let start = offset + at + line.len() - inner.len();
        let is_quoted = item.trim_start_matches(SPACE).len() > inner.len();
        let value = inner.trim_end().trim_end_matches(QUOTES);
        if !is_quoted && value.contains([':', '=']) {
            break;
        }
        let is_secret = if is_quoted { !is_elsewhere(value) } else { is_item(value, name) };
        if is_secret {
            found.push(start..start + value.len());
        }
        at += line.len();
    }
    (found, offset + at)
}

/// Reads a block of YAML: the lines with a larger indent than that of its name.
fn block(text: &str, offset: usize, outer: usize) -> (Vec<Range<usize>>, usize) {
    let is_inside = |line: &&str| line.trim().is_empty() || indent(line) > outer;
    let length = text.split_inclusive('\n').take_while(is_inside).map(str::len).sum();
    let block = text.get(..length).unwrap_or_default();
    let value = block.trim();
    let start = offset + block.len() - block.trim_start().len();
    let range = (!is_elsewhere(value)).then_some(start..start + value.len());
    (range.into_iter().collect(), offset + length)
}

/// Whether an item without quotes is a secret: one word that is none of a sentence, no type, no path and no name of a secret.
fn is_item(item: &str, name: &str) -> bool {
    let item = item.trim().to_lowercase();
    let is_code = item.contains(|c: char| c.is_whitespace() || matches!(c, '(' | '{' | '[' | '<'));
    let is_number = item.len() < 6 && item.bytes().all(|byte| byte.is_ascii_digit());
    let is_named = name.to_lowercase().contains(&item) || is_secret_name(&item);
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
