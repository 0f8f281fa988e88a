use super::*;
use crate::{
    Level, Rule, files,
    testing::{Directory, MANIFEST},
    validate,
};

const OLD: [&str; 3] = ["format-v0", "format-v1", "format-v21"];

fn migrate(directory: &Directory, target: Target) -> Migration {
    let migration = plan(&directory.origin(), target).unwrap();
    migration.apply(false).unwrap();
    migration
}

#[test]
fn every_old_format_becomes_a_valid_v22_module() {
    for name in OLD {
        let directory = Directory::example(name);
        let migration = migrate(&directory, Target::V22);
        let report = validate(&directory.origin(), Level::V22);
        assert!(report.diagnostics.is_empty(), "{name}: {:#?}", report.diagnostics);
        assert_eq!((migration.to, report.format()), (Format::V22, Some(Format::V22)), "{name}");
        assert!(report.cases >= 1, "{name}");
        let mut files: Vec<String> = directory.files().into_iter().map(|(path, _)| path).collect();
        files.retain(|path| path != "README.md");
        let expected = [
            "module.yaml",
            "prompt.md",
            "schema.json",
            "tests/case1.expected.json",
            "tests/case1.input.json",
        ];
        assert_eq!(files, expected, "{name}");
    }
}

#[test]
fn every_format_becomes_a_valid_v25_module_once() {
    for name in ["format-v0", "format-v1", "format-v21", "format-v22", "format-v25"] {
        let directory = Directory::example(name);
        migrate(&directory, Target::V25);
        let report = validate(&directory.origin(), Level::V25);
        assert!(report.diagnostics.is_empty(), "{name}: {:#?}", report.diagnostics);
        let once = directory.files();
        assert!(plan(&directory.origin(), Target::V25).unwrap().is_empty(), "{name}");
        assert!(plan(&directory.origin(), Target::V22).unwrap().is_empty(), "{name}");
        assert_eq!(directory.files(), once);
    }
}

#[test]
fn manifest_names_the_published_schema_once() {
    let schema: serde_json::Value = serde_json::from_str(cog_spec::Schema::Manifest.text()).unwrap();
    assert_eq!(SCHEMA_LINE.split_once('=').unwrap().1, schema["$id"]);
    for kind in crate::scaffold::Kind::ALL {
        let parent = tempfile::tempdir().unwrap();
        let directory = crate::scaffold::new(parent.path(), "made", *kind, cog_spec::Tier::Decision).unwrap();
        assert!(files::read_text(&directory.join(MANIFEST_FILE), 10_000).unwrap().starts_with(SCHEMA_LINE));
    }
    let directory = Directory::example("format-v1");
    migrate(&directory, Target::V22);
    migrate(&directory, Target::V25);
    let text = files::read_text(&directory.origin().path_of(MANIFEST_FILE), 10_000).unwrap();
    assert!(text.starts_with(SCHEMA_LINE) && text.matches(SCHEMA_LINE).count() == 1, "{text}");
}

#[test]
fn migrated_module_behaves_as_before() {
    let directory = Directory::example("format-v1");
    let before = directory.load().unwrap();
    migrate(&directory, Target::V25);
    let after = directory.load().unwrap();
    assert!(after.prompt.text().starts_with(before.prompt.text().trim_end()));
    assert_eq!(after.manifest.constraints, before.manifest.constraints);
    assert_eq!(after.manifest.excludes, before.manifest.excludes);
    assert_eq!(after.manifest.tier, Some(cog_spec::Tier::Decision));
    assert_eq!(after.manifest.response.mode, cog_spec::ResponseMode::Sync);
    assert_eq!(after.schema.get("input"), before.schema.get("input"));
}

