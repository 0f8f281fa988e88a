//! Values that a text assigns to the name of a secret: `password: x`, `token=x`, `"api_key": "x"`.

use std::ops::Range;

use super::names::{SPACE, has_signs, is_elsewhere, is_plain, is_secret_list_name, is_secret_name, unquoted};
use super::{Field, FieldSecrets, blocks, words_of_text};

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
    if let Some(secrets) = blocks::find(field) {
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
