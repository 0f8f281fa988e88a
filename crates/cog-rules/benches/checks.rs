//! The cost of named checks, compared with parsing and checking the answer.
//!
//! `cargo bench -p cog-rules --bench checks` prints each figure with its limit, and fails if one exceeds it.

use std::{fmt::Write as _, hint::black_box, process::ExitCode};

use cog_json::Value;
use cog_rules::{CheckedAnswer, Checks};
use cog_schema::{Contract, Rules};
use cog_spec::{CheckRule, Format, Manifest, Tier};
use cog_testkit::bench::{limit, ratio};
use serde_json::json;

/// Ten checks, each over a list of 100.
const CHECKS: [&str; 10] = [
    "sum($.data.items[*].amount) == $.data.total",
    "all($.data.items[*], @.amount >= 0)",
    "count($.data.items) == $.data.count",
    "unique($.data.items[*].id)",
    "max($.data.items[*].amount) <= $.data.total",
    "any($.data.items[*], @.amount > 1)",
    "sorted($.data.items[*].id)",
    "all($.data.items[*], length(@.name) > 0)",
    "count($.data.items[*], @.kind == 'service') <= $.data.count",
    "all($.data.items[*], @.kind != 'credit' || @.amount <= 100)",
];

fn main() -> ExitCode {
    let text = answer();
    let manifest = Manifest::with_defaults("bench", Format::V22, Some(Tier::Decision));
    let Ok(contract) = Contract::compile(&schema(), &Rules::from(&manifest)) else {
        return ExitCode::FAILURE;
    };
    let rules = CHECKS.iter().enumerate().map(|(index, that)| CheckRule {
        name: format!("check-{index}"),
        that: Some((*that).to_owned()),
        ..CheckRule::default()
    });
    let rules: Vec<CheckRule> = rules.collect();
    let (checks, findings) = Checks::compile(&rules, Some(&contract));
    assert!(findings.is_empty(), "{findings:?}");
    let value = Value::parse(&text).unwrap_or_default();
    assert!(contract.check_data(value.node()).violations.is_empty());
    let parse = || {
        let value = Value::parse(black_box(&text)).unwrap_or_default();
        black_box(contract.check_data(value.node()));
    };
    let run = || {
        let failures = CheckedAnswer::new(None, black_box(value.node())).failures(&checks);
        assert!(black_box(failures).is_empty());
    };
    let within = limit(
        0.05,
        "ten checks over a list of 100 ÷ parsing and checking an answer of 50 KB",
        ratio(|| (0..100).for_each(|_| run()), || (0..100).for_each(|_| parse())),
    );
    if within { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn schema() -> serde_json::Value {
    let item = json!({
        "type": "object",
        "required": ["id", "name", "kind", "amount"],
        "properties": {
            "id": { "type": "integer" },
            "name": { "type": "string", "minLength": 1 },
            "kind": { "enum": ["goods", "service", "credit"] },
            "amount": { "type": "number", "minimum": 0 },
            "note": { "type": "string", "maxLength": 2000 }
        }
    });
    json!({ "data": {
        "type": "object",
        "required": ["items", "total", "count", "rationale"],
        "properties": {
            "items": { "type": "array", "items": item },
            "total": { "type": "number" },
            "count": { "type": "integer" },
            "rationale": { "type": "string" }
        }
    } })
}

/// Returns an answer of 50 KB.
fn answer() -> String {
    let mut text = String::from(r#"{"items": ["#);
    let note = "The position was taken from the second page of the document. ".repeat(7);
    for index in 0..100 {
        let kind = ["goods", "service", "credit"].get(index % 3).copied().unwrap_or_default();
        let comma = if index == 0 { "" } else { ", " };
        let _ = write!(
            text,
            r#"{comma}{{"id": {index}, "name": "Item {index}", "kind": "{kind}", "amount": 1.25, "note": "{note}"}}"#
        );
    }
    text.push_str(r#"], "total": 125.0, "count": 100, "rationale": "Added up."}"#);
    text
}
