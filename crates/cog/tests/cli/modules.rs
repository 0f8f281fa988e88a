use crate::support::{Place, json, snapshot, stdout};

#[test]
fn list() {
    let place = Place::new();
    place.copy_module("format-v1", "cognitive/modules/format-v1");
    place.write("cognitive/modules/broken/module.yaml", "name: [\n");
    snapshot!(place.cog(["list"]));
}

#[test]
fn list_as_json() {
    let place = Place::new();
    let listed = json(&place.cog(["list", "--format", "json"]).output().unwrap());
    assert_eq!(listed[0]["name"], "answer-judge");
}

#[test]
fn info() {
    snapshot!(Place::new().cog(["info", "code-reviewer"]));
}

#[test]
fn info_of_missing_module() {
    snapshot!(Place::new().cog(["info", "code-reviwer"]));
}

#[test]
fn validate_valid_module() {
    let place = Place::new();
    place.copy_module("format-v25", "m");
    snapshot!(place.cog(["validate", "./m", "code-reviewer"]));
}

#[test]
fn validate_invalid_module() {
    let place = Place::new();
    place.copy_module("format-v25", "m").write(
        "m/module.yaml",
        "name: m\nversion: 1.0.0\nresponsibility: Answer\ntier: decison\nexcludes: []\nresponse:\n  mode: sync\n",
    );
    snapshot!(place.cog(["validate", "./m"]));
}

#[test]
fn validate_compares_checks_with_the_schemas() {
    let place = Place::new();
    place.copy_module("format-v22", "format-v22");
    let checks = "checks:
  - name: misspelt
    that: length($.data.resutl) > 0
  - name: wrong type
    that: sum($.data.result) == 1
  - name: always
    that: count($.data.list[*]) >= 0
  - { name: both, that: $.data.result != '', grounded: $.data.result }
  - { name: neither }
  - { name: both, that: $.data.result = 1 }
";
    let schema = r#"{"input": {"type": "object"}, "data": {"type": "object", "additionalProperties": false, "properties": {
        "result": {"type": "string"}, "list": {"type": "array"}, "rationale": {"type": "string"}}}}"#;
    place.write("format-v22/module.yaml", place.read("format-v22/module.yaml") + checks);
    place.write("format-v22/schema.json", schema);
    snapshot!(place.cog(["validate", "./format-v22"]));
}

#[test]
fn validate_reports_what_has_no_effect() {
    let place = Place::new();
    place.copy_module("format-v22", "format-v22");
    let schema = place.read("format-v22/schema.json").replacen("\"properties\"", "\"propertes\"", 1);
    let manifest = place.read("format-v22/module.yaml") + "mode: streaming\n";
    place.write("format-v22/schema.json", schema).write("format-v22/module.yaml", manifest);
    place.write("format-v22/prompt.md", "Sort {{input}} for $ARGUMENT, or return E5017.\n");
    snapshot!(place.cog(["validate", "./format-v22"]));
}

/// Creates a module with an error in its manifest and a warning in its schema.
fn faulty(place: &Place) {
    place.copy_module("format-v22", "format-v22");
    let schema = place.read("format-v22/schema.json").replacen("\"properties\"", "\"propertes\"", 1);
    let manifest = place.read("format-v22/module.yaml").replacen("tier: ", "tier: x", 1);
    place.write("format-v22/schema.json", schema).write("format-v22/module.yaml", manifest);
}

