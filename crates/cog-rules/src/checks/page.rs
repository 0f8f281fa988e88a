//! The rules of docs/checks.md: each compiles, passes a good answer and fails a bad one.

use cog_json::Value;
use serde_json::{Value as Json, json};

use super::*;

const PAGE: &str = include_str!("../../../../docs/checks.md");

fn rules() -> Vec<CheckRule> {
    let start = PAGE.find("```text\n").unwrap() + "```text\n".len();
    let end = start + PAGE[start..].find("```").unwrap();
    let rule = |line: &str| match line.strip_prefix("grounded: ") {
        Some(path) => CheckRule { grounded: Some(path.to_owned()), ..CheckRule::default() },
        None => CheckRule { that: Some(line.to_owned()), ..CheckRule::default() },
    };
    PAGE[start..end].lines().map(rule).collect()
}

fn input() -> Json {
    json!({ "document": "A long report. It says: costs rose.", "sentences": ["a", "b"], "allowed": ["red", "blue"] })
}

fn answer() -> Json {
    json!({
        "items": [
            { "name": "pen", "quantity": 3, "price": 0.1, "amount": 0.3 },
            { "name": "ink", "quantity": 1, "price": 2, "amount": 2.0 }
        ],
        "total": 2.3, "item_count": 2, "net": 100, "tax_rate": 19, "tax": 19.004,
        "shares": [{ "percent": 33.3 }, { "percent": 33.3 }, { "percent": 33.4 }],
        "start": "2026-03-01", "end": "2026-03-04T00:00Z", "nights": 3,
        "events": [{ "on": "2026-01-05" }, { "on": "2026-02-01" }],
        "nodes": [{ "id": "a" }, { "id": "b" }], "links": [{ "to": "b" }],
        "status": "rejected", "reason": "late", "email": "x@example.com", "refund": 3,
        "low": 1, "value": 1, "high": 2, "answers": [{ "correct": true }, { "correct": false }],
        "translations": ["A", "B"], "choice": "red", "summary": "costs rose", "best": 7,
        "scores": [{ "value": 7 }, { "value": 1.5 }], "steps": [{ "text": "Test it" }],
        "quotes": [{ "text": "costs rose" }]
    })
}

fn passes(rule: &CheckRule, data: &Json) -> bool {
    let (checks, findings) = Checks::compile(std::slice::from_ref(rule), None);
    assert_eq!(findings, [], "{rule:?}");
    let input = Value::from(input());
    let data = Value::from(data.clone());
    CheckedAnswer::new(Some(input.node()), data.node()).failures(&checks).is_empty()
}

#[test]
fn every_rule_of_the_page_passes_and_fails() {
    // What makes the rule on the same line of the page fail: a pointer into the answer, and another value; null removes it.
    let faults = [
        ("/total", json!(2.31)),
        ("/items/0/amount", json!(0.32)),
        ("/tax", json!(19.02)),
        ("/shares/0/percent", json!(30)),
        ("/end", json!("2026-02-28T23:00Z")),
        ("/end", json!("2027-03-02")),
        ("/nights", json!(4)),
        ("/events/0/on", json!("2025-12-31")),
        ("/events/0/on", json!("2026-02-02")),
        ("/items/1/name", json!("pen")),
        ("/links/0/to", json!("c")),
        ("/reason", json!("")),
        ("/email", Json::Null),
        ("/replacement", json!("new")),
        ("/value", json!(2.5)),
        ("/answers/1/correct", json!(true)),
        ("/item_count", json!(3)),
        ("/translations", json!(["A"])),
        ("/choice", json!("green")),
        ("/summary", json!("A long report. It says")),
        ("/best", json!(6)),
        ("/steps/0/text", json!("Ship it")),
        ("/email", json!("x@example.org")),
        ("/quotes/0/text", json!("Costs rose")),
        ("/quotes/0/text", json!("costs fell")),
    ];
    let rules = rules();
    assert_eq!(rules.len(), faults.len());
    for (rule, (pointer, value)) in rules.iter().zip(faults) {
        assert!(passes(rule, &answer()), "{rule:?}");
        let mut bad = answer();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        match bad.pointer_mut(parent).unwrap() {
            Json::Object(members) if value.is_null() => drop(members.remove(key)),
            Json::Object(members) => drop(members.insert(key.to_owned(), value)),
            other => panic!("{other}"),
        }
        assert!(!passes(rule, &bad), "{rule:?}");
    }
}
