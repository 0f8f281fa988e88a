//! A projection accepts the values that the contract accepts, or its losses state what is narrower.

use fastrand::Rng;
use jsonschema::Draft;
use serde_json::Map;

use super::*;

const SCHEMAS: u64 = 150;
const VALUES: usize = 24;
const NAMES: [&str; 3] = ["a", "b", "c"];

#[test]
fn projections_accept_valid_values_or_report_a_loss() {
    let mut accepted = 0;
    for seed in 0..SCHEMAS {
        let rng = &mut Rng::with_seed(seed);
        let schema = schema(rng, 3);
        let Some(contract) = contract_for(&schema) else { continue };
        let values: Vec<Value> = (0..VALUES).map(|_| value(rng, 3)).collect();
        let samples = (0..8).filter_map(|seed| Some(contract.sample(seed)?.to_serde().get("v")?.clone()));
        let values: Vec<Value> = values.into_iter().chain(samples).collect();
        for dialect in WITH_SCHEMA {
            accepted += accepted_by(dialect, &contract, &schema, &values);
        }
    }
    assert!(accepted > 5_000, "{accepted}");
}

/// Returns how many values a projection accepts. Panics if it refuses a valid one without a loss.
fn accepted_by(dialect: Dialect, contract: &Contract, schema: &Value, values: &[Value]) -> usize {
    let projection = contract.project(dialect);
    if projection.dialect != dialect {
        let reason = &projection.lost[0].reason;
        assert!(reason.starts_with(&format!("{dialect}: ")), "{reason}");
        return 0;
    }
    let closed = matches!(dialect, Dialect::OpenAiStrict | Dialect::Anthropic).then(|| closed(schema));
    let closed = closed.map(|schema| contract_for(&schema).expect("closing a schema keeps it valid"));
    let sent = sent_validator(&projection);
    let is_narrower = |loss: &Loss| {
        let is_own = loss.pointer.starts_with("/data/properties/v") || loss.pointer.starts_with("/$defs");
        is_own && (loss.kind == LossKind::Projected || loss.reason.contains("not sent"))
    };
    let is_reported = projection.lost.iter().any(is_narrower);
    let mut accepted = 0;
    for value in values.iter().filter(|value| is_valid(closed.as_ref().unwrap_or(contract), value)) {
        let is_accepted = sent.is_valid(value);
        accepted += usize::from(is_accepted);
        let shown = || format!("{dialect} refuses {value}\nof {schema}\nas {}", data_of(&projection));
        assert!(is_accepted || is_reported, "{}", shown());
    }
    accepted
}

fn contract_for(schema: &Value) -> Option<Contract> {
    let data = json!({
        "type": "object",
        "required": ["rationale", "v"],
        "properties": { "rationale": { "type": "string" }, "v": schema },
    });
    let rules = Rules::from(&Manifest::with_defaults("test", Format::V22, Some(Tier::Decision)));
    let node = json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" }, "next": { "$ref": "#/$defs/Node" } } });
    Contract::compile(&json!({ "data": data, "$defs": { "Node": node } }), &rules).ok()
}

fn is_valid(contract: &Contract, value: &Value) -> bool {
    let data = Tree::from(json!({ "rationale": "r", "v": value }));
    contract.check_data(data.node()).violations.is_empty()
}

fn sent_validator(projection: &Projection) -> jsonschema::Validator {
    let root = projection.schema.as_ref().unwrap();
    let field = &data_of(projection)["properties"]["v"];
    let schema = json!({ "allOf": [field], "$defs": root.get("$defs").cloned().unwrap_or(json!({})) });
    let draft = match projection.dialect {
        Dialect::Gemini | Dialect::JsonSchema => Draft::Draft202012,
        _ => Draft::Draft7,
    };
    jsonschema::options().with_draft(draft).should_validate_formats(true).build(&schema).unwrap()
}

/// Returns a schema whose objects have only the members that they name.
fn closed(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => {
            let mut members: Map<String, Value> =
                members.iter().map(|(name, value)| (name.clone(), closed(value))).collect();
            if members.get("properties").is_some_and(Value::is_object) {
                members.entry("additionalProperties").or_insert(json!(false));
            }
            Value::Object(members)
        }
        Value::Array(items) => items.iter().map(closed).collect(),
        other => other.clone(),
    }
}

