//! A directory that somebody else wrote, and what its modules get.

use std::{
    os::unix::fs::{PermissionsExt, symlink},
    process::{Command, Output, Stdio},
};

use cog_testkit::{Mock, Reply, Wire};

use crate::support::{Place, json, stderr, stdout};

const ANSWER: &str = r#"{"ok": true, "meta": {"confidence": 0.9, "risk": "low", "explain": "Fine."},
    "data": {"result": "fine", "rationale": "Nothing was unclear."}, "error": null}"#;

const SCHEMA: &str = r#"{
    "input": {"type": "object", "properties": {"query": {"type": "string"}}},
    "data": {"type": "object", "required": ["result", "rationale"],
        "properties": {"result": {"type": "string"}, "rationale": {"type": "string"}}}}"#;

/// Writes a module that may call the tool `helper`.
fn module(place: &Place, path: &str) {
    let name = path.rsplit('/').next().unwrap();
    let manifest = format!(
        "name: {name}\nversion: 1.0.0\nresponsibility: Answer\ntier: decision\nexcludes: [guessing]\n\
         policies: {{ tools_allowed: true, side_effects: allow, network: allow }}\n\
         tools: {{ policy: allow_by_default, allowed: [helper] }}\n"
    );
    place.write(&format!("{path}/module.yaml"), manifest);
    place.write(&format!("{path}/prompt.md"), "Answer this: $ARGUMENTS\n");
    place.write(&format!("{path}/schema.json"), SCHEMA);
}

/// Returns a home with the operator's module `helper`, and with a clone that has the module at this path.
fn clone(path: &str) -> Place {
    let place = Place::new();
    module(&place, ".cognitive/modules/helper");
    place.write(
        ".cognitive/modules/helper/module.yaml",
        "name: helper\nversion: 1.0.0\nresponsibility: Answer\n\
        tier: decision\nexcludes: [guessing]\n",
    );
    module(&place, &format!("clone/{path}"));
    place
}

fn cog(place: &Place, directory: &str, args: &[&str]) -> Command {
    let mut command = place.cog(args.iter().copied());
    command.current_dir(place.path().join(directory));
    command
}

/// Runs a module in a directory. Returns whether the model was offered tools, and the output.
fn offered(place: &Place, directory: &str, args: &[&str]) -> (bool, Output) {
    let mock = Mock::start([Reply::text(ANSWER)]);
    let mut command = cog(place, directory, &[&["run"], args, &["--args", "why?"]].concat());
    command.env("LLM_PROVIDER", "openai").env("OPENAI_API_KEY", "none");
    let output = command.env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi)).output().unwrap();
    assert!(output.status.success(), "{}{}", stderr(&output), stdout(&output));
    (mock.requests()[0].body["tools"].is_array(), output)
}

fn trust(place: &Place, directory: &str, args: &[&str]) -> Output {
    cog(place, directory, &[&["trust"], args].concat()).output().unwrap()
}

#[test]
fn module_of_a_clone_gets_tools_only_after_trust() {
    for path in ["cognitive/modules/code-reviewer", ".cognitive/modules/code-reviewer", "code-reviewer"] {
        let place = clone(path);
        let (is_offered, output) = offered(&place, "clone", &["code-reviewer"]);
        assert!(!is_offered, "{path}");
        let warning = json(&output)["_warnings"].to_string();
        assert!(warning.contains("W4017") && warning.contains("cog trust "), "{path}: {}", stdout(&output));
        assert!(stderr(&output).contains("not the built-in one"), "{path}: {}", stderr(&output));
        assert!(stderr(&output).contains("cog trust "), "{path}: {}", stderr(&output));
        assert!(trust(&place, "clone", &[]).status.success());
        let (is_offered, output) = offered(&place, "clone", &["code-reviewer"]);
        assert!(is_offered && stderr(&output).contains("not the built-in one"), "{path}");
        assert!(trust(&place, "clone", &["--remove"]).status.success());
        assert!(!offered(&place, "clone", &["code-reviewer"]).0, "{path}");
    }
}

