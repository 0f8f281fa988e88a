use cog_json::{Path, Value as Tree};
use cog_spec::{EnumStrategy, Format, Manifest, Strictness, Tier};
use serde_json::{Value, json};

use crate::{Contract, DataCheck, Rules, Violation};

fn rules(tier: Tier) -> Rules {
    Rules::from(&Manifest::with_defaults("test", Format::V22, Some(tier)))
}

fn contract(document: Value, rules: &Rules) -> Contract {
    Contract::compile(&document, rules).unwrap_or_else(|problems| panic!("{problems:?}"))
}

/// A contract whose data has a rationale and these properties.
fn data_contract(properties: Value, rules: &Rules) -> Contract {
    let mut properties = properties;
    properties["rationale"] = json!({ "type": "string" });
    contract(
        json!({ "data": { "type": "object", "required": ["rationale"], "properties": properties } }),
        rules,
    )
}

fn check(contract: &Contract, data: Value) -> DataCheck {
    contract.check_data(Tree::from(data).node())
}

/// `path rule code` of each violation.
fn told(violations: &[Violation]) -> Vec<String> {
    violations.iter().map(|one| format!("{} {} {}", one.path, one.rule, one.code)).collect()
}

mod input {
    use super::*;

    fn told_of(schema: Value, input: Value) -> Vec<String> {
        let contract = contract(json!({ "input": schema }), &rules(Tier::Decision));
        told(&contract.check_input(Tree::from(input).node()))
    }

    #[test]
    fn every_violation_is_listed_with_path_and_code() {
        let schema = json!({
            "type": "object",
            "required": ["title", "urgency"],
            "properties": {
                "title": { "type": "string" },
                "urgency": { "enum": ["low", "high"] },
                "tags": { "type": "array", "items": { "type": "string" }, "maxItems": 2 },
            },
            "additionalProperties": false,
        });
        let input = json!({ "urgency": "hihg", "tags": ["a", 2, "c"], "odd key": 1 });
        assert_eq!(
            told_of(schema, input),
            [
                "input.title required E1002",
                "input.urgency enum E1004",
                "input.tags maxItems E1001",
                "input.tags[1] type E1003",
                "input[\"odd key\"] additionalProperties E1001",
            ]
        );
    }

