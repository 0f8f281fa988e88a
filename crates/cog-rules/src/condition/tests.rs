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
        ("$.a == +1", "+1", "not a valid number", "Write a number as in JSON: `0.8`, `-1`, `2e3`."),
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

const ORDER: &str = r#"{"data": {
    "items": [{"price": 0.1, "n": 3, "name": "a"}, {"price": 0.2, "n": 1, "name": "b"}, {"price": null, "name": "c"}],
    "total": 0.3, "zero": 0, "empty": [], "text": "The quick brown fox", "ids": ["x", "y", 1, 2.0],
    "start": "2026-01-30", "end": "2026-03-01T12:00:00+02:00", "nights": 2, "check_in": "2026-05-01", "check_out": "2026-05-03",
    "dates": ["2026-01-01", "2026-02-01", null, "2026-02-01"], "groups": [{"of": [1, 2]}, {"of": []}, {"of": [3]}],
    "links": [{"to": "x"}, {"to": "y"}], "objects": [{"a": 1}, {"a": 1.0}]
}}"#;

fn holds(condition: &str) -> Result<bool, EvaluationError> {
    let document = Value::parse(ORDER).unwrap();
    let condition = Condition::parse(condition).unwrap_or_else(|error| panic!("{condition}: {error:?}"));
    condition.evaluate(Document::Envelope(document.node()))
}

#[test]
fn functions_and_arithmetic_are_true() {
    for condition in [
        "sum($.data.items[*].price) == $.data.total",
        "sum($.data.items[*].price) == 0.1 + 0.2",
        "0.1 + 0.2 == 0.3 && 0.1 * 3 == 0.3 && 1 / 4 == 0.25",
        "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 7 - 2 - 1 == 4 && 12 / 3 / 2 == 2",
        "-1 + 3 == 2 && 3 -1 == 2 && 3-1==2 && - 1 == -1 && 2 - -1 == 3 && -(1 + 1) == -2",
        "close(1 / 3, 0.333, 0.001) && !close(1, 2, 0.5) && close($.data.total, 0.31, 0.01)",
        "count($.data.items) == 3 && count($.data.items[*]) == 3 && count($.data.items[*].n) == 2",
        "count($.data.items[*], @.price > 0.1) == 1 && count($.data.none[*]) == 0",
        "min($.data.items[*].price) == 0.1 && max($.data.items[*].price) == 0.2 && max($.data.dates) == '2026-02-01'",
        "min($.data.total, 0.2, 1) == 0.2 && max(1, 2) == 2",
        "max($.data.empty) == null && sum($.data.empty) == 0 && sum($.data.none[*]) == 0",
        "length($.data.text) == 19 && length($.data.items) == 3 && length($.data.items[0]) == 3",
        "abs($.data.zero - 3) == 3 && abs(duration('-P1D')) == duration('P1D')",
        "all($.data.items[*], length(@.name) == 1) && all($.data.empty, @ > 1) && !any($.data.empty, @ > 1)",
        "any($.data.items[*], @.price == null) && any($.data.items, @.name == 'b')",
        "all($.data.groups[*], all(@.of[*], @ > 0)) && sum($.data.groups[*].of[*]) == 6",
        "all($.data.groups[*], sum(@.of) <= sum($.data.groups[*].of[*]))",
        "all($.data.links[*], contains($.data.ids[*], @.to)) && !contains($.data.ids[*], 'z')",
        "contains($.data.ids, 1.0) && contains($.data.ids[*], 2) && !contains($.data.ids[*], '2')",
        "contains($.data.text, 'quick') && starts($.data.text, 'The') && ends($.data.text, 'fox')",
        "!contains($.data.text, 'Quick') && !starts($.data.zero, '0') && !contains($.data.zero, 0)",
        "unique($.data.items[*].name) && !unique($.data.dates) && !unique($.data.objects[*]) && unique($.data.empty)",
        "sorted($.data.dates) && !sorted($.data.items[*].n) && sorted($.data.none)",
        "date($.data.start) < date($.data.end) && date('2026-01-31') - date('2026-01-30') == duration('P1D')",
        "date($.data.end) == date('2026-03-01T10:00Z') && date($.data.start) + duration('P1D') == date('2026-01-31')",
        "(date($.data.check_out) - date($.data.check_in)) / duration('P1D') == $.data.nights",
        "date($.data.check_out) - date($.data.check_in) == $.data.nights * duration('PT24H')",
        "close(date($.data.start), date('2026-02-01'), duration('P2D'))",
        "date($.data.text) == null && date($.data.none) == null && !(date($.data.text) < date($.data.end))",
        "exists($.data.items[*].n) && !exists($.data.empty[*])",
        "sum($.data.ids) == null && $.data.text + 1 == null && !($.data.text + 1 > 0)",
        "false && 1 / 0 == 1 || true",
    ] {
        assert_eq!(holds(condition), Ok(true), "{condition}");
    }
}

