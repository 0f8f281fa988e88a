use std::{rc::Rc, sync::Arc};

use cog_json::{Node, Value};
use cog_module::Module;
use cog_rules::Cases;
use proptest::prelude::*;
use serde_json::json;

use super::{Documents, RoutingRule, RuleDocument, known, unreached};
use crate::{
    Condition, check,
    testing::{Modules, composed, module, shown},
    typing::{Sources, StaticType},
};

/// A module whose data has a value for each kind of limit.
const GRADER: &str = r#"{"input": {"type": "object"}, "data": {"type": "object",
    "required": ["score", "level", "done", "count", "tags"], "properties": {
        "score": {"type": "number", "minimum": 0, "maximum": 10},
        "level": {"enum": ["low", "medium", "high"]},
        "done": {"type": "boolean"},
        "count": {"type": "integer", "minimum": 1, "maximum": 3},
        "kind": {"const": "review"},
        "tags": {"type": "array", "maxItems": 2},
        "grade": {"anyOf": [{"type": "integer", "exclusiveMinimum": 5}, {"type": "null"}]},
        "note": {"type": "string"}, "rationale": {"type": "string"}}}}"#;

/// Returns the findings of a composition that runs `grader`, as `message (help)`.
fn findings(requires: &str, more: &str) -> Vec<String> {
    let composition = format!("{requires}dataflow:\n  - {{from: input, to: grader, mapping: {{}}}}\n{more}");
    let modules = Modules::new().with("grader", module("grader", "", "Do it.", GRADER));
    let found = shown(&check(composed("root", &composition, ""), &modules));
    let warning = |text: &String| text.strip_prefix("warning composition-condition: ").map(str::to_owned);
    found.iter().map(|text| warning(text).unwrap_or_else(|| panic!("{found:?}"))).collect()
}

/// Returns the findings of a routing with these rules.
fn routing(rules: &[&str]) -> Vec<String> {
    let rule = |rule: &&str| match *rule {
        "" => "  - {next: null}\n".to_owned(),
        rule => format!("  - {{condition: \"{rule}\", next: plain}}\n"),
    };
    findings("", &format!("routing:\n{}", rules.iter().map(rule).collect::<String>()))
}

#[test]
fn condition_outside_the_values_of_a_schema_is_never_true() {
    for (condition, help) in [
        ("$.data.score > 10", "By the schemas, `$.data.score` is a number from 0 to 10."),
        ("$.data.score < 0 || $.data.score > 11", "By the schemas, `$.data.score` is a number from 0 to 10."),
        ("$.data.count > 2 && $.data.count < 3", "By the schemas, `$.data.count` is a number from 1 to 3."),
        ("$.data.count == 1.5", "By the schemas, `$.data.count` is a number from 1 to 3."),
        (
            "$.data.level != 'low' && $.data.level < 'high'",
            "By the schemas, `$.data.level` is 'high' or 'low' or 'medium'.",
        ),
        ("$.data.tags.length >= 3", "By the schemas, `$.data.tags.length` is a number from 0 to 2."),
        (
            "$.data.grade <= 5",
            "By the schemas, `$.data.grade` is a number from 5 (excluded) or null or absent.",
        ),
        ("$.meta.confidence > 1", "By the schemas, `$.meta.confidence` is a number from 0 to 1."),
        ("!$.ok", "By the schemas, `$.ok` is true."),
        ("$.data.score == null", "By the schemas, `$.data.score` is a number from 0 to 10."),
        ("!exists($.data.level)", "By the schemas, `$.data.level` is 'high' or 'low' or 'medium'."),
        ("$.data.done && !$.data.done", "By the schemas, `$.data.done` is true or false."),
        ("$ == null", "By the schemas, `$` is an array or object."),
        ("1 > 2", "Compare a value of the results, such as `$.meta.confidence >= 0.8`."),
        ("$.data.done && $.data.score > 10", "Compare the condition with the values that the schemas allow."),
    ] {
        let expected = format!("the condition is never true: this rule never decides ({help})");
        assert_eq!(routing(&[condition]), [expected], "{condition}");
        let step = format!("  - {{from: grader.output, to: plain, condition: \"{condition}\"}}\n");
        let expected = format!("the condition is never true: this step never runs ({help})");
        assert_eq!(findings("", &step), [expected], "{condition}");
    }
}

