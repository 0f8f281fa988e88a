//! Patterns with plain character classes.

use regex_syntax::hir::{Hir, HirKind, Look, Repetition};
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Pattern;
    use serde_json::json;

    #[test]
    fn short_forms_become_classes() {
        for (pattern, plain) in [
            (r"^\d{3}-\w+\s$", "^[0-9]{3}-[A-Za-z0-9_]+[ ]$"),
            (r"^[\d.]+[^\s,]$", r"^[0-9.]+[^ \t\r\n,]$"),
            (r"[\w-.]", "[A-Za-z0-9_.-]"),
            (r"[.-\w]", "[.A-Za-z0-9_-]"),
            (r"[a-z\d-]", "[a-z0-9-]"),
            (r"[\-\d]", r"[\-0-9]"),
            (r"\\d\D\[\d\]", r"\\d[^0-9]\[[0-9]\]"),
            (r"[\D]\(?:(?:a|b)", r"[\D]\(?:(a|b)"),
            (r"[\]\d]", r"[\]0-9]"),
            (r"-[\d]", r"-[0-9]"),
            (r"\W[\W]", r"[^A-Za-z0-9_][\W]"),
            ("(ab)(?:cd)", "(ab)(cd)"),
            (r"plain[a-z]", r"plain[a-z]"),
            ("\\", "\\"),
        ] {
            assert_eq!(with_plain_classes(pattern), plain, "{pattern}");
        }
    }

    #[test]
    fn simple_patterns_count_only_characters() {
        for simple in ["^[A-Z]{3}-[0-9]{4}$", "^(ab)+(c|d)?$", "[0-9]{2,}", "^.{1,100}$", r"^a\.{2}"] {
            assert!(is_simple(simple), "{simple}");
        }
        for complex in ["a{101}", "(a{2}){3}", "^a+?$", r"\ba", r"^\p{L}", "(?<name>a)", "(?=a)", "[a"] {
            assert!(!is_simple(complex), "{complex}");
        }
    }

    #[test]
    fn plain_pattern_matches_nothing_that_the_original_refuses() {
        let candidates: Vec<String> = (0..=127_u8).map(|byte| format!("a{}b", char::from(byte))).collect();
        for pattern in [r"^a\db$", r"^a\wb$", r"^a\sb$", r"^a[^\d\w]b$", r"^a[\w.-]b$", r"^a[\s-]b$"] {
            let original = Pattern::new(pattern).unwrap();
            let plain = Pattern::new(&with_plain_classes(pattern)).unwrap();
            let refused = candidates.iter().filter(|text| plain.is_match(text) && !original.is_match(text));
            assert_eq!(refused.collect::<Vec<_>>(), Vec::<&String>::new(), "{pattern}");
        }
    }

    #[test]
    fn schemas_of_other_values_are_omitted() {
        let schema = json!({
            "title": "T",
            "type": "object",
            "required": ["a"],
            "properties": { "a": { "type": "string" } },
            "patternProperties": { "^b": { "type": "string" } },
            "additionalProperties": false,
            "propertyNames": { "minLength": 1 },
            "dependencies": { "a": ["b"], "c": { "required": ["d"] } },
            "items": [{ "type": "string" }, { "type": "null" }],
            "additionalItems": { "type": "string" },
            "contains": { "const": 1 },
            "allOf": [{ "type": "object" }],
            "$defs": { "x": {} },
        });
        let own = json!({
            "type": "object",
            "required": ["a"],
            "properties": { "a": true },
            "patternProperties": { "^b": true },
            "additionalProperties": false,
            "propertyNames": link("/data/propertyNames"),
            "dependencies": { "a": ["b"] },
            "items": [true, true],
        });
        assert_eq!(own_keywords(&schema, "/data"), own);
        assert_eq!(own_keywords(&json!({ "items": { "type": "string" } }), ""), json!({}));
        assert_eq!(own_keywords(&json!({ "propertyNames": false }), ""), json!({ "propertyNames": false }));
        assert_eq!(own_keywords(&json!(false), ""), json!(false));
    }
}
