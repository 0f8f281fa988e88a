//! Patterns for engines that compile them to a grammar of the JSON text.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look, Repetition};

/// The number of repetitions from which some versions of llama.cpp refuse a grammar.
const MAX_REPETITIONS: u32 = 2_000;
/// The maximum number of ranges of a class. Classes of Unicode have hundreds.
const MAX_RANGES: usize = 32;
/// Any text that JSON writes without an escape.
const ANYTHING: &str = r#"[^\x00-\x1F"\\]*"#;

/// Returns a pattern that a grammar of llama.cpp enforces; none if there is no such pattern.
///
/// It is anchored, its repetitions are greedy, and it matches no characters that JSON escapes, because the grammar would
/// write them without the escape. Otherwise it matches the same strings.
pub(crate) fn grammar_pattern(pattern: &str) -> Option<String> {
    if has_ambiguous_class(pattern) {
        return None;
    }
    let parsed = regex_syntax::parse(pattern).ok()?;
    Some(format!("^{}$", complete(&parsed, true, true)?))
}

/// Returns whether a class contains what ECMA-262 reads as characters, but other dialects as a nested class or an operator.
fn has_ambiguous_class(pattern: &str) -> bool {
    let mut is_in_class = false;
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => _ = chars.next(),
            ']' => is_in_class = false,
            '[' if is_in_class => return true,
            '[' => is_in_class = true,
            '&' | '-' | '~' if is_in_class && chars.as_str().starts_with(char) => return true,
            _ => {}
        }
    }
    false
}

/// Returns a pattern for complete strings. `starts` and `ends` mean that it is at an end of the text, where anything can
/// precede or follow it unless it is anchored.
fn complete(hir: &Hir, starts: bool, ends: bool) -> Option<String> {
    match hir.kind() {
        HirKind::Look(Look::Start) if starts => Some(if ends { ANYTHING } else { "" }.to_owned()),
        HirKind::Look(Look::End) if ends => Some(if starts { ANYTHING } else { "" }.to_owned()),
        HirKind::Capture(capture) => {
            let sub = complete(&capture.sub, starts, ends)?;
            let is_grouped = matches!(capture.sub.kind(), HirKind::Alternation(_));
            Some(if is_grouped { sub } else { format!("({sub})") })
        }
        HirKind::Alternation(branches) => {
            let branches: Option<Vec<String>> =
                branches.iter().map(|branch| complete(branch, starts, ends)).collect();
            Some(format!("({})", branches?.join("|")))
        }
        HirKind::Concat(parts) => {
            let last = parts.len().saturating_sub(1);
            let parts = parts.iter().enumerate();
            parts.map(|(index, part)| complete(part, starts && index == 0, ends && index == last)).collect()
        }
        _ => {
            let [before, after] = [starts, ends].map(|is_open| if is_open { ANYTHING } else { "" });
            Some(format!("{before}{}{after}", plain(hir)?))
        }
    }
}

/// Returns a pattern without anchors.
fn plain(hir: &Hir) -> Option<String> {
    match hir.kind() {
        HirKind::Empty => Some(String::new()),
        HirKind::Literal(literal) => {
            std::str::from_utf8(&literal.0).ok()?.chars().map(literal_char).collect()
        }
        HirKind::Class(Class::Unicode(class)) => class_of(class),
        HirKind::Repetition(repetition) => repeated(repetition),
        HirKind::Class(Class::Bytes(_)) | HirKind::Look(_) => None,
        HirKind::Capture(_) | HirKind::Concat(_) | HirKind::Alternation(_) => complete(hir, false, false),
    }
}

fn literal_char(char: char) -> Option<String> {
    match char {
        '"' | '\\' | '\0'..='\x1F' => None,
        '^' | '$' | '.' | '[' | ']' | '(' | ')' | '{' | '}' | '|' | '*' | '+' | '?' => {
            Some(format!("\\{char}"))
        }
        _ => Some(char.to_string()),
    }
}

fn repeated(repetition: &Repetition) -> Option<String> {
    let Repetition { min, max, sub, .. } = repetition;
    if max.unwrap_or(*min) >= MAX_REPETITIONS {
        return None;
    }
    let quantifier = match (min, max) {
        (0, None) => "*".to_owned(),
        (1, None) => "+".to_owned(),
        (0, Some(1)) => "?".to_owned(),
        (min, None) => format!("{{{min},}}"),
        (min, Some(max)) if min == max => format!("{{{min}}}"),
        (min, Some(max)) => format!("{{{min},{max}}}"),
    };
    let sub = match (sub.kind(), plain(sub)?) {
        (HirKind::Class(_) | HirKind::Capture(_) | HirKind::Alternation(_), sub) => sub,
        (_, sub) if sub.len() == 1 => sub,
        (_, sub) => format!("({sub})"),
    };
    Some(sub + &quantifier)
}