#[test]
fn condition_that_a_value_satisfies_is_not_reported() {
    for condition in [
        "$.data.score >= 10",
        "$.data.score == 0",
        "$.data.count != 1 && $.data.count < 3",
        "$.data.kind != 'review'",
        "$.data.grade == null",
        "$.data.grade > 5",
        "$.data.tags.length == 2 && $.data.note.length == 0",
        "$.data.note > 'a' && $.data.note < 'aa'",
        "$.meta.risk == 'extreme'",
        "$.data.score == $.data.count",
        "exists($.data.note) || !exists($.data.kind)",
    ] {
        assert_eq!(routing(&[condition]), [""; 0], "{condition}");
    }
}

#[test]
fn result_of_a_call_in_the_prompt_is_not_the_result_of_a_step() {
    let composition = "dataflow:\n  - {from: input, to: grader, mapping: {}, condition: \"$.text == 'x'\"}\nrouting:\n  \
        - {condition: \"$.data.done\", next: null}\n  - {condition: \"$.data.done == false\", next: null}\n  - {next: plain}\n";
    let modules = Modules::new().with("grader", module("grader", "", "Do it.", GRADER));
    let found = shown(&check(composed("root", composition, "Use @call:grader({})."), &modules));
    assert!(!found.iter().any(|text| text.contains("never decides")), "{found:?}");
}

#[test]
fn rule_after_rules_that_cover_it_never_decides() {
    let within = "this rule never decides: rule 1 before it is true whenever this one is (Move it before that rule, or remove it.)";
    let always =
        "this rule never decides: rule 1 before it is always true (Move it before that rule, or remove it.)";
    let covered = "this rule never decides: one of the rules before it is always true (Remove it, or narrow the rules before it.)";
    for (rules, expected) in [
        (&["$.data.score > 5", "$.data.score > 8", ""][..], vec![within]),
        (&["$.meta.confidence >= 0.5", "$.meta.confidence < 0.5", ""], vec![covered]),
        (&["$.data.level == 'low'", "$.data.level == 'medium'", "$.data.level == 'high'", ""], vec![covered]),
        (
            &["$.data.level != 'low'", "$.data.level == 'high' && $.data.done", "$.data.level == 'low'"],
            vec![within],
        ),
        (&["$.data.done", "!$.data.done", ""], vec![covered]),
        (&["$.data.score >= 0", "$.data.done", ""], vec![always, always]),
        (&["$.data.count == 1", "$.data.count == 2", "$.data.count > 2", ""], vec![covered]),
        (&["", "$.data.done"], vec![always]),
        (&["$.data.done || 'a' == 'a'", ""], vec![always]),
        (&["$.data.done && $.data.score > 1", "$.data.score > 2 && $.data.done", ""], vec![within]),
    ] {
        assert_eq!(routing(rules), expected, "{rules:?}");
    }
}

#[test]
fn rule_that_can_decide_is_not_reported() {
    for rules in [
        &["$.data.score > 8", "$.data.score > 5", ""][..],
        &["$.data.level == 'low'", "$.data.level == 'high'", ""],
        &["$.data.grade > 5", "$.data.grade <= 5 || exists($.data.grade)", ""],
        &["$.data.kind == 'review'", ""],
        &["$.data.done", "$.data.score > 5", "$.data.score <= 5 && $.data.level == 'low'", ""],
        &["$.data.note == 'a'", "$.data.note != 'a' && $.data.note != 'b'", ""],
    ] {
        assert_eq!(routing(rules), [""; 0], "{rules:?}");
    }
}