/// A module of the operator calls another one of theirs, which the clone replaces.
#[test]
fn replaced_part_of_a_module_is_named() {
    let place = clone("cognitive/modules/helper");
    module(&place, ".cognitive/modules/own");
    let (is_offered, output) = offered(&place, "clone", &["own"]);
    assert!(is_offered && stderr(&output).contains("`helper` is the module in "), "{}", stderr(&output));
    assert!(stderr(&output).contains(", not yours in "), "{}", stderr(&output));
    assert!(!stderr(&offered(&place, "", &["own"]).1).contains("helper"));
}

/// A `git pull` brings a manifest that allows more than the one that was read.
#[test]
fn manifest_that_allows_more_must_be_trusted_again() {
    let place = clone("cognitive/modules/m");
    let manifest = place.read("clone/cognitive/modules/m/module.yaml");
    let smaller = manifest.replace("policy: allow_by_default, ", "").replace(", network: allow", "");
    place.write("clone/cognitive/modules/m/module.yaml", &smaller);
    let trusted = stderr(&trust(&place, "clone", &[]));
    assert!(trusted.contains("note: cognitive/modules/m: side effects, tool helper"), "{trusted}");
    place.write("clone/cognitive/modules/m/prompt.md", "Answer at once: $ARGUMENTS\n");
    assert!(offered(&place, "clone", &["m"]).0, "prompts are edited all the time");
    place.write("clone/cognitive/modules/m/module.yaml", &manifest);
    let (is_offered, output) = offered(&place, "clone", &["m"]);
    let warning = json(&output)["_warnings"].to_string();
    assert!(!is_offered && warning.contains("(every tool, network)"), "{warning}");
    assert!(offered(&place, "clone", &["./cognitive/modules/m"]).0, "a path that the user gave");
    assert!(trust(&place, "clone", &[]).status.success());
    assert!(offered(&place, "clone", &["m"]).0);
    assert_eq!(stdout(&trust(&place, "", &["--list"])).lines().count(), 1);
}

/// What earlier versions stored: a list of paths.
#[test]
fn stored_paths_stay_trusted() {
    let place = clone("cognitive/modules/m");
    let path = place.path().join("clone").canonicalize().unwrap();
    place.write(".local/state/cog/trusted.json", format!("[{:?}]", path.display().to_string()));
    assert!(offered(&place, "clone", &["m"]).0);
    place.write(".local/state/cog/trusted.json", "[1]");
    assert!(!offered(&place, "clone", &["m"]).0);
    assert!(stderr(&trust(&place, "", &["--list"])).contains("is not a JSON list of directories"));
}

/// A module of the operator calls one that it finds by name in the working directory.
#[test]
fn part_of_a_module_of_the_operator_gets_no_tools() {
    let place = clone("cognitive/modules/part");
    module(&place, ".cognitive/modules/pipe");
    place.write(
        ".cognitive/modules/pipe/module.yaml",
        "name: pipe\nversion: 1.0.0\nresponsibility: Answer\ntier: decision\nexcludes: [guessing]\n\
         composition:\n  dataflow:\n    - { from: input, to: part }\n    - { from: part.output, to: output }\n",
    );
    let (is_offered, output) = offered(&place, "clone", &["pipe"]);
    assert!(!is_offered, "{}", stdout(&output));
    let warning = json(&output)["_warnings"].to_string();
    assert!(warning.contains("W4017") && warning.contains("cog trust "), "{}", stdout(&output));
    assert!(trust(&place, "clone", &[]).status.success());
    assert!(offered(&place, "clone", &["pipe"]).0);
}

/// A directory of modules that is a link leads to a place that is trusted there, or not at all.
#[test]
fn linked_directory_of_modules_is_not_covered() {
    let place = clone("mods/m");
    std::fs::create_dir_all(place.path().join("mine/cognitive")).unwrap();
    symlink(place.path().join("clone/mods"), place.path().join("mine/cognitive/modules")).unwrap();
    let trusted = stderr(&trust(&place, "mine", &[]));
    assert!(!trusted.contains("every tool"), "{trusted}");
    let (is_offered, output) = offered(&place, "mine", &["m"]);
    assert!(!is_offered && stdout(&output).contains("clone/mods/m"), "{}", stdout(&output));
    assert!(trust(&place, "", &["clone/mods"]).status.success());
    assert!(offered(&place, "mine", &["m"]).0);
}

