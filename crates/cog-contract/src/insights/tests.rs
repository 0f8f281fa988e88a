use cog_json::Value;
use serde_json::{Value as Json, json};

use super::*;

fn counted(envelopes: impl IntoIterator<Item = Json>) -> Insights {
    let mut insights = Insights::new("custom");
    for envelope in envelopes {
        let envelope = Value::from(envelope);
        insights.add(Run { input: None, envelope: envelope.node() });
    }
    insights
}

fn answer(data: Json) -> Json {
    json!({ "ok": true, "meta": {}, "data": data })
}

fn custom(value: &str) -> Json {
    answer(json!({ "items": [{ "queue": { "custom": value, "reason": "New." } }, { "queue": "other" }] }))
}

#[test]
fn custom_values_are_counted_by_path_once_per_answer() {
    let twice = answer(json!({ "items": [
        { "queue": { "custom": "sales", "reason": "A" } },
        { "queue": { "custom": "sales", "reason": "B" } },
    ] }));
    let envelopes = (0..6).map(|_| custom("sales")).chain([twice]).chain((0..3).map(|_| custom("legal")));
    let proposals = counted(envelopes).proposals(5, None);
    let [only] = proposals.as_slice() else { panic!("{proposals:?}") };
    assert_eq!(
        (only.kind, only.path.as_str(), only.count, only.cases),
        (ProposalKind::EnumValue, "data.items[].queue", 7, 10)
    );
    assert_eq!(only.value, Some(json!("sales")));
    assert_eq!(only.reasons, ["New.", "A"]);
    // The interval of Wilson for 7 of 10, from a table.
    assert!(
        (only.interval.low - 0.3968).abs() < 1e-4 && (only.interval.high - 0.8922).abs() < 1e-4,
        "{:?}",
        only.interval
    );
}

#[test]
fn nothing_is_proposed_from_too_few_cases() {
    assert_eq!(counted((0..4).map(|_| custom("sales"))).proposals(5, None), []);
    let same = |count: u64| counted((0..count).map(|_| answer(json!({ "language": "en" }))));
    assert_eq!(same(MIN_CONSTANT - 1).proposals(5, None), []);
    assert_eq!(same(MIN_CONSTANT).proposals(5, None).len(), 1);
}

#[test]
fn insights_are_counted_by_what_they_suggest() {
    let insight = |mapping: &str, text: &str| {
        answer(json!({ "extensions": { "insights": [{ "text": text, "suggested_mapping": mapping }] } }))
    };
    let insights = counted([
        insight("data.pages", "3"),
        insight("pages", "12"),
        insight("$.data.pages", "7"),
        insight("not a path", "7"),
        insight("data.tone", "angry"),
        insight("data.tone", "calm"),
    ]);
    let proposals = insights.proposals(2, None);
    let found: Vec<_> =
        proposals.iter().map(|one| (one.path.as_str(), one.value.clone().unwrap(), one.count)).collect();
    assert_eq!(
        found,
        [("data.pages", json!({ "type": "integer" }), 3), ("data.tone", json!({ "type": "string" }), 2)]
    );
}

#[test]
fn refused_inputs_propose_a_bound_that_accepts_them() {
    let envelope = |path: &str, rule: &str| {
        let violations = json!([{ "path": path, "rule": rule, "message": "" }]);
        json!({ "ok": false, "error": { "code": "E1001", "details": { "violations": violations } } })
    };
    let mut insights = Insights::new("custom");
    for length in [12, 20, 15] {
        let input = Value::from(json!({ "lines": ["a", "x".repeat(length)] }));
        let envelope = Value::from(envelope("input.lines[1]", "maxLength"));
        insights.add(Run { input: Some(input.node()), envelope: envelope.node() });
    }
    let other = Value::from(envelope("input.lines[0]", "pattern"));
    (0..4).for_each(|_| insights.add(Run { input: None, envelope: other.node() }));
    let proposals = insights.proposals(3, None);
    let found: Vec<_> =
        proposals.iter().map(|one| (one.kind, one.path.as_str(), one.value.clone(), one.count)).collect();
    assert_eq!(
        found,
        [
            (ProposalKind::Bound, "input.lines[]", None, 4),
            (ProposalKind::Bound, "input.lines[]", Some(json!({ "maxLength": 20 })), 3),
        ]
    );
    assert_eq!(insights.report(3, None).codes(), [("E1001", 7)]);
}

#[test]
fn violations_repairs_and_empty_fields_propose_sentences() {
    let failed = json!({ "ok": false, "meta": {}, "error": { "code": "E3002", "details": { "violations": [{ "path": "data.queue", "rule": "enum" }] } } });
    let repaired = json!({ "ok": true, "meta": { "repairs": [{ "rule": "cut_text", "path": "meta.explain" }] }, "data": { "note": null } });
    let proposals = counted((0..30).flat_map(|_| [failed.clone(), repaired.clone()])).proposals(5, None);
    let mut found: Vec<_> =
        proposals.iter().map(|one| (one.kind.as_str(), one.path.as_str(), one.cases)).collect();
    found.sort_unstable();
    assert_eq!(
        found,
        [("prompt", "data.note", 30), ("prompt", "data.queue", 60), ("prompt", "meta.explain", 60)]
    );
}

#[test]
fn memory_is_bounded_by_the_counters() {
    let insights = counted(
        (0..20_000).map(|number| answer(json!({ format!("field{number}"): number, "x": "y".repeat(500) }))),
    );
    let report = insights.report(5, None);
    assert!(report.is_incomplete());
    assert_eq!(report.proposals(), []);
}

