use super::*;
use crate::{
    BuiltinModule,
    testing::{Directory, MANIFEST, SCHEMA},
};

fn rules(directory: &Directory, level: Level) -> Vec<&'static str> {
    let report = validate(&directory.origin(), level);
    let errors = report.diagnostics.iter().filter(|found| found.severity == Severity::Error);
    errors.map(|found| found.rule.as_str()).collect()
}

#[test]
fn every_example_and_built_in_module_is_valid() {
    for format in ["format-v0", "format-v1", "format-v21", "format-v22", "format-v25"] {
        let directory = Directory::example(format);
        let report = validate(&directory.origin(), Level::Any);
        assert!(report.is_valid(), "{}", report.to_json_pretty());
        assert!(report.cases >= 1, "{format}");
    }
    for shipped in BuiltinModule::all() {
        let report = validate(&Origin::BuiltIn(shipped), Level::V22);
        assert!(report.diagnostics.is_empty(), "{}", report.to_json_pretty());
        assert!(report.cases >= 2, "{}", shipped.name);
    }
}

#[test]
fn each_check_can_fail() {
    let v1 = || Directory::example("format-v1");
    let without_keys = v1().with("MODULE.md", "# Only a prompt\n");
    assert_eq!(rules(&without_keys, Level::Any), ["front-matter"]);
    assert_eq!(rules(&v1().with("schema.json", "{"), Level::Any), ["schema-syntax"]);
    assert_eq!(rules(&v1().with("examples/input.json", "{\"zzz\": 1}"), Level::Any)[0], "example-input");
    assert_eq!(rules(&v1().with("examples/output.json", "{\"zzz\": 1}"), Level::Any)[0], "example-output");
    let v22 = Directory::v22().with("tests/case1.input.json", "{\"text\": 1}");
    let v22 = v22.with("tests/case1.expected.json", "{\"queue\": \"other\", \"rationale\": \"x\"}");
    assert_eq!(rules(&v22, Level::Any), ["golden-input"]);
    let v22 = v22
        .with("tests/case1.input.json", "{\"text\": \"x\"}")
        .with("tests/case1.expected.json", "{\"queue\": 1}");
    assert_eq!(rules(&v22, Level::Any)[0], "golden-expected");
}

#[test]
fn invalid_schema_is_reported_at_its_location() {
    let directory = Directory::v22()
        .with("schema.json", SCHEMA.replace("\"required\": [\"text\"]", "\"required\": \"text\""));
    let report = validate(&directory.origin(), Level::Any);
    let found = report.diagnostics.iter().find(|found| found.rule == Rule::SchemaInvalid).unwrap();
    let location = found.location.as_ref().unwrap();
    assert_eq!(location.excerpt.get(location.marked.clone()), Some("text"), "{found}");
}

#[test]
fn each_unusable_schema_is_reported() {
    let schemas = [
        ("\"enum\": [\"billing\", \"other\"]", "\"pattern\": \"(\"", "pattern"),
        ("\"enum\": [\"billing\", \"other\"]", "\"$ref\": \"#/$defs/Queue\"", "loop"),
        ("\"enum\": [\"billing\", \"other\"]", "\"$ref\": \"#/$defs/Nowhere\"", "nowhere"),
        ("\"enum\": [\"billing\", \"other\"]", "\"type\": \"strnig\"", "type"),
    ];
    let mut shown = String::new();
    for (old, new, name) in schemas {
        let directory = Directory::v22().with("schema.json", SCHEMA.replace(old, new));
        let error = directory.load().unwrap_err();
        let found: Vec<String> = error.diagnostics.iter().map(ToString::to_string).collect();
        shown += &format!("=== {name}\n{}\n", directory.strip(&found.join("\n\n")));
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn golden_answer_must_pass_the_gate_of_the_tier() {
    let answer = |confidence: &str, risk: &str| {
        format!(
            r#"{{"ok": true, "meta": {{"confidence": {confidence}, "risk": "{risk}", "explain": "x"}},
                "data": {{"queue": "other", "rationale": "x"}}}}"#
        )
    };
    let directory = || {
        Directory::v22()
            .with("module.yaml", MANIFEST.replace("decision", "exec"))
            .with("tests/a.input.json", "{\"text\": \"x\"}")
    };
    assert_eq!(
        rules(&directory().with("tests/a.expected.json", answer("0.9", "low")), Level::Any),
        Vec::<&str>::new()
    );
    let low = directory().with("tests/a.expected.json", answer("0.89", "low"));
    assert_eq!(rules(&low, Level::Any), ["golden-expected"]);
    let risky = directory().with("tests/a.expected.json", answer("0.95", "medium"));
    assert_eq!(rules(&risky, Level::Any), ["golden-expected"]);
}

#[test]
fn higher_levels_require_more() {
    assert_eq!(rules(&Directory::v22(), Level::V22), Vec::<&str>::new());
    assert_eq!(rules(&Directory::v22(), Level::V25), ["level-format"]);
    let schema = SCHEMA.replace("[\"queue\", \"rationale\"]", "[\"queue\"]");
    let without = Directory::v22().with("schema.json", schema);
    assert_eq!(rules(&without, Level::V22), ["level-rationale"]);
    let optional = without.with("module.yaml", MANIFEST.to_owned() + "rationale: optional\n");
    assert_eq!(rules(&optional, Level::V22), Vec::<&str>::new());
    let v25 = Directory::v22().with("module.yaml", MANIFEST.to_owned() + "response: { mode: sync }\n");
    assert_eq!(rules(&v25, Level::V25), Vec::<&str>::new());
    assert_eq!(rules(&v25, Level::V22), Vec::<&str>::new());
}

#[test]
fn v22_level_requires_each_section() {
    let directory = Directory::v22().with("module.yaml", MANIFEST.replace("tier: decision\n", "")).with(
        "schema.json",
        r#"{"input": {}, "output": {"type": "object"}, "meta": {"required": ["risk"]}}"#,
    );
    let expected = ["level-tier", "level-schema-part", "level-schema-part", "level-meta", "level-meta"];
    assert_eq!(rules(&directory, Level::V22), expected);
    let old = Directory::example("format-v1");
    assert_eq!(rules(&old, Level::V22)[0], "level-format");
}

#[test]
fn report_is_written_as_json() {
    let directory = Directory::v22().with("module.yaml", MANIFEST.replace("tier:", "teir:"));
    let report = validate(&directory.origin(), Level::V22);
    insta::assert_snapshot!(directory.strip(&report.to_json_pretty()));
}

#[test]
fn misnamed_directory_of_tests_is_reported() {
    let directory = Directory::v22().with("test/a.input.json", "{}");
    let report = validate(&directory.origin(), Level::Any);
    assert_eq!((report.cases, report.diagnostics.len()), (0, 1));
    assert_eq!(report.diagnostics[0].message, "the golden tests in `test` are not read");
    assert_eq!(report.diagnostics[0].suggestion.as_deref(), Some("Rename it to `tests`."));
}
