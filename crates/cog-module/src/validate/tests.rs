use super::*;
use crate::{
    Shipped,
    testing::{Folder, MANIFEST, SCHEMA},
};

fn rules(folder: &Folder, level: Level) -> Vec<&'static str> {
    let report = validate(&folder.origin(), level);
    let errors = report.diagnostics.iter().filter(|found| found.severity == Severity::Error);
    errors.map(|found| found.rule.as_str()).collect()
}

#[test]
fn every_example_and_every_module_that_ships_is_valid() {
    for format in ["format-v0", "format-v1", "format-v21", "format-v22", "format-v25"] {
        let folder = Folder::example(format);
        let report = validate(&folder.origin(), Level::Any);
        assert!(report.is_valid(), "{}", report.to_json_pretty());
        assert!(report.cases >= 1, "{format}");
    }
    for shipped in Shipped::all() {
        let report = validate(&Origin::BuiltIn(shipped), Level::V22);
        assert!(report.diagnostics.is_empty(), "{}", report.to_json_pretty());
        assert!(report.cases >= 2, "{}", shipped.name);
    }
}

#[test]
fn each_check_fails_on_its_own() {
    let v1 = || Folder::example("format-v1");
    let without_keys = v1().with("MODULE.md", "# Only a prompt\n");
    assert_eq!(rules(&without_keys, Level::Any), ["front-matter"]);
    assert_eq!(rules(&v1().with("schema.json", "{"), Level::Any), ["schema-syntax"]);
    assert_eq!(rules(&v1().with("examples/input.json", "{\"zzz\": 1}"), Level::Any)[0], "example-input");
    assert_eq!(rules(&v1().with("examples/output.json", "{\"zzz\": 1}"), Level::Any)[0], "example-output");
    let v22 = Folder::v22().with("tests/case1.input.json", "{\"text\": 1}");
    let v22 = v22.with("tests/case1.expected.json", "{\"queue\": \"other\", \"rationale\": \"x\"}");
    assert_eq!(rules(&v22, Level::Any), ["golden-input"]);
    let v22 = v22
        .with("tests/case1.input.json", "{\"text\": \"x\"}")
        .with("tests/case1.expected.json", "{\"queue\": 1}");
    assert_eq!(rules(&v22, Level::Any)[0], "golden-expected");
}

#[test]
fn a_broken_schema_is_told_where_it_breaks() {
    let folder = Folder::v22()
        .with("schema.json", SCHEMA.replace("\"required\": [\"text\"]", "\"required\": \"text\""));
    let report = validate(&folder.origin(), Level::Any);
    let found = report.diagnostics.iter().find(|found| found.rule == Rule::SchemaInvalid).unwrap();
    let place = found.place.as_ref().unwrap();
    assert_eq!(place.excerpt.get(place.marked.clone()), Some("text"), "{found}");
}

#[test]
fn schemas_that_cannot_work_are_told_each_with_its_place() {
    let schemas = [
        ("\"enum\": [\"billing\", \"other\"]", "\"pattern\": \"(\"", "pattern"),
        ("\"enum\": [\"billing\", \"other\"]", "\"$ref\": \"#/$defs/Queue\"", "loop"),
        ("\"enum\": [\"billing\", \"other\"]", "\"$ref\": \"#/$defs/Nowhere\"", "nowhere"),
        ("\"enum\": [\"billing\", \"other\"]", "\"type\": \"strnig\"", "type"),
    ];
    let mut shown = String::new();
    for (old, new, name) in schemas {
        let folder = Folder::v22().with("schema.json", SCHEMA.replace(old, new));
        let error = folder.load().unwrap_err();
        let found: Vec<String> = error.diagnostics.iter().map(ToString::to_string).collect();
        shown += &format!("=== {name}\n{}\n", folder.strip(&found.join("\n\n")));
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn a_golden_answer_of_an_exec_module_passes_the_gate_or_is_told() {
    let answer = |confidence: &str, risk: &str| {
        format!(
            r#"{{"ok": true, "meta": {{"confidence": {confidence}, "risk": "{risk}", "explain": "x"}},
                "data": {{"queue": "other", "rationale": "x"}}}}"#
        )
    };
    let folder = || {
        Folder::v22()
            .with("module.yaml", MANIFEST.replace("decision", "exec"))
            .with("tests/a.input.json", "{\"text\": \"x\"}")
    };
    assert_eq!(
        rules(&folder().with("tests/a.expected.json", answer("0.9", "low")), Level::Any),
        Vec::<&str>::new()
    );
    let low = folder().with("tests/a.expected.json", answer("0.89", "low"));
    assert_eq!(rules(&low, Level::Any), ["golden-expected"]);
    let risky = folder().with("tests/a.expected.json", answer("0.95", "medium"));
    assert_eq!(rules(&risky, Level::Any), ["golden-expected"]);
}

#[test]
fn the_levels_ask_for_more() {
    assert_eq!(rules(&Folder::v22(), Level::V22), Vec::<&str>::new());
    assert_eq!(rules(&Folder::v22(), Level::V25), ["level-format"]);
    let v25 = Folder::v22().with("module.yaml", MANIFEST.to_owned() + "response: { mode: sync }\n");
    assert_eq!(rules(&v25, Level::V25), Vec::<&str>::new());
    assert_eq!(rules(&v25, Level::V22), Vec::<&str>::new());
}

#[test]
fn a_v22_module_is_asked_for_each_of_its_parts() {
    let folder = Folder::v22().with("module.yaml", MANIFEST.replace("tier: decision\n", "")).with(
        "schema.json",
        r#"{"input": {}, "output": {"type": "object"}, "meta": {"required": ["risk"]}}"#,
    );
    let expected = ["level-tier", "level-schema-part", "level-schema-part", "level-meta", "level-meta"];
    assert_eq!(rules(&folder, Level::V22), expected);
    let old = Folder::example("format-v1");
    assert_eq!(rules(&old, Level::V22)[0], "level-format");
}

#[test]
fn a_report_reads_as_json() {
    let folder = Folder::v22().with("module.yaml", MANIFEST.replace("tier:", "teir:"));
    let report = validate(&folder.origin(), Level::V22);
    insta::assert_snapshot!(folder.strip(&report.to_json_pretty()));
}
