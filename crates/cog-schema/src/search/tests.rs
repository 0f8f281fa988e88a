use std::collections::BTreeSet;
use std::sync::LazyLock;

use cog_json::Value as Tree;
use cog_spec::{Format, Manifest};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::Rules;
use crate::engine::differential::{schemas, value};

/// Returns a contract with this data schema, which can refer to itself as `#/s`.
pub(crate) fn contract(schema: Value) -> Contract {
    let rules = Rules::from(&Manifest::with_defaults("test", Format::V1, None));
    Contract::compile(&json!({ "output": schema, "s": schema }), &rules).unwrap()
}

fn errors(contract: &Contract, value: &Tree) -> Vec<EngineError> {
    contract.errors(contract.data.as_ref().unwrap().id, value.node())
}

/// `{"a": {"a": … leaf … }}`.
fn nested(depth: usize, leaf: &str) -> Tree {
    Tree::parse(&format!("{}{leaf}{}", r#"{"a": "#.repeat(depth), "}".repeat(depth))).unwrap()
}

/// Returns schemas in which two paths lead from each level of a value to the next.
fn forks() -> Vec<Value> {
    let node =
        |more: Value| json!({ "type": "object", "properties": { "a": { "$ref": "#/s" } }, "required": more });
    let one = node(json!(["a"]));
    let other = node(json!([]));
    vec![
        json!({ "anyOf": [one, other] }),
        json!({ "oneOf": [one, { "allOf": [other, { "maxProperties": 0 }] }] }),
        json!({ "allOf": [one, other] }),
        json!({ "not": { "not": { "anyOf": [one, other] } } }),
        json!({ "if": one, "then": other, "else": { "anyOf": [one, other] } }),
        json!({ "dependencies": { "a": one }, "anyOf": [other, one] }),
        json!({ "patternProperties": { "^a": { "$ref": "#/s" } }, "anyOf": [one, other] }),
    ]
}

/// Returns definitions that refer to the next one in two ways, without recursion.
fn ladder(rungs: usize) -> Value {
    let rung = |next: usize| {
        let inner = json!({ "properties": { "a": { "$ref": format!("#/output/$defs/r{next}") } } });
        json!({ "anyOf": [inner, { "allOf": [inner] }] })
    };
    let mut rungs: serde_json::Map<_, _> = (0..rungs).map(|at| (format!("r{at}"), rung(at + 1))).collect();
    rungs.insert(format!("r{}", rungs.len()), json!({ "type": "string" }));
    json!({ "allOf": [{ "$ref": "#/output/$defs/r0" }], "$defs": rungs })
}

#[test]
fn forks_at_every_level_take_bounded_time() {
    for schema in forks() {
        let contract = contract(schema.clone());
        let found = errors(&contract, &nested(100, "7"));
        assert!(!found.is_empty() && found.len() <= MAX_VIOLATIONS, "{schema}");
        assert!(!contract.check_data(nested(100, "7").node()).violations.is_empty(), "{schema}");
    }
}

#[test]
fn ladder_of_definitions_takes_bounded_time() {
    let contract = contract(ladder(60));
    assert_eq!(errors(&contract, &nested(60, r#""leaf""#)), []);
    assert_eq!(contract.check_data(nested(60, r#""leaf""#).node()).violations, []);
    let violations = contract.check_data(nested(60, "7").node()).violations;
    assert_eq!(violations.len(), 1);
    assert_eq!(violations[0].path, format!("data{}", ".a".repeat(60)));
}

#[test]
fn error_deep_in_a_tree_has_its_path() {
    let node = |kind: &str| {
        json!({
            "properties": { "kind": { "const": kind }, "a": { "$ref": "#/s" }, "size": { "type": "integer" } },
            "required": ["kind"],
        })
    };
    let contract = contract(json!({ "anyOf": [node("leaf"), node("fork")] }));
    let start = r#"{"kind": "fork", "a": "#;
    let text = format!(r#"{}{{"kind": "leaf", "size": "big"}}{}"#, start.repeat(60), "}".repeat(60));
    let violations = contract.check_data(Tree::parse(&text).unwrap().node()).violations;
    let found: Vec<_> = violations.iter().map(|one| (one.path.clone(), one.rule.as_str())).collect();
    assert_eq!(found, [(format!("data{}.size", ".a".repeat(60)), "type")]);
}

/// Collects pointer and keyword of each error, including the errors of alternatives.
fn flat(base: &str, errors: &[EngineError], into: &mut BTreeSet<(String, String)>) {
    for error in errors {
        let at = format!("{base}{}", error.at);
        if let Reason::NoBranch(branches) = &error.reason {
            branches.iter().for_each(|branch| flat(&at, branch, into));
        }
        into.insert((at, error.keyword.clone()));
    }
}

fn flattened(errors: &[EngineError]) -> BTreeSet<(String, String)> {
    let mut flattened = BTreeSet::new();
    flat("", errors, &mut flattened);
    flattened
}

/// Compiled once: a property has many cases.
static CONTRACTS: LazyLock<Vec<Contract>> =
    LazyLock::new(|| schemas().into_iter().chain(forks()).map(contract).collect());

proptest! {
    #[test]
    fn search_agrees_with_the_engine(value in value()) {
        let tree = Tree::from(&value);
        for contract in CONTRACTS.iter() {
            let schema = contract.document();
            let id = contract.data.as_ref().unwrap().id;
            let engine = contract.check_of(id).unwrap();
            let search = Search::new(contract);
            prop_assert_eq!(search.fits(id, tree.node()), engine.accepts(tree.node()), "{}", schema);
            let ours = flattened(&search.list(id, tree.node()));
            let theirs = flattened(&engine.errors(tree.node()));
            prop_assert_eq!(ours, theirs, "{}", schema);
        }
    }
}

/// Returns nested schemas, the last of which refers to the first.
fn spiral(turns: usize) -> Value {
    let refer = |turn: usize| json!({ "$ref": format!("#/output/$defs/r{turn}") });
    let turn = |at: usize| (format!("r{at}"), json!({ "allOf": [refer(at + 1)] }));
    let mut definitions: serde_json::Map<_, _> = (0..turns).map(turn).collect();
    definitions.insert(format!("r{turns}"), json!({ "type": "object", "properties": { "a": refer(0) } }));
    json!({ "properties": { "a": refer(0) }, "$defs": definitions })
}

#[test]
fn spiral_of_schemas_is_checked_or_rejected() {
    let found = errors(&contract(spiral(16)), &nested(127, "7"));
    assert_eq!(found.len(), 1);
    let rules = Rules::from(&Manifest::with_defaults("test", Format::V1, None));
    let problems = Contract::compile(&json!({ "output": spiral(17) }), &rules).unwrap_err();
    assert!(problems[0].message.contains("apply 17 nested schemas"), "{problems:?}");
}

#[test]
fn items_are_checked_before_uniqueness() {
    let contract = contract(json!({ "uniqueItems": true, "items": { "enum": ["a", "b"] } }));
    let rules = |text: &str| -> BTreeSet<String> {
        let found = errors(&contract, &Tree::parse(text).unwrap());
        found.into_iter().map(|error| error.keyword).collect()
    };
    let many = format!("[{}]", vec![r#""c""#; MAX_VIOLATIONS].join(","));
    assert_eq!(rules(&many), BTreeSet::from(["enum".to_owned()]));
    assert_eq!(rules(r#"["c", "c"]"#), BTreeSet::from(["enum".to_owned(), "uniqueItems".to_owned()]));
}

#[test]
fn each_error_is_listed_once() {
    let again = json!({ "$ref": "#/$defs/Short" });
    for (schema, text, expected) in [
        (json!({ "contains": { "type": "null" } }), "[1]", vec!["/contains"]),
        (json!({ "contains": { "type": "null" } }), "[1, null]", vec![]),
        (json!({ "contains": { "type": "null" } }), "{}", vec![]),
        (json!({ "if": { "type": "string" }, "then": { "minLength": 2 } }), "\"a\"", vec!["/then/minLength"]),
        (json!({ "if": { "type": "string" }, "else": { "minimum": 2 } }), "1", vec!["/else/minimum"]),
        (
            json!({ "dependencies": { "a": { "required": ["b"] } } }),
            "{\"a\": 1}",
            vec!["/dependencies/a/required"],
        ),
        (json!({ "dependencies": { "a": { "required": ["b"] } } }), "{}", vec![]),
        (json!({ "anyOf": [{}, {}], "type": "string" }), "1", vec!["/type"]),
        (json!({ "oneOf": [{}, {}] }), "1", vec!["/oneOf"]),
        (json!({ "not": {} }), "1", vec!["/not"]),
        (json!({ "items": [{}], "additionalItems": false }), "[1, 2]", vec!["/additionalItems"]),
        (
            json!({ "items": [{}], "additionalItems": { "minimum": 3 } }),
            "[1, 2]",
            vec!["/additionalItems/minimum"],
        ),
        (json!({ "allOf": [again, again] }), "\"abcd\"", vec!["/$defs/Short/maxLength"]),
        (
            json!({ "allOf": [{ "type": "string" }, { "minimum": 5 }] }),
            "1",
            vec!["/allOf/0/type", "/allOf/1/minimum"],
        ),
        (
            json!({ "allOf": [{ "items": again }, { "minItems": 5 }] }),
            "[\"abcd\", \"abcde\"]",
            vec!["/$defs/Short/maxLength", "/$defs/Short/maxLength", "/allOf/1/minItems"],
        ),
    ] {
        let rules = Rules::from(&Manifest::with_defaults("test", Format::V1, None));
        let document = json!({ "output": schema, "$defs": { "Short": { "maxLength": 3 } } });
        let contract = Contract::compile(&document, &rules).unwrap();
        let (id, tree, search) =
            (contract.data.as_ref().unwrap().id, Tree::parse(text).unwrap(), Search::new(&contract));
        let found: Vec<String> =
            search.list(id, tree.node()).iter().map(|error| error.schema.clone()).collect();
        let found: Vec<&str> = found.iter().map(|at| at.strip_prefix("/output").unwrap_or(at)).collect();
        assert_eq!(
            (&found, search.fits(id, tree.node())),
            (&expected, expected.is_empty()),
            "{schema} {text}"
        );
    }
}