/// Returns a class without the characters that JSON escapes.
fn class_of(class: &ClassUnicode) -> Option<String> {
    let mut class = class.clone();
    class.difference(&escaped_by_json());
    let is_open = class.ranges().last().is_some_and(|range| range.end() == char::MAX);
    // A class such as `[^a]` has a range up to the last character of Unicode. Negated it is as short as it was written.
    if is_open {
        class.negate();
    }
    if class.ranges().len() > MAX_RANGES {
        return None;
    }
    let ranges: String = class.ranges().iter().map(range_of).collect();
    match (is_open, ranges.is_empty()) {
        (true, _) => Some(format!("[^{ranges}]")),
        (false, false) => Some(format!("[{ranges}]")),
        (false, true) => None,
    }
}

fn escaped_by_json() -> ClassUnicode {
    let ranges = [('\0', '\x1F'), ('"', '"'), ('\\', '\\')];
    ClassUnicode::new(ranges.map(|(start, end)| ClassUnicodeRange::new(start, end)))
}

fn range_of(range: &ClassUnicodeRange) -> String {
    let start = class_char(range.start());
    let end = class_char(range.end());
    match u32::from(range.end()) - u32::from(range.start()) {
        0 => start,
        1 => start + &end,
        _ => format!("{start}-{end}"),
    }
}

fn class_char(char: char) -> String {
    match char {
        '\0'..='\x1F' | '[' | ']' | '^' | '-' => format!("\\x{:02X}", u32::from(char)),
        '\\' => r"\\".to_owned(),
        _ => char.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Pattern;

    #[test]
    fn patterns_are_anchored_and_plain() {
        for (pattern, expected) in [
            ("^[0-9]{4}-[a-z]+$", "^[0-9]{4}-[a-z]+$"),
            ("^cat$|^dog$", "^(cat|dog)$"),
            ("^(?:ab)+c$", "^(ab)+c$"),
            ("^a+?$", "^a+$"),
            (r"^a\/b$", "^a/b$"),
            (r"^cost\$$", r"^cost\$$"),
            (r"^[\-\]a]\.{2}$", r"^[\x2D\x5Da](\.){2}$"),
            (r"^.[^a]$", r#"^[^\x00-\x1F"\\][^\x00-\x1F"\\a]$"#),
            ("^[ -~]$", "^[ !#-\\x5B\\x5D-~]$"),
            ("[0-9]", r#"^[^\x00-\x1F"\\]*[0-9][^\x00-\x1F"\\]*$"#),
            ("^a{2}b{2,5}c{3,}d?$", "^a{2}b{2,5}c{3,}d?$"),
            (r"^[\[&]$", r"^[&\x5B]$"),
            ("^a", r#"^a[^\x00-\x1F"\\]*$"#),
            ("", r#"^[^\x00-\x1F"\\]*[^\x00-\x1F"\\]*$"#),
        ] {
            assert_eq!(grammar_pattern(pattern).as_deref(), Some(expected), "{pattern}");
            assert_eq!(grammar_pattern(expected).as_deref(), Some(expected), "{expected}");
        }
    }

    #[test]
    fn pattern_that_a_grammar_cannot_enforce_is_none() {
        for pattern in [
            r#"^"a"$"#,
            r"^\\$",
            r"^a\tb$",
            r"^a\b$",
            "^[a-z]{1,2000}$",
            "a^b",
            "a$b",
            "^[[a]b]$",
            "^[a-z&&b]$",
            "^[a-c--b]$",
            "^[a-c~~b]$",
            r"^[\]a-z&&b]$",
            r#"^["\\]$"#,
            "^[[a]$",
            "^[a&&b]$",
            "^(a",
            r"^\p{L}$",
        ] {
            assert_eq!(grammar_pattern(pattern), None, "{pattern}");
        }
    }

    #[test]
    fn class_has_at_most_32_ranges() {
        let class = |ranges: u32| {
            let chars: String = (0..ranges).filter_map(|n| char::from_u32(0x100 + 2 * n)).collect();
            format!("^[{chars}]$")
        };
        assert_eq!(grammar_pattern(&class(32)), Some(class(32)));
        assert_eq!(grammar_pattern(&class(33)), None);
    }

    #[test]
    fn texts_without_escapes_match_as_before() {
        let texts: Vec<String> = (32..=255_u8)
            .map(char::from)
            .filter(|char| !['"', '\\'].contains(char))
            .flat_map(|char| {
                [format!("a{char}b"), format!("cat{char}"), format!("{char}dog"), char.to_string()]
            })
            .chain(["".to_owned(), "cat".to_owned(), "dog".to_owned(), "ab".to_owned()])
            .collect();
        for pattern in
            ["^cat|dog$", "a.b", "^a[^x-z]b$", "[!-/]", "^(a|cat)?[0-9a-z ]*b?$", "^$|b$", "^a|^d|t$"]
        {
            let original = Pattern::new(pattern).unwrap();
            let sent = Pattern::new(&grammar_pattern(pattern).unwrap()).unwrap();
            let differ: Vec<&String> =
                texts.iter().filter(|text| original.is_match(text) != sent.is_match(text)).collect();
            assert_eq!(differ, Vec::<&String>::new(), "{pattern}");
        }
    }
}