#[test]
fn shows_the_changes_of_each_format() {
    let mut shown = String::new();
    for name in OLD.iter().chain(&["format-v22"]) {
        let mut migration = plan(&Directory::example(name).origin(), Target::V25).unwrap();
        migration.directory = PathBuf::from(name);
        shown += &format!("=== {name}: {} to {}\n{}", migration.from, migration.to, migration.diff());
        shown += &migration.notes.iter().map(|note| format!("note: {note}\n")).collect::<String>();
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn preserves_comments_order_and_line_endings() {
    let manifest = "# top\r\nversion: 1.0.0 # mine\r\nname: sorter\r\nresponsibility: >-\r\n  Sort\r\n  things\r\n\r\n# what not\r\nexcludes: [x]";
    let directory =
        Directory::v22().with("module.yaml", manifest).with("schema.json", r#"{"input":{},"output":{}}"#);
    migrate(&directory, Target::V25);
    let text = directory.read("module.yaml");
    assert!(!text.replace("\r\n", "").contains('\n'), "{text:?}");
    let remaining: Vec<&str> = text.lines().filter(|line| manifest.lines().any(|old| old == *line)).collect();
    assert_eq!(remaining, manifest.lines().collect::<Vec<_>>());
    assert!(text.contains("tier: decision\r\n# Response mode"), "{text}");
    assert!(text.find("tier:") < text.find("# what not"), "{text}");
}

#[test]
fn backup_contains_the_old_module() {
    let directory = Directory::example("format-v1");
    let before = directory.files();
    let backup = plan(&directory.origin(), Target::V25).unwrap().apply(true).unwrap().unwrap();
    assert_eq!(backup.file_name().unwrap(), "format-v1.v1.bak");
    let saved = files::read_directory(&backup).unwrap();
    let saved: Vec<_> =
        saved.into_iter().map(|(path, bytes)| (path, String::from_utf8(bytes).unwrap())).collect();
    assert_eq!(saved, before);
    let beside = files::directory_names(directory.path().parent().unwrap());
    assert_eq!(beside, ["format-v1", "format-v1.v1.bak"]);
}

#[test]
fn nothing_is_left_behind_without_a_backup() {
    let directory = Directory::example("format-v0");
    migrate(&directory, Target::V25);
    assert_eq!(files::directory_names(directory.path().parent().unwrap()), ["format-v0"]);
}

#[test]
fn planning_writes_nothing() {
    let directory = Directory::example("format-v0");
    let before = directory.files();
    let migration = plan(&directory.origin(), Target::V25).unwrap();
    assert!(!migration.is_empty() && migration.diff().contains("+tier: decision"));
    assert_eq!(directory.files(), before);
}

#[test]
fn module_that_does_not_load_is_unchanged() {
    let directory = Directory::v22().with("module.yaml", "name: [");
    assert!(matches!(plan(&directory.origin(), Target::V25), Err(MigrateError::Load(_))));
}

#[test]
fn built_in_module_of_the_target_format_needs_nothing() {
    for shipped in crate::BuiltinModule::all() {
        let origin = Origin::BuiltIn(shipped);
        assert!(plan(&origin, Target::V22).unwrap().is_empty(), "{}", shipped.name);
        let is_current = crate::load(&origin).unwrap().manifest.format == Format::V25;
        match plan(&origin, Target::V25) {
            Ok(migration) => assert!(is_current && migration.is_empty(), "{}", shipped.name),
            Err(error) => assert!(!is_current && matches!(error, MigrateError::BuiltIn { .. }), "{error}"),
        }
    }
}

#[test]
fn result_that_would_not_load_is_discarded() {
    let directory = Directory::example("format-v1");
    let before = directory.files();
    let mut migration = plan(&directory.origin(), Target::V25).unwrap();
    for change in migration.changes.iter_mut().filter(|change| change.path == "module.yaml") {
        change.after = Some("name: [".to_owned());
    }
    assert!(matches!(migration.apply(true), Err(MigrateError::Result(_))));
    assert_eq!(directory.files(), before);
    assert_eq!(files::directory_names(directory.path().parent().unwrap()), ["format-v1"]);
}

#[test]
fn manifest_in_flow_style_is_unchanged() {
    let flow = "{ name: sorter, version: 1.0.0, responsibility: x, tier: exec, excludes: [y] }\n";
    let directory = Directory::v22().with("module.yaml", flow);
    let error = plan(&directory.origin(), Target::V25).unwrap_err();
    assert!(matches!(&error, MigrateError::FlowStyle { path } if path.ends_with("module.yaml")), "{error}");
    assert_eq!(directory.read("module.yaml"), flow);
}

#[test]
fn v22_module_without_a_tier_gets_one() {
    let directory = Directory::v22().with("module.yaml", MANIFEST.replace("tier: decision\n", ""));
    migrate(&directory, Target::V22);
    assert!(directory.load().unwrap().warnings.is_empty());
}

#[test]
fn preserves_constraints_of_every_form() {
    let shapes = [
        "# why\nno_network: true # always\nrequire_rationale: true\n",
        "rules:\n  no_network: true\n  require_rationale: true\nother: 1\n",
        "constraints:\n  no_network: true\n  require_rationale: true\nnotes: x\n",
    ];
    for shape in shapes {
        let directory = Directory::example("format-v0").with("constraints.yaml", shape);
        let before = directory.load().unwrap().manifest.constraints;
        migrate(&directory, Target::V25);
        let module = directory.load().unwrap();
        assert_eq!(module.manifest.constraints, before, "{shape}");
        assert!(!module.warnings.iter().any(|found| found.rule == Rule::KeyUnknown), "{:?}", module.warnings);
    }
}

#[test]
fn reports_constraints_that_are_left_out() {
    let shape = "no_network: true\nno_netwrk: true\nrules:\n  no_external_network: true\n  behavior_equivalence_false_max_confidence: 0.50\n";
    let directory = Directory::example("format-v0").with("constraints.yaml", shape);
    let before = directory.load().unwrap().manifest.constraints;
    let migration = migrate(&directory, Target::V25);
    let left_out = |key: &str| migration.notes.iter().any(|note| note.starts_with(&format!("`{key}` of")));
    assert!(left_out("no_netwrk") && left_out("rules.no_external_network"), "{:?}", migration.notes);
    assert_eq!(directory.load().unwrap().manifest.constraints, before);
    assert!(directory.read("module.yaml").contains("confidence: 0.50\n"));
}

#[test]
fn adds_a_missing_rationale_to_the_schema() {
    let schema = r##"{"input": {"type": "object"}, "output": {"type": "object", "properties": {"a": {"$ref": "#/output/properties/b"}, "b": {}}, "additionalProperties": false}}"##;
    let manifest = MANIFEST.replace("tier: decision\n", "");
    let directory = Directory::v22().with("module.yaml", manifest).with("schema.json", schema);
    let migration = migrate(&directory, Target::V22);
    assert_eq!(migration.notes.len(), 1);
    let data = directory.load().unwrap().schema["data"].clone();
    assert_eq!(data["required"], serde_json::json!(["rationale"]));
    assert_eq!(data["properties"]["a"]["$ref"], "#/data/properties/b");
    assert!(validate(&directory.origin(), Level::V22).is_valid());
}
