#![expect(clippy::disallowed_methods, reason = "tests lay out directories")]

use std::fs;

use cog_spec::{Code, Format, Tier};
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::{BuiltinModule, Level, Origin, export, load, validate};

const HEAD: &str =
    "---\nname: pdf-reader\ndescription: Reads PDF files. Use when a person mentions a PDF.\n---\n";

/// A directory `pdf-reader` with these files.
fn skill_of(files: &[(&str, &str)]) -> TempDir {
    let temporary = TempDir::new().unwrap();
    for (path, text) in files {
        let path = temporary.path().join("pdf-reader").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    temporary
}

fn import(place: &TempDir) -> Result<Draft, ImportError> {
    skill(&place.path().join("pdf-reader"))
}

fn exported(module: &Module) -> TempDir {
    let temporary = TempDir::new().unwrap();
    let skill = export::skill(module).unwrap();
    let files: Vec<_> = skill.files.into_iter().map(|file| (file.path, file.text.into_bytes())).collect();
    files::write_directory(&temporary.path().join(&skill.name), &files).unwrap();
    temporary
}

#[test]
fn exported_modules_come_back() {
    for shipped in BuiltinModule::all() {
        let module = load(&Origin::BuiltIn(shipped)).unwrap();
        let place = exported(&module);
        let draft = skill(&place.path().join(shipped.name).join("SKILL.md")).unwrap();
        let parent = TempDir::new().unwrap();
        let back = load(&Origin::Directory(draft.write(parent.path()).unwrap())).unwrap();
        assert_eq!(back.manifest, module.manifest);
        assert_eq!((&back.prompt, &back.schema), (&module.prompt, &module.schema));
        assert!(validate(&back.origin, Level::Any).is_valid());
        assert_eq!(draft.notes, ["a skill has no golden tests: add some under tests/"]);
    }
}

#[test]
fn instructions_come_back_without_the_module() {
    for shipped in BuiltinModule::all() {
        let module = load(&Origin::BuiltIn(shipped)).unwrap();
        let place = exported(&module);
        fs::remove_dir_all(place.path().join(shipped.name).join("assets")).unwrap();
        let draft = skill(&place.path().join(shipped.name)).unwrap().module;
        let own = &module.manifest;
        let drafted = &draft.manifest;
        assert_eq!(
            (&drafted.name, &drafted.version, &drafted.responsibility, drafted.tier),
            (&own.name, &own.version, &own.responsibility, own.tier)
        );
        assert_eq!(draft.schema, module.schema);
        if own.composition.is_none() {
            assert_eq!(draft.prompt.text().trim_end(), module.prompt.text().trim_end());
        }
    }
}

/// Anyone can put a module into a skill.
#[test]
fn module_that_grants_itself_tools_is_noted() {
    let manifest = "name: pdf-reader\nversion: 1.0.0\nresponsibility: Reads\ntier: decision\nexcludes: [guessing]\n\
        policies: { tools_allowed: true, network: allow }\ntools: { allowed: [web__search] }\n";
    let place = skill_of(&[
        ("SKILL.md", &format!("{HEAD}\nRead it.\n")),
        ("assets/pdf-reader/module.yaml", manifest),
        ("assets/pdf-reader/prompt.md", "Read it.\n"),
        ("assets/pdf-reader/schema.json", r#"{"input": {}, "data": {"type": "object"}}"#),
    ]);
    let draft = import(&place).unwrap();
    assert!(draft.module.manifest.policies.tools_allowed);
    let note = "its manifest allows tool calls (network, tool web__search): review module.yaml";
    assert!(draft.notes.iter().any(|one| one == note), "{:?}", draft.notes);
}

#[test]
fn skill_from_elsewhere_becomes_a_draft() {
    let body = "# PDF\n\nRead $1 as [this](references/FORMS.md) says, not as [that](../../secret).\n";
    let head = HEAD.replace("---\nname", "---\nlicense: MIT\nallowed-tools: Bash(pdftotext:*)\nname");
    let place = skill_of(&[
        ("SKILL.md", &format!("{head}\n{body}")),
        ("references/FORMS.md", "Forms.\n"),
        ("scripts/extract.py", "print()\n"),
    ]);
    let draft = import(&place).unwrap();
    let manifest = &draft.module.manifest;
    assert_eq!(
        (manifest.name.as_str(), manifest.format, manifest.tier),
        ("pdf-reader", Format::V25, Some(Tier::Decision))
    );
    assert_eq!(manifest.responsibility, "Reads PDF files");
    assert_eq!(
        draft.module.prompt.text(),
        "# PDF\n\nRead $1 as [this](references/FORMS.md) says, not as that.\n"
    );
    assert_eq!(
        draft.notes,
        [
            "describe the answer under `data` in schema.json: a skill does not say what it contains",
            "links out of the skill's directory were left out: ../../secret",
            "prompt.md has placeholders, which a run replaces: $1",
            "the license of the skill is `MIT`: keep it with the module",
            "`allowed-tools` was left out: a module names its tools under `tools`",
            "a module has no other files: copy what the model needs into prompt.md from references/FORMS.md, scripts/extract.py",
        ]
    );
    let directory = draft.write(place.path().join("out").as_path()).unwrap();
    let report = validate(&Origin::Directory(directory), Level::V25);
    assert!(report.is_valid(), "{:?}", report.diagnostics);
    assert_eq!(draft.write(place.path().join("out").as_path()).unwrap_err().code(), Code::PermissionDenied);
}

#[test]
fn schema_of_one_value_is_the_data() {
    let schema = r##"{"$id": "x", "type": "object", "required": ["pages"], "properties": {"pages": {"$ref": "#/$defs/N"}}, "$defs": {"N": {"type": "integer"}}}"##;
    let place = skill_of(&[("SKILL.md", &format!("{HEAD}Read.\n")), ("references/schema.json", schema)]);
    let draft = import(&place).unwrap();
    let data = &draft.module.schema["data"];
    assert_eq!((&data["properties"]["pages"]["$ref"], data.get("$id")), (&json!("#/data/$defs/N"), None));
    assert!(draft.module.contract.data_schema().is_some());
    assert!(draft.notes[0].contains("describes one value"), "{:?}", draft.notes);
}

#[test]
fn schema_that_refers_to_other_files_is_refused() {
    for reference in ["../../etc/passwd", "file:///etc/passwd", "https://x.example/s.json"] {
        let schema = json!({ "data": { "$ref": reference } }).to_string();
        let place = skill_of(&[("SKILL.md", &format!("{HEAD}Read.\n")), ("references/schema.json", &schema)]);
        assert_eq!(import(&place).unwrap_err().code(), Code::ModuleInvalid, "{reference}");
    }
}

#[test]
fn invalid_skills_are_errors() {
    let long = format!("{HEAD}{}", "x".repeat(files::MAX_PART as usize));
    let cases = [
        ("", Code::InvalidReference),
        ("# No front matter\n", Code::ModuleInvalid),
        ("---\nname: a\n", Code::ModuleInvalid),
        ("---\nname: a\n---\n", Code::ModuleInvalid),
        ("---\ndescription: a\n---\n", Code::ModuleInvalid),
        ("---\n- a\n---\n", Code::ModuleInvalid),
        ("---\nname: [\n---\n", Code::ModuleInvalid),
        ("---\nname: a\nname: b\ndescription: c\n---\n", Code::ModuleInvalid),
        ("---\nname: 語\ndescription: c\n---\nText\n", Code::UnsupportedValue),
        (long.as_str(), Code::InvalidReference),
    ];
    for (text, code) in cases {
        let place = skill_of(&[("SKILL.md", text)]);
        let error = import(&place).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
    }
    let place = skill_of(&[("README.md", "x")]);
    assert_eq!(import(&place).unwrap_err().code(), Code::InvalidReference);
    for path in ["pdf-reader/README.md", "missing"] {
        let error = skill(&place.path().join(path)).unwrap_err();
        assert!(error.suggestion().unwrap().contains("SKILL.md"), "{error}");
    }
}

#[test]
fn name_that_is_not_allowed_for_a_module_is_changed() {
    let place = skill_of(&[("SKILL.md", "---\nname: 3d-viewer\ndescription: Shows\n---\n")]);
    let draft = import(&place).unwrap();
    assert_eq!(draft.module.manifest.name, "d-viewer");
    assert!(
        draft.notes[0].contains("`d-viewer`") && draft.notes[1].contains("schema.json"),
        "{:?}",
        draft.notes
    );
    assert_eq!(draft.module.prompt.text(), "Shows\n");
}

#[test]
fn too_many_files_are_refused() {
    let place = skill_of(&[("SKILL.md", &format!("{HEAD}Read.\n"))]);
    let write = |number: usize| fs::write(place.path().join(format!("pdf-reader/{number}")), "x").unwrap();
    (1..MAX_ENTRIES).for_each(write);
    assert!(import(&place).is_ok());
    write(MAX_ENTRIES);
    assert_eq!(import(&place).unwrap_err().code(), Code::InputTooLarge);
}

#[test]
fn too_many_bytes_are_refused() {
    let place = skill_of(&[("SKILL.md", &format!("{HEAD}Read.\n"))]);
    let file = fs::File::create(place.path().join("pdf-reader/big")).unwrap();
    let rest = MAX_SIZE - fs::metadata(place.path().join("pdf-reader/SKILL.md")).unwrap().len();
    file.set_len(rest).unwrap();
    assert!(import(&place).is_ok());
    file.set_len(rest + 1).unwrap();
    assert_eq!(import(&place).unwrap_err().code(), Code::InputTooLarge);
}

#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    use std::os::unix::fs::symlink;

    let secret = r#"{"data": {"type": "object", "properties": {"secret": {}}}}"#;
    let place = skill_of(&[
        ("SKILL.md", &format!("{HEAD}Read.\n")),
        ("references/a.md", "a"),
        ("../secret.json", secret),
    ]);
    let inside = place.path().join("pdf-reader");
    symlink(place.path().join("secret.json"), inside.join("references/schema.json")).unwrap();
    symlink(place.path(), inside.join("assets")).unwrap();
    let draft = import(&place).unwrap();
    assert!(!draft.module.schema.to_string().contains("secret"));
    let note = draft.notes.iter().find(|note| note.starts_with("links were left out")).unwrap();
    assert!(note.contains("assets") && note.contains("references/schema.json"), "{note}");

    fs::rename(inside.join("SKILL.md"), inside.join("other.md")).unwrap();
    symlink(inside.join("other.md"), inside.join("SKILL.md")).unwrap();
    let error = import(&place).unwrap_err();
    assert_eq!(error.code(), Code::PermissionDenied, "{error}");
}

#[test]
fn changed_instructions_are_noted() {
    let module = load(&Origin::BuiltIn(BuiltinModule::find("text-critic").unwrap())).unwrap();
    let place = exported(&module);
    let path = place.path().join("text-critic/SKILL.md");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("Decide whether the text satisfies its brief, so", "Decide it, so", 1))
        .unwrap();
    let draft = skill(&path).unwrap();
    assert_eq!(draft.module.prompt, module.prompt);
    assert!(draft.notes[0].contains("differ from the prompt"), "{:?}", draft.notes);
}

