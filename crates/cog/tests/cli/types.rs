//! The types of modules in other languages.

use std::path::Path;

use crate::support::{Place, copy, snapshot, stderr, stdout};

/// A module with every form of schema.
fn place() -> Place {
    let place = Place::new();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/types/every-type");
    copy(&fixture, &place.path().join("cognitive/modules/every-type"));
    place
}

#[test]
fn every_type_has_an_answer() {
    let place = place();
    let envelope = format!(
        r#"{{"ok": true, "meta": {{"confidence": 1, "risk": "none", "explain": "All."}}, "data": {}}}"#,
        place.read("cognitive/modules/every-type/answer.json")
    );
    place.write("answer.json", envelope);
    snapshot!(place.cog(["verify", "answer.json", "--module", "every-type"]));
    snapshot!("valid", place.cog(["validate", "every-type", "--deny-warnings"]));
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
