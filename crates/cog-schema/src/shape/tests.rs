use cog_spec::{Format, Manifest, Tier};
use serde_json::json;

use super::*;
use crate::Rules;

fn contract(data: Value) -> Contract {
    let manifest = Manifest::with_defaults("x", Format::V21, None);
    let schema = json!({ "data": data, "$defs": { "Id": { "type": ["string", "integer"] } } });
    Contract::compile(&schema, &Rules::from(&manifest)).unwrap()
}

fn types_of(schema: Value) -> String {
    contract(schema).shape("data").unwrap().types().to_string()
}

#[test]
fn types_follow_the_keywords() {
    for (schema, types) in [
        (json!({}), "any"),
        (json!({ "$ref": "#/$defs/Id" }), "string or integer"),
        (json!({ "enum": ["a", 1, null] }), "string or integer or null"),
        (json!({ "const": 1.5 }), "number"),
        (json!({ "anyOf": [{ "type": "string" }, { "type": "number" }] }), "string or number"),
        (json!({ "type": ["array", "null"], "oneOf": [{ "type": "null" }, {}] }), "array or null"),
        (json!({ "allOf": [{ "type": ["string", "null"] }, { "type": "string" }] }), "string"),
    ] {
        assert_eq!(types_of(schema.clone()), types, "{schema}");
    }
}

#[test]
fn alternatives_that_are_shared_are_read_once() {
    // Each level has ten references to the next one: 10,000 paths lead to the last level.
    let level = |next: usize| json!({ "anyOf": vec![json!({ "$ref": format!("#/$defs/L{next}") }); 10] });
    let schema = json!({
        "data": level(1),
        "$defs": { "L1": level(2), "L2": level(3), "L3": level(4), "L4": { "type": "string" } },
    });
    let manifest = Manifest::with_defaults("x", Format::V21, None);
    let contract = Contract::compile(&schema, &Rules::from(&manifest)).unwrap();
    let id = contract.part("data").unwrap().id;
    let mut known = KnownTypes::default();
    assert_eq!(contract.types(id, &mut known), Types::STRING);
    assert_eq!(known.reads, 4);
}

#[test]
fn long_chain_of_alternatives_has_a_type() {
    let chain = (0..20).fold(json!({ "type": "null" }), |inner, _| json!({ "anyOf": [inner] }));
    assert_eq!(types_of(chain), "null");
}

#[test]
fn members_are_known_any_or_absent() {
    let contract = contract(json!({
        "type": "object",
        "required": ["note"],
        "properties": {
            "open": { "type": "object" },
            "map": { "additionalProperties": { "type": "string" } },
            "closed": { "additionalProperties": false },
            "list": { "items": { "$ref": "#/$defs/Id" } },
            "either": { "anyOf": [{ "properties": { "a": {} } }, { "properties": { "b": { "type": "null" } } }] },
        },
    }));
    let data = contract.shape("data").unwrap();
    let member = |path: &str| {
        path.split('.').fold(Member::Known(data.clone()), |member, name| match member {
            Member::Known(shape) => shape.member(name),
            other => other,
        })
    };
    let show = |path: &str| match member(path) {
        Member::Known(shape) => shape.types().to_string(),
        Member::Any => "unknown".to_owned(),
        Member::Absent => "absent".to_owned(),
    };
    for (path, expected) in [
        ("open", "object"),
        ("open.x", "unknown"),
        ("map.x", "string"),
        ("closed.x", "absent"),
        ("either.b", "null"),
        ("either.c", "absent"),
        ("note", "unknown"),
        ("other", "absent"),
    ] {
        assert_eq!(show(path), expected, "{path}");
    }
    let Member::Known(list) = member("list") else { panic!("no list") };
    assert_eq!(list.elements().unwrap().types().to_string(), "string or integer");
    assert_eq!(data.member_names(), ["open", "map", "closed", "list", "either"]);
    assert_eq!(data.required_names(), ["note"]);
}

