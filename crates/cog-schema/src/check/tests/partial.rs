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
    lines(&contract.check_at(&path.parse().unwrap(), Tree::from(value).node()))
}

#[test]
fn completed_value_is_checked_by_its_path() {
    assert_eq!(at("data.title", json!("abcd")), ["data.title maxLength E3001"]);
    assert_eq!(at("data.list[3].kind", json!("b")), ["data.list[3].kind enum E3005"]);
    assert_eq!(at("data.list[0]", json!({})), ["data.list[0].kind required E3001"]);
    assert_eq!(at("data.other", json!(1)), ["data.other type E3001"]);
}

#[test]
fn values_without_a_schema_are_valid() {
    for path in ["data.title", "data.list[0].more", "meta.risk", "elsewhere", ""] {
        assert_eq!(at(path, json!("abc")), [""; 0], "{path}");
    }
}

/// Returns the violations of each value of the data in the order in which they complete, each once.
fn live(contract: &Contract, data: &Value) -> Vec<String> {
    let data = Tree::from(data.clone());
    let mut found = Vec::new();
    complete(contract, data.node(), &mut "data".parse().unwrap(), &mut found);
    found
}

fn complete(contract: &Contract, node: cog_json::Node<'_>, path: &mut Path, found: &mut Vec<String>) {
    for (key, member) in node.members() {
        path.push_key(key);
        complete(contract, member, path, found);
        path.pop();
    }
    for (index, element) in node.elements().enumerate() {
        path.push_index(index);
        complete(contract, element, path, found);
        path.pop();
    }
    if path.depth() > 1 {
        for line in lines(&contract.check_at(path, node)) {
            if !found.contains(&line) {
                found.push(line);
            }
        }
    }
}

#[test]
fn unnamed_members_are_found_when_they_are_complete() {
    let rules = Rules { strictness: Strictness::High, ..rules(Tier::Exec) };
    let list = json!({ "list": { "type": "array", "items": { "properties": { "a": {} } } }, "free": {} });
    let contract = data_contract(list, &rules);
    let data =
        json!({ "zz": 1, "free": { "x": 1 }, "list": [{ "a": 1 }, { "b": { "c": 1 } }], "rationale": "r" });
    let expected = ["data.zz additionalProperties E3001", "data.list[1].b additionalProperties E3001"];
    assert_eq!(live(&contract, &data), expected);
}

#[test]
fn members_of_closed_objects_are_found_when_they_are_complete() {
    let contract = contract(
        json!({ "data": {
            "properties": { "rationale": {}, "inner": { "additionalProperties": false, "patternProperties": { "^x-": {} } } },
            "additionalProperties": false,
        } }),
        &rules(Tier::Exploration),
    );
    let data = Tree::from(json!({ "zz": 1 }));
    let found = contract.check_at(&"data.zz".parse().unwrap(), data.get("zz").unwrap());
    assert_eq!(lines(&found), ["data.zz additionalProperties E3001"]);
    assert_eq!(found, check(&contract, json!({ "rationale": "r", "zz": 1 })).violations);
    let data = json!({ "rationale": "r", "inner": { "x-1": 1, "y": 2 } });
    assert_eq!(live(&contract, &data), ["data.inner.y additionalProperties E3001"]);
}

#[test]
fn custom_values_are_checked_when_they_are_complete() {
    let mut rules = rules(Tier::Decision);
    let object = json!({
        "type": "object",
        "required": ["custom", "reason"],
        "properties": { "custom": { "type": "string", "maxLength": 32 }, "reason": { "type": "string" } },
    });
    let kinds = json!({ "kind": { "oneOf": [{ "enum": ["bug"] }, object] } });
    rules.enums.strategy = EnumStrategy::Strict;
    let data = json!({ "rationale": "r", "kind": { "custom": "x", "reason": "y" } });
    let contract = |rules: &Rules| data_contract(kinds.clone(), rules);
    assert_eq!(live(&contract(&rules), &data), ["data.kind extensible_enum E3005"]);
    rules.enums.strategy = EnumStrategy::Extensible;
    assert_eq!(live(&contract(&rules), &data), [""; 0]);
}

