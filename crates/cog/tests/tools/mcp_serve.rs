//! `cog mcp serve` with the official Python SDK as the client, over both transports and of both revisions.

#![expect(clippy::disallowed_methods, reason = "modules that are written here")]

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use cog_testkit::{Mock, Reply, Wire};
use tempfile::TempDir;

use crate::mcp::{ANSWER, SCHEMA, python, script};

/// Creates a directory with modules, one of which calls another that a person must confirm.
fn directory() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, manifest: &str| {
        let place = directory.path().join("cognitive/modules").join(name);
        std::fs::create_dir_all(&place).unwrap();
        let manifest = format!(
            "name: {name}\nversion: 1.0.0\nresponsibility: Answer\ntier: decision\nexcludes: [guessing]\n{manifest}"
        );
        std::fs::write(place.join("module.yaml"), manifest).unwrap();
        std::fs::write(place.join("prompt.md"), "Answer this: $ARGUMENTS\n").unwrap();
        std::fs::write(place.join("schema.json"), SCHEMA).unwrap();
    };
    write("m", "");
    write("caller", "policies: { tools_allowed: true }\ntools: { allowed: [m] }\n");
    write("writer", "policies: { filesystem_write: allow }\n");
    write("human", "invocation: { agent_invocable: false }\n");
    directory
}

/// What the model replies in a check.
fn replies(check: &str) -> Vec<Reply> {
    let call = || Reply::tool_calls([("m", r#"{"query": "prod"}"#)]);
    match check {
        "tools" => vec![Reply::text(ANSWER).chunk_size(5)],
        "accept" => vec![call(), Reply::text(ANSWER), Reply::text(ANSWER)],
        "decline" => vec![call(), Reply::text(ANSWER)],
        _ => vec![call()],
    }
}

fn command(program: &str, directory: &Path, mock: &Mock) -> Command {
    let mut command = Command::new(program);
    command.current_dir(directory).env_clear().env("HOME", directory.join("home")).env("COG_TRUST", "1");
    command.env("PATH", "/usr/local/bin:/usr/bin:/bin").env("COG_DETECT_OLLAMA", "off");
    command.env("COG_TOOLS_CONFIRM", "m").env("OPENAI_API_KEY", "sk-canary");
    command.env("OPENAI_BASE_URL", mock.base_url(Wire::OpenAi)).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// A server over HTTP. Dropping it ends it.
struct Serving {
    child: Child,
    url: String,
}

impl Serving {
    fn start(arguments: &[&str], directory: &Path, mock: &Mock) -> Self {
        let mut command = command(env!("CARGO_BIN_EXE_cog"), directory, mock);
        let model = ["--provider", "openai", "--model", "gpt-4.1"];
        let mut child = command.args(arguments).args(model).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines.find_map(|line| {
            let line = line.unwrap();
            let (_, address) = line.split_once("modules at ")?;
            Some(address.split_whitespace().next().unwrap().to_owned())
        });
        std::thread::spawn(move || lines.for_each(|line| eprintln!("cog: {}", line.unwrap_or_default())));
        let url = format!("{}/mcp", address.unwrap().trim_end_matches("/mcp"));
        Self { child, url }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a check of the client. Returns the number of requests to the model.
fn check(mode: &str, check: &str, server: Option<&[&str]>) -> usize {
    let (directory, mock) = (directory(), Mock::start(replies(check)));
    let serving = server.map(|arguments| Serving::start(arguments, directory.path(), &mock));
    let target = serving.as_ref().map_or(env!("CARGO_BIN_EXE_cog"), |serving| &serving.url);
    let mut client = command(&python(), directory.path(), &mock);
    let output = client.args([&script("mcp_client.py"), target, mode, check]).output().unwrap();
    assert!(output.status.success(), "{mode} {check}: {}", String::from_utf8_lossy(&output.stderr));
    mock.requests().len()
}

const SERVE: &[&str] = &["serve", "--port", "0"];
const MCP_SERVE: &[&str] = &["mcp", "serve", "--http", "127.0.0.1:0"];

#[test]
fn tools_are_listed_and_called() {
    for mode in ["auto", "legacy"] {
        for server in [None, Some(SERVE), Some(MCP_SERVE)] {
            assert_eq!(check(mode, "tools", server), 1, "{mode} {server:?}");
        }
    }
}

#[test]
fn person_confirms() {
    for (mode, server) in [("auto", None), ("legacy", None), ("auto", Some(SERVE)), ("auto", Some(MCP_SERVE))]
    {
        assert_eq!(check(mode, "accept", server), 3, "{mode} {server:?}");
        assert_eq!(check(mode, "decline", server), 2, "{mode} {server:?}");
        assert_eq!(check(mode, "cancel", server), 1, "{mode} {server:?}");
    }
}

#[test]
fn client_that_cannot_ask_is_told_to_ask_a_person() {
    for mode in ["auto", "legacy"] {
        for server in [None, Some(SERVE)] {
            assert_eq!(check(mode, "nobody", server), 1, "{mode} {server:?}");
        }
    }
}