#[test]
fn division_by_zero_is_an_error() {
    for (condition, at) in [("1 / $.data.zero > 1", 4..15), ("!(1 / 0.0 == 1)", 6..9)] {
        assert_eq!(holds(condition), Err(EvaluationError::DivisionByZero(at)), "{condition}");
        let document = Value::parse(ORDER).unwrap();
        assert!(!Condition::parse(condition).unwrap().is_true(document.node()));
    }
}

#[test]
fn invalid_functions_have_a_suggestion() {
    for (condition, at, message, suggestion) in [
        (
            "sum($.a) ",
            "sum($.a)",
            "this value is neither true nor false",
            "Compare it: `count($.items[*]) > 0`.",
        ),
        ("summ($.a) == 1", "summ", "unknown function `summ`", "Write `sum(…)`."),
        ("len($.a) == 1", "len", "unknown function `len`", "Write `length(…)`."),
        (
            "$.a[*] == 1",
            "$.a[*]",
            "the path selects several values",
            "Test them with `all` or `any`, or use `count`, `sum`, `min` or `max`.",
        ),
        (
            "all($.a[*])",
            "all($.a[*])",
            "`all` needs a condition about the elements, which are `@`",
            "Write `all($.items[*], @.price > 0)`.",
        ),
        ("all(1, true)", "1", "expected the path of a list", "Write `all($.items[*], @.price > 0)`."),
        ("sum($.a, $.b) == 1", "$.b", "`sum` has too many arguments", "Write `sum($.items[*].price)`."),
        (
            "@.a == 1",
            "@.a",
            "`@` is the element of a list, and there is none here",
            "Write `all($.items[*], @.price > 0)`, or begin the path with `$`.",
        ),
        (
            "all(@.a, true)",
            "@.a",
            "`@` is the element of a list, and there is none here",
            "Write `all($.items[*], @.price > 0)`, or begin the path with `$`.",
        ),
        (
            "date('31.1.2026') == 1",
            "'31.1.2026'",
            "not a date of ISO 8601",
            "Write `'2026-01-31'`, or `'2026-01-31T09:30:00Z'`.",
        ),
        (
            "duration('P1M') == 1",
            "'P1M'",
            "years and months have no fixed length",
            "Write days: `'P365D'`, `'P30D'`.",
        ),
        (
            "duration('1 day') == 1",
            "'1 day'",
            "not a duration of ISO 8601",
            "Write `'P30D'` for days, or `'PT1H30M'` for hours and minutes.",
        ),
        ("($.a > 1) + 1 == 2", "($.a > 1)", "a condition is no value to calculate with", ""),
        ("$.a == !$.b", "!", "expected a value after the comparison", ""),
        ("1 + == 2", "==", "expected a value before this operator", ""),
        ("sum($.a", "(", "this `(` is not closed", ""),
        (
            "$..a == 1",
            "..",
            "the path selects several values",
            "Write names, indices and `[*]`, such as `$.data.issues[0]`.",
        ),
    ] {
        let found = error(condition);
        assert_eq!((&*found.0, &*found.1, &*found.2), (at, message, suggestion), "{condition}");
    }
}

#[test]
fn long_chains_and_deep_nesting_are_bounded() {
    let chain = format!("{} == 0", vec!["1"; 1_500].join("-"));
    assert_eq!(holds(&chain), Ok(false));
    let deep = format!("{}1{} == 1", "abs(".repeat(33), ")".repeat(33));
    assert_eq!(error(&deep).1, "nested more than 32 levels deep");
    assert_eq!(error(&format!("{}1 == 1", "- ".repeat(33))).1, "nested more than 32 levels deep");
    assert_eq!(error(&format!("count($.a{}) > 1", "[*]".repeat(5))).1, "the path has more than 4 `[*]`");
}

#[test]
fn work_is_bounded() {
    let list = vec!["{}"; 4_000].join(",");
    let document = Value::parse(&format!("[{list}]")).unwrap();
    // Objects are compared with each other; strings and numbers are not.
    let unique = Condition::parse("unique($[*])").unwrap();
    assert_eq!(unique.evaluate(Document::Envelope(document.node())), Ok(false));
    let distinct: Vec<String> = (0..4_000).map(|number| format!("{{\"a\":{number}}}")).collect();
    let document = Value::parse(&format!("[{}]", distinct.join(","))).unwrap();
    assert_eq!(unique.evaluate(Document::Envelope(document.node())), Err(EvaluationError::TooMuch));
    let numbers: Vec<String> = (0..100_000).map(|number| number.to_string()).collect();
    let document = Value::parse(&format!("[{}]", numbers.join(","))).unwrap();
    assert_eq!(unique.evaluate(Document::Envelope(document.node())), Ok(true));
    // What does not depend on the element is read once.
    let nested = Condition::parse("all($[*], @ <= max($[*]) && contains($[*], @))").unwrap();
    assert_eq!(nested.evaluate(Document::Envelope(document.node())), Ok(true));
}
