//! Strings in a grammar.

use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use super::{Piece, literal};

/// A character of a string, escaped where JSON requires it. Half of a surrogate pair is no character.
pub(super) const CHAR: (&str, &str) = (
    "char",
    r#"[^"\\\x7F\x00-\x1F] | "\\" (["\\/bfnrt] | "u" ([0-9a-cA-CefEF] [0-9a-fA-F]{3} | [dD] ([0-7] [0-9a-fA-F]{2} | [89abAB] [0-9a-fA-F]{2} "\\u" [dD] [c-fC-F] [0-9a-fA-F]{2})))"#,
);
/// Any string.
pub(super) const TEXT: (&str, &str) = ("text", r#""\"" char* "\"""#);

/// Returns the strings of a format; none if it is not supported.
pub(super) fn format(name: &str) -> Option<Piece> {
    const DATE: &str = r#"[0-9]{4} "-" ("0" [1-9] | "1" [0-2]) "-" ("0" [1-9] | [1-2] [0-9] | "3" [0-1])"#;
    const TIME: &str = r#"([0-1] [0-9] | "2" [0-3]) ":" [0-5] [0-9] ":" [0-5] [0-9] ("." [0-9]{1,6})? ("Z" | [-+] ([0-1] [0-9] | "2" [0-3]) ":" [0-5] [0-9])"#;
    let (body, chars) = match name {
        "date" => (DATE.to_owned(), 10),
        "time" => (TIME.to_owned(), 21),
        "date-time" => (format!(r#"{DATE} "T" {TIME}"#), 32),
        "uuid" => (
            r#"[0-9a-fA-F]{8} "-" [0-9a-fA-F]{4} "-" [0-9a-fA-F]{4} "-" [0-9a-fA-F]{4} "-" [0-9a-fA-F]{12}"#
                .to_owned(),
            36,
        ),
        _ => return None,
    };
    Some(Piece::new(format!(r#""\"" {body} "\"""#), chars + 2))
}

/// Returns the strings of a pattern as [`grammar_pattern`](crate::pattern::grammar_pattern) writes it: anchored, and without
/// characters that JSON escapes. The length of unlimited repetitions is `u64::MAX`.
pub(super) fn pattern(pattern: &str) -> Option<Piece> {
    let hir = regex_syntax::parse(pattern).ok()?;
    let chars = hir.properties().maximum_len().map_or(u64::MAX, |bytes| bytes as u64 + 2);
    Some(Piece::new(format!(r#""\"" {} "\"""#, expression(&hir)?), chars))
}

fn expression(hir: &Hir) -> Option<String> {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Some("\"\"".to_owned()),
        HirKind::Literal(text) => Some(literal(std::str::from_utf8(&text.0).ok()?).text),
        HirKind::Class(Class::Unicode(class)) => {
            let ranges: String = class.iter().map(|range| range_of(range.start(), range.end())).collect();
            (!ranges.is_empty()).then(|| format!("[{ranges}]"))
        }
        HirKind::Class(Class::Bytes(_)) => None,
        HirKind::Capture(capture) => Some(format!("({})", expression(&capture.sub)?)),
        HirKind::Concat(parts) => {
            let parts: Option<Vec<String>> = parts.iter().map(expression).collect();
            Some(parts?.join(" "))
        }
        HirKind::Alternation(branches) => {
            let branches: Option<Vec<String>> = branches.iter().map(expression).collect();
            Some(format!("({})", branches?.join(" | ")))
        }
        HirKind::Repetition(repetition) => repeated(repetition),
    }
}

fn repeated(Repetition { min, max, sub, .. }: &Repetition) -> Option<String> {
    // The engine does not end with a repetition of what can be empty.
    if sub.properties().minimum_len() == Some(0) {
        return None;
    }
    let sub = expression(sub)?;
    match max {
        Some(max) => Some(format!("({sub}){{{min},{max}}}")),
        None => Some(format!("({sub}){{{min},}}")),
    }
}

fn range_of(start: char, end: char) -> String {
    match start == end {
        true => code_of(start),
        false => format!("{}-{}", code_of(start), code_of(end)),
    }
}

/// Returns a character of a class. Only letters and digits have no meaning there.
fn code_of(char: char) -> String {
    let code = u32::from(char);
    match char {
        _ if char.is_ascii_alphanumeric() => char.to_string(),
        _ if code <= 0xFF => format!("\\x{code:02X}"),
        _ if code <= 0xFFFF => format!("\\u{code:04X}"),
        _ => format!("\\U{code:08X}"),
    }
}