fn value(rng: &mut Rng, depth: usize) -> Value {
    match rng.u8(..if depth > 0 { 10 } else { 8 }) {
        0 => Value::Null,
        1 => json!(rng.bool()),
        2..=3 => json!(rng.i32(-3..6)),
        4 => json!(f64::from(rng.i32(-9..9)) / 4.0),
        5 => json!("2026-01-31"),
        6..=7 => json!(rng.choice(["", "a", "ab", "abc-12", "x 1", "AB1"]).unwrap()),
        8 => (0..rng.usize(..4)).map(|_| value(rng, depth - 1)).collect(),
        _ => {
            let names: Vec<&str> = NAMES.into_iter().filter(|_| rng.bool()).collect();
            Value::Object(names.into_iter().map(|name| (name.to_owned(), value(rng, depth - 1))).collect())
        }
    }
}

fn schema(rng: &mut Rng, depth: usize) -> Value {
    match rng.u8(..if depth > 0 { 14 } else { 6 }) {
        0 => json!({}),
        1 => json!({ "enum": (0..rng.usize(1..4)).map(|_| value(rng, 0)).collect::<Vec<_>>() }),
        2..=5 => scalar(rng),
        6..=7 => array(rng, depth - 1),
        8..=9 => object(rng, depth - 1),
        10 => json!({ "anyOf": [schema(rng, depth - 1), schema(rng, depth - 1)] }),
        11 => json!({ "oneOf": [{ "type": "string" }, schema(rng, depth - 1)] }),
        12 => json!({ "allOf": [schema(rng, depth - 1), { "not": { "const": "ab" } }] }),
        _ => json!({ "$ref": "#/$defs/Node" }),
    }
}

fn scalar(rng: &mut Rng) -> Value {
    let low = json!(rng.u8(..3));
    let high = json!(rng.u16(3..3_000));
    let pattern = json!(pattern(rng));
    match rng.u8(..4) {
        0 => limited(rng, "string", &[("minLength", low), ("maxLength", high)]),
        1 => limited(rng, "integer", &[("minimum", low), ("maximum", high)]),
        2 => limited(rng, "number", &[("exclusiveMinimum", json!(-1)), ("multipleOf", json!(0.5))]),
        _ => limited(rng, "string", &[("pattern", pattern), ("format", json!("date"))]),
    }
}

fn pattern(rng: &mut Rng) -> &'static str {
    rng.choice([r"^\w+$", "[a-c]", "^(?:ab|abc-[0-9]{2})$", "^a|1$", r"^\S+?\d$", "^[^x]*$"]).unwrap()
}

/// Returns a schema with some of these keywords, sometimes without a type or with another one.
fn limited(rng: &mut Rng, kind: &str, keywords: &[(&str, Value)]) -> Value {
    let mut schema = match rng.u8(..4) {
        0 => json!({}),
        1 => json!({ "type": [kind, "null"] }),
        _ => json!({ "type": kind }),
    };
    for (keyword, value) in keywords.iter().filter(|_| rng.bool()) {
        schema[keyword] = value.clone();
    }
    schema
}

fn array(rng: &mut Rng, depth: usize) -> Value {
    let further = [json!(false), schema(rng, depth)];
    let keywords = [
        ("items", schema(rng, depth)),
        ("items", json!([schema(rng, depth), schema(rng, depth)])),
        ("additionalItems", rng.choice(further).unwrap()),
        ("minItems", json!(rng.u8(..3))),
        ("maxItems", json!(rng.u8(2..4))),
        ("uniqueItems", json!(true)),
    ];
    limited(rng, "array", &keywords)
}

fn object(rng: &mut Rng, depth: usize) -> Value {
    let names: Vec<&str> = NAMES.into_iter().filter(|_| rng.bool()).collect();
    let properties: Map<String, Value> =
        names.into_iter().map(|name| (name.to_owned(), schema(rng, depth))).collect();
    let required: Vec<&str> = NAMES.into_iter().filter(|_| rng.u8(..3) == 0).collect();
    let further = [json!(false), json!(true), schema(rng, depth)];
    let keywords = [
        ("properties", Value::Object(properties)),
        ("required", json!(required)),
        ("additionalProperties", rng.choice(further).unwrap()),
        ("patternProperties", json!({ "^c": { "type": "integer" } })),
    ];
    limited(rng, "object", &keywords)
}
