use cog_json::Value;
use cog_schema::{Contract, Rules};
use cog_spec::{Format, Manifest, Tier};
use serde_json::json;

use super::*;

/// An invoice: its lines, its total, and quotes of the document.
fn contract() -> Contract {
    let schema = json!({
        "input": {
            "type": "object",
            "required": ["document"],
            "properties": { "document": { "type": "string" }, "currency": { "enum": ["EUR", "USD"] } }
        },
        "data": {
            "type": "object",
            "required": ["items", "total"],
            "additionalProperties": false,
            "properties": {
                "items": {
                    "type": "array",
                    "maxItems": 10,
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "additionalProperties": false,
                        "properties": {
                            "name": { "type": "string" },
                            "amount": { "type": "number" },
                            "tags": { "type": "array", "items": { "type": "string" } }
                        }
                    }
                },
                "total": { "type": "number", "minimum": 0 },
                "start": { "type": "string" },
                "end": { "type": "string" },
                "quote": { "type": "string" },
                "quotes": { "type": "array", "items": { "type": "string" } },
                "status": { "enum": ["paid", "open"] },
                "paid_on": { "type": ["string", "null"] },
                "rationale": { "type": "string" }
            }
        }
    });
    let manifest = Manifest::with_defaults("invoice", Format::V22, Some(Tier::Decision));
    Contract::compile(&schema, &Rules::from(&manifest)).unwrap()
}

fn rule(that: &str) -> CheckRule {
    CheckRule { name: "rule".to_owned(), that: Some(that.to_owned()), ..CheckRule::default() }
}

fn compile(rule: CheckRule) -> (Checks, Vec<String>) {
    let contract = contract();
    let (checks, findings) = Checks::compile(&[rule], Some(&contract));
    let shown = findings.iter().map(|found| {
        let kind = if found.is_warning { "warning" } else { "error" };
        let CheckFinding { key, error, .. } = found;
        format!(
            "{kind} {key} {:?}: {} ({})",
            error.range,
            error.message,
            error.suggestion.as_deref().unwrap_or("-")
        )
    });
    (checks, shown.collect())
}

fn failures(rule: CheckRule, input: &str, data: &str) -> Vec<CheckFailure> {
    let (checks, findings) = compile(rule);
    assert_eq!(findings, Vec::<String>::new());
    let (input, data) = (Value::parse(input).unwrap(), Value::parse(data).unwrap());
    CheckedAnswer::new(Some(input.node()), data.node()).failures(&checks)
}

const DATA: &str = r#"{"items": [{"name": "a", "amount": 0.1}, {"name": "b", "amount": 0.2}], "total": 0.4}"#;

#[test]
fn failure_names_paths_and_values() {
    let failed = failures(rule("sum($.data.items[*].amount) == $.data.total"), "{}", DATA);
    let [failure] = failed.as_slice() else { panic!("{failed:?}") };
    assert_eq!(
        failure.message,
        "`sum($.data.items[*].amount) == $.data.total` is not true \
         (`sum($.data.items[*].amount)` is 0.3, and `$.data.total` is 0.4)"
    );
    assert_eq!(failure.paths, ["data.items[*].amount", "data.total"]);
    let values = failure.values.iter().map(|read| format!("{} {}", read.path, read.value));
    assert_eq!(
        values.collect::<Vec<_>>(),
        ["data.items[0].amount 0.1", "data.items[1].amount 0.2", "data.total 0.4"]
    );
}

#[test]
fn failure_names_the_element() {
    let failed = failures(rule("all($.data.items[*], @.amount < 0.2)"), "{}", DATA);
    assert_eq!(failed[0].paths, ["data.items[1].amount"]);
    let doubled = r#"{"items": [{"name": "a"}, {"name": "b"}, {"name": "a"}], "total": 0}"#;
    let failed = failures(rule("unique($.data.items[*].name)"), "{}", doubled);
    assert_eq!(failed[0].paths, ["data.items[0].name", "data.items[2].name"]);
    let failed = failures(
        rule("sorted($.data.quotes)"),
        "{}",
        r#"{"items": [], "total": 0, "quotes": ["a", "c", "b"]}"#,
    );
    assert_eq!(failed[0].paths, ["data.quotes[1]", "data.quotes[2]"]);
}

