//! Values that a text assigns to the name of a secret: `password: x`, `token=x`, `"api_key": "x"`.

use std::ops::Range;

use super::{
    Field, FieldSecrets,
    names::{
        QUOTES, SPACE, has_signs, is_elsewhere, is_plain, is_secret_list_name, is_secret_name, unquoted,
    },
    words_of_text,
};

/// Parts of names whose values are secrets in any sentence.
const PASSWORDS: [&str; 4] = ["password", "passwd", "pwd", "passphrase"];

/// The end of the names of headers whose value is the rest of the line.
const COOKIE: &str = "cookie";

/// The schemes before the credentials of a header.
const SCHEMES: [&str; 3] = ["basic", "bearer", "digest"];

/// The characters that end a value without quotes, apart from white space.
const ENDS: [char; 13] = [',', ';', '&', ')', ']', '}', '<', '>', '"', '\'', '`', '|', '\\'];

/// The maximum bytes of a call whose closing bracket is searched.
const MAX_CALL: usize = 256;

/// Returns where a text has values of secrets. Each byte is read a bounded number of times.
pub(super) fn find(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut previous = "";
    let mut read_until = 0;
    let found = words_of_text(text).filter_map(move |(start, name)| {
        let before = std::mem::replace(&mut previous, name);
        let (by_colon, rest) = text.get(start + name.len()..).and_then(separator)?;
        let is_single = names_secret(before, name);
        // What a value contains is a part of it, not another field.
        if start < read_until || !is_single && !is_secret_list_name(name) {
            return None;
        }
        let secrets = values(Field { text, start, name, by_colon, rest }, is_single);
        read_until = secrets.end;
        Some(secrets.found)
    });
    found.flatten()
}

/// Returns the secrets among the values of a field. `is_single` says that one value without brackets is a secret too.
fn values(field: Field<'_>, is_single: bool) -> FieldSecrets {
    if let Some(secrets) = find_block(field) {
        return secrets;
    }
    let assignment = Assignment::read(field);
    let start = field.text.len() - assignment.from_value.len();
    let end = start + assignment.value.len();
    let is_secret = is_single && assignment.is_secret();
    FieldSecrets { found: is_secret.then_some(start..end).into_iter().collect(), end }
}

/// Whether a word names a secret, such as `password`, or the second word of `api key`.
fn names_secret(before: &str, word: &str) -> bool {
    is_secret_name(word) || word.eq_ignore_ascii_case("key") && is_secret_name(&format!("{before} {word}"))
}

/// Returns whether the text after a name begins with `:`, otherwise with `=`, and what follows. None if it assigns no value.
fn separator(text: &str) -> Option<(bool, &str)> {
    let text = unquoted(text).trim_start_matches(SPACE);
    let by_colon = text.starts_with(':');
    let rest = text.strip_prefix([':', '='])?;
    let is_other = rest.starts_with(if by_colon { [':', '/', '='] } else { ['=', '>', '~'] });
    (!is_other).then(|| (by_colon, rest.trim_start_matches(SPACE)))
}

/// A value that is assigned to a name.
struct Assignment<'a> {
    name: &'a str,
    value: &'a str,
    /// The text from the value on.
    from_value: &'a str,
    /// Whether `:` assigns it, which sentences contain too; otherwise `=`.
    by_colon: bool,
    is_quoted: bool,
    /// Whether its line contains nothing else.
    is_line: bool,
    /// Whether it is a type with parameters, or an expression.
    is_code: bool,
}

impl<'a> Assignment<'a> {
    fn read(Field { text, start, name, by_colon, rest }: Field<'a>) -> Self {
        let rest = after_scheme(rest);
        let from_value = unquoted(rest);
        let quote = rest.strip_suffix(from_value).filter(|quote| !quote.is_empty());
        let (value, after) = from_value.split_at(length(from_value, quote, name));
        let before = text.get(..start).unwrap_or_default().trim_end_matches([' ', '\t', '-', '*', '"', '\'']);
        let after_line = after.trim_start_matches([' ', '\t', ',', '"', '\'', '\r']);
        let is_line = (before.is_empty() || before.ends_with('\n'))
            && (after_line.is_empty() || after_line.starts_with('\n'));
        let is_code = after.starts_with('<') || is_code(from_value, value, name);
        Self { name, value, from_value, by_colon, is_quoted: quote.is_some(), is_line, is_code }
    }

