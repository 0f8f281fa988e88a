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