#[test]
fn message_and_condition_are_the_authors() {
    let when = CheckRule {
        when: Some("$.data.status == 'paid'".to_owned()),
        message: Some("A paid invoice has a date.".to_owned()),
        ..rule("exists($.data.paid_on) && $.data.paid_on != null")
    };
    let data =
        |status: &str| format!(r#"{{"items": [], "total": 1, "status": "{status}", "paid_on": null}}"#);
    assert!(failures(when.clone(), "{}", &data("open")).is_empty());
    let failed = failures(when, "{}", &data("paid"));
    assert_eq!(failed[0].message, "A paid invoice has a date (`$.data.paid_on` is null)");
}

#[test]
fn texts_are_found_in_the_input() {
    let grounded = |path: &str| CheckRule {
        name: "quotes".to_owned(),
        grounded: Some(path.to_owned()),
        ..CheckRule::default()
    };
    let input = r#"{"document": "The total\n is  FINE.", "more": ["Second text"]}"#;
    let data = |quotes: &str| format!(r#"{{"items": [], "total": 1, "quotes": {quotes}}}"#);
    let quotes = data(r#"["the TOTAL is fine", "second"]"#);
    assert!(failures(grounded("$.data.quotes[*]"), input, &quotes).is_empty());
    assert!(failures(grounded("$.data.quotes"), input, &quotes).is_empty());
    assert!(failures(grounded("$.data.quote"), input, &quotes).is_empty(), "an absent text");
    let failed = failures(grounded("$.data.quotes[*]"), input, &data(r#"["total is", "fine. second"]"#));
    assert_eq!(failed[0].message, "the text does not occur in the input (data.quotes[1])");
    assert_eq!(failed[0].paths, ["data.quotes[1]"]);
}

#[test]
fn division_by_zero_fails_the_check() {
    let failed =
        failures(rule("$.data.total / count($.data.items) > 1"), "{}", r#"{"items": [], "total": 1}"#);
    assert_eq!(failed[0].message, "`$.data.total / count($.data.items) > 1` is not true (division by zero)");
    assert_eq!(failed[0].paths, ["data.total", "data.items"]);
}

#[test]
fn checks_are_compared_with_the_schemas() {
    for (that, expected) in [
        ("$.data.totl == 1", "error that 0..11: no schema defines the member `totl` (Did you mean `total`?)"),
        ("$.total == 1", "error that 0..7: no schema defines the member `total` (Write `$.data.total`.)"),
        (
            "sum($.data.items[*].name) == 1",
            "error that 4..24: the elements are string, which cannot be added (Select a member: `[*].name`.)",
        ),
        (
            "sum($.data.total) == 1",
            "error that 4..16: the value has the type number, so it has no elements (-)",
        ),
        (
            "$.data.total + $.data.quote == 1",
            "error that 0..27: cannot calculate with number and string (Calculate with numbers, dates (`date(…)`) and durations (`duration('P1D')`).)",
        ),
        (
            "date($.data.start) < $.data.end",
            "error that 0..31: a date is never compared with string (Write `date(…)` around the string.)",
        ),
        (
            "all($.data.items[*], @.nam != '')",
            "error that 21..26: no schema defines the member `nam` (Did you mean `name`?)",
        ),
        ("starts($.data.items, 'a')", "error that 7..19: the value is array; expected a string (-)"),
        (
            "$.data.status == 'payd'",
            "error that 17..23: the schema does not list `payd` (Did you mean `paid`?)",
        ),
        (
            "sum($.data.items[*].amount) = $.data.total",
            "error that 28..29: unknown operator `=` (Write `==`.)",
        ),
        (
            "$.data.total >= 0",
            "warning that 0..17: every answer passes the check (By the schema, `$.data.total` is a number from 0.)",
        ),
        (
            "$.data.total < 0",
            "warning that 0..16: no answer can pass the check (By the schema, `$.data.total` is a number from 0.)",
        ),
        (
            "count($.data.items[*]) <= 10",
            "warning that 0..28: every answer passes the check (By the schema, `count($.data.items[*])` is a number from 0 to 10.)",
        ),
        (
            "$.input.document != ''",
            "warning that 0..0: the check reads nothing of the answer (Read a value of the answer, such as `$.data.total`.)",
        ),
    ] {
        assert_eq!(compile(rule(that)).1, [expected], "{that}");
    }
}

#[test]
fn condition_that_is_never_true_is_reported() {
    let rule = CheckRule { when: Some("$.data.total < 0".to_owned()), ..rule("exists($.data.quote)") };
    assert_eq!(
        compile(rule).1,
        ["warning when 0..16: the check never applies: its condition is never true \
          (By the schema, `$.data.total` is a number from 0.)"]
    );
}

#[test]
fn grounded_needs_a_text_of_the_answer() {
    let grounded = |path: &str| CheckRule { grounded: Some(path.to_owned()), ..CheckRule::default() };
    for (path, message) in [
        ("$.data.total", "the value is number, not a text"),
        ("$.input.document", "the path is not one of the answer"),
        ("$.data.quotes[*] == 'a'", "expected the end of the path"),
        ("quotes", "expected a path"),
        ("$.data.quots[*]", "no schema defines the member `quots`"),
    ] {
        let found = compile(grounded(path)).1;
        assert!(found.len() == 1 && found[0].contains(message), "{path}: {found:?}");
    }
}

#[test]
fn check_runs_when_all_that_it_reads_is_complete() {
    let (checks, _) = compile(rule("sum($.data.items[*].amount) == $.data.total"));
    let check = checks.iter().next().unwrap();
    let path = |text: &str| text.parse::<Path>().unwrap();
    let mut is_read = Vec::new();
    assert_eq!(check.depth(), 2);
    assert!(!check.note(&path("data.total"), &mut is_read));
    assert!(!check.note(&path("data.items[0]"), &mut is_read));
    assert!(check.note(&path("data.items"), &mut is_read));
    let (late, _) = compile(rule("$.data.items[-1].name != ''"));
    let mut is_read = Vec::new();
    let last = late.iter().next().unwrap();
    assert!(!last.note(&path("data.items[0].name"), &mut is_read));
    assert!(last.note(&path("data.items"), &mut is_read));
}