#[test]
fn insights_are_checked_when_they_are_complete() {
    let insight = |mapping: &str| json!({ "text": "t", "suggested_mapping": mapping });
    let with = |tier, enabled, max_items, insights: Value| {
        let mut rules = rules(tier);
        (rules.overflow.enabled, rules.overflow.max_items) = (enabled, max_items);
        let contract = data_contract(json!({}), &rules);
        live(&contract, &json!({ "rationale": "r", "extensions": { "insights": insights } }))
    };
    let good = insight("a");
    let bad = json!({ "text": "t" });
    assert_eq!(with(Tier::Exec, true, 1, json!([good])), [""; 0]);
    assert_eq!(
        with(Tier::Decision, true, 5, json!([good, bad])),
        ["data.extensions.insights[1].suggested_mapping required E3001"]
    );
    assert_eq!(with(Tier::Decision, true, 1, json!([good, bad])), [""; 0], "it will be removed");
    assert_eq!(with(Tier::Decision, false, 5, json!([good])), ["data.extensions.insights overflow E3004"]);
    assert_eq!(with(Tier::Exec, true, 1, json!([good, good])), ["data.extensions.insights overflow E3004"]);
    assert_eq!(with(Tier::Exec, false, 0, json!([])), ["data.extensions additionalProperties E3001"]);
}

#[test]
fn complete_part_is_checked_like_that_of_the_answer() {
    let schema = json!({ "properties": { "a": { "type": "string" }, "rationale": {} } });
    let contract = contract(json!({ "data": schema }), &rules(Tier::Decision));
    let at = |part: &str, value: Value| {
        lines(&contract.check_at(&part.parse().unwrap(), Tree::from(value).node()))
    };
    assert_eq!(at("data", json!({ "a": 1, "rationale": "r" })), ["data.a type E3001"]);
    assert_eq!(at("meta", json!(1)), ["meta type E3001"]);
    assert_eq!(at("error", json!({ "code": "E2004" })), ["error.message required E3001"]);
    assert_eq!(at("input", json!({ "a": 1 })), [""; 0]);
}

#[test]
fn only_the_rationale_of_the_data_is_required() {
    let inner = json!({ "inner": { "properties": { "rationale": {} } } });
    let contract = data_contract(inner, &rules(Tier::Decision));
    let at = |path: &str| lines(&contract.check_at(&path.parse().unwrap(), Tree::from(json!("")).node()));
    assert_eq!(at("data.rationale"), ["data.rationale rationale E3003"]);
    assert_eq!(at("data.inner.rationale"), [""; 0]);
}

#[test]
fn listed_values_and_low_strictness_have_no_violations() {
    let object = json!({ "type": "object", "required": ["custom", "reason"] });
    let kinds = json!({ "kind": { "oneOf": [{ "enum": ["bug"] }, object] } });
    let data = json!({ "rationale": "r", "kind": "bug", "more": 1 });
    for (strictness, expected) in [
        (Strictness::Low, vec![]),
        (Strictness::Medium, vec![]),
        (Strictness::High, vec!["data.more additionalProperties E3001"]),
    ] {
        let mut rules = Rules { strictness, ..rules(Tier::Decision) };
        rules.enums.strategy = EnumStrategy::Strict;
        assert_eq!(live(&data_contract(kinds.clone(), &rules), &data), expected, "{strictness:?}");
    }
    let high = Rules { strictness: Strictness::High, ..rules(Tier::Decision) };
    let contract = data_contract(json!({ "a": {} }), &high);
    assert_eq!(live(&contract, &json!({ "rationale": "r", "a": { "custom": 1 } })), [""; 0]);
}

/// Returns the violations of `data.extensions` while it arrives, which must be violations of the complete answer, too. `rest`
/// is the schema of `extensions`, if there is one.
#[track_caller]
fn live_extensions(rules: &Rules, rest: Option<Value>, extensions: Value) -> Vec<String> {
    let mut properties = json!({ "rationale": {} });
    if let Some(rest) = rest {
        properties["extensions"] = rest;
    }
    let schema = json!({ "properties": properties, "additionalProperties": false });
    let contract = contract(json!({ "data": schema }), rules);
    let data = json!({ "rationale": "r", "extensions": extensions });
    let found = live(&contract, &data);
    let complete = lines(&check(&contract, data).violations);
    assert!(found.iter().all(|line| complete.contains(line)), "{found:?} {complete:?}");
    found
}

fn with_overflow(tier: Tier, enabled: bool, max_items: u32) -> Rules {
    let mut rules = rules(tier);
    (rules.overflow.enabled, rules.overflow.max_items) = (enabled, max_items);
    rules
}

