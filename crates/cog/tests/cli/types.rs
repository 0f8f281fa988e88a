//! The types of modules in other languages.

use std::path::Path;

use crate::support::{Place, copy, snapshot, stderr, stdout};

/// A module with every form of schema, and one whose fields have the names of types.
fn place() -> Place {
    let place = Place::new();
    for name in ["every-type", "list"] {
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/types").join(name);
        copy(&fixture, &place.path().join("cognitive/modules").join(name));
    }
    place
}

#[test]
fn every_type_has_an_answer() {
    let place = place();
    for name in ["every-type", "list"] {
        let envelope = format!(
            r#"{{"ok": true, "meta": {{"confidence": 1, "risk": "none", "explain": "All."}}, "data": {}}}"#,
            place.read(&format!("cognitive/modules/{name}/answer.json"))
        );
        place.write("answer.json", envelope);
        assert!(place.cog(["verify", "answer.json", "--module", name]).status().unwrap().success(), "{name}");
    }
    snapshot!(place.cog(["verify", "answer.json", "--module", "list"]));
    snapshot!("valid", place.cog(["validate", "every-type", "--deny-warnings"]));
}

#[test]
fn fields_with_the_names_of_types() {
    snapshot!("names_python", place().cog(["types", "list", "--lang", "python"]));
    snapshot!("names_typescript", place().cog(["types", "list", "--lang", "typescript"]));
    snapshot!("names_rust", place().cog(["types", "list", "--lang", "rust"]));
    snapshot!("names_go", place().cog(["types", "list", "--lang", "go"]));
}

#[test]
fn columns_of_results() {
    snapshot!("columns", place().cog(["types", "list", "--lang", "arrow"]));
    let output = place().cog(["types", "list", "every-type", "--lang", "arrow-json"]).output().unwrap();
    let found: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(found["list"][0], serde_json::json!({ "name": "row", "type": "int64" }));
    assert_eq!(found["every-type"][2]["name"], "data");
    let several = place().cog(["types", "list", "every-type", "--lang", "arrow"]).output().unwrap();
    assert!(stdout(&several).contains("\n\n# every-type\nrow: int64\n"), "{}", stdout(&several));
}

/// The package replaces hyphens with underscores, one each.
#[test]
fn names_of_functions_differ() {
    let place = Place::new();
    let names = ["a-1", "a1", "a--b", "a-b", "a-b-async", "cast", "str"];
    for name in names {
        let manifest =
            format!("name: {name}\nversion: 1.0.0\nresponsibility: None\ntier: exec\nexcludes: []\n");
        place.write(&format!("cognitive/modules/{name}/module.yaml"), manifest);
        place.write(&format!("cognitive/modules/{name}/prompt.md"), "$INPUT\n");
        place.write(&format!("cognitive/modules/{name}/schema.json"), r#"{"data": {"type": "object"}}"#);
    }
    let printed = |lang: &str| {
        let args = ["types"].into_iter().chain(names).chain(["--lang", lang]);
        stdout(&place.cog(args).output().unwrap())
    };
    let (python, typescript) = (printed("python"), printed("typescript"));
    for name in ["a_1", "a1", "a__b", "a_b", "a_b_async2", "cast_", "str_"] {
        assert_eq!(python.matches(&format!("\ndef {name}(")).count(), 1, "{name}: {python}");
    }
    for name in ["a1", "a12", "aB", "aB2", "aBAsync"] {
        assert_eq!(typescript.matches(&format!("function {name}(")).count(), 1, "{name}: {typescript}");
    }
    assert!(place.cog(["types", "--stubs", "typings"].into_iter().chain(names)).status().unwrap().success());
    let stub = place.read("typings/cognitive_modules.pyi");
    for name in [
        "a_1: _A1Function",
        "a1: _A1Function2",
        "a__b: _ABFunction",
        "cast: _CastFunction",
        "str_: _StrFunction",
    ] {
        assert_eq!(stub.matches(&format!("\n{name}\n")).count(), 1, "{name}: {stub}");
    }
}

#[test]
fn python() {
    snapshot!(place().cog(["types", "every-type", "--lang", "python"]));
}

#[test]
fn typescript() {
    snapshot!(place().cog(["types", "every-type", "--lang", "typescript"]));
}

#[test]
fn rust() {
    snapshot!(place().cog(["types", "every-type", "--lang", "rust"]));
}

#[test]
fn without_functions() {
    let place = Place::new();
    snapshot!("types_only", place.cog(["types", "task-prioritizer", "--lang", "python", "--types-only"]));
    for lang in ["typescript", "rust"] {
        let types =
            stdout(&place.cog(["types", "code-reviewer", "--lang", lang, "--types-only"]).output().unwrap());
        assert!(
            types.contains("verdict") && !types.contains("fetch(") && !types.contains("cog_run"),
            "{types}"
        );
    }
}

#[test]
fn a_file_is_written_and_compared() {
    let place = Place::new();
    let args = ["types", "code-reviewer", "text-writer", "--lang", "python", "-o", "types.py"];
    assert!(place.cog(args.iter().copied()).status().unwrap().success());
    let written = place.read("types.py");
    assert_eq!(written, stdout(&place.cog(args[..5].iter().copied()).output().unwrap()));
    assert!(written.contains("class CodeReviewerIssue(TypedDict)") && written.contains("def text_writer("));
    let check = || place.cog(args.iter().copied().chain(["--check"]));
    assert!(check().status().unwrap().success());
    place.write("types.py", written + "\n");
    snapshot!("out_of_date", check());
    let missing = ["types", "code-reviewer", "--lang", "rust", "-o", "missing.rs", "--check"];
    assert_eq!(place.cog(missing).status().unwrap().code(), Some(1));
    assert!(!place.path().join("missing.rs").exists());
}

#[test]
fn stubs_have_every_module() {
    let place = place();
    place.write("cognitive/modules/broken/module.yaml", "name: [\n");
    let output = place.cog(["types", "--stubs", "typings"]).output().unwrap();
    assert!(output.status.success());
    assert!(stderr(&output).contains("note: the module broken is left out"), "{}", stderr(&output));
    let stub = place.read("typings/cognitive_modules.pyi");
    for name in ["code_reviewer", "every_type", "image_analyzer"] {
        assert!(
            stub.contains(&format!("    \"{name}\",\n")) && stub.contains(&format!("\n{name}: _")),
            "{name}"
        );
    }
    let check = |stubs: &str| place.cog(["types", "--stubs", stubs, "--check"]).status().unwrap().code();
    assert_eq!((check("typings"), check("other")), (Some(0), Some(1)));
    let one = place.cog(["types", "every-type", "--stubs", "typings"]).status().unwrap();
    assert!(one.success() && !place.read("typings/cognitive_modules.pyi").contains("code_reviewer"));
    snapshot!("stub", {
        place.cog(["types", "text-writer", "--stubs", "typings"]).status().unwrap();
        let mut print = std::process::Command::new("cat");
        print.arg(place.path().join("typings/cognitive_modules.pyi"));
        print
    });
}

#[test]
fn mistakes() {
    let place = Place::new();
    snapshot!("no_module", place.cog(["types", "code-reviewr", "--lang", "rust"]));
    snapshot!("no_file_to_check", place.cog(["types", "code-reviewer", "--lang", "rust", "--check"]));
    snapshot!("no_language", place.cog(["types", "code-reviewer"]));
    snapshot!("no_directory", place.cog(["types", "code-reviewer", "--lang", "rust", "-o", "none/types.rs"]));
}