#[test]
fn path_and_flag_trust_one_run() {
    let place = clone("cognitive/modules/m");
    assert!(offered(&place, "clone", &["./cognitive/modules/m"]).0);
    assert!(offered(&place, "clone", &["m", "--trust"]).0);
    assert!(!offered(&place, "clone", &["m"]).0);
    place.write(".config/cog/config.toml", "trust = true\n");
    assert!(offered(&place, "clone", &["m"]).0);
    place.write(".config/cog/config.toml", "").write("clone/cog.toml", "trust = true\n");
    let refused = cog(&place, "clone", &["run", "m", "--args", "x"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
}

#[test]
fn trust_covers_no_directory_below_and_follows_links() {
    let place = clone("cognitive/modules/m");
    assert!(trust(&place, "", &["."]).status.success());
    assert!(!offered(&place, "clone", &["m"]).0, "a clone in a trusted directory");
    // A link in a trusted directory does not carry the trust to another place.
    std::fs::create_dir_all(place.path().join("mine/cognitive/modules")).unwrap();
    symlink(place.path().join("clone/cognitive/modules/m"), place.path().join("mine/cognitive/modules/m"))
        .unwrap();
    assert!(trust(&place, "mine", &[]).status.success());
    assert!(!offered(&place, "mine", &["m"]).0);
    assert!(trust(&place, "", &["clone"]).status.success());
    assert!(offered(&place, "mine", &["m"]).0);
    let listed = stdout(&trust(&place, "", &["--list"]));
    assert_eq!(listed.lines().count(), 3, "{listed}");
    let file = place.path().join(".local/state/cog/trusted.json");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
    assert!(!offered(&place, "mine", &["m"]).0, "others may have written it");
}

#[test]
fn modules_of_the_operator_and_new_ones_are_trusted() {
    let place = clone("cognitive/modules/m");
    module(&place, ".cognitive/modules/own");
    assert!(offered(&place, "clone", &["own"]).0);
    assert!(offered(&place, "", &["own"]).0, "the home directory is the working directory");
    assert!(cog(&place, "clone", &["new", "mine"]).status().unwrap().success());
    module(&place, "clone/cognitive/modules/mine");
    assert!(offered(&place, "clone", &["mine"]).0);
    assert!(cog(&place, "clone", &["new", "copied", "--from", "m"]).status().unwrap().success());
    assert!(!offered(&place, "clone", &["copied"]).0, "a copy of what is not trusted");
}

#[test]
fn logged_run_does_not_trust_its_path() {
    let place = clone("cognitive/modules/m");
    place.write(".config/cog/config.toml", "[logs]\ncontents = true\n");
    assert!(!offered(&place, "clone", &["m"]).0);
    let mock = Mock::start([Reply::text(ANSWER)]);
    let mut command = cog(&place, "", &["logs", "replay"]);
    command.env("LLM_PROVIDER", "openai").env("OPENAI_API_KEY", "none");
    let output = command.env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi)).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(mock.requests()[0].body["tools"].is_null());
}

/// Runs `cog` in the clone with a model that calls `helper`, which a person must confirm.
fn confirmed(place: &Place, mock: &Mock, directory: &str, args: &[&str]) -> Output {
    let mut command = cog(place, directory, args);
    command.env("LLM_PROVIDER", "openai").env("OPENAI_API_KEY", "none").env("COG_TOOLS_CONFIRM", "helper");
    command.env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi)).output().unwrap()
}

