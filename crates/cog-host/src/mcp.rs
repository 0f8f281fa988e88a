//! Starts the MCP servers whose tools a module may call.

#[cfg(feature = "mcp")]
use cog_mcp::{McpError, McpServer, McpTools};
#[cfg(feature = "mcp")]
use cog_module::{Finder, Module};
use cog_run::RuntimeBuilder;
use cog_spec::ErrorBody;

use crate::settings::Settings;

/// Adds the tools of the operator's servers. With the name of a module, only servers whose tools it may call are started.
/// `note` receives a sentence for each tool that is not available.
///
/// # Errors
/// A server cannot be started or reached.
#[cfg(feature = "mcp")]
pub fn add_tools(
    mut builder: RuntimeBuilder,
    settings: &Settings,
    module: Option<&str>,
    mut note: impl FnMut(&str),
) -> Result<RuntimeBuilder, ErrorBody> {
    let finder = settings.finder();
    let loaded = module.map(|name| finder.find(name).ok().and_then(|origin| cog_module::load(&origin).ok()));
    let is_needed = |server: &&McpServer| match &loaded {
        None => true,
        // The run reports a module that cannot be loaded.
        Some(module) => module.as_ref().is_some_and(|module| may_call(module, &finder, server)),
    };
    for server in settings.mcp.iter().filter(is_needed) {
        let found = server.connect_blocking().map_err(|error| error_body(&error))?;
        skipped(server, &found).for_each(|sentence| note(&sentence));
        builder = found.tools.into_iter().fold(builder, RuntimeBuilder::tool);
    }
    Ok(builder)
}

/// Connects to a server in the current async runtime. `note` receives a sentence for each tool that is not available.
///
/// # Errors
/// The server cannot be started or reached.
#[cfg(feature = "mcp")]
pub async fn connect(server: &McpServer, note: impl FnMut(String)) -> Result<McpTools, ErrorBody> {
    let found = server.connect().await.map_err(|error| error_body(&error))?;
    skipped(server, &found).for_each(note);
    Ok(found)
}

/// Returns a sentence for each tool that is not available.
#[cfg(feature = "mcp")]
fn skipped(server: &McpServer, found: &McpTools) -> impl Iterator<Item = String> {
    let skipped = found.skipped.iter();
    skipped.map(|(tool, reason)| format!("the tool `{tool}` of `{}` is not available: {reason}", server.name))
}

#[cfg(feature = "mcp")]
fn error_body(error: &McpError) -> ErrorBody {
    ErrorBody::new(error.code(), error.to_string()).suggest(error.suggestion())
}

/// Without the feature, there are no servers.
#[cfg(not(feature = "mcp"))]
pub fn add_tools(
    builder: RuntimeBuilder,
    _settings: &Settings,
    _module: Option<&str>,
    _note: impl FnMut(&str),
) -> Result<RuntimeBuilder, ErrorBody> {
    Ok(builder)
}

/// The maximum number of nested modules that are searched.
#[cfg(feature = "mcp")]
const MAX_DEPTH: usize = 5;

/// Returns whether a module may call a tool of a server, itself or in a module that it may call.
#[cfg(feature = "mcp")]
pub fn may_call(module: &Module, finder: &Finder, server: &McpServer) -> bool {
    calls(module, finder, &format!("{}__", server.name), 0)
}

#[cfg(feature = "mcp")]
fn calls(module: &Module, finder: &Finder, prefix: &str, depth: usize) -> bool {
    let (policies, rules) = (&module.manifest.policies, &module.manifest.tools);
    let in_module = |name: &String| {
        let origin = finder.find(name).ok();
        let module = origin.and_then(|origin| cog_module::load(&origin).ok());
        module.is_some_and(|module| calls(&module, finder, prefix, depth + 1))
    };
    let is_called = |name: &String| name.starts_with(prefix) || (depth < MAX_DEPTH && in_module(name));
    policies.tools_allowed && (rules.allow_by_default || rules.allowed.iter().any(is_called))
}
