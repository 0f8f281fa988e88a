//! A grammar is read as a regular expression, in which recursion ends at a limited depth.

use std::collections::BTreeMap;

use cog_spec::{Dialect, Form, Format, Manifest, Tier};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{Contract, Rules as ContractRules};

/// Returns a regular expression for a rule.
fn expanded(rules: &BTreeMap<&str, &str>, body: &str, depth: usize) -> String {
    let mut text = String::new();
    let mut rest = body;
    while let Some(char) = rest.chars().next() {
        let end = match char {
            '"' | '[' => closed(rest, if char == '[' { ']' } else { '"' }),
            _ if char.is_ascii_alphabetic() => {
                rest.find(|char: char| !char.is_ascii_alphanumeric() && char != '-').unwrap_or(rest.len())
            }
            '{' => rest.find('}').unwrap() + 1,
            _ => 1,
        };
        let (token, after) = rest.split_at(end);
        match char {
            ' ' => {}
            '"' => text.push_str(&escaped(&token[1..token.len() - 1])),
            _ if char.is_ascii_alphabetic() && depth == 0 => text.push_str("[^\\s\\S]"),
            _ if char.is_ascii_alphabetic() => {
                text.push_str(&format!("(?:{})", expanded(rules, rules[token], depth - 1)));
            }
            _ => text.push_str(token),
        }
        rest = after;
    }
    text
}

fn closed(text: &str, end: char) -> usize {
    let mut is_escaped = false;
    let found = text.char_indices().skip(1).find(|(_, char)| {
        let is_end = *char == end && !is_escaped;
        is_escaped = *char == '\\' && !is_escaped;
        is_end
    });
    found.unwrap().0 + 1
}