    #[test]
    fn messages_say_what_was_found_what_is_allowed_and_what_was_meant() {
        let schema = json!({ "properties": { "urgency": { "enum": ["low", "high"] } }, "additionalProperties": false });
        let contract = contract(json!({ "input": schema }), &rules(Tier::Decision));
        let violations =
            contract.check_input(Tree::parse(r#"{"urgency": "hihg", "urgencyy": 1}"#).unwrap().node());
        assert_eq!(violations[0].message, "found `hihg`; allowed: `low` or `high`");
        assert_eq!(violations[0].suggestion.as_deref(), Some("Did you mean `high`?"));
        assert_eq!(violations[1].message, "`urgencyy` is not a field of the schema; allowed: `urgency`");
        assert_eq!(violations[1].suggestion.as_deref(), Some("Did you mean `urgency`?"));
    }

    #[test]
    fn a_message_never_repeats_content() {
        let secret = "the patient's name is Maria";
        let contract = contract(json!({ "input": { "type": "integer" } }), &rules(Tier::Decision));
        let violations = contract.check_input(Tree::from(json!(secret)).node());
        assert_eq!(violations[0].message, "found a string of 27 characters; allowed: an integer");
    }

    #[test]
    fn media_sources_are_the_runtime_s_own_whatever_the_module_says() {
        let schema = json!({
            "properties": { "images": { "type": "array", "items": { "$ref": "#/$defs/MediaInput" }, "minItems": 1 } },
        });
        let sources = json!({ "images": [
            { "type": "url", "url": "https://example.com/a.png" },
            { "type": "base64", "media_type": "image/png", "data": "QUJD" },
            { "type": "file", "path": "a.png" },
            { "type": "upload_ref", "upload_id": "upl_1" },
        ] });
        assert_eq!(told_of(schema.clone(), sources), [""; 0]);
        assert_eq!(
            told_of(schema.clone(), json!({ "images": [{ "type": "ftp" }] })),
            ["input.images[0].type const E1004"]
        );
        assert_eq!(
            told_of(schema.clone(), json!({ "images": [{ "type": "url" }] })),
            ["input.images[0].url required E1002"]
        );
        assert_eq!(
            told_of(schema.clone(), json!({ "images": [{}] })),
            ["input.images[0].type required E1002"]
        );
        assert_eq!(told_of(schema.clone(), json!({ "images": [] })), ["input.images minItems E1001"]);
        let pdf = json!({ "images": [{ "type": "base64", "media_type": "application/pdf", "data": "" }] });
        assert_eq!(told_of(schema, pdf), ["input.images[0].media_type pattern E1010"]);
    }

    #[test]
    fn documents_are_taken_where_the_manifest_lists_them() {
        let schema = json!({ "properties": { "file": { "$ref": "#/$defs/MediaInput" } } });
        let rules = Rules { documents: true, ..rules(Tier::Decision) };
        let contract = contract(json!({ "input": schema }), &rules);
        let pdf = Tree::parse(r#"{"file": {"type": "base64", "media_type": "application/pdf", "data": ""}}"#)
            .unwrap();
        assert_eq!(contract.check_input(pdf.node()), []);
        let paths: Vec<String> = contract.media_paths(pdf.node()).iter().map(Path::to_string).collect();
        assert_eq!(paths, ["input.file"]);
        assert!(contract.takes_media());
    }
}

mod strictness {
    use super::*;

    fn with(strictness: Strictness, properties: Value, data: Value) -> DataCheck {
        let rules = Rules { strictness, ..rules(Tier::Decision) };
        check(&data_contract(properties, &rules), data)
    }

    fn nested() -> (Value, Value) {
        let properties = json!({ "list": { "type": "array", "items": { "properties": { "a": {} } } } });
        (properties, json!({ "rationale": "r", "more": 1, "list": [{ "a": 1 }, { "b": 2 }] }))
    }

    #[test]
    fn high_refuses_what_the_schema_does_not_name() {
        let (properties, data) = nested();
        let check = with(Strictness::High, properties, data);
        assert_eq!(
            told(&check.violations),
            ["data.more additionalProperties E3001", "data.list[1].b additionalProperties E3001"]
        );
    }

    #[test]
    fn medium_lists_it_and_low_says_nothing() {
        let (properties, data) = nested();
        let medium = with(Strictness::Medium, properties.clone(), data.clone());
        assert_eq!(
            (medium.violations, medium.unknown),
            (vec![], vec!["data.more".into(), "data.list[1].b".into()])
        );
        assert_eq!(with(Strictness::Low, properties, data), DataCheck::default());
    }

    #[test]
    fn what_the_schema_says_is_enforced_at_every_level() {
        let rules = Rules { strictness: Strictness::Low, ..rules(Tier::Exploration) };
        let schema = json!({ "data": { "properties": { "rationale": {} }, "additionalProperties": false } });
        let check = check(&contract(schema, &rules), json!({ "rationale": "r", "more": 1 }));
        assert_eq!(told(&check.violations), ["data.more additionalProperties E3001"]);
    }

    #[test]
    fn names_come_from_patterns_references_and_every_branch() {
        let document = json!({
            "data": {
                "allOf": [{ "$ref": "#/definitions/base" }, { "oneOf": [{ "properties": { "a": {} } }, { "properties": { "b": {} }, "required": ["b"] }] }],
            },
            "definitions": { "base": { "properties": { "rationale": {} }, "patternProperties": { "^x-": {} } } },
        });
        let contract = contract(document, &rules(Tier::Decision));
        let check = check(&contract, json!({ "rationale": "r", "x-1": 1, "b": 1, "c": 1 }));
        assert_eq!((told(&check.violations).len(), check.unknown), (1, vec!["data.c".to_owned()]));
    }

    #[test]
    fn an_object_of_which_nothing_is_named_is_open() {
        let properties =
            json!({ "free": { "type": "object" }, "map": { "additionalProperties": { "type": "integer" } } });
        let data = json!({ "rationale": "r", "free": { "a": 1 }, "map": { "b": 2 } });
        assert_eq!(with(Strictness::High, properties, data), DataCheck::default());
    }
}

mod insights {
    use super::*;

    fn insight(mapping: bool) -> Value {
        if mapping { json!({ "text": "t", "suggested_mapping": "data.x" }) } else { json!({ "text": "t" }) }
    }

    fn data(insights: Value) -> Value {
        json!({ "rationale": "r", "extensions": { "insights": insights } })
    }

    #[test]
    fn they_are_allowed_even_where_the_schema_is_shut() {
        let shut = json!({ "data": { "type": "object", "properties": { "rationale": {} }, "additionalProperties": false } });
        for strictness in [Strictness::High, Strictness::Medium, Strictness::Low] {
            let contract = contract(shut.clone(), &Rules { strictness, ..rules(Tier::Decision) });
            assert_eq!(check(&contract, data(json!([insight(true)]))), DataCheck::default());
            let check =
                check(&contract, json!({ "rationale": "r", "extensions": { "insights": [], "other": 1 } }));
            assert!(
                told(&check.violations).contains(&"data.extensions additionalProperties E3001".to_owned())
            );
        }
    }

    #[test]
    fn they_are_refused_where_overflow_is_off() {
        for document in [
            json!({}),
            json!({ "data": { "properties": { "rationale": {} }, "additionalProperties": false } }),
        ] {
            let contract = contract(document, &rules(Tier::Exec));
            let check = check(&contract, data(json!([insight(true)])));
            assert_eq!(told(&check.violations), ["data.extensions.insights overflow E3004"]);
        }
    }

    #[test]
    fn a_mapping_is_due_unless_the_manifest_lets_it_be() {
        let contract = data_contract(json!({}), &rules(Tier::Decision));
        let violations = check(&contract, data(json!([insight(false), 3]))).violations;
        assert_eq!(
            told(&violations),
            [
                "data.extensions.insights[0].suggested_mapping required E3001",
                "data.extensions.insights[1] type E3001"
            ]
        );
        let mut rules = rules(Tier::Decision);
        rules.overflow.require_suggested_mapping = false;
        let lenient = data_contract(json!({}), &rules);
        assert_eq!(check(&lenient, data(json!([insight(false)]))).violations, []);
    }

    #[test]
    fn too_many_are_told_apart_except_in_tier_exec() {
        let many = data(Value::Array(vec![insight(true); 6]));
        let decision = check(&data_contract(json!({}), &rules(Tier::Decision)), many.clone());
        let excess = decision.excess_insights.unwrap();
        assert_eq!((decision.violations, excess.found, excess.max), (vec![], 6, 5));
        let mut exec = rules(Tier::Exec);
        (exec.overflow.enabled, exec.overflow.max_items) = (true, 2);
        let exec = check(&data_contract(json!({}), &exec), many);
        assert_eq!(told(&exec.violations), ["data.extensions.insights overflow E3004"]);
    }
}

mod enums {
    use super::*;

    fn extensible(tag: &str) -> Value {
        let object = json!({
            "type": "object",
            "required": [tag, "reason"],
            "properties": { tag: { "type": "string", "maxLength": 32 }, "reason": { "type": "string" } },
        });
        json!({ "kind": { "oneOf": [{ "type": "string", "enum": ["bug", "style"] }, object] } })
    }

    fn with(strategy: EnumStrategy, kind: Value) -> DataCheck {
        let mut rules = rules(Tier::Decision);
        rules.enums.strategy = strategy;
        check(&data_contract(extensible("custom"), &rules), json!({ "rationale": "r", "kind": kind }))
    }

    #[test]
    fn a_word_of_the_model_s_own_is_counted() {
        let check = with(EnumStrategy::Extensible, json!({ "custom": "naming", "reason": "none fits" }));
        assert_eq!(check.violations, []);
        assert_eq!((check.custom[0].path.as_str(), check.custom[0].word.as_str()), ("data.kind", "naming"));
    }

    #[test]
    fn strict_refuses_the_object_even_there() {
        let check = with(EnumStrategy::Strict, json!({ "custom": "naming", "reason": "none fits" }));
        assert_eq!(told(&check.violations), ["data.kind extensible_enum E3005"]);
    }

    #[test]
    fn a_bare_unknown_word_is_never_wrapped() {
        for strategy in [EnumStrategy::Strict, EnumStrategy::Extensible] {
            let check = with(strategy, json!("styel"));
            assert_eq!(told(&check.violations), ["data.kind enum E3005"]);
            assert_eq!(check.violations[0].suggestion.as_deref(), Some("Did you mean `style`?"));
        }
    }

    #[test]
    fn the_word_has_at_most_32_characters_and_a_reason() {
        let of = |word: String| {
            with(EnumStrategy::Extensible, json!({ "custom": word, "reason": "r" })).violations
        };
        assert_eq!(of("é".repeat(32)), []);
        assert_eq!(told(&of("é".repeat(33))), ["data.kind.custom maxLength E3001"]);
        let check = with(EnumStrategy::Extensible, json!({ "custom": "naming" }));
        assert_eq!(told(&check.violations), ["data.kind.reason required E3001"]);
    }

    #[test]
    fn another_type_is_told_as_such() {
        let check = with(EnumStrategy::Extensible, json!(7));
        assert_eq!(told(&check.violations), ["data.kind type E3001"]);
        assert_eq!(check.violations[0].message, "found 7; allowed: a string or an object");
    }

    #[test]
    fn the_manifest_may_rename_the_tag() {
        let mut rules = rules(Tier::Decision);
        rules.enums.unknown_tag = "other".to_owned();
        let contract = data_contract(extensible("other"), &rules);
        let check =
            check(&contract, json!({ "rationale": "r", "kind": { "other": "naming", "reason": "r" } }));
        assert_eq!((check.violations.len(), check.custom.len()), (0, 1));
    }

    #[test]
    fn a_plain_enum_is_closed() {
        let properties = json!({ "kind": { "enum": ["bug"] } });
        let contract = data_contract(properties, &rules(Tier::Decision));
        let check = check(&contract, json!({ "rationale": "r", "kind": { "custom": "x", "reason": "y" } }));
        assert_eq!(told(&check.violations), ["data.kind enum E3005"]);
    }
}

mod rationale {
    use super::*;

    #[test]
    fn it_is_due_from_v22_on_whatever_the_schema_says() {
        let contract = contract(json!({ "data": { "type": "object" } }), &rules(Tier::Decision));
        for data in [
            json!({}),
            json!({ "rationale": "" }),
            json!({ "rationale": "  " }),
            json!({ "rationale": null }),
        ] {
            assert_eq!(told(&check(&contract, data).violations), ["data.rationale rationale E3003"]);
        }
        assert_eq!(
            told(&check(&contract, json!({ "rationale": 3 })).violations),
            ["data.rationale type E3001"]
        );
    }

    #[test]
    fn the_schema_s_own_demand_has_the_same_code() {
        let contract = data_contract(json!({}), &rules(Tier::Decision));
        assert_eq!(told(&check(&contract, json!({})).violations), ["data.rationale rationale E3003"]);
    }

    #[test]
    fn older_formats_decide_for_themselves_and_may_give_an_object() {
        let output = json!({ "output": { "type": "object" } });
        let v1 = Rules::from(&Manifest::with_defaults("old", Format::V1, None));
        assert_eq!(check(&contract(output.clone(), &v1), json!({})), DataCheck::default());
        let strict = Rules { require_rationale: true, require_confidence: true, ..v1 };
        let contract = contract(output, &strict);
        assert_eq!(
            told(&check(&contract, json!({})).violations),
            ["data.rationale rationale E3003", "data.confidence required E3001"]
        );
        let object = json!({ "rationale": { "decisions": ["d"] }, "confidence": 0.5 });
        assert_eq!(check(&contract, object), DataCheck::default());
    }
}

mod meta {
    use super::*;

    fn schema() -> Value {
        json!({ "meta": {
            "type": "object",
            "required": ["confidence", "risk", "explain"],
            "properties": {
                "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
                "risk": { "type": "string", "enum": ["none", "low", "medium", "high"] },
                "explain": { "type": "string", "maxLength": 280 },
            },
            "additionalProperties": false,
        } })
    }

    fn told_of(document: Value, rules: &Rules, meta: Value) -> Vec<String> {
        told(&contract(document, rules).check_meta(Tree::from(meta).node()))
    }

    #[test]
    fn the_specification_s_rules_hold_with_and_without_a_schema() {
        for document in [schema(), json!({})] {
            let told = |meta| {
                let mut told = told_of(document.clone(), &rules(Tier::Decision), meta);
                told.sort();
                told
            };
            assert_eq!(told(json!({ "confidence": 1, "risk": "none", "explain": "é".repeat(280) })), [""; 0]);
            assert_eq!(
                told(json!({ "confidence": 1.01, "risk": "hgih", "explain": "é".repeat(281) })),
                ["meta.confidence maximum E3001", "meta.explain maxLength E3001", "meta.risk enum E3005"]
            );
            assert_eq!(
                told(json!({})),
                ["meta.confidence required E3001", "meta.explain required E3001", "meta.risk required E3001"]
            );
            assert_eq!(told(json!(1)), ["meta type E3001"]);
        }
    }

    #[test]
    fn the_runtime_s_keys_are_not_the_schema_s_business() {
        let mut meta = json!({ "confidence": 0.5, "risk": "low", "explain": "e" });
        for key in cog_spec::RUNTIME_KEYS {
            meta[*key] = json!([]);
        }
        assert_eq!(told_of(schema(), &rules(Tier::Decision), meta.clone()), [""; 0]);
        meta["own"] = json!(1);
        assert_eq!(told_of(schema(), &rules(Tier::Decision), meta), ["meta.own additionalProperties E3001"]);
    }

    #[test]
    fn risk_may_be_an_object_where_enums_are_extensible_except_in_tier_exec() {
        let meta =
            json!({ "confidence": 0.95, "risk": { "custom": "legal", "reason": "r" }, "explain": "e" });
        assert_eq!(told_of(schema(), &rules(Tier::Decision), meta.clone()), [""; 0]);
        assert_eq!(told_of(schema(), &rules(Tier::Exec), meta.clone()), ["meta.risk extensible_enum E3005"]);
        let mut strict = rules(Tier::Decision);
        strict.enums.strategy = EnumStrategy::Strict;
        assert_eq!(told_of(json!({}), &strict, meta), ["meta.risk extensible_enum E3005"]);
    }
}

mod error {
    use super::*;

    fn told_of(rules: &Rules, error: Value) -> Vec<String> {
        let document =
            json!({ "error": { "required": ["details"], "properties": { "message": { "minLength": 2 } } } });
        told(&contract(document, rules).check_error(Tree::from(error).node()))
    }

    #[test]
    fn codes_are_the_specification_s_or_declared() {
        let rules = Rules { error_codes: vec!["E5001".into()], ..rules(Tier::Decision) };
        let of = |code: &str| told_of(&rules, json!({ "code": code, "message": "me", "details": {} }));
        for good in ["E2004", "E5001", "BEHAVIOR_CHANGE_REQUIRED"] {
            assert_eq!(of(good), [""; 0]);
        }
        for bad in ["E5002", "E0001", "E20041", "OOPS"] {
            assert_eq!(of(bad), ["error.code error_code E3001"]);
        }
    }

    #[test]
    fn the_module_s_schema_is_enforced_unless_the_manifest_lets_it_be() {
        let error = json!({ "code": "E2004", "message": "m" });
        let strict = rules(Tier::Decision);
        assert_eq!(
            told_of(&strict, error.clone()),
            ["error.details required E3001", "error.message minLength E3001"]
        );
        let lenient = Rules { enforce_error_schema: false, ..strict };
        assert_eq!(told_of(&lenient, error), [""; 0]);
        assert_eq!(
            told_of(&lenient, json!({})),
            ["error.code required E3001", "error.message required E3001"]
        );
    }
}

mod place {
    use super::*;

    fn at(path: &str, value: Value) -> Vec<String> {
        let document = json!({
            "data": { "allOf": [{ "$ref": "#/$defs/base" }], "properties": { "list": { "items": { "$ref": "#/$defs/item" } } } },
            "$defs": {
                "base": { "properties": { "title": { "maxLength": 3 } }, "additionalProperties": { "type": "array" } },
                "item": { "properties": { "kind": { "enum": ["a"] } }, "oneOf": [{ "required": ["kind"] }, { "required": ["x"] }] },
            },
        });
        let contract = contract(document, &rules(Tier::Decision));
        told(&contract.check_at(&path.parse().unwrap(), Tree::from(value).node()))
    }

    #[test]
    fn a_completed_value_meets_what_its_place_demands() {
        assert_eq!(at("data.title", json!("abcd")), ["data.title maxLength E3001"]);
        assert_eq!(at("data.list[3].kind", json!("b")), ["data.list[3].kind enum E3005"]);
        assert_eq!(at("data.list[0]", json!({})), ["data.list[0].kind required E3001"]);
        assert_eq!(at("data.other", json!(1)), ["data.other type E3001"]);
    }

    #[test]
    fn what_nothing_is_said_of_is_fine() {
        for path in ["data.title", "data.list[0].more", "meta.risk", "elsewhere", ""] {
            assert_eq!(at(path, json!("abc")), [""; 0], "{path}");
        }
    }
}