#[test]
fn result_that_can_be_missing_reaches_the_rest() {
    let rules = "routing:\n  - {condition: $.data.done, next: null}\n  - {condition: $.data.done == false, next: null}\n  - {next: plain}\n";
    assert_eq!(findings("", rules).len(), 1);
    assert_eq!(findings("requires: [{name: grader, optional: true}]\n", rules), [""; 0]);
    let from = rules.replace("condition", "from: grader.output, condition");
    assert_eq!(findings("requires: [{name: grader, optional: true}]\n", &from), [""; 0]);
    // A fallback answers with other data.
    assert_eq!(findings("requires: [{name: grader, fallback: plain}]\n", rules), [""; 0]);
    // An optional part that fails leaves the result before it.
    let step = format!("  - {{from: grader.output, to: judge, mapping: {{}}}}\n{rules}");
    assert_eq!(findings("requires: [{name: judge, optional: true}]\n", &step), [""; 0]);
}

#[test]
fn result_of_a_step_that_may_not_run_can_be_missing() {
    let found = |condition: &str| {
        let steps = format!(
            "dataflow:
  - {{from: input, to: grader, mapping: {{}}{condition}}}
  - {{from: [input, grader.output], to: plain, condition: $.grader == null}}"
        );
        let modules = Modules::new().with("grader", module("grader", "", "Do it.", GRADER));
        check(composed("root", &steps, ""), &modules)
    };
    assert_eq!(shown(&found(", condition: $.count > 1")), [""; 0]);
    let found = found("");
    assert_eq!(found.findings.len(), 1, "{:?}", shown(&found));
    assert!(format!("{:?}", found.findings[0].location).contains("/dataflow/1/"));
}

#[test]
fn long_conditions_are_compared() {
    let any = |sign: &str| {
        let parts = (0..40).map(|number| format!("$.data.note {sign} '{number}'"));
        parts.collect::<Vec<_>>().join(" || ")
    };
    let long = format!("({}) && ({}) && ({})", any("=="), any("<"), any("!="));
    let found = routing(&std::iter::repeat_n(long.as_str(), 20).collect::<Vec<_>>());
    assert_eq!(found.len(), 19, "all rules after the first");
    // Too many cases of several paths count as possible.
    let pairs = (0..40).map(|number| format!("$.data.note == '{number}' && $.data.score > 1.{number}"));
    let pairs = pairs.collect::<Vec<_>>().join(" || ");
    assert_eq!(routing(&[pairs.as_str(); 20]), [""; 0]);
}

#[test]
fn rules_with_the_same_sources_share_what_they_read() {
    let steps = ["plain", "judge"]
        .map(|part| format!("  - {{from: input, to: {part}, mapping: {{}}, condition: $.count > 1}}\n"));
    let rules =
        ["", "", "from: judge.output, "].map(|from| format!("  - {{{from}condition: $.ok, next: null}}\n"));
    let composition = format!("dataflow:\n{}routing:\n{}", steps.concat(), rules.concat());
    let checked = check(composed("root", &composition, ""), &Modules::new());
    let plan = checked.flow().root();
    let sources = Sources::new(checked.flow(), plan);
    let mut documents = Documents::default();
    let mut documents = plan.routes.iter().map(|rule| documents.document(&sources, rule.from.as_ref()));
    let mut next = || match documents.next().unwrap() {
        RuleDocument { name, known: StaticType::Maybe(known) } => (name, known),
        RuleDocument { name, known } => panic!("{name}: {known:?}"),
    };
    let first = next();
    let second = next();
    let other = next();
    assert!(first.0 == second.0 && Rc::ptr_eq(&first.1, &second.1));
    assert_ne!(first.0, other.0);
}

#[test]
fn many_rules_after_many_steps_have_few_findings() {
    let steps: String = (0..1_600)
        .map(|part| format!("  - {{from: input, to: p{part}, condition: $.count > 1}}\n"))
        .collect();
    let rules = "  - {condition: $.meta.confidence >= 0.5, next: null}\n".repeat(1_600);
    let composition = format!("dataflow:\n{steps}routing:\n{rules}");
    let found = shown(&check(composed("root", &composition, ""), &Modules::new()));
    let count = |text: &str| found.iter().filter(|found| found.contains(text)).count();
    assert_eq!((count("not found"), count("never decides"), found.len()), (200, 20, 220));
}

