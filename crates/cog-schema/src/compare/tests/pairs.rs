//! 500 pairs of schemas against a sampler that knows nothing of the comparison.

use cog_json::Value as Tree;
use fastrand::Rng;

use super::*;

/// Returns a schema as modules have them.
fn schema(rng: &mut Rng, depth: usize) -> Value {
    let kinds = if depth == 0 { 6 } else { 11 };
    match rng.usize(..kinds) {
        0 => text(rng),
        1 => json!({ "enum": some_of(rng, &["low", "medium", "high", "none"]) }),
        2 | 3 => number(rng),
        4 => json!({ "type": "boolean" }),
        5 => json!({ "type": ["string", "null"], "maxLength": rng.u8(1..6) }),
        6 => list(rng, depth),
        7 => json!({ "anyOf": [schema(rng, depth - 1), schema(rng, depth - 1)] }),
        8 => json!({ "oneOf": [{ "type": "null" }, schema(rng, depth - 1)] }),
        _ => object(rng, depth),
    }
}

fn text(rng: &mut Rng) -> Value {
    let mut schema = json!({ "type": "string" });
    match rng.u8(..5) {
        0 => schema["minLength"] = json!(rng.u8(..3)),
        1 => schema["maxLength"] = json!(rng.u8(2..6)),
        2 => schema["pattern"] = json!(*rng.choice(&["^[a-z]+$", "^[a-z0-9]+$", "[0-9]", "^x"]).unwrap()),
        3 => schema["format"] = json!(*rng.choice(&["date", "email", "uuid", "duration", "uri"]).unwrap()),
        _ => {}
    }
    schema
}

fn number(rng: &mut Rng) -> Value {
    let mut schema = json!({ "type": *rng.choice(&["integer", "number"]).unwrap() });
    if rng.bool() {
        schema["minimum"] = json!(rng.i8(-3..3));
    }
    if rng.bool() {
        schema[*rng.choice(&["maximum", "exclusiveMaximum"]).unwrap()] = json!(rng.i8(3..9));
    }
    if rng.u8(..6) == 0 {
        schema["multipleOf"] = json!(rng.u8(1..4));
    }
    schema
}