/// Returns a literal of GBNF as a literal of a regular expression.
fn escaped(text: &str) -> String {
    let plain = text.replace(r#"\""#, "\"").replace(r"\\", r"\");
    let code = |char: char| match char.is_ascii_alphanumeric() {
        true => char.to_string(),
        false => format!("\\u{{{:X}}}", u32::from(char)),
    };
    format!("(?:{})", plain.chars().map(code).collect::<String>())
}

fn grammar(schema: &Value) -> Grammar {
    Grammar::new(schema).unwrap_or_else(|| panic!("no grammar of {schema}"))
}

/// Returns which of these texts a schema's grammar matches.
fn matches(schema: &Value, texts: &[&str]) -> Vec<bool> {
    let grammar = grammar(schema);
    let rules: BTreeMap<&str, &str> =
        grammar.text.lines().map(|line| line.split_once(" ::= ").unwrap()).collect();
    let pattern = format!("^(?:{})$", expanded(&rules, rules["root"], 8));
    let built = regex::RegexBuilder::new(&pattern).size_limit(1 << 30).build();
    let pattern = built.unwrap_or_else(|error| panic!("{error}\n{}", grammar.text));
    texts.iter().map(|text| pattern.is_match(text)).collect()
}

fn assert_matches(schema: Value, accepted: &[&str], rejected: &[&str]) {
    assert_eq!(matches(&schema, accepted), vec![true; accepted.len()], "{schema} {accepted:?}");
    assert_eq!(matches(&schema, rejected), vec![false; rejected.len()], "{schema} {rejected:?}");
}

#[test]
fn objects_keep_the_order_and_have_the_white_space_of_written_json() {
    let properties = json!({ "a": { "enum": ["x", "\"é\\", 1, null] }, "b": { "type": "boolean" } });
    let closed = json!({ "type": "object", "properties": properties, "required": ["a", "b"] });
    assert_matches(
        closed,
        &[
            r#"{"a": "x","b": true}"#,
            r#"{"a": "\"é\\","b": false}"#,
            "{\n  \"a\": null,\n  \"b\": true\n}",
            "{\n\"a\": 1,\n      \"b\": true}",
        ],
        &[
            r#"{ "a": "x","b": true}"#,
            r#"{"a":"x","b": true}"#,
            r#"{"a":  "x","b": true}"#,
            "{\n\n\"a\": 1,\"b\": true}",
            "{\n       \"a\": 1,\"b\": true}",
            r#"{"b": true,"a": "x"}"#,
            r#"{"a": "x"}"#,
            "{}",
        ],
    );
    let optional = json!({ "type": "object", "properties": {
        "a": { "const": 1 }, "b": { "const": 2 }, "c": { "const": 3 }, "d": { "const": 4 },
    }, "required": ["c"] });
    assert_matches(
        optional,
        &[
            r#"{"c": 3}"#,
            r#"{"a": 1,"c": 3}"#,
            r#"{"b": 2,"c": 3,"d": 4}"#,
            r#"{"a": 1,"b": 2,"c": 3,"d": 4}"#,
        ],
        &[
            "{}",
            r#"{"a": 1}"#,
            r#"{"a": 1,"d": 4}"#,
            r#"{,"c": 3}"#,
            r#"{"c": 3,}"#,
            r#"{"b": 2,"a": 1,"c": 3}"#,
        ],
    );
    let all = json!({ "type": "object", "properties": { "a": { "const": 1 }, "b": { "const": 2 } } });
    assert_matches(
        all,
        &["{}", r#"{"a": 1}"#, r#"{"b": 2}"#, r#"{"a": 1,"b": 2}"#],
        &[r#"{"b": 2,"a": 1}"#, "{,}"],
    );
    assert_matches(json!({ "type": "object", "additionalProperties": false }), &["{}"], &[r#"{"a": 1}"#]);
    let map = json!({ "type": "object", "additionalProperties": { "type": "boolean" } });
    assert_matches(map, &["{}", r#"{"x": true,"y": false}"#], &[r#"{"x": 1}"#, r#"{"": true}"#]);
}

#[test]
fn strings_have_their_lengths_patterns_and_formats() {
    assert_matches(
        json!({ "type": "string", "minLength": 1, "maxLength": 3 }),
        &[r#""é🙂a""#, r#""\n""#, r#""\u00e9""#],
        &[r#""""#, r#""abcd""#, "\"\n\"", r#""\x""#],
    );
    assert_matches(
        json!({ "type": "string", "maxLength": 1 }),
        &[r#""\u0041""#, r#""\uD7fF""#, r#""\uE000""#, r#""\ud83D\uDe00""#, r#""\uDBFF\udfff""#],
        &[r#""\uD800""#, r#""\udfff""#, r#""\uDBB5[""#, r#""\ud83d\u0041""#, r#""\ud83d\ud83d""#],
    );
    assert_matches(json!({ "type": "string" }), &[r#""""#, r#""any text""#], &["any", r#"""""#]);
    assert_matches(
        json!({ "type": "string", "pattern": "^[A-Z]{2}-(?:[0-9]+|none|é)\\^$" }),
        &[r#""AB-12^""#, r#""AB-none^""#, r#""AB-é^""#],
        &[r#""Ab-12^""#, r#""AB-^""#],
    );
    assert_matches(
        json!({ "type": "string", "format": "date-time" }),
        &[r#""2026-11-29T12:00:00Z""#, r#""2026-11-29T12:00:00.5+01:00""#],
        &[r#""2026-13-29T12:00:00Z""#, r#""2026-11-29""#],
    );
    assert_matches(json!({ "type": "string", "format": "date" }), &[r#""2026-11-29""#], &[r#""2026-11-32""#]);
}

#[test]
fn arrays_have_their_lengths_and_positions() {
    assert_matches(
        json!({ "type": "array", "items": { "type": "null" }, "minItems": 1, "maxItems": 2 }),
        &["[null]", "[null,null]"],
        &["[]", "[null,null,null]", "[null, null]"],
    );
    assert_matches(json!({ "type": "array", "items": { "const": 1 } }), &["[]", "[1,1,1]"], &["[1,]"]);
    assert_matches(json!({ "type": "array", "maxItems": 0 }), &["[]"], &["[1]"]);
    assert_matches(
        json!({ "type": "array", "items": [{ "const": 1 }, { "type": "boolean" }] }),
        &["[1,true]"],
        &["[1]", "[true,1]", "[1,true,1]"],
    );
}

#[test]
fn anything_and_recursive_definitions_are_allowed() {
    assert_matches(
        json!({ "type": ["string", "number", "boolean", "null", "object", "array"] }),
        &["1", r#"{"a": [1,"b"]}"#, "[]"],
        &["{", "nul"],
    );
    let tree = json!({ "$ref": "#/$defs/T", "$defs": { "T": {
        "type": "object", "required": ["v"],
        "properties": { "v": { "type": "boolean" }, "next": { "$ref": "#/$defs/T" } },
    } } });
    assert_matches(
        tree.clone(),
        &[r#"{"v": true}"#, r#"{"v": true,"next": {"v": false}}"#],
        &[r#"{"next": {"v": true}}"#],
    );
    assert_eq!(grammar(&tree).max_tokens, FREE_TOKENS);
}

#[test]
fn tokens_follow_from_the_longest_answer() {
    let label =
        json!({ "type": "object", "required": ["a"], "properties": { "a": { "enum": ["x", "four"] } } });
    // {"a": "four"}, and one character each for a comma and two breaks.
    assert_eq!(grammar(&label).max_tokens, 16 * TOKENS_PER_CHAR + END_TOKENS);
    for free in [
        json!({ "type": "string" }),
        json!({ "type": "string", "maxLength": MAX_LENGTH }),
        json!({ "type": "array", "items": { "type": "null" }, "maxItems": MAX_ITEMS }),
        json!({ "type": "object" }),
        json!({ "type": "string", "pattern": "^a+$" }),
    ] {
        assert_eq!(grammar(&free).max_tokens, FREE_TOKENS, "{free}");
    }
    let long = json!({ "type": "array", "items": { "type": "string", "maxLength": 1_000 }, "maxItems": 10 });
    assert!(grammar(&long).max_tokens > FREE_TOKENS);
}

#[test]
fn what_a_grammar_cannot_say_has_none() {
    for schema in [
        json!({ "type": "object", "properties": { "a": {} }, "additionalProperties": true }),
        json!({ "type": "string", "format": "email" }),
        json!({ "type": "string", "pattern": "^(a*)*$" }),
        json!({ "type": "integer", "minimum": 3, "maximum": 2 }),
        json!({ "$ref": "#/$defs/missing" }),
        json!(false),
    ] {
        assert_eq!(Grammar::new(&schema), None, "{schema}");
    }
}

#[test]
fn grammar_of_many_members_and_values_stays_small() {
    let optional: Map<String, Value> = (0..50)
        .map(|index| (format!("field_{index}"), json!({ "type": "string", "maxLength": 10 })))
        .collect();
    let text = grammar(&json!({ "type": "object", "properties": optional })).text;
    assert!(text.len() < 10_000, "{}", text.len());
    let values: Vec<String> = (0..200).map(|index| format!("value_{index}")).collect();
    assert_matches(json!({ "enum": values }), &[r#""value_0""#, r#""value_199""#], &[r#""value_200""#]);
}

proptest! {
    #[test]
    fn integers_have_exactly_their_bounds(low in -2_000_i64..2_000, length in 0_i64..3_000, number in -5_000_i64..5_000) {
        let (high, text) = (low + length, number.to_string());
        let bounds = json!({ "type": "integer", "minimum": low, "maximum": high });
        prop_assert_eq!(matches(&bounds, &[&text]), [(low..=high).contains(&number)]);
        let open = json!({ "type": "integer", "exclusiveMinimum": low });
        prop_assert_eq!(matches(&open, &[&text]), [number > low]);
        let open = json!({ "type": "integer", "maximum": low });
        prop_assert_eq!(matches(&open, &[&text]), [number <= low]);
    }
}

/// The data of a module with what contracts have.
fn contract() -> Contract {
    let rules = ContractRules::from(&Manifest::with_defaults("test", Format::V22, Some(Tier::Decision)));
    let data = json!({
        "type": "object",
        "required": ["label", "score", "tags", "rationale"],
        "properties": {
            "label": { "enum": ["a", "b"] },
            "score": { "type": "integer", "minimum": 1, "maximum": 10 },
            "tags": { "type": "array", "items": { "type": "string", "maxLength": 5 }, "maxItems": 3 },
            "when": { "type": ["string", "null"], "format": "date" },
            "rationale": { "type": "string" },
        },
    });
    Contract::compile(&json!({ "data": data }), &rules).unwrap()
}

#[test]
fn every_form_of_a_contract_has_a_grammar() {
    for form in Form::ALL {
        let schema = contract().project_form(Dialect::LlamaCpp, form).schema.unwrap();
        let text = grammar(&schema).text;
        assert!(text.starts_with("root ::= ") && !text.contains("space"), "{form}: {text}");
    }
    let schema = contract().project_form(Dialect::LlamaCpp, Form::ANSWER).schema.unwrap();
    assert_eq!(
        matches(
            &schema,
            &[
                r#"{"label": "a","score": 10,"tags": ["x"],"when": null}"#,
                r#"{"error": {"code": "E2007","message": "No."}}"#,
                r#"{"label": "a","score": 11,"tags": []}"#,
            ]
        ),
        [true, false, false]
    );
}
