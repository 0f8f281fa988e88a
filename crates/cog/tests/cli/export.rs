//! Modules in the formats of other programs, and modules from skills.

use std::path::Path;

use crate::support::{Place, json, snapshot, stderr, stdout};

/// Returns the commands that print what a command wrote.
fn written(place: &Place, args: &[&str], files: &[&str]) -> String {
    let output = place.cog(args.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let texts: Vec<String> = files.iter().map(|file| format!("==== {file}\n{}", place.read(file))).collect();
    format!("{}{}\n{}", stdout(&output), stderr(&output), texts.join("\n"))
}

#[test]
fn skill() {
    let files = ["text-critic/SKILL.md", "text-critic/scripts/run.sh", "text-critic/references/examples.md"];
    let place = Place::new();
    insta::assert_snapshot!("skill", written(&place, &["export", "text-critic", "--as", "skill"], &files));
    for name in ["module.yaml", "prompt.md", "schema.json"] {
        assert!(place.path().join("text-critic/assets/text-critic").join(name).is_file(), "{name}");
    }
}

#[test]
fn claude_code() {
    let files = [".claude/skills/text-critic/SKILL.md"];
    insta::assert_snapshot!(
        "claude_code",
        written(&Place::new(), &["export", "text-critic", "--as", "claude-code"], &files)
    );
}

#[test]
fn one_file() {
    let place = Place::new();
    snapshot!("agent_card", place.cog(["export", "text-critic", "--as", "agent-card"]));
    snapshot!("promptfoo", place.cog(["export", "text-critic", "--as", "promptfoo"]));
    let entry = ["export", "text-critic", "--as", "mcp-server-json", "--namespace", "com.example"];
    snapshot!("server_json_alone", place.cog(entry));
    let more = ["--image", "ghcr.io/example/critic:1.0.0", "--url", "https://cog.example/"];
    snapshot!("server_json", place.cog(entry.into_iter().chain(more)));
    let output =
        place.cog(["export", "text-critic", "--as", "openapi", "-o", "openapi.json"]).output().unwrap();
    assert_eq!(
        (output.status.code(), stdout(&output), stderr(&output)),
        (Some(0), String::new(), String::new())
    );
    assert_eq!(
        place.read("openapi.json"),
        stdout(&place.cog(["export", "text-critic", "--as", "openapi"]).output().unwrap())
    );
}

#[test]
fn script_runs_the_module_beside_it() {
    let place = Place::new();
    place.copy_module("format-v25", "format-v25");
    assert!(
        place.cog(["export", "./format-v25", "--as", "skill", "-o", "."]).status().unwrap().code() == Some(1)
    );
    std::fs::create_dir(place.path().join("skills")).unwrap();
    assert!(
        place.cog(["export", "./format-v25", "--as", "skill", "-o", "skills"]).status().unwrap().success()
    );
    std::fs::remove_dir_all(place.path().join("format-v25")).unwrap();
    let mut script = std::process::Command::new(place.path().join("skills/format-v25/scripts/run.sh"));
    let program = Path::new(env!("CARGO_BIN_EXE_cog")).parent().unwrap();
    let path = format!("{}:/usr/bin:/bin", program.display());
    script
        .args(["--args", "why?"])
        .env_clear()
        .env("PATH", path)
        .env("HOME", place.path())
        .env("COG_DETECT_OLLAMA", "off");
    let envelope = json(&script.output().unwrap());
    assert_eq!(envelope["ok"], true, "{envelope}");
}

#[test]
fn nothing_is_overwritten() {
    let place = Place::new();
    place.write("card.json", "mine");
    snapshot!("file_exists", place.cog(["export", "text-critic", "--as", "agent-card", "-o", "card.json"]));
    assert_eq!(place.read("card.json"), "mine");
    let args = ["export", "text-critic", "--as", "skill"];
    assert!(place.cog(args).status().unwrap().success());
    place.write("text-critic/own.md", "mine");
    snapshot!("skill_exists", place.cog(args));
    assert_eq!(place.read("text-critic/own.md"), "mine");
    place.write("text-writer/notes.md", "mine");
    snapshot!("other_directory_exists", place.cog(["export", "text-writer", "--as", "skill", "--force"]));
    assert_eq!(place.read("text-writer/notes.md"), "mine");
    for args in [&["--as", "agent-card", "-o", "card.json"][..], &["--as", "skill"]] {
        let args = ["export", "text-critic", "--force"].into_iter().chain(args.iter().copied());
        assert!(place.cog(args).status().unwrap().success());
    }
    assert!(place.read("card.json").contains("supportedInterfaces"));
    assert!(!place.path().join("text-critic/own.md").exists());
}

#[cfg(unix)]
#[test]
fn link_is_not_replaced() {
    let place = Place::new();
    assert!(place.cog(["export", "text-critic", "--as", "skill"]).status().unwrap().success());
    std::fs::rename(place.path().join("text-critic"), place.path().join("elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere", place.path().join("text-critic")).unwrap();
    let output = place.cog(["export", "text-critic", "--as", "skill", "--force"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(place.path().join("elsewhere/SKILL.md").is_file());
}

#[test]
fn export_mistakes() {
    let place = Place::new();
    let export =
        |args: &[&str]| place.cog(["export", "text-critic", "--as"].into_iter().chain(args.iter().copied()));
    snapshot!("no_namespace", export(&["mcp-server-json"]));
    snapshot!("wrong_namespace", export(&["mcp-server-json", "--namespace", "me"]));
    snapshot!(
        "wrong_image",
        export(&["mcp-server-json", "--namespace", "com.example", "--image", "critic:latest"])
    );
    snapshot!("wrong_url", export(&["agent-card", "--url", "cog.example"]));
    snapshot!("flag_without_effect", export(&["skill", "--url", "https://cog.example"]));
    snapshot!("skill_to_stdout", export(&["skill", "-o", "-"]));
    snapshot!("no_directory", export(&["skill", "-o", "missing"]));
    snapshot!("no_such_format", export(&["agents-md"]));
    snapshot!("no_such_module", place.cog(["export", "text-critik", "--as", "skill"]));
    let name = "a--b";
    assert!(place.cog(["new", name, "--in", "."]).status().unwrap().success());
    snapshot!("name_of_a_skill", place.cog(["export", "./a--b", "--as", "skill"]));
    let manifest = place.read("a--b/module.yaml") + "invocation: { agent_invocable: false }\n";
    place.write("a--b/module.yaml", manifest);
    snapshot!("not_for_agents", place.cog(["export", "./a--b", "--as", "agent-card"]));
}

#[test]
fn exported_skill_is_imported() {
    let place = Place::new();
    assert!(place.cog(["export", "text-refiner", "--as", "skill"]).status().unwrap().success());
    place.write("modules/.keep", "");
    snapshot!("imported", place.cog(["import", "text-refiner/SKILL.md", "-o", "modules"]));
    let validated = place.cog(["validate", "./modules/text-refiner"]).status().unwrap();
    assert!(validated.success());
    snapshot!("imported_twice", place.cog(["import", "text-refiner", "-o", "modules"]));
}

#[test]
fn skill_from_elsewhere_is_drafted() {
    let place = Place::new();
    place.write(
        "skills/pdf-reader/SKILL.md",
        "---\nname: pdf-reader\ndescription: Reads PDF files. Use when a person mentions a PDF.\nlicense: MIT\n---\n\n\
         # Read a PDF\n\nRead it as [the forms](references/FORMS.md) say, not as [others](../others.md).\n",
    );
    place.write("skills/pdf-reader/references/FORMS.md", "Forms.\n");
    place.write("cognitive/modules/.keep", "");
    snapshot!("drafted", place.cog(["import", "skills/pdf-reader"]));
    snapshot!("draft_is_valid", place.cog(["validate", "pdf-reader"]));
    insta::assert_snapshot!("draft", place.read("cognitive/modules/pdf-reader/module.yaml"));
}

#[test]
fn import_mistakes() {
    let place = Place::new();
    place
        .write("a/SKILL.md", "# No front matter\n")
        .write("b/SKILL.md", "---\nname: b\ndescription:\n---\nText\n");
    place
        .write("c/SKILL.md", "---\nname: c\ndescription: C\n---\nText\n")
        .write("c/references/schema.json", "{\"data\": {,}}");
    snapshot!("no_front_matter", place.cog(["import", "a/SKILL.md", "-o", "out"]));
    snapshot!("no_description", place.cog(["import", "b", "-o", "out"]));
    snapshot!("wrong_schema", place.cog(["import", "c", "-o", "out"]));
    snapshot!("no_skill", place.cog(["import", "missing.md"]));
    assert!(!place.path().join("out").exists());
}
