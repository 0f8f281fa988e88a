use cog_json::Value;
use proptest::prelude::*;

use super::{parser::MAX_LENGTH, *};

const ENVELOPE: &str = r#"{"ok": true, "meta": {"confidence": 0.8, "risk": "low"},
    "data": {"issues": [{"id": 1}, {"id": 2}], "name": "née", "none": null, "done": false, "length": 3}}"#;

fn is_true(condition: &str) -> bool {
    let document = Value::parse(ENVELOPE).unwrap();
    let condition = Condition::parse(condition).unwrap_or_else(|error| panic!("{condition}: {error:?}"));
    condition.is_true(document.node())
}

fn error(condition: &str) -> (String, String, String) {
    let error = Condition::parse(condition).unwrap_err();
    let at = condition.get(error.range).unwrap_or_default().to_owned();
    (at, error.message, error.suggestion.unwrap_or_default())
}

#[test]
fn true_conditions() {
    for condition in [
        "$.ok",
        "$.meta.confidence >= 0.8",
        "$.meta.confidence == 8e-1 && $.meta.risk != 'high'",
        "$.data.issues.length == 2",
        "2 <= $.data.issues[-1].id",
        "$.data.name.length == 3",
        "$.data.length > 2.5",
        "$.data.issues[0].id < $.data.issues[1].id",
        "!$.data.done",
        "!($.meta.confidence < 0.5) && (false || $.ok)",
        "exists($.data.none) && !exists($.data.absent) && exists($.data.issues.length)",
        "$.data.absent == null && $.data.none == null && $.data.absent == $.data.other",
        "$.meta.risk > 'high'",
        "$.data.issues.length == $.data.issues.length && $.data.issues.length < $.data.name.length",
        "true",
        "$.data.absent != 1",
    ] {
        assert!(is_true(condition), "{condition}");
    }
}

#[test]
fn false_conditions() {
    for condition in [
        "$.data.done",
        "$.data.name",
        "$.data.absent",
        "$.data.absent < 1 || $.data.absent >= 1",
        "$.data.name < 1 || $.data.name > 1",
        "$.data.absent.length == 0",
        "$.meta.confidence.length > 0",
        "$.ok && false || $.data.done && $.ok",
        "!exists($)",
        "$.meta.risk == 'LOW'",
        "$ == 1",
    ] {
        assert!(!is_true(condition), "{condition}");
    }
}

#[test]
fn and_binds_more_strongly_than_or() {
    assert!(is_true("true || false && false"));
    assert!(!is_true("(true || false) && false"));
    assert!(is_true("false && false || true"));
}

#[test]
fn errors_are_at_their_column() {
    for (condition, at, message, suggestion) in [
        ("", "", "the condition ends here; expected a value", ""),
        ("$.a = 1", "=", "unknown operator `=`", "Write `==`."),
        ("$.a === 1", "===", "unknown operator `===`", "Write `==`."),
        ("$.a and $.b", "and", "unknown operator `and`", "Write `&&`."),
        ("meta.risk == 'low'", "meta.risk", "unknown word `meta.risk`", "Write `$.meta.risk` for a value."),
        ("$.a == low", "low", "unknown word `low`", "Write `'low'` for a string, or `$.low` for a value."),
        ("$.a == True", "True", "unknown word `True`", "Write `true`."),
        ("$.a == 'x", "'", "the string is not closed", "Add `'` at its end."),
        ("$.a == 1.", "1.", "not a valid number", "Write a number as in JSON: `0.8`, `-1`, `2e3`."),
        ("($.a", "(", "this `(` is not closed", ""),
        ("$.a)", ")", "this `)` closes nothing", ""),
        ("$.a $.b", "$.b", "expected `&&`, `||` or a comparison", ""),
        ("$.a &&", "", "the condition ends here; expected a value", ""),
        ("== 1", "==", "expected a value before this operator", ""),
        (
            "1 < $.a < 3",
            "<",
            "comparisons cannot follow each other",
            "Join them with `&&`: `$.x > 1 && $.x < 5`.",
        ),
        ("!$.a == 1", "$.a", "`!` negates a value, not a comparison", "Write `!(…)` around the comparison."),
        ("exists $.a", "exists", "expected a path in parentheses", "Write `exists($.x)`."),
        ("exists('a')", "'a'", "expected a path in parentheses", "Write `exists($.x)`."),
        ("$.a.length", "$.a.length", "a length is neither true nor false", "Write `$.x.length > 0`."),
        ("'x' || $.a", "'x'", "this value is neither true nor false", "Compare it: `$.x == 'text'`."),
        ("$.a + 1 > 2", "+", "not a valid number", "Write a number as in JSON: `0.8`, `-1`, `2e3`."),
        ("$.a; rm", ";", "unexpected character `;`", ""),
        ("$.é == \u{1}", "\u{1}", "unexpected character `\\u{1}`", ""),
    ] {
        let found = error(condition);
        assert_eq!((&*found.0, &*found.1, &*found.2), (at, message, suggestion), "{condition}");
    }
}

#[test]
fn length_and_nesting_are_limited() {
    let long = format!("$.a == '{}'", "x".repeat(10_000));
    assert_eq!(error(&long).1, "the condition has 10009 bytes; the maximum is 4096");
    let exact = format!("$.a == '{}'", "x".repeat(MAX_LENGTH - 9));
    assert!(Condition::parse(&exact).is_ok());
    let nested = |depth: usize| format!("{}$.a{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Condition::parse(&nested(32)).is_ok());
    assert_eq!(error(&nested(33)).1, "nested more than 32 levels deep");
    assert_eq!(error(&"!".repeat(4000)).1, "nested more than 32 levels deep");
    let chain = vec!["$.a"; 600].join("&&");
    assert!(Condition::parse(&chain).is_ok());
}

/// Returns the text of a random condition and its value, by a second evaluation.
fn conditions() -> impl Strategy<Value = (String, bool)> {
    let leaf = prop_oneof![
        Just(("$.ok".to_owned(), true)),
        Just(("$.data.done".to_owned(), false)),
        (0..5, 0..5, 0..6_usize).prop_map(|(left, right, sign)| {
            let (sign, value) = [
                ("==", left == right),
                ("!=", left != right),
                ("<", left < right),
                ("<=", left <= right),
                (">", left > right),
                (">=", left >= right),
            ][sign];
            (format!("{left}{sign}{right}"), value)
        }),
    ];
    leaf.prop_recursive(5, 40, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|(text, value)| (format!("!({text})"), !value)),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| (format!("({} && {})", a.0, b.0), a.1 && b.1)),
            (inner.clone(), inner).prop_map(|(a, b)| (format!("({}||{})", a.0, b.0), a.1 || b.1)),
        ]
    })
}

proptest! {
    #[test]
    fn evaluates_like_rust((text, value) in conditions()) {
        prop_assert_eq!(is_true(&text), value);
    }

    #[test]
    fn any_text_is_parsed_or_rejected_with_a_range(text in "[$.a-c'\"()!=<>&|\\[\\]0-9 exists]{0,60}") {
        if let Err(error) = Condition::parse(&text) {
            prop_assert!(text.get(error.range).is_some(), "{}", error.message);
        }
    }
}