#[test]
fn condition_of_many_paths_is_compared_in_part() {
    let paths: Vec<String> = (0..200).map(|number| format!("$.data.n{number} == 1")).collect();
    let all = paths.join(" && ");
    let first = paths[0].as_str();
    let plain = |rules: &[&str]| {
        let rules: String =
            rules.iter().map(|rule| format!("  - {{condition: {rule}, next: null}}\n")).collect();
        let composition = format!("dataflow:\n  - {{from: input, to: plain}}\nrouting:\n{rules}");
        shown(&check(composed("root", &composition, ""), &Modules::new()))
    };
    assert_eq!(plain(&[first, &all]).len(), 1, "the first path decides");
    let condition = Condition::parse(&all).unwrap();
    let cases = Cases::from_expression(condition.root(), true, &|operand| {
        known("", &condition, &StaticType::Any, operand)
    });
    assert!(format!("{cases:?}").matches("$.data.n").count() <= 32);
}

/// The schemas of the members `a` and `b` in random documents.
fn schemas() -> Vec<serde_json::Value> {
    vec![
        json!({}),
        json!({ "type": "integer", "minimum": 0, "maximum": 2 }),
        json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 2 }),
        json!({ "minimum": 1, "exclusiveMaximum": 2.5 }),
        json!({ "enum": ["x", "y", 1, null] }),
        json!({ "enum": [0.5, 2, 3] }),
        json!({ "const": true }),
        json!({ "type": "boolean" }),
        json!({ "type": ["string", "null"] }),
        json!({ "type": "string", "minLength": 1, "maxLength": 2 }),
        json!({ "type": "array", "minItems": 1, "maxItems": 2 }),
        json!({ "anyOf": [{ "type": "string", "enum": ["x"] }, { "type": "integer", "minimum": 2 }] }),
        json!({ "oneOf": [{ "type": "integer" }, { "minimum": 2 }] }),
        json!({ "allOf": [{ "minimum": 1 }, { "type": "number", "maximum": 2 }] }),
        json!({ "type": "object", "required": ["c"], "properties": { "c": { "type": "boolean" } } }),
        json!({ "properties": { "c": { "const": 1 } }, "anyOf": [{ "properties": { "c": { "const": 1 } } }, {}] }),
        json!({ "not": { "type": "string" } }),
        json!({ "if": { "type": "string" }, "then": { "const": "x" } }),
        json!({ "$ref": "#/$defs/Small" }),
    ]
}

/// The values of the members; none for an absent one.
fn values() -> Vec<Option<serde_json::Value>> {
    let values = json!([
        null, true, false, -1, 0, 0.5, 1, 1.5, 2, 2.25, 2.5, 3, "", "x", "xx", "y", "yyy", [], [1], [1, 2], [1, 2, 3],
        {}, { "length": 2 }, { "c": true }, { "c": 1 }, { "c": null }
    ]);
    std::iter::once(None).chain(values.as_array().unwrap().iter().cloned().map(Some)).collect()
}

/// Returns a random condition.
fn conditions() -> impl Strategy<Value = String> {
    let path = prop::sample::select(vec!["$.a", "$.b", "$.a", "$.a.length", "$.b.length", "$.a.c"]);
    let sign = prop::sample::select(vec!["==", "!=", "<", "<=", ">", ">="]);
    let literal = prop::sample::select(vec![
        "0", "0.5", "1", "1.0", "2", "2.5", "3", "-1", "'x'", "'y'", "''", "null", "true", "false", "$.b",
    ]);
    let leaf = prop_oneof![
        5 => (path.clone(), sign.clone(), literal.clone()).prop_map(|(path, sign, literal)| format!("{path} {sign} {literal}")),
        1 => (literal, sign, path.clone()).prop_map(|(literal, sign, path)| format!("{literal} {sign} {path}")),
        1 => prop::sample::select(vec!["$.a", "$.b", "$.a.c", "true"]).prop_map(str::to_owned),
        1 => path.prop_map(|path| format!("exists({path})")),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(|one| format!("!({one})")),
            (inner.clone(), inner.clone()).prop_map(|(one, other)| format!("({one} && {other})")),
            (inner.clone(), inner).prop_map(|(one, other)| format!("({one} || {other})")),
        ]
    })
}

