mod pairs;

use cog_spec::{Format, Manifest};
use serde_json::{Value, json};

use super::*;
use crate::Rules;

fn contract(document: &Value) -> Contract {
    let manifest = Manifest::with_defaults("test", Format::V22, None);
    Contract::compile(document, &Rules::from(&manifest)).unwrap()
}

fn changes(part: ComparedPart, old: &Value, new: &Value) -> Vec<SchemaChange> {
    let of = |schema: &Value| contract(&json!({ part.name(): schema }));
    of(old).changes_to(&of(new), part)
}

/// Returns `path kind effect example` of each change.
fn lines(part: ComparedPart, old: &Value, new: &Value) -> Vec<String> {
    let effect = |effect| match effect {
        SchemaEffect::None => "none",
        SchemaEffect::Compatible => "compatible",
        SchemaEffect::Breaking => "breaking",
        SchemaEffect::Unknown => "unknown",
    };
    let line = |change: SchemaChange| {
        let example = change.example.map(|example| format!(" {}", example.to_serde())).unwrap_or_default();
        format!("{} {} {}{example}", change.path, change.kind, effect(change.effect))
    };
    changes(part, old, new).into_iter().map(line).collect()
}

fn object(fields: Value) -> Value {
    json!({ "type": "object", "properties": fields, "additionalProperties": false })
}

#[test]
fn input_may_accept_more_and_data_may_be_less() {
    let narrow = object(json!({ "a": { "type": "string", "maxLength": 3 } }));
    let wide = object(json!({ "a": { "type": "string", "maxLength": 4 } }));
    for part in ComparedPart::ALL {
        let (compatible, breaking) = match part {
            ComparedPart::Input => ((&narrow, &wide), (&wide, &narrow)),
            _ => ((&wide, &narrow), (&narrow, &wide)),
        };
        let path = format!("{}.a", part.name());
        assert_eq!(
            lines(part, compatible.0, compatible.1),
            [format!("{path} max_length_changed compatible")]
        );
        let found = changes(part, breaking.0, breaking.1);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].path.as_str(), found[0].effect), (path.as_str(), SchemaEffect::Breaking));
        let example = found[0].example.as_ref().unwrap().to_serde();
        assert_eq!(example["a"].as_str().map(str::len), Some(4), "{example}");
    }
}

#[test]
fn fields_and_their_names_are_separate_changes() {
    let old = object(json!({ "a": { "type": "string" } }));
    let mut new = object(json!({ "a": { "type": "string" }, "b": { "type": "integer" } }));
    assert_eq!(lines(ComparedPart::Input, &old, &new), ["input.b field_added compatible"]);
    new["required"] = json!(["b"]);
    assert_eq!(
        lines(ComparedPart::Input, &old, &new),
        ["input.b field_added compatible", "input.b required_added breaking {}"]
    );
    assert_eq!(
        lines(ComparedPart::Data, &new, &old),
        ["data.b field_removed compatible", "data.b required_removed breaking {}"]
    );
}

#[test]
fn undeclared_field_that_gets_a_type_breaks_those_who_sent_it() {
    let old = json!({ "type": "object" });
    let new = json!({ "type": "object", "properties": { "b": { "type": "integer" } } });
    let found = changes(ComparedPart::Input, &old, &new);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].effect, SchemaEffect::Breaking);
    let example = found[0].example.as_ref().unwrap().to_serde();
    assert!(example.get("b").is_some_and(|b| !b.is_i64()), "{example}");
    assert_eq!(lines(ComparedPart::Data, &old, &new), ["data.b field_added compatible"]);
}

