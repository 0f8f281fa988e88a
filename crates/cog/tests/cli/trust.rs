//! A directory that somebody else wrote, and what it may change.

#![expect(clippy::disallowed_methods, reason = "tests lay out files")]

use std::process::{Command, Stdio};

use crate::support::{Place, stderr};

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

/// A server that the operator configured runs a file by its relative name. The clone has a file of this name.
#[test]
fn mcp_server_does_not_run_a_file_of_the_clone() {
    let place = clone("cognitive/modules/m");
    place.write("clone/server.sh", "touch ../executed\n");
    place.write(".config/cog/config.toml", "[mcp.own]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n");
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
    // These start the server, which is not in the home directory.
    for args in [&["run", "m", "--args", "x"][..], &["serve", "--port", "0"], &["mcp", "serve"]] {
        assert!(!lost(args).status.success(), "{args:?}");
    }
    place.write(
        ".config/cog/config.toml",
        "[mcp.own]\ncommand = \"sh\"\nargs = [\"server.sh\"]\ndirectory = \".\"\n",
    );
    assert!(!lost(&["mcp", "serve"]).status.success(), "a relative directory starts at the settings file");
}
