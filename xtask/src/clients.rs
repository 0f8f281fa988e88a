//! The server under other people's clients: curl, a browser, Node's and Python's, `schemathesis`, the SDKs of OpenAI, Anthropic and MCP,
//! frameworks, and the clients of `docs/clients.md` in Go, Java and C#.

use std::path::PathBuf;
use std::process::Command;

use crate::project::{Outcome, execute, programs, root, say};
use crate::test;
use crate::test::{Extent, python, python_in};

/// Python's clients, the driver of the browser, and the tool that reads the OpenAPI document.
const PYTHON: &[&str] = &[
    "anthropic==2.11.0",
    "httpx==0.28.1",
    "langchain-openai==1.7.4",
    "openai==3.57.0",
    "schemathesis==4.32.5",
    "selenium==4.51.0",
    "websockets==17.4",
];
/// Node's clients, and the check of pages against WCAG.
const NODE: &[&str] = &["axe-core@4.14.1", "eventsource@3.0.7", "ws@8.23.0"];
/// OpenAI's TypeScript SDK, and the AI SDK. They need Node 22 too.
const OPENAI: &[&str] = &["@ai-sdk/openai@4.0.118", "ai@7.0.173", "openai@7.59.0", "zod@4.6.7"];
/// Anthropic's TypeScript SDK, also of the AI SDK.
const ANTHROPIC: &[&str] = &["@ai-sdk/anthropic@4.0.105", "@anthropic-ai/sdk@1.14.0"];
/// Frameworks with clients of OpenAI. Some need an older SDK of OpenAI, so they have an environment of their own.
const FRAMEWORKS: &[&str] = &[
    "dspy==3.4.1",
    "haystack-ai==3.4.1",
    "instructor==1.17.0",
    "litellm[proxy]==1.106.12",
    "llama-index-llms-openai-like==0.8.1",
    "llm==0.32.1",
    "openai-agents==0.20.0",
    "pydantic-ai-slim[openai]==2.31.1",
];
/// It needs the first version of MCP's SDK, and LiteLLM the second.
const SEMANTIC_KERNEL: &[&str] = &["semantic-kernel==1.45.0"];
const NODE_FRAMEWORKS: &[&str] = &[
    "@ai-sdk/openai-compatible@3.0.92",
    "@langchain/core@1.4.0",
    "@langchain/openai@1.5.8",
    "@openai/agents@0.20.0",
];
/// MCP's conformance suites, each with the revision that it knows, and its TypeScript SDK and Inspector. They need Node 22.
const MCP: &[&str] = &[
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "@modelcontextprotocol/inspector@2.12.0",
    "@modelcontextprotocol/sdk@1.32.2",
    "conformance-2025-11-25@npm:@modelcontextprotocol/conformance@0.1.16",
    "node@22.23.3",
];
const SCRIPTS: &str = "crates/cog-server/tests/clients";

/// Runs every client against the server.
pub(crate) fn check() -> Outcome {
    test::install(Extent::All)?;
    let interpreter = python(PYTHON)?;
    let modules = node(&[NODE, OPENAI, ANTHROPIC, NODE_FRAMEWORKS, MCP].concat())?;
    let frameworks = python_in("frameworks", FRAMEWORKS)?;
    let semantic_kernel = python_in("semantic-kernel", SEMANTIC_KERNEL)?;
    let programs = programs()?;
    for (interpreter, script, arguments) in [
        (&interpreter, "check.py", &[][..]),
        (&interpreter, "contract.py", &[]),
        (&interpreter, "completions.py", &[]),
        (&interpreter, "anthropic_sdk.py", &[]),
        (&frameworks, "frameworks.py", &[]),
        (&semantic_kernel, "frameworks.py", &["semantic_kernel"]),
        (&interpreter, "mcp.py", &[]),
        (&interpreter, "languages.py", &[]),
    ] {
        say(format_args!("clients: {script} {}", arguments.join(" ")));
        let mut command = Command::new(interpreter);
        command.arg(root().join(SCRIPTS).join(script)).args(arguments).env("NODE_PATH", &modules);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("COG", programs.join("cog")).env("COG_MOCK", programs.join("cog-mock"));
        execute(&mut command)?;
    }
    Ok(())
}

/// Installs packages of Node under `target/`, and returns their directory.
pub(crate) fn node(packages: &[&str]) -> Outcome<PathBuf> {
    node_in("node", packages)
}

/// Installs packages of Node in the directory of this name under `target/tools`, and returns their directory.
pub(crate) fn node_in(name: &str, packages: &[&str]) -> Outcome<PathBuf> {
    let directory = root().join("target/tools").join(name);
    let install = ["install", "--silent", "--no-save", "--no-audit", "--no-fund", "--prefix"];
    execute(Command::new("npm").args(install).arg(&directory).args(packages))?;
    Ok(directory.join("node_modules"))
}
