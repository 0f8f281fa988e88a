use super::*;

fn told_of(rules: &Rules, error: Value) -> Vec<String> {
    let document =
        json!({ "error": { "required": ["details"], "properties": { "message": { "minLength": 2 } } } });
    reported(&contract(document, rules).check_error(Tree::from(error).node()))
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
    assert_eq!(told_of(&lenient, json!({})), ["error.code required E3001", "error.message required E3001"]);
}