#[test]
fn validate_warns_of_examples_that_break_their_own_schema() {
    let place = Place::new();
    for format in ["format-v0", "format-v1", "format-v22"] {
        place.copy_module(format, format);
    }
    let broken = "{\"wrong\": true}";
    place.write("format-v0/examples/output.json", broken).write("format-v0/examples/input.json", "[1]");
    place.write("format-v1/examples/output.json", broken).write("format-v1/examples/input.json", "{not json");
    place.write("format-v22/tests/case1.expected.json", broken);
    for format in ["format-v0", "format-v1", "format-v22"] {
        let validate = |more: &[&str]| {
            let module = format!("./{format}");
            let arguments = [&["validate", module.as_str(), "--format", "json"][..], more].concat();
            let output = place.cog(arguments).output().unwrap();
            (output.status.code(), json(&output))
        };
        let (code, report) = validate(&[]);
        assert_eq!((code, &report["valid"], &report["module_valid"]), (Some(3), &false.into(), &true.into()));
        let (code, report) = validate(&["--examples", "warn"]);
        assert_eq!((code, &report["valid"]), (Some(0), &true.into()), "{format}: {report}");
        let found = report["diagnostics"].as_array().unwrap();
        let of_examples: Vec<_> = found
            .iter()
            .filter(|one| {
                one["file"].as_str().is_some_and(|file| file.contains("examples") || file.contains("tests"))
            })
            .collect();
        assert!(!of_examples.is_empty(), "{format}: {report}");
        assert!(of_examples.iter().all(|one| one["severity"] == "warning"), "{format}: {report}");
        // What is wrong with the module itself is an error all the same.
        let schema = if format == "format-v0" { "output.schema.json" } else { "schema.json" };
        place.write(&format!("{format}/{schema}"), "{\"type\": 7}");
        assert_eq!(validate(&["--examples", "warn"]).0, Some(3), "{format}");
    }
}

#[test]
fn validate_annotates_files_for_github() {
    let place = Place::new();
    faulty(&place);
    snapshot!(place.cog(["validate", "./format-v22", "code-reviewer", "--format", "github"]));
}

