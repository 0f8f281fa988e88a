use std::path::Path;

use cog_spec::{Format, Modality, ResponseMode, Strictness, Tier};

use crate::{
    BuiltinModule,
    diagnostic::MAX_FINDINGS,
    testing::{Directory, MANIFEST, SCHEMA, rules_of},
};

use super::*;

fn example(name: &str) -> Module {
    Directory::example(name).load().unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn every_format_loads_into_the_same_type() {
    let formats = [
        ("format-v0", Format::V0),
        ("format-v1", Format::V1),
        ("format-v21", Format::V21),
        ("format-v22", Format::V22),
        ("format-v25", Format::V25),
    ];
    for (name, format) in formats {
        let module = example(name);
        assert_eq!(module.manifest.format, format, "{name}");
        assert_eq!(module.manifest.name, name);
        assert!(!module.prompt.text().is_empty() && !module.manifest.responsibility.is_empty());
        let is_deprecated = module.warnings.iter().any(|found| found.rule == Rule::FormatDeprecated);
        assert_eq!(is_deprecated, format.is_deprecated(), "{name}");
    }
}

#[test]
fn every_built_in_module_loads_without_a_warning() {
    assert!(BuiltinModule::all().len() >= 7);
    for shipped in BuiltinModule::all() {
        let module =
            load(&Origin::BuiltIn(shipped)).unwrap_or_else(|error| panic!("{}: {error}", shipped.name));
        assert_eq!(module.warnings, [], "{}", shipped.name);
        assert_eq!(module.manifest.name, shipped.name);
    }
}

#[test]
fn v0_reads_constraints_and_adjusts_references() {
    let module = example("format-v0");
    assert!(module.manifest.constraints.require_rationale && module.manifest.constraints.no_network);
    let queue =
        module.schema.pointer("/output/properties/queue/$ref").and_then(|reference| reference.as_str());
    assert_eq!(queue, Some("#/output/definitions/Queue"));
    assert!(module.prompt.text().starts_with("Sort the support message"));
}

#[test]
fn v0_warns_about_unknown_constraints() {
    let shape = "no_netwrk: true\nrules:\n  no_external_network: true\n  no_side_effects: true\n";
    let directory = Directory::example("format-v0").with("constraints.yaml", shape);
    let module = directory.load().unwrap();
    assert!(module.manifest.constraints.no_side_effects);
    let unknown = module.warnings.iter().filter(|found| found.rule == Rule::KeyUnknown);
    let unknown: Vec<_> = unknown
        .map(|found| (found.message.as_str(), found.suggestion.as_deref().unwrap_or_default()))
        .collect();
    let expected = [
        ("unknown key `no_netwrk`; it is ignored", "Did you mean `no_network`?"),
        ("unknown key `rules.no_external_network`; it is ignored", "Did you mean `no_network`?"),
    ];
    assert_eq!(unknown, expected);
    let wrong = Directory::example("format-v0").with("constraints.yaml", "no_network: 7\n");
    assert!(rules_of(&wrong).contains(&Rule::KeyType.as_str()));
}

#[test]
fn unknown_key_of_a_part_names_the_key_of_the_part() {
    let parts = "composition:\n  requires: [{ name: other, timeout: 30 }]\n";
    let module = Directory::v22().with("module.yaml", MANIFEST.to_owned() + parts).load().unwrap();
    let found: Vec<_> = module.warnings.iter().map(|found| found.suggestion.as_deref()).collect();
    assert_eq!(found, [Some("Did you mean `timeout_ms`?")]);
}

#[test]
fn v1_prompt_is_the_text_after_the_front_matter() {
    let module = example("format-v1");
    assert!(!module.prompt.text().contains("responsibility:"), "{}", module.prompt.text());
    assert!(module.prompt.places_input());
}

#[test]
fn manifest_overrides_the_defaults_of_the_tier() {
    let directory = Directory::v22().with(
        "module.yaml",
        MANIFEST.replace("decision", "exec")
            + "overflow: { enabled: true, max_items: 2 }\nresponse: { chunk_type: snapshot }\n",
    );
    let manifest = directory.load().unwrap().manifest;
    assert_eq!((manifest.tier, manifest.strictness), (Some(Tier::Exec), Strictness::High));
    assert!(manifest.overflow.enabled && manifest.overflow.require_suggested_mapping);
    assert_eq!((manifest.overflow.max_items, manifest.response.mode), (2, ResponseMode::Sync));
}

#[test]
fn reads_both_forms_of_policies_and_context() {
    let keywords = "policies: { network: allow, filesystem_write: deny }\ncontext: fork\n";
    let manifest =
        Directory::v22().with("module.yaml", MANIFEST.to_owned() + keywords).load().unwrap().manifest;
    assert!(manifest.policies.network_allowed && !manifest.policies.filesystem_write_allowed);
    assert!(manifest.context.fork && manifest.context.accepts.is_empty());

    let objects = "policies: { tools_allowed: true, network_allowed: false }\ncontext:\n  mode: fork\n  accepts: [{ type: environment }]\n";
    let manifest =
        Directory::v22().with("module.yaml", MANIFEST.to_owned() + objects).load().unwrap().manifest;
    assert!(manifest.policies.tools_allowed && !manifest.policies.network_allowed);
    assert!(manifest.context.fork && manifest.context.accepts[0].name == "environment");
}

#[test]
fn text_is_always_a_modality() {
    let directory =
        Directory::v22().with("module.yaml", MANIFEST.to_owned() + "modalities: { input: [audio, audio] }\n");
    let manifest = directory.load().unwrap().manifest;
    assert_eq!(manifest.format, Format::V25);
    assert_eq!(manifest.modalities.input, [Modality::Text, Modality::Audio]);
    assert_eq!(manifest.modalities.output, [Modality::Text]);
}

#[test]
fn meta_schema_makes_a_module_v22() {
    let without_tier = MANIFEST.replace("tier: decision\n", "");
    let directory = Directory::v22().with("module.yaml", &without_tier);
    assert_eq!(directory.load().unwrap().manifest.format, Format::V22);
    assert_eq!(rules_of(&directory), ["key-missing"]);
    let directory = Directory::v22()
        .with("module.yaml", without_tier)
        .with("schema.json", r#"{"input": {}, "output": {}}"#);
    assert_eq!(directory.load().unwrap().manifest.format, Format::V21);
}

#[test]
fn reports_every_error_in_a_manifest() {
    let manifest = "\
name: Sorter Deluxe
version: 2.2
responsibility:
teir: exec
tier: execution
schema_strictness: hihg
excludes: [a, [b]]
policies:
  network: maybe
  network_alowed: false
overflow:
  enabled: yes
  max_items: -1
generation: { temperature: 3, seed: x, effort: hihg }
io: { data: \"#/payload\" }
response: { mode: stream, max_attempts: 0 }
modalities: { input: [text, drawing] }
error_codes: { E4001: mine, E5001: no luck }
tests: [\"a.json\", \"../x -> y\"]
";
    let directory = Directory::v22().with("module.yaml", manifest);
    let error = directory.load().unwrap_err();
    let shown: Vec<String> = error.diagnostics.iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(directory.strip(&shown.join("\n\n")));
}

#[test]
fn completes_short_versions_and_rejects_invalid_ones() {
    let version = |version: &str| {
        let directory = Directory::v22().with("module.yaml", MANIFEST.replace("1.0.0", version));
        let rules = rules_of(&directory);
        (directory.load().ok().map(|module| module.manifest.version.clone()), rules)
    };
    assert_eq!(version("2.2"), (Some("2.2.0".to_owned()), vec!["version-form"]));
    assert_eq!(version("1.10"), (Some("1.10.0".to_owned()), vec!["version-form"]));
    assert_eq!(version("3"), (Some("3.0.0".to_owned()), vec!["version-form"]));
    assert_eq!(version("\"1.0.0-rc.1\""), (Some("1.0.0-rc.1".to_owned()), vec![]));
    assert_eq!(version("v1.0.0"), (None, vec!["version-form"]));
    assert_eq!(version("latest"), (None, vec!["version-form"]));
}

#[test]
fn missing_file_is_reported_by_name() {
    assert_eq!(rules_of(&Directory::v22().without("module.yaml")), ["manifest-missing"]);
    assert_eq!(rules_of(&Directory::v22().without("prompt.md")), ["prompt-missing"]);
    assert_eq!(rules_of(&Directory::v22().without("schema.json")), ["schema-missing"]);
    let v0 = Directory::example("format-v0").without("output.schema.json").without("prompt.txt");
    let rules = rules_of(&v0);
    assert!(rules.contains(&"schema-missing") && rules.contains(&"prompt-missing"), "{rules:?}");
    let near = Directory::v22().without("module.yaml").with("module.yml", MANIFEST).load().unwrap_err();
    assert!(
        near.diagnostics[0].suggestion.as_deref().is_some_and(|help| help.contains("module.yml")),
        "{near}"
    );
}

#[test]
fn first_of_several_manifests_is_used() {
    let directory = Directory::v22().with("MODULE.md", "---\nname: other\n---\nx\n");
    assert_eq!(directory.load().unwrap().manifest.name, "sorter");
    assert_eq!(rules_of(&directory), ["manifest-several"]);
}

#[test]
fn each_unreadable_file_has_its_own_rule() {
    let too_large = "# x\n".repeat(300_000);
    let cases: [(&str, &[u8], &str); 9] = [
        ("module.yaml", b"", "file-empty"),
        ("module.yaml", b"name: \xff\n", "file-not-text"),
        ("module.yaml", b"\x7fELF\x00\x01", "file-not-text"),
        ("module.yaml", too_large.as_bytes(), "file-too-large"),
        ("module.yaml", b"- a list\n", "manifest-shape"),
        ("prompt.md", b" \n", "prompt-empty"),
        ("prompt.md", too_large.as_bytes(), "file-too-large"),
        ("schema.json", b"{\"input\": ", "schema-syntax"),
        ("schema.json", b"[]", "schema-syntax"),
    ];
    for (file, content, rule) in cases {
        let rules = rules_of(&Directory::v22().with(file, content));
        assert!(rules.contains(&rule), "{file} {rule}: {rules:?}");
    }
    let deep = format!("{{\"input\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(rules_of(&Directory::v22().with("schema.json", deep)), ["schema-syntax"]);
}

#[test]
fn rejects_a_directory_in_place_of_a_file() {
    let directory = Directory::v22().without("prompt.md").with("prompt.md/x", "x");
    assert_eq!(rules_of(&directory), ["file-unreadable"]);
}

#[test]
fn excludes_are_required_in_old_formats_only() {
    let v22 =
        Directory::v22().with("module.yaml", MANIFEST.replace("excludes:\n  - answering the message\n", ""));
    assert!(v22.load().is_ok());
    assert_eq!(rules_of(&v22), ["key-missing"]);
    let v1 = Directory::example("format-v1");
    let text = v1.read("MODULE.md");
    let (before, after) = text.split_once("excludes:").unwrap();
    let after = after.trim_start().trim_start_matches(|c| c != '\n').trim_start_matches('\n');
    let without: Vec<&str> = after.lines().skip_while(|line| line.starts_with("  - ")).collect();
    let v1 = v1.with("MODULE.md", format!("{before}{}", without.join("\n")));
    assert!(v1.load().is_err(), "{:?}", rules_of(&v1));
}

#[test]
fn schema_requires_data_and_recommends_input() {
    let without_data = Directory::v22().with("schema.json", r#"{"input": {}, "meta": {}}"#);
    assert!(without_data.load().is_err());
    assert_eq!(rules_of(&without_data), ["schema-part"]);
    let without_input = Directory::v22().with("schema.json", r#"{"output": {}}"#);
    assert!(without_input.load().is_ok());
    assert_eq!(rules_of(&without_input), ["schema-part"]);
}

#[test]
fn error_in_a_v0_schema_names_its_file() {
    let directory = Directory::example("format-v0").with("output.schema.json", "{ \"type\": }");
    let error = directory.load().unwrap_err();
    let found = error.diagnostics.iter().find(|found| found.rule == Rule::SchemaSyntax).unwrap();
    assert_eq!(found.file.file_name(), Some(Path::new("output.schema.json").as_os_str()));
    assert_eq!(found.location.as_ref().map(|location| (location.line, location.column)), Some((1, 11)));
}

#[test]
fn loads_only_the_manifest() {
    let directory = Directory::v22().without("prompt.md");
    assert_eq!(load_manifest(&directory.origin()).unwrap().format, Format::V22);
    let directory = Directory::v22().with("module.yaml", MANIFEST.replace("tier: decision\n", ""));
    assert_eq!(load_manifest(&directory.origin()).unwrap().format, Format::V22);
}

#[test]
fn accepts_byte_order_mark_and_carriage_returns() {
    let directory = Directory::v22()
        .with("module.yaml", format!("\u{feff}{}", MANIFEST.replace('\n', "\r\n")))
        .with("schema.json", format!("\u{feff}{SCHEMA}"))
        .with("prompt.md", "Sort it.\r\nReturn `E5017`.\r\n");
    let module = directory.load().unwrap();
    assert_eq!(module.prompt.text(), "Sort it.\nReturn `E5017`.\n");
    let [warning] = module.warnings.as_slice() else { panic!("{:?}", module.warnings) };
    let location = warning.location.as_ref().unwrap();
    assert_eq!((location.line, location.column, location.excerpt.as_str()), (2, 9, "Return `E5017`."));
}

#[test]
fn reports_a_directory_or_utf16_in_place_of_a_file() {
    let directory = Directory::v22().without("module.yaml").with("module.yaml/x", "a directory of that name");
    let found = &directory.load().unwrap_err().diagnostics[0];
    assert_eq!(
        (found.rule, found.message.as_str()),
        (Rule::ManifestMissing, "module.yaml is a directory, not a file")
    );
    assert!(found.file.ends_with("module.yaml") && found.suggestion.is_some());
    let utf16: Vec<u8> = "\u{feff}name: m".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let found = &Directory::v22().with("module.yaml", utf16).load().unwrap_err().diagnostics[0];
    assert_eq!(
        (found.rule, found.message.as_str()),
        (Rule::FileNotText, "module.yaml: the file is UTF-16, not UTF-8")
    );
}

#[cfg(unix)]
#[test]
fn broken_link_as_manifest_is_reported() {
    let directory = Directory::v22().without("module.yaml");
    std::os::unix::fs::symlink("nowhere", directory.path().join("module.yaml")).unwrap();
    let found = &directory.load().unwrap_err().diagnostics[0];
    assert_eq!(found.message, "module.yaml is a broken link, not a file");
}

#[test]
fn long_values_are_shortened_in_messages() {
    // YAML limits the length of keys itself.
    let long = "x".repeat(100_000);
    let key = "x".repeat(1000);
    let manifest = format!(
        "name: N{long}\nversion: v{long}\nresponsibility: x\ntier: {long}\nio: {{ data: {long} }}\n{key}: 1\nerror_codes: {{ E{key}: x }}\n"
    );
    let error = Directory::v22().with("module.yaml", manifest).load().unwrap_err();
    assert!(error.diagnostics.len() >= 6);
    for found in error.diagnostics {
        assert!(found.message.len() < 500, "{}: {} bytes", found.rule, found.message.len());
        assert!(found.suggestion.unwrap_or_default().len() < 500, "{}", found.rule);
    }
}

#[test]
fn number_of_diagnostics_per_file_is_bounded() {
    let keys: String = (0..5_000).map(|number| format!("key{number}: 1\n")).collect();
    let manifest = format!("{MANIFEST}{keys}overflow: 1\n");
    let many = Directory::v22().with("module.yaml", manifest.clone()).load().unwrap_err().diagnostics;
    assert_eq!(many.len(), MAX_FINDINGS + 1);
    let last = many.last().unwrap();
    assert_eq!(last.message, "4801 more problems in this file are not shown");
    assert_eq!(many.iter().filter(|found| found.severity == Severity::Error).count(), 1);

    let only_warnings = Directory::v22().with("module.yaml", format!("{MANIFEST}{keys}"));
    assert_eq!(only_warnings.load().unwrap().warnings.len(), MAX_FINDINGS + 1);
}