fn calls_helper() -> Mock {
    let call = Reply::tool_calls([("helper", r#"{"query": "how?"}"#)]);
    Mock::start([call, Reply::text(ANSWER), Reply::text(ANSWER)])
}

fn halted(place: &Place, mock: &Mock, args: &[&str]) -> String {
    let output = confirmed(place, mock, "clone", &[&["run"], args, &["--args", "why?"]].concat());
    let envelope = json(&output);
    envelope["error"]["details"]["halted"]["id"].as_str().unwrap_or_else(|| panic!("{envelope}")).to_owned()
}

#[test]
fn halted_run_does_not_outlast_the_trust_in_its_directory() {
    let (place, mock) = (clone("cognitive/modules/m"), calls_helper());
    assert!(trust(&place, "clone", &[]).status.success());
    let id = halted(&place, &mock, &["m"]);
    assert!(trust(&place, "clone", &["--remove"]).status.success());
    for decision in [&["--confirm", "YES"][..], &["--deny"]] {
        let refused = confirmed(&place, &mock, "clone", &[&["run", "--continue", &id], decision].concat());
        let error = json(&refused)["error"].clone();
        assert_eq!(error["code"], "E4007", "{error}");
        assert!(error["suggestion"].as_str().unwrap().contains("cog trust "), "{error}");
    }
    assert_eq!(mock.requests().len(), 1, "nothing was executed");
    assert!(trust(&place, "clone", &[]).status.success());
    let continued = confirmed(&place, &mock, "clone", &["run", "--continue", &id, "--confirm", "YES"]);
    assert!(continued.status.success(), "it was not used up: {}", stdout(&continued));
    assert_eq!(mock.requests().len(), 3);
}

#[test]
fn halted_run_of_a_path_stays_the_run_of_that_path() {
    for args in [&["./cognitive/modules/m"][..], &["m", "--trust"]] {
        let (place, mock) = (clone("cognitive/modules/m"), calls_helper());
        let id = halted(&place, &mock, args);
        let continued = confirmed(&place, &mock, "", &["run", "--continue", &id, "--confirm", "YES"]);
        assert!(continued.status.success(), "{args:?}: {}", stdout(&continued));
        assert_eq!(mock.requests().len(), 3, "{args:?}");
    }
}

/// A server that the operator configured runs a file by its relative name. The clone has a file of this name.
#[test]
fn mcp_server_does_not_run_a_file_of_the_clone() {
    let place = clone("cognitive/modules/m");
    place.write("clone/server.sh", "touch ../executed\n");
    place.write(
        ".config/cog/config.toml",
        "[mcp.own]\ncommand = \"sh\"\nargs = [\"server.sh\"]\nrequired = true\n[logs]\ncontents = true\n",
    );
    let lost = |args: &[&str]| {
        let mut command = cog(&place, "clone", args);
        command
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("LLM_PROVIDER", "offline")
            .stdin(Stdio::null());
        let output = command.output().unwrap();
        assert!(!place.path().join("executed").exists(), "{args:?}: {}", stderr(&output));
        output
    };
    assert!(lost(&["run", "m", "--args", "x"]).status.success(), "no server is started for it");
    assert!(lost(&["logs", "replay"]).status.success(), "a path in the log is not trusted");
    // These start the server, which is not in the home directory.
    for args in [&["run", "m", "--args", "x", "--trust"][..], &["serve", "--port", "0"], &["mcp", "serve"]] {
        assert!(!lost(args).status.success(), "{args:?}");
    }
    place.write(
        ".config/cog/config.toml",
        "[mcp.own]\ncommand = \"sh\"\nargs = [\"server.sh\"]\nrequired = true\ndirectory = \".\"\n",
    );
    assert!(!lost(&["mcp", "serve"]).status.success(), "a relative directory starts at the settings file");
}

#[test]
fn server_reports_what_the_working_directory_changes() {
    let place = clone("cognitive/modules/code-reviewer");
    let output = cog(&place, "clone", &["mcp", "serve"]).stdin(Stdio::null()).output().unwrap();
    let notes = stderr(&output);
    assert!(notes.contains("not the built-in one") && notes.contains("cog trust "), "{notes}");
    let output = cog(&place, "clone", &["mcp", "serve", "--trust"]).stdin(Stdio::null()).output().unwrap();
    assert!(!stderr(&output).contains("cog trust "), "{}", stderr(&output));
}

#[test]
fn project_file_that_costs_more_is_named() {
    let place = Place::new();
    place.write("cog.toml", "effort = \"max\"\nservice_tier = \"priority\"\nretries = 9\nmodel = \"m1\"\n");
    let notes =
        |args: &[&str]| stderr(&cog(&place, "", args).env("LLM_PROVIDER", "offline").output().unwrap());
    let run = ["run", "code-reviewer", "--args", "x"];
    let noted = notes(&run);
    for value in ["effort = max", "service_tier = priority", "retries = 9", "model = m1"] {
        assert!(noted.contains(&format!("cog.toml sets {value}")), "{value}: {noted}");
    }
    assert!(!notes(&[&run[..], &["--model", "m2"]].concat()).contains("model = "));
    assert!(!notes(&["list"]).contains("effort"));
}