/// Returns a module with a random schema of its input.
fn modules() -> impl Strategy<Value = Arc<Module>> {
    let member = || prop::sample::select(schemas());
    let required = prop::sample::subsequence(vec!["a", "b"], 0..=2);
    (member(), member(), required).prop_map(|(a, b, required)| {
        let input = json!({ "type": "object", "required": required, "properties": { "a": a, "b": b } });
        let schema =
            json!({ "input": input, "data": {}, "$defs": { "Small": { "minimum": 0, "maximum": 1 } } });
        module("random", "", "Do it.", &schema.to_string())
    })
}

/// Returns the valid inputs of a module.
fn documents(module: &Module) -> Vec<Value> {
    let member = |name: &str, value: Option<serde_json::Value>| value.map(|value| (name.to_owned(), value));
    let pairs = values().into_iter().flat_map(|a| values().into_iter().map(move |b| (a.clone(), b)));
    let objects = pairs.map(|(a, b)| member("a", a).into_iter().chain(member("b", b)).collect());
    let inputs = objects.map(|object: serde_json::Map<_, _>| Value::from(serde_json::Value::Object(object)));
    inputs.filter(|input| module.contract.check_input(input.node()).is_empty()).collect()
}

/// Returns the first rule that is true.
fn decides(rules: &[Option<Condition>], document: Node<'_>) -> Option<usize> {
    rules.iter().position(|rule| rule.as_ref().is_none_or(|condition| condition.is_true(document)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn no_document_reaches_a_rule_that_is_reported(
        module in modules(),
        texts in prop::collection::vec(prop::option::weighted(0.9, conditions()), 1..5),
        can_be_missing in any::<bool>(),
    ) {
        let conditions: Vec<_> =
            texts.iter().map(|text| text.as_ref().map(|text| Condition::parse(text).unwrap())).collect();
        let shape = StaticType::Schema(module.contract.shape("input").unwrap());
        let document = if can_be_missing { shape.or_null() } else { shape };
        let rule = |(index, condition): (usize, &'_ Option<Condition>)| (index, condition.clone());
        let owned: Vec<_> = conditions.iter().enumerate().map(rule).collect();
        let rules: Vec<_> = owned
            .iter()
            .map(|(index, condition)| RoutingRule {
                index: *index,
                condition: condition.as_ref(),
                document: RuleDocument { name: String::new(), known: document.clone() },
            })
            .collect();
        let reported: Vec<usize> = unreached(&rules).iter().map(|(rule, _)| rule.index).collect();
        let missing = can_be_missing.then(Value::null);
        for document in documents(&module).iter().chain(&missing) {
            if let Some(reached) = decides(&conditions, document.node()) {
                prop_assert!(!reported.contains(&reached), "{texts:?} rule {reached}: {document}");
            }
        }
    }

    #[test]
    fn a_condition_without_cases_is_true_for_no_document(module in modules(), text in conditions()) {
        let condition = Condition::parse(&text).unwrap();
        let document = StaticType::Schema(module.contract.shape("input").unwrap());
        for value in [true, false] {
            let cases = Cases::from_expression(condition.root(), value, &|operand| known("", &condition, &document, operand));
            if cases.is_empty() {
                for document in documents(&module) {
                    prop_assert!(condition.is_true(document.node()) != value, "{text}: {document}");
                }
            }
        }
    }
}