#[test]
fn insights_that_will_be_removed_are_not_checked_by_the_schema() {
    let insight = json!({ "text": "t", "suggested_mapping": "m" });
    let enabled = with_overflow(Tier::Decision, true, 5);
    assert_eq!(live_extensions(&enabled, None, json!({ "insights": [insight] })), [""; 0]);
    let texts = json!({ "additionalProperties": { "items": { "type": "string" } } });
    assert_eq!(live_extensions(&enabled, Some(texts), json!({ "insights": [insight] })), [""; 0]);
    let long = json!({ "properties": { "insights": { "items": { "properties": { "text": { "minLength": 3 } } } } } });
    let few = with_overflow(Tier::Decision, true, 1);
    assert_eq!(
        live_extensions(&few, Some(long.clone()), json!({ "insights": [insight, insight] })),
        ["data.extensions.insights[0].text minLength E3001"]
    );
    let disabled = with_overflow(Tier::Decision, false, 1);
    let texts = [0, 1].map(|index| format!("data.extensions.insights[{index}].text minLength E3001"));
    let [first, second] = texts;
    assert_eq!(
        live_extensions(&disabled, Some(long), json!({ "insights": [insight, insight] })),
        [first, second, "data.extensions.insights overflow E3004".to_owned()]
    );
}

#[test]
fn list_of_insights_that_stays_is_checked_by_the_schema() {
    let insight = json!({ "text": "t", "suggested_mapping": "m" });
    let list = |rule: Value| Some(json!({ "properties": { "insights": rule } }));
    for (rule, insights, max_items, expected) in [
        (json!({ "uniqueItems": true }), json!([insight, insight]), 2, vec!["uniqueItems"]),
        (json!({ "uniqueItems": true }), json!([insight, insight]), 3, vec!["uniqueItems"]),
        (json!({ "minItems": 1 }), json!([]), 2, vec!["minItems"]),
        (json!({ "minItems": 1 }), json!([]), 0, vec!["minItems"]),
    ] {
        let enabled = with_overflow(Tier::Decision, true, max_items);
        let expected: Vec<String> =
            expected.into_iter().map(|rule| format!("data.extensions.insights {rule} E3001")).collect();
        assert_eq!(live_extensions(&enabled, list(rule), json!({ "insights": insights })), expected);
    }
}

#[test]
fn other_extensions_are_checked_by_the_schema_only() {
    let enabled = with_overflow(Tier::Decision, true, 5);
    let other = |schema: Value| Some(json!({ "properties": { "other": schema } }));
    assert_eq!(live_extensions(&enabled, other(json!({})), json!({ "other": 7 })), [""; 0]);
    assert_eq!(live_extensions(&enabled, other(json!({})), json!({ "other": [7] })), [""; 0]);
    assert_eq!(
        live_extensions(&enabled, other(json!({ "type": "string" })), json!({ "other": 7 })),
        ["data.extensions.other type E3001"]
    );
}

#[test]
fn insights_of_a_module_that_allows_none_are_one_violation() {
    let disabled = Rules { strictness: Strictness::High, ..with_overflow(Tier::Exec, false, 0) };
    let data = |extensions: Value| json!({ "rationale": "r", "extensions": extensions });
    for (properties, extensions, expected) in [
        (json!({}), json!({ "insights": ["a"] }), vec!["data.extensions.insights overflow E3004"]),
        (
            json!({}),
            json!({ "insights": ["a"], "other": 1 }),
            vec![
                "data.extensions.insights overflow E3004",
                "data.extensions.other additionalProperties E3001",
            ],
        ),
        (json!({}), json!({ "insights": [] }), vec!["data.extensions additionalProperties E3001"]),
        (
            json!({ "extensions": { "properties": { "other": {} } } }),
            json!({ "insights": ["a"] }),
            vec!["data.extensions.insights overflow E3004"],
        ),
    ] {
        let contract = data_contract(properties, &disabled);
        let mut complete = lines(&check(&contract, data(extensions.clone())).violations);
        complete.sort();
        let mut found = live(&contract, &data(extensions));
        found.sort();
        assert_eq!(
            (&found, complete),
            (&expected.iter().map(|one| (*one).to_owned()).collect(), found.clone())
        );
    }
}