fn list(rng: &mut Rng, depth: usize) -> Value {
    let mut list = json!({ "type": "array", "items": schema(rng, depth - 1) });
    match rng.u8(..4) {
        0 => list["minItems"] = json!(rng.u8(..3)),
        1 => list["maxItems"] = json!(rng.u8(1..4)),
        2 => list["uniqueItems"] = json!(true),
        _ => {}
    }
    list
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

fn object(rng: &mut Rng, depth: usize) -> Value {
    let mut fields = Map::new();
    for name in some_of(rng, &NAMES) {
        fields.insert(name, schema(rng, depth - 1));
    }
    let all: Vec<&str> = fields.keys().map(String::as_str).collect();
    let required = some_of(rng, &all);
    let mut object = json!({ "type": "object", "required": required, "properties": fields });
    match rng.u8(..5) {
        0 | 1 => object["additionalProperties"] = json!(false),
        2 => object["additionalProperties"] = schema(rng, 0),
        _ => {}
    }
    if rng.u8(..12) == 0 {
        object["if"] = json!({ "required": ["a"] });
        object["then"] = json!({ "required": ["b"] });
    }
    object
}

fn some_of(rng: &mut Rng, all: &[&str]) -> Vec<String> {
    let mut some: Vec<String> = all.iter().filter(|_| rng.bool()).map(|one| (*one).to_owned()).collect();
    if some.is_empty() {
        some.extend(all.first().map(|one| (*one).to_owned()));
    }
    some
}

/// Replaces one schema in a schema, or one of its keywords.
fn edited(rng: &mut Rng, schema: &Value) -> Value {
    let mut places = vec![String::new()];
    let mut next = 0;
    while let Some(place) = places.get(next).cloned() {
        let at = schema.pointer(&place).unwrap();
        places.extend(crate::subschema::children(at).iter().map(|child| format!("{place}{}", child.pointer)));
        next += 1;
    }
    let place = rng.choice(&places).unwrap().clone();
    let mut edited = schema.clone();
    let slot = edited.pointer_mut(&place).unwrap();
    match slot.as_object_mut() {
        Some(members) if rng.u8(..4) > 0 && !members.is_empty() => {
            let keys: Vec<String> = members.keys().cloned().collect();
            let key = rng.choice(&keys).unwrap().clone();
            change_keyword(rng, members, &key);
        }
        _ => *slot = super::pairs::schema(rng, 1),
    }
    edited
}

fn change_keyword(rng: &mut Rng, members: &mut Map<String, Value>, key: &str) {
    let value = match (key, members.get(key)) {
        ("required", _) => json!(some_of(rng, &NAMES)),
        ("enum", _) => json!(some_of(rng, &["low", "medium", "high", "none", "other"])),
        ("properties", Some(Value::Object(fields))) => {
            let mut fields = fields.clone();
            let name = *rng.choice(&NAMES).unwrap();
            match rng.bool() {
                true => drop(fields.insert(name.to_owned(), schema(rng, 1))),
                false => drop(fields.shift_remove(name)),
            }
            Value::Object(fields)
        }
        ("additionalProperties", _) => json!(rng.bool()),
        (_, Some(Value::Number(limit))) if limit.is_i64() => {
            json!(limit.as_i64().unwrap() + if rng.bool() { 1 } else { 2 })
        }
        ("type", Some(Value::String(kind))) if kind != "null" => json!([members["type"], "null"]),
        _ => {
            members.shift_remove(key);
            return;
        }
    };
    members.insert(key.to_owned(), value);
}

/// Returns a value that has something to do with a schema.
fn value(rng: &mut Rng, schema: &Value, depth: usize) -> Value {
    if depth == 0 || rng.u8(..12) == 0 {
        return anything(rng);
    }
    if let Some(all) = schema.get("enum").and_then(Value::as_array) {
        return rng.choice(all).unwrap().clone();
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(all) = schema.get(keyword).and_then(Value::as_array) {
            let branch = rng.choice(all).unwrap();
            return value(rng, branch, depth);
        }
    }
    let kind = match &schema["type"] {
        Value::Array(kinds) => rng.choice(kinds).unwrap().as_str().unwrap(),
        kind => kind.as_str().unwrap_or("object"),
    };
    match kind {
        "string" => json!(
            *rng.choice(&[
                "",
                "a",
                "ab",
                "abc",
                "abcd",
                "x1",
                "1",
                "xyzab",
                "abcdefg",
                "2024-02-29",
                "2024-02-30",
                "a@b.co",
                "P1D",
                "http://a.b/",
                "8f7d1b1e-9d7f-4f5a-8c1f-0a1b2c3d4e5f",
            ])
            .unwrap()
        ),
        "integer" => json!(rng.i8(-5..11)),
        "number" => json!(f64::from(rng.i8(-10..22)) / 2.0),
        "boolean" => json!(rng.bool()),
        "null" => Value::Null,
        "array" => (0..rng.usize(..5)).map(|_| value(rng, &schema["items"], depth - 1)).collect(),
        _ => {
            let mut object = Map::new();
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            for name in NAMES {
                let is_wanted = required.contains(&json!(name)) && rng.u8(..8) > 0;
                let field = schema.get("properties").and_then(|fields| fields.get(name));
                if is_wanted || rng.u8(..3) == 0 {
                    object.insert(name.to_owned(), value(rng, field.unwrap_or(&Value::Null), depth - 1));
                }
            }
            Value::Object(object)
        }
    }
}

fn anything(rng: &mut Rng) -> Value {
    let all = [
        json!(null),
        json!(0),
        json!(4),
        json!(2.5),
        json!("low"),
        json!("abc"),
        json!([]),
        json!({}),
        json!(["a"]),
    ];
    rng.choice(&all).unwrap().clone()
}

const PAIRS: u64 = 500;

#[test]
fn nothing_that_a_sampler_refutes_is_compatible() {
    let (mut unknown, mut breaking, mut compatible, mut missed) = (0_u64, 0_u64, 0_u64, 0_u64);
    for seed in 0..PAIRS {
        let mut rng = Rng::with_seed(seed);
        let old = object(&mut rng, 3);
        let edits = rng.usize(1..4);
        let new = if rng.u8(..6) == 0 {
            object(&mut rng, 3)
        } else {
            (0..edits).fold(old.clone(), |schema, _| edited(&mut rng, &schema))
        };
        let contracts = [&old, &new].map(|schema| contract(&json!({ "input": schema })));
        let found = contracts[0].changes_to(&contracts[1], ComparedPart::Input);
        let accepts = |index: usize, value: &Tree| contracts[index].check_input(value.node()).is_empty();
        for example in found.iter().filter_map(|change| change.example.as_ref()) {
            assert!(accepts(0, example) && !accepts(1, example), "{seed}: {}", example.to_serde());
        }
        let mut attack = (0..250).map(|_| {
            let side = if rng.bool() { &old } else { &new };
            Tree::from(value(&mut rng, side, 5))
        });
        let refutation = attack.find(|value| accepts(0, value) && !accepts(1, value));
        let has = |effect| found.iter().any(|change| change.effect == effect);
        if has(SchemaEffect::Breaking) {
            breaking += 1;
        } else if has(SchemaEffect::Unknown) {
            unknown += 1;
            missed += u64::from(refutation.is_some());
        } else {
            compatible += 1;
            assert!(
                refutation.is_none(),
                "{seed}: {old}\n{new}\n{:?}",
                refutation.map(|value| value.to_serde())
            );
        }
    }
    println!(
        "{breaking} breaking, {compatible} compatible, {unknown} unknown, of which {missed} are breaking"
    );
    assert!(unknown * 100 <= PAIRS * 15, "{unknown} of {PAIRS} are unknown");
    assert!(breaking > PAIRS / 10 && compatible > PAIRS / 10, "{breaking} breaking, {compatible} compatible");
}
