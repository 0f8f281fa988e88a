//! `cargo xtask mcp-servers`: calls the tools of MCP servers that other people publish, in the wire form of each vendor.

use std::path::Path;

use crate::clients::node_in;
use crate::project::{FEATURES, Outcome, cargo, execute};
use crate::test::{self, Extent, python_in};

/// The servers of npm. The browser of Playwright's server is the installed one.
const NODE: &[&str] = &[
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/server-memory@2026.8.31",
    "@modelcontextprotocol/server-sequential-thinking@2026.8.31",
    "@playwright/mcp@0.0.83",
];

/// The servers of PyPI.
const PYTHON: &[&str] =
    &["mcp-server-fetch==2026.10.24", "mcp-server-git==2026.10.19", "mcp-server-time==2026.10.19"];

/// The servers of PyPI that need the first version of the SDK of MCP, so they have an environment of their own.
const PYTHON_OLD: &[&str] = &["mcp==1.30.0", "mcp-server-calculator==0.2.1", "mcp-server-sqlite==2025.4.25"];

/// Installs the servers, and runs their tests.
pub(crate) fn check() -> Outcome {
    test::install(Extent::All)?;
    let modules = node_in("mcp-servers-node", NODE)?;
    let interpreters = [python_in("mcp-servers", PYTHON)?, python_in("mcp-servers-old", PYTHON_OLD)?];
    let mut directories = vec![modules.join(".bin")];
    directories.extend(interpreters.iter().filter_map(|path| path.parent()).map(Path::to_owned));
    let path = std::env::join_paths(directories).map_err(|error| error.to_string())?;
    let mut tests = cargo();
    tests.args(["test", "--workspace", "--locked", "--test", "mcp_servers"]).args(FEATURES);
    execute(tests.env("COG_TEST_MCP_SERVERS", path))
}