#[test]
fn values_of_an_enum_are_separate_changes() {
    let old = json!({ "enum": ["low", "high"] });
    let new = json!({ "enum": ["low", "none"] });
    assert_eq!(
        lines(ComparedPart::Input, &old, &new),
        [r#"input enum_value_removed breaking "high""#, "input enum_value_added compatible"]
    );
    assert_eq!(
        lines(ComparedPart::Data, &old, &new),
        ["data enum_value_removed compatible", r#"data enum_value_added breaking "none""#]
    );
}

#[test]
fn changes_of_words_and_of_form_have_no_effect() {
    let old = json!({ "type": "object", "properties": { "a": { "type": "integer", "minimum": 1, "maximum": 1, "description": "x" } } });
    let new = json!({ "type": "object", "properties": { "a": { "const": 1, "type": "integer", "description": "y" } } });
    let found = changes(ComparedPart::Data, &old, &new);
    assert!(found.len() == 4 && found.iter().all(|change| change.effect == SchemaEffect::None), "{found:?}");
    assert_eq!(changes(ComparedPart::Data, &old, &old), []);
    let reordered = json!({ "required": ["b", "a"], "type": ["null", "object"] });
    let other = json!({ "type": ["object", "null"], "required": ["a", "b"] });
    assert_eq!(changes(ComparedPart::Data, &reordered, &other), []);
}

#[test]
fn definitions_are_followed_on_both_sides() {
    let document = |limit: u32| {
        json!({
            "$defs": { "Item": { "type": "object", "properties": {
                "size": { "type": "integer", "maximum": limit },
                "inner": { "type": "array", "items": { "$ref": "#/$defs/Item" } },
            } } },
            "input": { "type": "object", "properties": { "items": { "type": "array", "items": { "$ref": "#/$defs/Item" } } } },
        })
    };
    let found = contract(&document(9)).changes_to(&contract(&document(5)), ComparedPart::Input);
    let paths: Vec<_> = found.iter().map(|change| (change.path.as_str(), change.kind.as_str())).collect();
    assert_eq!(paths, [("input.items[].size", "maximum_changed")]);
    assert_eq!(found[0].effect, SchemaEffect::Breaking);
    let example = found[0].example.as_ref().unwrap();
    assert!(contract(&document(9)).check_input(example.node()).is_empty());
    assert!(!contract(&document(5)).check_input(example.node()).is_empty());
}

#[test]
fn part_that_only_one_contract_has_is_compared_with_every_value() {
    let with = contract(&json!({ "error": { "type": "object" } }));
    let without = contract(&json!({}));
    let effect = |old: &Contract, new: &Contract| {
        let found = old.changes_to(new, ComparedPart::Error);
        assert_eq!(found.len(), 1);
        found[0].effect
    };
    assert_eq!(effect(&without, &with), SchemaEffect::Compatible);
    assert_eq!(effect(&with, &without), SchemaEffect::Breaking);
    assert_eq!(without.changes_to(&without, ComparedPart::Error), []);
}

#[test]
fn change_that_others_make_up_for_is_not_breaking() {
    let old = json!({ "anyOf": [{ "type": "integer" }, { "type": "string" }] });
    let new = json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] });
    let found = lines(ComparedPart::Input, &old, &new);
    assert_eq!(found, ["input type_changed none", "input type_changed none"]);
}

#[test]
fn renamed_field_is_two_breaking_changes_of_an_answer() {
    let named = |name: &str| json!({ "type": "object", "properties": { name: { "type": "string" } }, "required": [name], "additionalProperties": false });
    let found = changes(ComparedPart::Data, &named("a"), &named("b"));
    let found: Vec<_> =
        found.iter().map(|change| (change.path.as_str(), change.kind.as_str(), change.effect)).collect();
    assert_eq!(
        found,
        [
            ("data.a", "field_removed", SchemaEffect::Compatible),
            ("data.b", "field_added", SchemaEffect::Breaking),
            ("data.a", "required_removed", SchemaEffect::Breaking),
            ("data.b", "required_added", SchemaEffect::Compatible),
        ]
    );
}

#[test]
fn fields_with_names_from_pointers_and_references_are_found() {
    let old = object(json!({ "a/b~c": { "type": "string" }, "$ref": { "type": "string" } }));
    let new = object(json!({ "a/b~c": { "type": "integer" }, "$ref": { "type": "string", "minLength": 1 } }));
    let found = changes(ComparedPart::Input, &old, &new);
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|change| change.effect == SchemaEffect::Breaking), "{found:?}");
}
