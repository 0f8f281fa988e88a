use super::*;

fn violations(rules: &Rules, error: Value) -> Vec<String> {
    let document =
        json!({ "error": { "required": ["details"], "properties": { "message": { "minLength": 2 } } } });
    lines(&contract(document, rules).check_error(Tree::from(error).node()))
}

#[test]
fn accepts_specified_and_declared_codes() {
    let rules = Rules { error_codes: vec!["E5001".into()], ..rules(Tier::Decision) };
    let check = |code: &str| violations(&rules, json!({ "code": code, "message": "me", "details": {} }));
    for good in ["E2004", "E5001", "BEHAVIOR_CHANGE_REQUIRED"] {
        assert_eq!(check(good), [""; 0]);
    }
    for bad in ["E5002", "E0001", "E20041", "OOPS"] {
        assert_eq!(check(bad), ["error.code error_code E3001"]);
    }
}

#[test]
fn error_schema_is_enforced_unless_the_manifest_disables_it() {
    let error = json!({ "code": "E2004", "message": "m" });
    let strict = rules(Tier::Decision);
    assert_eq!(
        violations(&strict, error.clone()),
        ["error.details required E3001", "error.message minLength E3001"]
    );
    let lenient = Rules { enforce_error_schema: false, ..strict };
    assert_eq!(violations(&lenient, error), [""; 0]);
    assert_eq!(
        violations(&lenient, json!({})),
        ["error.code required E3001", "error.message required E3001"]
    );
}

#[test]
fn codes_of_the_error_schema_are_known() {
    for code in [json!({ "enum": ["OOPS", "OTHER"] }), json!({ "const": "OOPS" })] {
        let document = json!({ "error": { "properties": { "code": code } } });
        let contract = contract(document, &rules(Tier::Decision));
        assert!(contract.allows_code("OOPS") && !contract.allows_code("NONE"), "{code}");
        let check = |code: &str| {
            lines(&contract.check_error(Tree::from(json!({ "code": code, "message": "m" })).node()))
        };
        assert_eq!(check("OOPS"), [""; 0]);
        assert!(check("NONE").contains(&"error.code error_code E3001".to_owned()));
    }
    assert!(!contract(json!({}), &rules(Tier::Decision)).allows_code("OOPS"));
}

#[test]
fn code_that_the_error_schema_allows_by_pattern_or_type_is_known() {
    for (code, allowed, excluded) in [
        (json!({ "type": "string", "pattern": "^E[1-4][0-9]{3}$" }), "E2042", "OOPS"),
        (json!({ "type": "string", "minLength": 4 }), "FILE_TOO_COMPLEX", "NO"),
        (json!({ "anyOf": [{ "pattern": "^X_" }, { "const": "OOPS" }] }), "X_1", "Y_1"),
    ] {
        let document = json!({ "error": { "properties": { "code": code } } });
        let contract = contract(document, &rules(Tier::Decision));
        assert!(contract.allows_code(allowed) && !contract.allows_code(excluded), "{code}");
    }
    let any = contract(
        json!({ "error": { "properties": { "code": { "type": "string" } } } }),
        &rules(Tier::Decision),
    );
    assert!(any.allows_code("OOPS") && !any.allows_code("E7001"), "a manifest declares such codes");
    let unnamed = contract(json!({ "error": { "required": ["details"] } }), &rules(Tier::Decision));
    assert!(!unnamed.allows_code("OOPS"));
}

#[test]
fn each_field_has_its_type() {
    let contract = contract(json!({}), &rules(Tier::Decision));
    let right =
        json!({ "code": "E2004", "message": "m", "recoverable": false, "suggestion": "s", "details": {} });
    assert_eq!(contract.check_error(Tree::from(right.clone()).node()), []);
    for key in ["code", "message", "recoverable", "suggestion", "details"] {
        let mut wrong = right.clone();
        wrong[key] = json!(7);
        let found = lines(&contract.check_error(Tree::from(wrong).node()));
        assert_eq!(found, [format!("error.{key} type E3001")]);
    }
}
