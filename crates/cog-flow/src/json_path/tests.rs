use super::*;

fn selected(path: &str, document: &str) -> Option<String> {
    let document = Value::parse(document).unwrap();
    let path = JsonPath::parse(path).unwrap_or_else(|error| panic!("{path}: {error:?}"));
    path.select(&Document::new(&document)).unwrap().map(|value| value.node().to_string())
}

const DATA: &str = r#"{"data": {"issues": [{"id": 1, "risk": "low", "big": 12345678901234567890123},
    {"id": 2, "risk": "high"}], "quick-check": 1}}"#;

#[test]
fn path_to_one_value_selects_it() {
    assert_eq!(selected("$.data.issues[1].risk", DATA).as_deref(), Some("\"high\""));
    assert_eq!(selected("$.data.quick-check", DATA).as_deref(), Some("1"));
    assert_eq!(selected("$.data.issues[0].big", DATA).as_deref(), Some("12345678901234567890123"));
    assert_eq!(selected("$.data.none", DATA), None);
    assert_eq!(selected(" $ ", "[1]").as_deref(), Some("[1]"));
}

#[test]
fn path_to_several_values_selects_a_list() {
    for (path, expected) in [
        ("$.data.issues[*].id", "[1,2]"),
        ("$..big", "[12345678901234567890123]"),
        ("$.data.issues[?@.id == 1]", r#"[{"id":1,"risk":"low","big":12345678901234567890123}]"#),
        ("$['data'][*][0,0].id", "[1,1]"),
        ("$..risk", r#"["low","high"]"#),
        ("$.data.issues[?@.risk == 'high'].id", "[2]"),
        ("$.data.issues[?@.risk == 'a..b*?' || @.id == 1].id", "[1]"),
        ("$.data.issues[0,1].id", "[1,2]"),
        ("$.data.issues[:1].id", "[1]"),
        ("$.data.none[*]", "[]"),
        ("$.data.issues[?length(@.risk) > 3].id", "[2]"),
    ] {
        assert_eq!(selected(path, DATA).as_deref(), Some(expected), "{path}");
    }
}

#[test]
fn invalid_path_has_a_column_and_a_suggestion() {
    for (path, at, message) in [
        ("data.issues", "d", "not a valid JSONPath"),
        ("$.data.issues[", "[", "not a valid JSONPath"),
        ("$.a['x", "'", "the string is not closed"),
    ] {
        let error = JsonPath::parse(path).unwrap_err();
        assert_eq!((path.get(error.range.clone()).unwrap(), &*error.message), (at, message), "{path}");
    }
    assert!(JsonPath::parse("$.data.[0]").is_err());
    let help = JsonPath::parse("data.issues").unwrap_err().suggestion.unwrap();
    assert_eq!(help, "Start with `$`: `$.data.issues`.");
}

#[test]
fn paths_that_explode_are_rejected() {
    for path in [
        "$..*..*",
        "$..a..b",
        "$[?@..a]",
        "$[?@.*]",
        "$[?@[?@.a]]",
        "$[?@[0:2]]",
        "$[?match(@.a, '(a|b)*')]",
        "$[?search (@.a, @.b)]",
        &format!("${}", "[*]".repeat(9)),
        &format!("$[{}]", ["0"; 17].join(",")),
        &format!("${}", "[0,0]".repeat(5)),
        "$[*,*]",
        "$[0,?@.a]",
        &format!("$.{}", "a".repeat(1_100)),
        &"$".repeat(1_100),
    ] {
        assert!(JsonPath::parse(path).is_err(), "{path}");
    }
}

#[test]
fn selected_values_are_bounded() {
    let deep = format!("{}\"{}\"{}", "[".repeat(100), "x".repeat(100_000), "]".repeat(100));
    let document = Value::parse(&deep).unwrap();
    assert_eq!(JsonPath::parse("$..*").unwrap().select(&Document::new(&document)), Err(TOO_LARGE));
    assert!(JsonPath::parse("$[*]").unwrap().select(&Document::new(&document)).is_ok());
}

#[test]
fn reads_up_to_the_first_other_selector() {
    let key = |name: &str| WildStep::Key(name.to_owned());
    for (text, steps, is_complete) in [
        ("$.data.issues[*].id", vec![key("data"), key("issues"), WildStep::All, key("id")], true),
        ("$['a b'].*", vec![key("a b"), WildStep::All], true),
        ("$.a[0][?@.b]", vec![key("a"), WildStep::Index], false),
        ("$.a..b", vec![key("a")], false),
        ("$[0,1]", vec![], false),
    ] {
        assert_eq!(WildPath::read(text), WildPath { steps, is_complete }, "{text}");
    }
}