    fn is_secret(&self) -> bool {
        let name = self.name.to_lowercase();
        let value = self.value.to_lowercase();
        if is_elsewhere(&value) {
            return false;
        }
        if self.is_quoted {
            return true;
        }
        // A list or an object: only its bracket would be masked.
        if value.starts_with(['[', '{']) {
            return false;
        }
        if name.ends_with(COOKIE) {
            return value.contains('=');
        }
        // `the token: value of a word` is a sentence, but `the password: swordfish` is not.
        let is_assigned = !self.by_colon
            || has_signs(&value)
            || self.is_line
            || PASSWORDS.iter().any(|password| name.contains(password));
        is_assigned && !self.is_code && !is_plain(&value)
    }
}

/// Removes the scheme before the credentials of a header.
fn after_scheme(text: &str) -> &str {
    let credentials = SCHEMES.iter().find_map(|scheme| {
        let (start, rest) = text.split_at_checked(scheme.len())?;
        rest.strip_prefix(' ').filter(|_| start.eq_ignore_ascii_case(scheme))
    });
    credentials.map_or(text, |credentials| credentials.trim_start_matches(SPACE))
}

/// Returns the length of the value at the beginning of a text, after this quotation mark.
fn length(text: &str, quote: Option<&str>, name: &str) -> usize {
    let is_cookie = name.to_lowercase().ends_with(COOKIE);
    match quote {
        // Only what precedes the closing mark is searched for the end of the line.
        Some(quote) => line_length(text.split(quote).next().unwrap_or_default()),
        None if is_cookie => line_length(text),
        None => text.find(|c: char| c.is_whitespace() || ENDS.contains(&c)).unwrap_or(text.len()),
    }
}

fn line_length(text: &str) -> usize {
    text.find(['\n', '\r']).unwrap_or(text.len())
}

/// Whether a value, with which this text begins, is an expression of a program: a call, an index, or a variable with the same
/// name.
fn is_code(from_value: &str, value: &str, name: &str) -> bool {
    let callee = value.split_once(['(', '[']).map_or("", |(callee, _)| callee);
    let is_path = !callee.is_empty() && callee.chars().all(|c| c.is_alphabetic() || matches!(c, '_' | '.'));
    is_path && is_closed(from_value, value) || is_variable(value, name)
}

/// Whether a call or an index at the beginning of a text has its closing bracket, in the same line unless the line ends after
/// the opening one.
fn is_closed(text: &str, value: &str) -> bool {
    let may_span_lines = value.ends_with(['(', '[']);
    let mut depth = 0_usize;
    for byte in text.bytes().take(MAX_CALL) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' if depth <= 1 => return depth == 1,
            b')' | b']' => depth -= 1,
            b'\n' if !may_span_lines => return false,
            _ => {}
        }
    }
    false
}

/// Whether a value is a variable with this name, such as `token`, `args.token`, `user_token` and `userToken`.
fn is_variable(value: &str, name: &str) -> bool {
    let Some((before, own)) = value.len().checked_sub(name.len()).and_then(|at| value.split_at_checked(at))
    else {
        return false;
    };
    let is_part = before.is_empty()
        || before.ends_with(['_', '.', ':', '>', '$', '*', '@', '!'])
        || before.starts_with(char::is_lowercase) && own.starts_with(char::is_uppercase);
    is_part && own.eq_ignore_ascii_case(name)
}

// Secrets that are not in one place after their name: the items of lists, and blocks of YAML.

/// The marks of the two blocks of YAML.
const BLOCKS: [char; 2] = ['|', '>'];

/// The characters of types and expressions.
const CODE: [char; 4] = ['(', '{', '[', '<'];

/// Returns the secrets of the list or block that is the value of a field; none if it is neither.
fn find_block(Field { text, start, name, by_colon, rest }: Field<'_>) -> Option<FieldSecrets> {
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