#[test]
fn validate_as_sarif() {
    let place = Place::new();
    faulty(&place);
    let output =
        place.cog(["validate", "./format-v22", "code-reviewer", "--format", "sarif"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let log = json(&output);
    assert_eq!((&log["version"], log["runs"].as_array().unwrap().len()), (&"2.1.0".into(), 1));
    let run = &log["runs"][0];
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 2, "{results:?}");
    for result in results {
        let rule = &run["tool"]["driver"]["rules"][result["ruleIndex"].as_u64().unwrap() as usize];
        assert_eq!(rule["id"], result["ruleId"]);
    }
    let location = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!(
        (&results[0]["level"], &location["artifactLocation"]["uri"]),
        (&"error".into(), &"format-v22/module.yaml".into())
    );
    assert!(location["region"]["startLine"].as_u64() > Some(1));
    let valid = json(&place.cog(["validate", "code-reviewer", "--format", "sarif"]).output().unwrap());
    assert_eq!(valid["runs"][0]["results"], serde_json::json!([]));
}

#[test]
fn validate_several_as_json() {
    let place = Place::new();
    place.copy_module("format-v22", "a").copy_module("format-v1", "b");
    let output = place.cog(["validate", "./a", "./b", "--v22", "--format", "json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let reports = json(&output);
    assert_eq!((&reports[0]["valid"], &reports[1]["valid"]), (&true.into(), &false.into()));
}

#[test]
fn new_creates_a_valid_module() {
    let place = Place::new();
    snapshot!(place.cog(["new", "my-module", "--tier", "exec"]));
    let output = place.cog(["validate", "my-module", "--v25"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stdout(&output));
    let info = json(&place.cog(["info", "my-module", "--format", "json"]).output().unwrap());
    assert_eq!(info["manifest"]["tier"], "exec");
    let listed = stdout(&place.cog(["list"]).output().unwrap());
    assert!(listed.lines().any(|line| line.starts_with("my-module")), "{listed}");
}

#[test]
fn new_module_of_each_kind_runs_at_once() {
    let place = Place::new();
    for kind in ["classify", "extract", "generate", "answer"] {
        assert!(place.cog(["new", kind, "--kind", kind]).output().unwrap().status.success());
        let report = json(&place.cog(["test", kind, "--format", "json"]).output().unwrap());
        assert_eq!((&report["contract_only"], &report["failed"]), (&2.into(), &0.into()), "{report}");
        let case = format!("cognitive/modules/{kind}/tests/case2.input.json");
        let answer = json(&place.cog(["run", kind, &case]).output().unwrap());
        let expected = place.read(&format!("cognitive/modules/{kind}/tests/case2.expected.json"));
        let expected: serde_json::Value = serde_json::from_str(&expected).unwrap();
        assert_eq!(answer["data"], expected["$example"]["data"], "{kind}");
        let answer = json(&place.cog(["run", kind, "--args", "Another text."]).output().unwrap());
        assert_eq!(answer["ok"], true, "{kind}: {answer}");
    }
    snapshot!(place.cog(["new", "x", "--kind", "sort"]));
}

#[test]
fn new_module_outside_the_searched_directories_has_a_note() {
    snapshot!(Place::new().cog(["new", "mine", "--in", "."]));
}

#[test]
fn module_of_the_working_directory_is_the_default() {
    let place = Place::new();
    place.cog(["new", "mine", "--in", "."]).output().unwrap();
    let within = |command: &'static str| {
        let mut cog = place.cog([command]);
        cog.current_dir(place.path().join("mine"));
        cog
    };
    snapshot!("validate_without_module_in_a_module", within("validate"));
    let tested = within("test").output().unwrap();
    assert_eq!(tested.status.code(), Some(0), "{}", stdout(&tested));
    snapshot!("validate_without_module_elsewhere", place.cog(["validate"]));
    snapshot!("test_without_module_elsewhere", place.cog(["test"]));
}

#[test]
fn denied_warning_fails() {
    let place = Place::new();
    place.copy_module("format-v1", "format-v1");
    let code = |args: &[&'static str]| place.cog(args.iter().copied()).output().unwrap().status.code();
    assert_eq!(code(&["validate", "./format-v1"]), Some(0));
    assert_eq!(code(&["validate", "./format-v1", "--deny-warnings"]), Some(3));
    assert_eq!(code(&["validate", "code-reviewer", "--deny-warnings"]), Some(0));
}

#[test]
fn init_is_an_alias_of_new() {
    let place = Place::new();
    snapshot!(place.cog(["init", "mine", "--from", "task-prioritizer", "--in", "cognitive/modules"]));
    assert!(place.read("cognitive/modules/mine/module.yaml").contains("name: mine"));
}

#[test]
fn new_rejects_existing_directory() {
    let place = Place::new();
    place.write("cognitive/modules/mine/file", "");
    snapshot!(place.cog(["new", "mine"]));
}

#[test]
fn new_rejects_invalid_name() {
    snapshot!(Place::new().cog(["new", "../Mine"]));
}

#[test]
fn migrate_shows_a_diff_and_changes_nothing() {
    let place = Place::new();
    place.copy_module("format-v22", "m");
    let before = place.read("m/module.yaml");
    snapshot!(place.cog(["migrate", "./m", "--dry-run"]));
    assert_eq!(place.read("m/module.yaml"), before);
}

#[test]
fn migrate_is_idempotent() {
    let place = Place::new();
    place.copy_module("format-v1", "cognitive/modules/format-v1");
    snapshot!("migrate_first", place.cog(["migrate", "--all"]));
    let migrated = place.read("cognitive/modules/format-v1/module.yaml");
    snapshot!("migrate_again", place.cog(["migrate", "--all"]));
    assert_eq!(place.read("cognitive/modules/format-v1/module.yaml"), migrated);
}

#[test]
fn migrate_skips_built_in_modules() {
    snapshot!(Place::new().cog(["migrate", "code-reviewer"]));
}

#[test]
fn portability_shows_what_each_provider_enforces() {
    let place = Place::new();
    snapshot!(place.cog(["portability", "task-prioritizer"]));
    let output = place.cog(["portability", "task-prioritizer", "--format", "json"]).output().unwrap();
    let rows = json(&output);
    let row = |name: &str| rows.as_array().unwrap().iter().find(|row| row["provider"] == name).unwrap();
    assert_eq!(row("deepseek")["by_provider"], 0, "it accepts no schema");
    assert!(row("llamacpp")["in_words"].as_u64() < row("deepseek")["in_words"].as_u64());
    for row in rows.as_array().unwrap() {
        let count = |key: &str| row[key].as_u64().unwrap();
        let all = row["constraints"].as_array().unwrap().len() as u64;
        assert_eq!(count("by_provider") + count("in_words") + count("by_check"), all);
    }
}
