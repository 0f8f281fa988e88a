//! Starts the MCP servers whose tools a module may call.

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
    for server in
        settings.mcp.iter().filter(|server| module.is_none_or(|name| calls(settings, name, server, 0)))
    {
        let found = server.connect_blocking().map_err(|error| {
            let mut body = ErrorBody::new(error.code(), error.to_string());
            body.suggestion = Some(error.suggestion().to_owned());
            body
        })?;
        for (tool, reason) in found.skipped {
            note(&format!("the tool `{tool}` of `{}` is not available: {reason}", server.name));
        }
        builder = found.tools.into_iter().fold(builder, RuntimeBuilder::tool);
    }
    Ok(builder)
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

/// Returns whether a module may call a tool of a server, itself or in a module that it may call. The run reports a module that
/// cannot be loaded.
#[cfg(feature = "mcp")]
fn calls(settings: &Settings, module: &str, server: &cog_mcp::McpServer, depth: usize) -> bool {
    let origin = settings.finder().find(module).ok();
    let Some(Ok(module)) = origin.map(|origin| cog_module::load(&origin)) else { return false };
    let (policies, rules) = (module.manifest.policies, &module.manifest.tools);
    let prefix = format!("{}__", server.name);
    let is_called = |name: &String| {
        name.starts_with(&prefix) || (depth < MAX_DEPTH && calls(settings, name, server, depth + 1))
    };
    policies.tools_allowed && (rules.allow_by_default || rules.allowed.iter().any(is_called))
}
