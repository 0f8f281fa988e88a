use serde_json::json;

use super::*;
use crate::{Rule, testing::Directory};

fn mismatches(expected: serde_json::Value, envelope: serde_json::Value) -> Vec<(String, String)> {
    let expected = Expected::read(&Value::from(expected)).unwrap();
    let found = compare(&expected, Value::from(envelope).node());
    found.into_iter().map(|found| (found.path, found.rule)).collect()
}

fn pair(path: &str, rule: &str) -> (String, String) {
    (path.to_owned(), rule.to_owned())
}

fn answer() -> serde_json::Value {
    json!({
        "ok": true,
        "meta": { "confidence": 0.9, "risk": "low", "explain": "Two.", "model": "offline/golden", "attempts": 2 },
        "data": {
            "items": [{ "id": 1, "text": "one" }, { "id": 2, "text": "two" }],
            "count": 2,
            "count_max": 5,
            "rationale": "There are two."
        }
    })
}

#[test]
fn similar_texts_share_most_pairs_of_characters() {
    let check = |operand: serde_json::Value| {
        let expected =
            Expected::read(&Value::from(json!({ "_validate": { "t_similar": operand } }))).unwrap();
        let envelope = Value::from(json!({ "ok": true, "data": { "t": "The cat sat on the mat." } }));
        compare(&expected, envelope.node()).into_iter().map(|found| found.message).collect::<Vec<_>>()
    };
    assert_eq!(check(json!("The cat sat on that mat")), [""; 0]);
    assert_eq!(check(json!({ "text": "The dog sat on the log.", "min": 0.5 })), [""; 0]);
    assert_eq!(
        check(json!("A dog ran.")),
        [r#"expected a string similar to "A dog ran.", found "The cat sat on the mat.""#]
    );
    for wrong in [json!(5), json!({ "text": "x", "min": 2 }), json!({ "min": 0.5 })] {
        assert!(check(wrong.clone())[0].starts_with("`_similar` requires a string"), "{wrong}");
    }
}

#[test]
fn exact_answer_is_compared_with_the_data() {
    let data = answer()["data"].clone();
    assert_eq!(mismatches(data.clone(), answer()), []);
    let mut other = data;
    other["items"][1]["text"] = json!("three");
    other["count"] = json!(2.0);
    assert_eq!(mismatches(other, answer()), [pair("data.items[1].text", "equals")]);
}

#[test]
fn exact_error_need_not_have_the_origin() {
    let meta = json!({ "confidence": 0.9, "risk": "low", "explain": "No." });
    let envelope = |error: serde_json::Value| json!({ "ok": false, "meta": meta, "error": error });
    let error = |details: serde_json::Value| json!({ "code": "E2004", "message": "No.", "details": details });
    let plain = json!({ "code": "E2004", "message": "No." });
    let of_model = envelope(error(json!({ "origin": "model" })));
    assert_eq!(mismatches(envelope(plain.clone()), of_model.clone()), []);
    assert_eq!(mismatches(of_model.clone(), of_model.clone()), []);
    let of_runtime = envelope(error(json!({ "origin": "runtime" })));
    assert_eq!(mismatches(of_runtime, of_model), [pair("error.details.origin", "equals")]);
    let word = envelope(json!({ "code": "TOO_SHORT", "message": "No.", "details": { "a": 1 } }));
    let written = envelope(error(json!({ "origin": "model", "a": 1, "legacy_code": "TOO_SHORT" })));
    assert_eq!(mismatches(word, written), []);
}

#[test]
fn exact_envelope_ignores_members_of_the_runtime() {
    let mut envelope = answer();
    envelope["meta"].as_object_mut().unwrap().retain(|key, _| key != "model" && key != "attempts");
    assert_eq!(mismatches(envelope.clone(), answer()), []);
    envelope["meta"]["model"] = json!("other");
    assert_eq!(mismatches(envelope.clone(), answer()), []);
    envelope["meta"]["risk"] = json!("none");
    assert_eq!(mismatches(envelope, answer()), [pair("meta.risk", "equals")]);
}

#[test]
fn extra_and_missing_members_are_reported() {
    let found = mismatches(json!({ "items": [], "count": 2, "note": "x" }), answer());
    let expected = [
        pair("data.items", "equals"),
        pair("data.note", "required"),
        pair("data.count_max", "equals"),
        pair("data.rationale", "equals"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn failure_reports_its_code() {
    let failure = json!({ "ok": false, "meta": {}, "error": { "code": "E3001", "message": "x" } });
    let expected = Expected::read(&Value::from(json!({ "count": 2 }))).unwrap();
    let found = compare(&expected, Value::from(failure).node());
    assert!(found[0].message.contains("E3001"), "{found:?}");
}

#[test]
fn error_can_have_the_code_that_the_model_wrote() {
    let error = |code: &str, details| json!({ "code": code, "message": "m", "details": details });
    let failed = |error| json!({ "ok": false, "error": error });
    let replaced = failed(error("E1004", json!({ "legacy_code": "TOO_SHORT" })));
    assert_eq!(mismatches(replaced.clone(), replaced.clone()), []);
    let written = json!({ "code": "TOO_SHORT", "message": "m" });
    assert_eq!(mismatches(failed(written.clone()), replaced.clone()), []);
    assert_eq!(mismatches(json!({ "_validate": { "error.code": "TOO_SHORT" } }), replaced.clone()), []);
    let with_details = failed(error("E1004", json!({ "legacy_code": "TOO_SHORT", "at": 1 })));
    assert_eq!(mismatches(failed(error("TOO_SHORT", json!({ "at": 1 }))), with_details), []);
    let other = json!({ "code": "TOO_LONG", "message": "m" });
    assert_eq!(mismatches(failed(other), replaced.clone()), [pair("error.code", "equals")]);
    let message = json!({ "code": "TOO_SHORT", "message": "n" });
    assert_eq!(mismatches(failed(message), replaced), [pair("error.message", "equals")]);
    let plain = failed(json!({ "code": "E1004", "message": "m" }));
    assert_eq!(mismatches(failed(written), plain), [pair("error.code", "equals")]);
}

#[test]
fn schemas_are_checked_field_by_field() {
    let expected = json!({ "$validate": {
        "items": { "type": "array", "minItems": 3 },
        "items[0].id": { "const": 1 },
        "meta.confidence": { "minimum": 0.5 },
        "missing": {},
    } });
    assert_eq!(
        mismatches(expected, answer()),
        [pair("data.items", "schema"), pair("data.missing", "required")]
    );
}

#[test]
fn every_operator_can_pass_and_fail() {
    let passing = json!({ "_validate": {
        "required": ["items[1].id", "meta.explain", "ok"],
        "ok": true,
        "count": 2,
        "count_min": 2,
        "items_max": 2,
        "rationale_contains": "two",
        "rationale_matches": "^There .*\\.$",
        "meta.risk_not": "high",
        "absent_not": "x",
    } });
    assert_eq!(mismatches(passing, answer()), []);
    let failing = json!({ "_validate": {
        "required": ["items[2].id"],
        "count": 3,
        "count_min": 3,
        "items_max": 1,
        "rationale_contains": "three",
        "rationale_matches": "^two",
        "meta.risk_not": "low",
        "absent": 1,
    } });
    let rules = ["required", "equals", "min", "max", "contains", "matches", "not", "equals"];
    let found = mismatches(failing, answer());
    assert_eq!(found.iter().map(|(_, rule)| rule.as_str()).collect::<Vec<_>>(), rules);
}

#[test]
fn assertion_with_an_unusable_operand_fails() {
    for (key, value) in [
        ("ok_min", json!(0)),
        ("items_max", json!("many")),
        ("count_min", json!("high")),
        ("rationale_matches", json!(5)),
    ] {
        assert_eq!(mismatches(json!({ "_validate": { key: value } }), answer()).len(), 1, "{key}");
    }
}

#[test]
fn suffix_is_an_operator_unless_a_field_has_that_name() {
    assert_eq!(mismatches(json!({ "_validate": { "count_max": 5 } }), answer()), []);
    assert_eq!(
        mismatches(json!({ "_validate": { "count_max": 2 } }), answer()),
        [pair("data.count_max", "equals")]
    );
}

#[test]
fn list_contains_an_equal_item() {
    let assertion = |item| json!({ "_validate": { "items_contains": item } });
    assert_eq!(mismatches(assertion(json!({ "text": "one", "id": 1.0 })), answer()), []);
    assert_eq!(mismatches(assertion(json!({ "id": 1 })), answer()), [pair("data.items", "contains")]);
}

#[test]
fn rejects_invalid_expected_files() {
    for wrong in [
        json!({ "$validate": [] }),
        json!({ "_validate": "x" }),
        json!({ "_validate": { "required": "x" } }),
        json!({ "_validate": { "a[": 1 } }),
    ] {
        assert!(Expected::read(&Value::from(wrong.clone())).is_err(), "{wrong}");
    }
}

#[test]
fn input_matches_in_any_form() {
    let directory = Directory::example("format-v22");
    let module = directory.load().unwrap();
    let cases = discover(&module).cases;
    let input = &cases[0].input;
    let mut other = input.to_serde();
    let members = other.as_object_mut().unwrap();
    let reversed: Vec<_> = members.clone().into_iter().rev().collect();
    *members = reversed.into_iter().collect();
    assert_eq!(find_case(&cases, Value::from(other).node()).map(|case| case.name.as_str()), Some("case1"));
    assert!(find_case(&cases, Value::from(json!({})).node()).is_none());
}

#[test]
fn finds_each_case_once() {
    let directory = Directory::example("format-v22");
    let pairs = "  - ./tests/case1.input.json -> tests/case1.expected.json\n  - own/a.json -> own/b.json\n";
    let text = directory.read("module.yaml");
    let (before, _) = text.split_once("\ntests:").unwrap();
    let manifest = format!("{before}\ntests:\n{pairs}");
    let case = directory.read("tests/case1.input.json");
    let directory = directory
        .with("module.yaml", manifest)
        .with("own/a.json", &case)
        .with("own/b.json", "{\"ok\": true, ")
        .with("tests/case10.input.json", &case)
        .with("tests/case2.input.json", &case)
        .with("tests/case2.expected.json", "{}")
        .with("tests/case2.cassette/0001.json", "{}")
        .with("tests/case3.in.json", &case)
        .with("tests/case3.expected.json", "{}");
    let discovery = discover(&directory.load().unwrap());
    let names: Vec<&str> = discovery.cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names, ["case1", "case2"]);
    assert!(discovery.cases[1].cassette.as_ref().is_some_and(|path| path.ends_with("tests/case2.cassette")));
    let rules: Vec<Rule> = discovery.problems.iter().map(|problem| problem.rule).collect();
    assert_eq!(rules, [Rule::GoldenSyntax, Rule::GoldenPair, Rule::GoldenPair]);
    let alone = discovery.problems.last().map(|problem| problem.message.as_str());
    assert_eq!(alone, Some("tests/case3.expected.json has no matching input file"));
}

#[test]
fn listed_names_are_also_found_in_tests() {
    let directory = Directory::example("format-v1");
    let text = directory.read("MODULE.md").replacen("---\n", "---\ntests:\n  - a.input.json -> b.json\n", 1);
    let input = directory.read("examples/input.json");
    let output = directory.read("examples/output.json");
    let in_tests =
        directory.with("MODULE.md", text).with("tests/a.input.json", input).with("tests/b.json", output);
    let discovery = discover(&in_tests.load().unwrap());
    assert_eq!(discovery.problems, []);
    let names: Vec<&str> = discovery.cases.iter().map(|case| case.name.as_str()).collect();
    assert_eq!(names, ["a", "example"]);
    let beside = in_tests.with("a.input.json", "{");
    assert_eq!(
        discover(&beside.load().unwrap()).problems[0].rule,
        Rule::GoldenSyntax,
        "a file next to the manifest comes first"
    );
}

#[test]
fn examples_of_old_formats_are_cases() {
    for format in ["format-v0", "format-v1"] {
        let directory = Directory::example(format);
        let module = directory.load().unwrap();
        let Discovery { cases, problems } = discover(&module);
        assert_eq!(problems, []);
        assert_eq!(cases.len(), 1, "{format}");
        assert_eq!(check_case(&module, &cases[0]), [], "{format}");
    }
}

#[test]
fn length_in_a_path_suggests_the_operators_for_lengths() {
    let directory = Directory::example("format-v22");
    for (key, help) in [
        (
            "rationale.length_min",
            Some("`rationale_min` and `rationale_max` compare the length of a list or a string."),
        ),
        (
            "data.rationale.length",
            Some("`data.rationale_min` and `data.rationale_max` compare the length of a list or a string."),
        ),
        ("rationale_min", None),
    ] {
        let module = directory.load().unwrap();
        let expected = Expected::read(&Value::from(json!({ "_validate": { key: 1 } }))).unwrap();
        let case = GoldenCase { expected, ..discover(&module).cases.remove(0) };
        let found: Vec<_> =
            unknown_paths(&module, &case).into_iter().map(|one| one.suggestion.unwrap()).collect();
        assert_eq!(found, help.into_iter().collect::<Vec<_>>(), "{key}");
    }
}

#[test]
fn unusable_operand_is_found_without_an_answer() {
    let directory = Directory::example("format-v22");
    let check = |validate: serde_json::Value| {
        let module = directory.load().unwrap();
        let case = GoldenCase {
            criteria: Vec::new(),
            expected: Expected::read(&Value::from(json!({ "_validate": validate }))).unwrap(),
            ..discover(&module).cases.remove(0)
        };
        check_case(&module, &case)
    };
    let broken = check(json!({ "rationale_matches": "(unclosed", "issues_min": "many", "ok": true }));
    let reported: Vec<_> = broken.iter().map(|(rule, found)| (*rule, found.path.as_str())).collect();
    let expected = [
        (Rule::GoldenExpected, "_validate.rationale_matches"),
        (Rule::GoldenExpected, "_validate.issues_min"),
    ];
    assert_eq!(reported, expected);
    assert!(broken[0].1.message.contains("\"(unclosed\""), "{broken:?}");
    let good = json!({ "rationale_matches": "^(a|b)+$", "issues_min": 1, "rationale_not": "" });
    assert_eq!(check(good), []);
}

#[test]
fn rejects_too_many_expectations() {
    let schemas: serde_json::Map<_, _> = (0..1001).map(|n| (format!("k{n}"), json!({}))).collect();
    for key in ["$validate", "_validate"] {
        let file = Value::from(json!({ key: schemas }));
        assert_eq!(Expected::read(&file).unwrap_err(), ExpectedError::TooMany { found: 1001 }, "{key}");
    }
}

#[test]
fn golden_tests_have_a_total_size_limit() {
    let large = format!("{{\"query\": \"{}\"}}", "x".repeat(7 * 1024 * 1024));
    let mut directory = Directory::v22();
    for number in 0..6 {
        directory = directory
            .with(&format!("tests/case{number}.input.json"), &large)
            .with(&format!("tests/case{number}.expected.json"), &large);
    }
    let found = discover(&directory.load().unwrap());
    assert!(found.cases.len() < 6 && !found.problems.is_empty());
    assert!(found.problems.iter().all(|problem| problem.rule == Rule::FileTooLarge), "{:?}", found.problems);
}
