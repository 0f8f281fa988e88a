//! Patterns with plain character classes.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look, Repetition};
use serde_json::{Map, Value};

use crate::{engine::link, subschema::is_annotation};

/// The maximum number of counted repetitions in a simple pattern.
const MAX_COUNT: u32 = 100;

/// Writes `\d`, `\w` and `\s` of a pattern as classes of characters, and groups without `?:`, because many engines that
/// constrain a model do not know the short forms. The only white space is the space: JSON requires escapes for the other characters, which such
/// engines do not write.
pub(crate) fn with_plain_classes(pattern: &str) -> String {
    let mut text = String::with_capacity(pattern.len());
    let mut class: Option<Class> = None;
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        match (char, &mut class) {
            ('\\', class) => {
                let escaped = chars.next();
                match (escaped.and_then(|escaped| members(escaped, class.as_ref())), class) {
                    (Some(members), Some(class)) => class.add(members, &mut text),
                    (Some(members), None) => text.extend(["[", members, "]"]),
                    (None, class) => {
                        text.push('\\');
                        text.extend(escaped);
                        class.iter_mut().for_each(|class| class.follows_members = false);
                    }
                }
            }
            // Without references to groups, both kinds of groups are the same.
            ('(', None) if chars.as_str().starts_with("?:") => {
                text.push('(');
                chars.nth(1);
            }
            ('[', None) => {
                text.push('[');
                let is_negated = chars.as_str().starts_with('^');
                text.extend(is_negated.then(|| chars.next()).flatten());
                class = Some(Class { is_negated, ..Class::default() });
            }
            (']', Some(open)) => {
                open.close(&mut text);
                class = None;
            }
            ('-', Some(class)) if class.follows_members => class.has_hyphen = true,
            (char, class) => {
                text.push(char);
                class.iter_mut().for_each(|class| class.follows_members = false);
            }
        }
    }
    text
}

/// Returns whether a pattern certainly matches only text without a visible character.
pub(crate) fn matches_only_blank(pattern: &str) -> bool {
    regex_syntax::parse(pattern).is_ok_and(|parsed| {
        let sides = parsed.properties();
        let is_whole =
            sides.look_set_prefix().contains(Look::Start) && sides.look_set_suffix().contains(Look::End);
        is_whole && has_only_blank_parts(&parsed)
    })
}

fn has_only_blank_parts(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(literal) => std::str::from_utf8(&literal.0).is_ok_and(|text| text.trim().is_empty()),
        HirKind::Class(regex_syntax::hir::Class::Unicode(class)) => {
            class.iter().all(|range| (range.start()..=range.end()).all(char::is_whitespace))
        }
        HirKind::Class(_) => false,
        HirKind::Capture(capture) => has_only_blank_parts(&capture.sub),
        HirKind::Repetition(repetition) => has_only_blank_parts(&repetition.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().all(has_only_blank_parts),
    }
}

/// Returns whether a pattern has only classes, plain groups, greedy repetitions, and the anchors of the complete text. Only
/// a character or class is repeated a given number of times, at most 100.
pub(crate) fn is_simple(pattern: &str) -> bool {
    let has_names = pattern.contains("(?") || pattern.contains(r"\p") || pattern.contains(r"\P");
    !has_names && regex_syntax::parse(pattern).is_ok_and(|parsed| has_simple_parts(&parsed))
}

fn has_simple_parts(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) => true,
        HirKind::Look(look) => matches!(look, Look::Start | Look::End),
        HirKind::Capture(capture) => has_simple_parts(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().all(has_simple_parts),
        HirKind::Repetition(Repetition { min, max, greedy, sub }) => {
            let is_counted = !matches!((min, max), (0 | 1, None) | (0, Some(1)));
            let is_char = match sub.kind() {
                HirKind::Literal(literal) => {
                    std::str::from_utf8(&literal.0).is_ok_and(|text| text.chars().count() == 1)
                }
                kind => matches!(kind, HirKind::Class(_)),
            };
            let is_small = is_char && max.unwrap_or(*min) <= MAX_COUNT;
            *greedy && (!is_counted || is_small) && has_simple_parts(sub)
        }
    }
}

/// A class of characters that is being read.
#[derive(Default)]
struct Class {
    is_negated: bool,
    /// The last characters came from a short form, so that a hyphen after them is not a range.
    follows_members: bool,
    /// It contains a hyphen, which is written at the end.
    has_hyphen: bool,
}

impl Class {
    fn add(&mut self, members: &str, text: &mut String) {
        // A hyphen before a short form is not a range either.
        if text.ends_with('-') && !text.ends_with("\\-") {
            text.pop();
            self.has_hyphen = true;
        }
        text.push_str(members);
        self.follows_members = true;
    }

    fn close(&self, text: &mut String) {
        text.push_str(if self.has_hyphen { "-]" } else { "]" });
    }
}

/// The white space of JSON.
const WHITE_SPACE: &str = r" \t\r\n";

/// Returns the characters of a short form.
fn members(escaped: char, class: Option<&Class>) -> Option<&'static str> {
    match escaped {
        'd' => Some("0-9"),
        'w' => Some("A-Za-z0-9_"),
        's' if class.is_some_and(|class| class.is_negated) => Some(WHITE_SPACE),
        's' => Some(" "),
        'D' if class.is_none() => Some("^0-9"),
        'W' if class.is_none() => Some("^A-Za-z0-9_"),
        _ => None,
    }
}

/// Returns a schema with only the own keywords of another: members and items can be anything, and schemas for the same
/// value are omitted. The names of members stay, because `additionalProperties: false` depends on them.
pub(crate) fn own_keywords(schema: &Value, pointer: &str) -> Value {
    let Some(members) = schema.as_object() else { return schema.clone() };
    let own = members.iter().filter_map(|(keyword, value)| {
        Some((keyword.clone(), own_keyword(keyword, value, &format!("{pointer}/{keyword}"))?))
    });
    Value::Object(own.collect())
}

fn own_keyword(keyword: &str, value: &Value, pointer: &str) -> Option<Value> {
    match (keyword, value) {
        ("properties" | "patternProperties", Value::Object(members)) => {
            Some(members.keys().map(|name| (name.clone(), Value::Bool(true))).collect::<Map<_, _>>().into())
        }
        ("items", Value::Array(list)) => Some(list.iter().map(|_| Value::Bool(true)).collect()),
        ("additionalProperties" | "additionalItems", Value::Bool(false)) => Some(Value::Bool(false)),
        ("dependencies", Value::Object(members)) => {
            let lists = members.iter().filter(|(_, value)| value.is_array());
            Some(lists.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>().into())
        }
        // Names are strings, so this cannot be recursive.
        ("propertyNames", Value::Object(_)) => Some(link(pointer)),
        ("items" | "additionalProperties" | "additionalItems", _) => None,
        ("allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "contains", _) => None,
        _ if is_annotation(keyword) => None,
        _ => Some(value.clone()),
    }
}

// Patterns for engines that compile them to a grammar of the JSON text.

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
        HirKind::Class(regex_syntax::hir::Class::Unicode(class)) => class_of(class),
        HirKind::Repetition(repetition) => repeated(repetition),
        HirKind::Class(regex_syntax::hir::Class::Bytes(_)) | HirKind::Look(_) => None,
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
mod tests;