#[test]
fn elements_of_a_tuple_are_not_those_after_it() {
    let tuple = json!({ "items": [{ "type": "object" }], "additionalItems": { "type": "string" } });
    assert!(contract(tuple).shape("data").unwrap().elements().is_none());
}

#[test]
fn data_can_have_what_the_specification_adds() {
    let is_absent = |data: Value, tier, name| {
        let manifest = Manifest::with_defaults("x", Format::V22, Some(tier));
        let contract = Contract::compile(&json!({ "data": data }), &Rules::from(&manifest)).unwrap();
        matches!(contract.shape("data").unwrap().member(name), Member::Absent)
    };
    let data = || json!({ "properties": { "a": { "properties": { "b": {} } } } });
    let closed = || json!({ "properties": { "a": {} }, "additionalProperties": false });
    for (data, tier, name, expected) in [
        (data(), Tier::Exec, "rationale", false),
        (data(), Tier::Exec, "extensions", true),
        (data(), Tier::Decision, "extensions", false),
        (data(), Tier::Decision, "other", true),
        (closed(), Tier::Decision, "rationale", true),
        (closed(), Tier::Decision, "extensions", false),
    ] {
        assert_eq!(is_absent(data.clone(), tier, name), expected, "{data} {name}");
    }
    let contract = contract(data());
    let Member::Known(inner) = contract.shape("data").unwrap().member("a") else { panic!("no member") };
    assert!(matches!(inner.member("rationale"), Member::Absent));
}

#[test]
fn recursive_schema_has_types() {
    let schema = json!({ "anyOf": [{ "type": "null" }, { "properties": { "next": { "$ref": "#/data" } } }] });
    let contract = contract(schema);
    let Member::Known(next) = contract.shape("data").unwrap().member("next") else { panic!("no member") };
    assert_eq!(next.types(), Types::ANY);
}

#[test]
fn only_what_applies_to_every_value_is_certain() {
    let manifest = Manifest::with_defaults("x", Format::V21, None);
    let schema = json!({ "data": {
        "required": ["a"],
        "properties": { "a": { "minimum": 1 }, "b": { "anyOf": [{ "const": 1 }, { "type": "null" }] } },
        "allOf": [{ "properties": { "a": { "type": "integer" } } }],
        "anyOf": [{ "required": ["c"], "properties": { "a": { "const": 7 } } }, {}],
    }});
    let contract = Contract::compile(&schema, &Rules::from(&manifest)).unwrap();
    let data = contract.shape("data").unwrap().certain();
    assert!(data.requires("a") && !data.requires("c"));
    let a = data.member("a");
    assert_eq!(a.types(), Types::INTEGER);
    assert_eq!(a.schemas().filter(|schema| schema.get("const").is_some()).count(), 0);
    assert_eq!(a.schemas().filter(|schema| schema.get("minimum").is_some()).count(), 1);
    let b = data.member("b").alternatives();
    assert_eq!(b[0].iter().map(CertainShape::types).collect::<Vec<_>>(), [Types::INTEGER, Types::NULL]);
    assert_eq!(data.member("other").types(), Types::ANY);
}

#[test]
fn listed_values_are_those_of_an_enum_that_certainly_applies() {
    let manifest = Manifest::with_defaults("x", Format::V21, None);
    let listed = |data: Value| {
        let contract = Contract::compile(&json!({ "data": data }), &Rules::from(&manifest)).unwrap();
        let values = contract.shape("data").unwrap().listed_values();
        values.map(|values| values.into_iter().cloned().collect::<Vec<_>>())
    };
    assert_eq!(listed(json!({ "enum": ["a", 1] })), Some(vec![json!("a"), json!(1)]));
    assert_eq!(listed(json!({ "allOf": [{ "enum": ["a"] }] })), Some(vec![json!("a")]));
    assert_eq!(listed(json!({ "anyOf": [{ "enum": ["a"] }] })), None);
    assert_eq!(listed(json!({ "type": "string" })), None);
}
