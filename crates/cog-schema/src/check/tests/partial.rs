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
    let (good, bad) = (insight("a"), json!({ "text": "t" }));
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