const SCHEMA: &str = r##"{
  "$defs": { "Queue": { "enum": [
    "billing",
    "other"
  ] } },
  "input": {},
  "data": {
    "properties": {
      "queue": { "$ref": "#/$defs/Queue" },
      "kind": {"anyOf": [{"enum": ["a", "b"]}, {"type": "object"}]},
      "items": { "type": "array", "maxItems": 9, "items": { "properties": {} } },
      "text\/~": { "type": "string", "enum": [ "\"]" ] }
    }
  }
}
"##;

fn proposal(kind: ProposalKind, path: &str, value: Json) -> Proposal {
    let interval = cog_trust::interval::Interval::UNKNOWN;
    Proposal {
        kind,
        path: path.to_owned(),
        value: Some(value),
        count: 5,
        cases: 5,
        share: 1.0,
        interval,
        reasons: Vec::new(),
    }
}

#[test]
fn edits_keep_the_rest_of_the_text() {
    for (kind, path, value, from, to) in [
        (
            ProposalKind::EnumValue,
            "data.queue",
            json!("sales"),
            "    \"other\"\n",
            "    \"other\",\n    \"sales\"\n",
        ),
        (ProposalKind::EnumValue, "data.kind", json!("c"), "[\"a\", \"b\"]", "[\"a\", \"b\", \"c\"]"),
        (ProposalKind::EnumValue, "data.text/~", json!("é\"]"), "[ \"\\\"]\" ]", "[ \"\\\"]\", \"é\\\"]\" ]"),
        (
            ProposalKind::Field,
            "data.items[].line",
            json!({ "type": "integer" }),
            "\"properties\": {} }",
            "\"properties\": {\"line\": { \"type\": \"integer\" }} }",
        ),
        (
            ProposalKind::Bound,
            "data.items",
            json!({ "maxItems": 20 }),
            "\"maxItems\": 9,",
            "\"maxItems\": 20,",
        ),
        (
            ProposalKind::Bound,
            "data.kind",
            json!({ "const": "a" }),
            "{\"type\": \"object\"}]}",
            "{\"type\": \"object\"}], \"const\": \"a\"}",
        ),
        (
            ProposalKind::Field,
            "data.tone",
            json!({ "type": "string" }),
            "[ \"\\\"]\" ] }\n",
            "[ \"\\\"]\" ] },\n      \"tone\": { \"type\": \"string\" }\n",
        ),
    ] {
        let edited = apply(SCHEMA, &proposal(kind, path, value)).unwrap();
        assert_eq!(edited.text, SCHEMA.replacen(from, to, 1), "{path}");
    }
}

#[test]
fn what_has_no_place_is_refused() {
    let refused = |kind, path| apply(SCHEMA, &proposal(kind, path, json!("x"))).unwrap_err().to_string();
    assert_eq!(refused(ProposalKind::EnumValue, "data.items"), "the schema has no enum for `data.items`");
    assert_eq!(refused(ProposalKind::EnumValue, "data.none"), "the schema has no field for `data.none`");
    assert_eq!(
        refused(ProposalKind::Field, "data.queue.x"),
        "the schema has no `properties` for `data.queue.x`"
    );
    assert_eq!(refused(ProposalKind::Prompt, "data.queue"), "it does not say what to write");
    let broken = apply("{", &proposal(ProposalKind::EnumValue, "data.queue", json!("x")));
    assert_eq!(broken, Err(ApplyError::Syntax));
}

#[test]
fn unusual_text_keeps_its_form() {
    let text = "{\r\n\t\"data\" : {\"properties\":{\"a\":{\"enum\":[]}, \"a\" : {\"enum\"\n:[\n\n\"x\"\n\n]}}},\r\n\t\"input\": {}\r\n}";
    let edited = apply(text, &proposal(ProposalKind::EnumValue, "data.a", json!("y"))).unwrap();
    assert_eq!(edited.text, text.replace("\"x\"", "\"x\",\n\n\"y\""), "the last of equal names counts");
    let edited = apply(text, &proposal(ProposalKind::Field, "data.b", json!({ "type": "null" }))).unwrap();
    assert_eq!(edited.text, text.replace("]}}},", "]}, \"b\": { \"type\": \"null\" }}},"));
    for broken in ["", "[]", "// a comment\n{}", "\u{feff}{}", "{\"data\": {}, }"] {
        assert!(apply(broken, &proposal(ProposalKind::EnumValue, "data.a", json!("y"))).is_err(), "{broken}");
    }
}

#[test]
fn value_that_one_alternative_lists_is_not_proposed_again() {
    let schema = json!({
        "input": {},
        "data": { "properties": {
            "queue": { "oneOf": [{ "enum": ["other", "sales"] }, { "type": "object" }] },
            "rationale": { "type": "string" }
        } }
    });
    let module = cog_module::ModuleFiles::default()
        .with("module.yaml", "name: m\nversion: 1.0.0\nresponsibility: r\ntier: decision\nexcludes: []\n")
        .with("prompt.md", "Sort.\n")
        .with("schema.json", schema.to_string())
        .load()
        .unwrap();
    let answers = |value: &str| {
        (0..6).map(|_| answer(json!({ "queue": { "custom": value, "reason": "r" } }))).collect::<Vec<_>>()
    };
    assert_eq!(counted(answers("sales")).proposals(5, Some(&module)), []);
    assert_eq!(counted(answers("legal")).proposals(5, Some(&module)).len(), 1);
}
