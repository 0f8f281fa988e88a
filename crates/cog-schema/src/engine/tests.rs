use cog_json::Value as Tree;
use jsonschema::json::Node as _;
use serde_json::json;

use super::*;
use crate::subschema::FORMATS;

fn check(schema: Value) -> Check {
    Engine::new(Arc::new(json!({ "data": schema }))).unwrap().compile("/data").unwrap()
}

fn errors(schema: Value, text: &str) -> Vec<EngineError> {
    let check = check(schema);
    let value = Tree::parse(text).unwrap();
    let errors = check.errors(value.node());
    assert_eq!(errors.is_empty(), check.accepts(value.node()));
    errors
}

#[test]
fn error_has_pointers_into_value_and_document() {
    let schema =
        json!({ "properties": { "a~/b": { "items": { "type": "string" } }, "0": { "minimum": 3 } } });
    let errors = errors(schema, r#"{"a~/b": ["x", 1], "0": 2}"#);
    let pointers: Vec<_> = errors.iter().map(|error| (error.at.as_str(), error.schema.as_str())).collect();
    assert_eq!(
        pointers,
        [("/a~0~1b/1", "/data/properties/a~0~1b/items/type"), ("/0", "/data/properties/0/minimum")]
    );
}

#[test]
fn last_duplicate_key_counts() {
    let schema = json!({ "maxProperties": 1, "properties": { "a": { "type": "string" } }, "additionalProperties": false });
    assert_eq!(errors(schema.clone(), r#"{"a": 1, "a": 2, "a": "x"}"#), []);
    let wrong = errors(schema, r#"{"a": "x", "a": 1}"#);
    assert_eq!(wrong.len(), 1);
    assert_eq!(wrong[0].at, "/a");
}

#[test]
fn each_node_has_a_stable_identity() {
    let one = Tree::parse(r#"{"a": {"a": {}}}"#).unwrap();
    let other = Tree::parse(r#"{"a": {}}"#).unwrap();
    let inner = one.node().get("a").unwrap();
    assert_eq!(inner.identity(), one.node().get("a").unwrap().identity());
    assert_ne!(inner.identity(), one.node().identity());
    assert_ne!(other.node().identity(), one.node().identity());
}

#[test]
fn recursive_schema_checks_every_level() {
    let schema = json!({ "type": "object", "properties": { "next": { "$ref": "#/data" } }, "additionalProperties": false });
    assert_eq!(errors(schema.clone(), r#"{"next": {"next": {"next": {}}}}"#), []);
    let wrong = errors(schema, r#"{"next": {"next": {"next": 7}}}"#);
    assert_eq!(wrong[0].at, "/next/next/next");
}

#[test]
fn numbers_are_compared_by_value() {
    for good in ["1", "1.0", "1e0", "10e-1"] {
        assert_eq!(errors(json!({ "const": 1 }), good), [], "{good}");
        assert_eq!(errors(json!({ "type": "integer" }), good), [], "{good}");
    }
    for bad in ["1.5", "true", "\"1\"", "10"] {
        assert_ne!(errors(json!({ "enum": [1, null] }), bad), [], "{bad}");
    }
    assert_eq!(errors(json!({ "minimum": 18_446_744_073_709_551_615_u64 }), "18446744073709551616"), []);
    assert_ne!(errors(json!({ "maximum": -0.5 }), "-0"), []);
}

#[test]
fn unique_items_works_in_short_and_long_arrays() {
    let unique = json!({ "uniqueItems": true });
    let long = |last: &str| {
        let items: Vec<String> = (0..40).map(|n| format!(r#"{{"n": {n}, "x": "é"}}"#)).collect();
        format!("[{}, {last}]", items.join(","))
    };
    assert_eq!(errors(unique.clone(), &long(r#"{"n": 40}"#)), []);
    assert_eq!(errors(unique.clone(), &long(r#"{"x": "é", "n": 7.0}"#)).len(), 1);
    assert_eq!(errors(unique.clone(), "[0, -0.0]").len(), 1);
    assert_eq!(errors(unique, r#"[1, true, "1", [1], {"1": 1}]"#), []);
}

#[test]
fn patterns_take_linear_time_and_irregular_ones_are_rejected() {
    let evil = format!("\"{}!\"", "a".repeat(50_000));
    assert_eq!(errors(json!({ "pattern": "^(a+)+$" }), &evil).len(), 1);
    assert!(Pattern::new("(?=a)b").is_err());
    assert!(Pattern::new("(a").is_err());
    assert!(Pattern::new("((a{1000}){1000}){1000}").is_err());
}

#[test]
fn base64_and_formats_are_checked() {
    assert_eq!(errors(json!({ "contentEncoding": "base64" }), r#""QUJD""#), []);
    assert_eq!(errors(json!({ "contentEncoding": "base64" }), r#""QUJ""#).len(), 1);
    assert_eq!(errors(json!({ "format": "uri" }), r#""https://example.com/a""#), []);
    assert_eq!(errors(json!({ "format": "uri" }), r#""not a uri""#).len(), 1);
    assert_eq!(errors(json!({ "format": "no-such-format" }), r#""x""#), []);
    assert_eq!(errors(json!({ "format": "uuid" }), r#""2b1c2d6e-5f0a-4c3b-9a8d-7e6f5a4b3c2d""#), []);
    assert_eq!(errors(json!({ "format": "duration" }), r#""P1DT2H""#), []);
}

#[test]
fn every_listed_format_is_checked() {
    for format in FORMATS {
        assert_eq!(errors(json!({ "format": format }), r#""{[ \u0000""#).len(), 1, "{format}");
    }
}

#[test]
fn property_names_are_checked_individually() {
    let schema = json!({ "propertyNames": { "maxLength": 3 } });
    assert_eq!(errors(schema.clone(), r#"{"abc": 1, "de": 2}"#), []);
    assert_eq!(errors(schema, r#"{"abc": 1, "defg": 2}"#).len(), 1);
}

#[test]
fn tree_equals_the_serde_value() {
    let document = json!({
        "string": "héllo", "integer": 42, "float": 1.5, "boolean": true, "null": null,
        "array": [10, 20, 30], "nested": { "a": [1, {}] },
    });
    let tree = Tree::from(&document);
    assert!(tree.node().equals_value(&document));
    assert_eq!(tree.node().to_serde(), document);
    assert_eq!(tree.get("string").unwrap().string_length(), Some(5));
    assert!(!tree.node().equals_value(&json!({ "string": "héllo" })));
}

#[test]
fn errors_of_an_enum_share_its_values() {
    let schema = json!({ "items": { "enum": ["a", "b"] }, "const": ["x"] });
    let errors = errors(schema, r#"["c", "d"]"#);
    let lists: Vec<&Arc<Value>> = errors
        .iter()
        .filter_map(|error| match &error.reason {
            Reason::Allowed(allowed) => allowed.first(),
            _ => None,
        })
        .filter_map(|allowed| match allowed {
            Allowed::Any(list) => Some(list),
            Allowed::Only(_) => None,
        })
        .collect();
    assert_eq!((lists.len(), lists[0].as_ref()), (2, &json!(["a", "b"])));
    assert!(Arc::ptr_eq(lists[0], lists[1]));
}

#[test]
fn unexpected_members_are_listed_up_to_the_maximum() {
    let members: Vec<String> = (0..1_000).map(|n| format!(r#""k{n}": 1"#)).collect();
    let errors = errors(
        json!({ "properties": {}, "additionalProperties": false }),
        &format!("{{{}}}", members.join(",")),
    );
    let Reason::Unexpected(keys) = &errors[0].reason else { panic!("{errors:?}") };
    assert_eq!((keys.len(), keys[0].as_str()), (MAX_VIOLATIONS, "k0"));
}

#[test]
fn base64_needs_the_standard_alphabet_and_padding() {
    for good in ["", "QQ==", "QUI=", "QUJD", "+/+/"] {
        assert!(is_base64(good), "{good}");
    }
    for bad in ["Q", "QQ=", "QQ===", "Q===", "QU JD", "QUJ-", "=QUJ", "QQ==QUJD"] {
        assert!(!is_base64(bad), "{bad}");
    }
}

#[test]
fn json_in_base64_is_decoded() {
    let schema = json!({ "contentEncoding": "base64", "contentMediaType": "application/json" });
    let rules = |text: &str| {
        let errors = errors(schema.clone(), &format!("\"{text}\""));
        errors.into_iter().map(|error| error.schema).collect::<Vec<_>>()
    };
    assert_eq!(rules("eyJhIjogMX0="), [""; 0]);
    assert_eq!(rules("eyJhIjogMX0"), ["/data/contentEncoding"]);
    // The text `{"a":`, and bytes that are not UTF-8.
    assert_eq!(rules("eyJhIjo="), ["/data/contentMediaType"]);
    assert_eq!(rules("gICA"), ["/data/contentMediaType"]);
}

#[test]
fn error_of_a_limit_has_the_limit() {
    for (schema, text, relation, limit, unit) in [
        (json!({ "minItems": 2 }), "[1]", "at least", "2", "items"),
        (json!({ "maxItems": 1 }), "[1, 2]", "at most", "1", "items"),
        (json!({ "items": [{}], "additionalItems": false }), "[1, 2]", "at most", "1", "items"),
        (json!({ "minLength": 2 }), "\"a\"", "at least", "2", "characters"),
        (json!({ "maxLength": 1 }), "\"ab\"", "at most", "1", "characters"),
        (json!({ "minProperties": 1 }), "{}", "at least", "1", "members"),
        (json!({ "maxProperties": 1 }), "{\"a\": 1, \"b\": 1}", "at most", "1", "members"),
        (json!({ "minimum": 2 }), "1", "at least", "2", ""),
        (json!({ "maximum": 1.5 }), "2", "at most", "1.5", ""),
        (json!({ "exclusiveMinimum": 2 }), "2", "more than", "2", ""),
        (json!({ "exclusiveMaximum": 2 }), "2", "less than", "2", ""),
        (json!({ "multipleOf": 2 }), "3", "a multiple of", "2", ""),
    ] {
        let [error] = &errors(schema.clone(), text)[..] else { panic!("{schema}") };
        let expected = Bound { relation, limit: limit.to_owned(), unit };
        assert_eq!(error.reason, Reason::Bound(expected), "{schema}");
    }
}

#[test]
fn value_equals_only_the_same_value() {
    let values = ["null", "true", "false", "0", "1", "1.5", "\"1\"", "[]", "[1]", "[2]", "[1, 2]", "{}"];
    let objects = [r#"{"a": 1}"#, r#"{"a": 2}"#, r#"{"b": 1}"#, r#"{"a": 1, "b": 1}"#];
    let all: Vec<&str> = values.into_iter().chain(objects).collect();
    for left in &all {
        for right in &all {
            let tree = Tree::parse(left).unwrap();
            let value = serde_json::from_str(right).unwrap();
            assert_eq!(tree.node().equals_value(&value), left == right, "{left} {right}");
        }
    }
}