#[test]
fn links_out_of_the_directory_are_replaced_by_their_label() {
    let text = "See [a](../../etc/passwd), [b](references/B.md), ![c](/etc/c.png \"C\"), [d](https://x.example/../y) and \
            [e](<file:///etc/e>).\n[f]: ~/.ssh/id\n[g]: references/g.md\n[h](references/%2e%2e/../../h) (i) [j";
    let (out, targets) = without_outer_links(text);
    let expected =
        "See a, [b](references/B.md), c, [d](https://x.example/../y) and e.\n[g]: references/g.md\nh (i) [j";
    assert_eq!(out, expected);
    assert_eq!(
        targets,
        ["../../etc/passwd", "/etc/c.png", "file:///etc/e", "references/%2e%2e/../../h", "~/.ssh/id"]
    );
}

#[test]
fn text_without_links_is_unchanged() {
    for text in ["", "](", "a](b", "[](x)", "[a](b)[c](d)", "\\](", "[é](ü)\n"] {
        assert_eq!(without_outer_links(text), (text.to_owned(), Vec::new()), "{text}");
    }
}

#[test]
fn targets_outside_are_found() {
    for target in
        ["..", "../a", "a/../../b", "/a", "~/a", "\\\\host\\a", "C:\\a", "FILE:/a", "a\\..\\..\\b", "..%2fa"]
    {
        assert!(leads_out(target), "{target}");
    }
    for target in ["", "a", "a/../b", "./a", "#a", "https://a/../../b", "mailto:a@b", "..a", "a..b/c"] {
        assert!(!leads_out(target), "{target}");
    }
}
