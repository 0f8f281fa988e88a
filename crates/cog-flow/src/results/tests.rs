use std::sync::Arc;

use crate::testing::{checked, findings};

use super::*;

const STEPS: &str = "dataflow:
  - {from: input, to: reader, mapping: {text: $.text}}
  - {from: reader.output, to: judge, condition: $.data.issues.length > 1, mapping: {ids: '$.data.issues[*].id'}}
  - {from: [reader.output, judge.output], to: plain}
  - {from: [reader.output, judge.output, input], to: plain, as: p3, aggregate: merge}
  - {from: [judge.output, reader.output], to: plain, as: p4, aggregate: array}
  - {from: [judge.output, reader.output], to: plain, as: p5, aggregate: first}
  - {from: [input, reader.output], to: plain, as: p6, mapping: {id: '$.reader.data.issues[0].id', text: $.input.text, none: $.input.count}}
  - {from: judge.output, to: plain, as: p7}
  - {from: reader.output, to: output, mapping: {issues: $.data.issues}}
  - {from: judge.output, to: output, mapping: {score: $.data.score}}";

fn parse(text: &str) -> Value {
    Value::parse(text).unwrap()
}

/// Returns the plan, and results of `reader`, and of `judge` if it ran.
fn ran(issues: &str, judge: Option<&str>) -> (Arc<crate::Flow>, Results) {
    let flow = checked(STEPS, "").into_flow().unwrap_or_else(|found| panic!("{found:?}"));
    let mut results = Results::new(flow.root(), parse(r#"{"text": "hello"}"#));
    let envelope =
        |data: &str| parse(&format!(r#"{{"ok": true, "meta": {{"confidence": 0.9}}, "data": {data}}}"#));
    results.set(Callee::Part(0), envelope(&format!(r#"{{"issues": {issues}, "summary": "s"}}"#)));
    if let Some(judge) = judge {
        results.set(Callee::Part(1), envelope(judge));
    }
    (Arc::new(flow), results)
}

fn values(step: usize, judge: Option<&str>) -> Value {
    let (flow, results) = ran(r#"[{"id": 1}, {"id": 2}]"#, judge);
    let plan = flow.root();
    plan.values(&plan.steps[step], &results).unwrap()
}

#[test]
fn mapping_selects_values() {
    assert_eq!(findings(STEPS, ""), [""; 0]);
    assert_eq!(values(0, None), parse(r#"{"text": "hello"}"#));
    assert_eq!(values(1, None), parse(r#"{"ids": [1, 2]}"#));
    assert_eq!(values(6, None), parse(r#"{"id": 1, "text": "hello"}"#));
}

#[test]
fn step_without_a_mapping_passes_the_data() {
    let reader = r#"{"issues": [{"id": 1}, {"id": 2}], "summary": "s"}"#;
    let data = r#"{"score": 1, "summary": "j"}"#;
    let judge = Some(data);
    assert_eq!(values(2, judge), parse(&format!(r#"{{"reader": {reader}, "judge": {}}}"#, data)));
    assert_eq!(values(2, None), parse(&format!(r#"{{"reader": {reader}, "judge": null}}"#)));
    let merged = r#"{"issues": [{"id": 1}, {"id": 2}], "summary": "j", "score": 1, "text": "hello"}"#;
    assert_eq!(values(3, judge), parse(merged));
    assert_eq!(values(4, None), parse(&format!("[{reader}]")));
    assert_eq!(values(5, None), parse(reader));
    assert_eq!(values(5, judge), parse(data));
}

#[test]
fn step_runs_if_a_source_has_a_result_and_the_condition_is_true() {
    let is_selected = |step: usize, issues: &str| {
        let (flow, results) = ran(issues, None);
        flow.root().is_selected(&flow.root().steps[step], &results)
    };
    assert!(is_selected(0, "[]") && is_selected(1, "[1, 2]") && is_selected(2, "[]"));
    assert!(!is_selected(1, "[1]") && !is_selected(7, "[]"));
}

#[test]
fn answer_is_merged_from_the_steps_that_ran() {
    let (flow, results) = ran("[]", None);
    assert_eq!(flow.root().output(&results).unwrap(), Some(parse(r#"{"issues": []}"#)));
    let (flow, results) = ran("[]", Some(r#"{"score": 0.5}"#));
    assert_eq!(flow.root().output(&results).unwrap(), Some(parse(r#"{"issues": [], "score": 0.5}"#)));
    let empty = Results::new(flow.root(), Value::null());
    assert_eq!(flow.root().output(&empty).unwrap(), None);
}

#[test]
fn merge_is_deep_and_the_later_value_wins() {
    let merged =
        |values: &[&str]| crate::results::merge(&values.iter().map(|text| parse(text)).collect::<Vec<_>>());
    for (values, expected) in [
        (
            &[r#"{"a": {"x": 1, "y": [1]}}"#, r#"{"a": {"y": [2], "z": 3}, "b": 4}"#][..],
            r#"{"a": {"x": 1, "y": [2], "z": 3}, "b": 4}"#,
        ),
        (&[r#"{"a": {"x": 1}}"#, r#"{"a": 2}"#, r#"{"a": {"y": 3}}"#], r#"{"a": {"y": 3}}"#),
        (&["1", "{}", "2"], "2"),
        (&[], "{}"),
    ] {
        assert_eq!(merged(values), parse(expected), "{values:?}");
    }
}

#[test]
fn routes_read_the_result_so_far() {
    let composition = "dataflow:
  - {from: input, to: reader, mapping: {text: $.text}}
routing:
  - {condition: $.meta.confidence >= 0.8, next: null}
  - {condition: $.text == 'deep', from: input, next: plain}
  - {next: judge}";
    let flow = checked(composition, "").into_flow().unwrap();
    let plan = flow.root();
    let next = |confidence: f64, text: &str| {
        let mut results = Results::new(plan, parse(&format!(r#"{{"text": "{text}"}}"#)));
        results.set(Callee::Part(0), parse(&format!(r#"{{"meta": {{"confidence": {confidence}}}}}"#)));
        results.set_latest(Callee::Part(0));
        let next = plan.route(&results).unwrap().next;
        (next, next.map(|next| plan.routed_values(next, &results).unwrap()))
    };
    assert_eq!(next(0.9, "x"), (None, None));
    assert_eq!(next(0.5, "deep"), (Some(Callee::Part(1)), Some(parse(r#"{"text": "deep"}"#))));
    assert_eq!(next(0.5, "x").0, Some(Callee::Part(2)));
    let unset = Results::new(plan, Value::null());
    assert_eq!((unset.latest(), plan.route(&unset).unwrap().next), (None, Some(Callee::Part(2))));
}

#[test]
fn rounds_end_when_the_condition_is_true() {
    let composition = "pattern: iterative
iteration: {until: $.data.done, max_rounds: 3}
dataflow:
  - {from: [input, reader.output], to: reader, mapping: {text: $.input.text}}";
    let flow = checked(composition, "").into_flow().unwrap_or_else(|found| panic!("{found:?}"));
    let plan = flow.root();
    let iteration = plan.iteration.as_ref().unwrap();
    let ends = |done: bool| {
        let mut results = Results::new(plan, Value::null());
        results.set(Callee::Part(0), parse(&format!(r#"{{"data": {{"done": {done}}}}}"#)));
        results.set_latest(Callee::Part(0));
        plan.is_accepted(iteration, &results)
    };
    assert!(ends(true) && !ends(false));
}
