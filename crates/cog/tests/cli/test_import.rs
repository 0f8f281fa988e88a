use serde_json::{Value, json};

use crate::support::{Place, json as report_of, snapshot, stderr, stdout};

/// A module with a required text, a number, and an answer of one field and its rationale.
fn place() -> Place {
    let place = Place::new();
    assert!(place.cog(["new", "m", "--in", "."]).output().unwrap().status.success());
    std::fs::remove_dir_all(place.path().join("m/tests")).unwrap();
    let schema = json!({
        "input": {
            "type": "object",
            "required": ["query"],
            "properties": { "query": { "type": "string", "minLength": 1 }, "count": { "type": "integer" } },
            "additionalProperties": false,
        },
        "data": {
            "type": "object",
            "required": ["answer", "rationale"],
            "properties": {
                "answer": { "enum": ["yes", "no", "12"] },
                "rationale": { "type": "string" },
            },
        },
    });
    place.write("m/schema.json", schema.to_string());
    place
}

fn file(place: &Place, name: &str) -> Value {
    serde_json::from_str(&place.read(&format!("m/tests/{name}.json"))).unwrap()
}

#[track_caller]
fn import(place: &Place, file: &str) -> String {
    let output = place.cog(["test", "import", file, "./m"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output)
}

#[test]
fn columns_of_a_table_become_cases() {
    let place = place();
    place.write(
        "cases.csv",
        "name,query,count,expected.answer,expected.rationale,judge\n\
         First Case!,Is it?,3,yes,,\n\
         First Case!,\"Is it, really?\",,12,\"Because\",It is polite.\n\
         ,Why?,,no,,\n",
    );
    snapshot!(place.cog(["test", "import", "cases.csv", "./m"]));
    assert_eq!(file(&place, "first-case.input"), json!({ "query": "Is it?", "count": 3 }));
    assert_eq!(file(&place, "first-case.expected"), json!({ "_validate": { "answer": "yes" } }));
    assert_eq!(
        file(&place, "first-case-2.expected"),
        json!({ "_validate": { "answer": "12", "rationale": "Because" }, "$judge": ["It is polite."] })
    );
    assert_eq!(file(&place, "case1.input"), json!({ "query": "Why?" }));
    let report = report_of(&place.cog(["test", "./m", "--format", "json"]).output().unwrap());
    assert_eq!((&report["contract_only"], &report["failed"]), (&3.into(), &0.into()), "{report}");
    // Their inputs have golden tests now.
    place.write("cases.csv", "query,expected\nWhy?,no\nWhen?,yes\n");
    assert_eq!(import(&place, "cases.csv"), "case2\n");
    assert_eq!(file(&place, "case2.expected"), json!({ "_validate": { "answer": "yes" } }));
}

#[test]
fn json_lines_become_cases() {
    let place = place();
    let lines = [
        json!({ "name": "whole", "input": { "query": "a" }, "expected": { "answer": "no", "rationale": "r" } }),
        json!({ "query": "b", "count": 1, "expected.answer": "yes" }),
        json!({ "input": { "query": "c" }, "judge": ["It is short."] }),
    ];
    place.write("cases.jsonl", lines.map(|line| line.to_string()).join("\n"));
    assert_eq!(import(&place, "cases.jsonl"), "whole\ncase1\ncase2\n");
    assert_eq!(file(&place, "whole.input"), json!({ "query": "a" }));
    assert_eq!(file(&place, "whole.expected"), json!({ "answer": "no", "rationale": "r" }));
    assert_eq!(file(&place, "case1.expected"), json!({ "_validate": { "answer": "yes" } }));
    assert_eq!(file(&place, "case2.expected"), json!({ "$judge": ["It is short."] }));
    let report = report_of(&place.cog(["test", "./m", "--format", "json"]).output().unwrap());
    assert_eq!(report["failed"], 0, "{report}");
}

const PROMPTFOO: &str = r#"
prompts: ["Answer: {{query}}"]
tests:
  - description: Greets politely
    vars: { query: Hello }
    assert:
      - { type: contains, value: "ye" }
      - { type: llm-rubric, value: It is polite. }
      - { type: javascript, value: output.length < 5 }
  - vars: { query: Why, count: 2, tone: warm }
    assert:
      - { type: equals, value: '{"answer": "no"}' }
  - vars: { query: When }
    assert:
      - { type: contains, value: "e." }
      - { type: contains, value: "s" }
"#;

#[test]
fn tests_of_promptfoo_become_cases() {
    let place = place();
    place.write("promptfooconfig.yaml", PROMPTFOO);
    snapshot!(place.cog(["test", "import", "promptfooconfig.yaml", "./m"]));
    assert_eq!(file(&place, "greets-politely.input"), json!({ "query": "Hello" }));
    assert_eq!(
        file(&place, "greets-politely.expected"),
        json!({ "_validate": { "answer_contains": "ye" }, "$judge": ["It is polite."] })
    );
    assert_eq!(file(&place, "case1.input"), json!({ "query": "Why", "count": 2 }));
    assert_eq!(file(&place, "case1.expected"), json!({ "_validate": { "answer": "no" } }));
    let contains = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    assert_eq!(
        file(&place, "case2.expected"),
        json!({ "$validate": { "answer": { "allOf": [contains("e\\."), contains("s")] } } })
    );
}

/// What `cog export` writes comes back as tests that accept and refuse the same answers.
#[test]
fn exported_tests_come_back() {
    let place = place();
    for (name, expected) in [
        ("rules", json!({ "_validate": { "answer": "yes", "rationale_min": 3 }, "$judge": ["It is kind."] })),
        ("exact", json!({ "answer": "no", "rationale": "r" })),
    ] {
        place.write(&format!("m/tests/{name}.input.json"), json!({ "query": name }).to_string());
        place.write(&format!("m/tests/{name}.expected.json"), expected.to_string());
    }
    let exported = place.cog(["export", "./m", "--as", "promptfoo", "-o", "exported.yaml"]).output().unwrap();
    assert!(exported.status.success(), "{}", stderr(&exported));
    std::fs::remove_dir_all(place.path().join("m/tests")).unwrap();
    assert_eq!(import(&place, "exported.yaml"), "exact\nrules\n");
    assert_eq!(file(&place, "exact.input"), json!({ "query": "exact" }));
    let rules = file(&place, "rules.expected");
    assert_eq!(rules["$judge"], json!(["It is kind."]));
    assert_eq!(rules["$validate"]["answer"], json!({ "allOf": [{ "const": "yes" }] }), "{rules}");
    assert!(rules["$validate"]["rationale"].to_string().contains("\"minLength\":3"), "{rules}");
    let report = report_of(&place.cog(["test", "./m", "--format", "json"]).output().unwrap());
    assert_eq!(report["failed"], 0, "{report}");
}

#[test]
fn nothing_is_written_if_a_case_does_not_fit() {
    let place = place();
    let lines = [
        r#"{"input": {"query": "a"}, "expected": {"answer": "maybe", "rationale": "r"}}"#,
        r#"{"input": {"query": "b"}}"#,
        r#"{"input": {"question": "c"}, "expected.answer": "yes"}"#,
        r#"{"input": {"query": "d"}, "expected": {"_validate": []}}"#,
        "[1]",
        r#"{"input": {"query": "e"}, "expected": {"answer": "yes", "rationale": "r"}}"#,
    ];
    place.write("cases.jsonl", lines.join("\n"));
    snapshot!(place.cog(["test", "import", "cases.jsonl", "./m"]));
    assert!(!place.path().join("m/tests").exists());
}

#[test]
fn columns_and_formats_that_are_unknown_are_named() {
    let place = place();
    place
        .write("cases.csv", "query,expected.anwser\na,yes\n")
        .write("cases.txt", "")
        .write("bad.yaml", "tests: 'file://x'");
    snapshot!(place.cog(["test", "import", "cases.csv", "./m"]));
    snapshot!(place.cog(["test", "import", "cases.txt", "./m"]));
    snapshot!(place.cog(["test", "import", "bad.yaml", "./m"]));
    snapshot!(place.cog(["test", "import", "cases.csv", "code-reviewer"]));
}
