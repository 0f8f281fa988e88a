//! Starts the MCP servers whose tools a module may call.

#[cfg(feature = "mcp")]
use std::collections::HashSet;
use std::sync::Arc;

#[cfg(feature = "mcp")]
use cog_flow::{Lookup, called_modules};
#[cfg(feature = "mcp")]
use cog_mcp::{McpError, McpServer, McpTools};
#[cfg(feature = "mcp")]
use cog_module::Finder;
use cog_module::{Choice, Module};
use cog_run::tools::Tool;
#[cfg(feature = "mcp")]
use cog_spec::Code;
use cog_spec::ErrorBody;

use crate::settings::Settings;

/// A module by its name or path, and who chose it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedModule<'a> {
    /// The name or the path.
    pub name: &'a str,
    /// Who chose it, which decides whether it is trusted.
    pub choice: Choice,
}

/// Who needs the tools of servers.
#[derive(Clone, Copy)]
pub enum Needed<'a> {
    /// Modules that are not known yet: every server is started.
    ByAny,
    /// This module: only servers whose tools it may call are started.
    By(NamedModule<'a>),
    /// These modules, in the same way.
    ByLoaded(&'a [Arc<Module>]),
}

/// The tools of servers.
#[derive(Default)]
pub struct ServerTools {
    /// The tools that can be called.
    pub tools: Vec<Arc<dyn Tool>>,
    /// A sentence for each tool that is not available.
    pub skipped: Vec<String>,
}

/// Starts the operator's servers.
///
/// # Errors
/// A server cannot be started or reached.
#[cfg(feature = "mcp")]
pub fn start(settings: &Settings, needed: Needed<'_>) -> Result<ServerTools, ErrorBody> {
    let mut started = ServerTools::default();
    if settings.mcp.is_empty() {
        return Ok(started);
    }
    let finder = settings.finder();
    let modules = match needed {
        Needed::ByAny => None,
        // The run reports a module that cannot be loaded.
        Needed::By(module) => Some(Vec::from_iter(load(&finder, module))),
        Needed::ByLoaded(modules) => Some(modules.to_vec()),
    };
    let callable: Option<Vec<_>> =
        modules.map(|modules| modules.iter().map(|module| tools_of(module, &finder)).collect());
    for server in &settings.mcp {
        // Starting a program costs seconds and may have effects: a run gets only the servers that its module can call.
        if callable.as_ref().is_some_and(|modules| !modules.iter().any(|tools| tools.need(server))) {
            continue;
        }
        let found = connect_blocking(server)?;
        started.skipped.extend(skipped(server, &found));
        started.tools.extend(found.tools);
    }
    Ok(started)
}

/// Connects on a thread of its own: the caller may be in an async runtime, whose thread cannot wait for another one.
#[cfg(feature = "mcp")]
fn connect_blocking(server: &McpServer) -> Result<McpTools, ErrorBody> {
    let connected = std::thread::scope(|scope| scope.spawn(|| server.connect_blocking()).join());
    let connected = connected.map_err(|_| {
        let message = format!("connecting to the MCP server `{}` failed", server.name);
        ErrorBody::new(Code::InternalError, message)
    })?;
    connected.map_err(|error| error_body(&error))
}

/// Without the feature, there are no servers.
#[cfg(not(feature = "mcp"))]
pub fn start(_settings: &Settings, _needed: Needed<'_>) -> Result<ServerTools, ErrorBody> {
    Ok(ServerTools::default())
}

/// Loads a module; none if it cannot be loaded.
#[cfg(feature = "mcp")]
fn load(finder: &Finder, module: NamedModule<'_>) -> Option<Arc<Module>> {
    let NamedModule { name, choice } = module;
    let origin = finder.find(name).ok()?;
    let trust = finder.trust_chosen(name, &origin, choice);
    Some(Arc::new(Module { trust, ..cog_module::load(&origin).ok()? }))
}

#[cfg(feature = "mcp")]
fn tools_of(module: &Arc<Module>, finder: &Finder) -> CallableTools {
    CallableTools::from_module(module, |name| Lookup::find(finder, name).ok())
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

/// The names of the tools that a module may call, itself or in a module that it calls.
#[cfg(feature = "mcp")]
#[derive(Debug)]
pub struct CallableTools {
    /// None for a module that may call every tool.
    names: Option<HashSet<String>>,
}

#[cfg(feature = "mcp")]
impl CallableTools {
    /// Returns the tools of a module and of the modules that `find` returns: its parts, and its tools.
    pub fn from_module(module: &Arc<Module>, find: impl Fn(&str) -> Option<Arc<Module>>) -> Self {
        let mut names = HashSet::new();
        let mut waiting = vec![Arc::clone(module)];
        let mut found = HashSet::new();
        // `found` also ends the search where modules name each other in a circle.
        while let Some(module) = waiting.pop() {
            let rules = &module.manifest.tools;
            let mut called = called_modules(&module);
            if module.manifest.policies.tools_allowed && module.trust.allows_tools() {
                if rules.allow_by_default {
                    return Self { names: None };
                }
                names.extend(rules.allowed.iter().cloned());
                called.extend(rules.allowed.iter().cloned());
            }
            let new = called.into_iter().filter(|name| found.insert(name.clone()));
            waiting.extend(new.filter_map(|name| find(&name)));
        }
        Self { names: Some(names) }
    }

    /// Returns whether one of the tools is of this server.
    pub fn need(&self, server: &McpServer) -> bool {
        let prefix = format!("{}__", server.name);
        self.names.as_ref().is_none_or(|names| names.iter().any(|name| name.starts_with(&prefix)))
    }
}

#[cfg(feature = "mcp")]
#[cfg(test)]
mod tests {
    use std::{path::Path, time::Duration};

    use super::*;

    /// Writes a module with these lines in its manifest, and this prompt.
    #[expect(clippy::disallowed_methods, reason = "a test makes its own files")]
    fn write(place: &Path, name: &str, manifest: &str, prompt: &str) {
        let directory = place.join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let manifest = format!(
            "name: {name}\nversion: 1.0.0\nresponsibility: Answer\ntier: decision\nexcludes: [guessing]\n{manifest}"
        );
        std::fs::write(directory.join("module.yaml"), manifest).unwrap();
        std::fs::write(directory.join("prompt.md"), prompt).unwrap();
        std::fs::write(directory.join("schema.json"), r#"{"input": {}, "data": {"type": "object"}}"#)
            .unwrap();
    }

    fn server(name: &str) -> McpServer {
        let transport = cog_mcp::McpTransport::Http { url: "http://a.example".to_owned(), token: None };
        McpServer { name: name.to_owned(), transport, startup_timeout: Duration::from_secs(1) }
    }

    #[test]
    fn servers_are_needed_for_the_tools_of_parts() {
        let place = tempfile::tempdir().unwrap();
        let caller = |tools: &str| format!("policies: {{ tools_allowed: true }}\ntools: {{ {tools} }}\n");
        write(place.path(), "searcher", &caller("allowed: [web__search]"), "Search.");
        write(place.path(), "nested", "", "@call:searcher");
        write(place.path(), "by-tool", &caller("allowed: [nested]"), "Search.");
        write(place.path(), "forbidden", "tools: { allowed: [web__search] }\n", "Search.");
        write(place.path(), "any", &caller("policy: allow_by_default"), "Search.");
        let composition = |text: &str| format!("composition:\n  pattern: sequential\n{text}");
        let cases = [
            (composition("  dataflow:\n    - {from: input, to: searcher}\n"), "", true),
            (composition("  dataflow:\n    - {from: input, to: nested}\n"), "", true),
            (composition("  dataflow:\n    - {from: input, to: by-tool}\n"), "", true),
            (composition("  dataflow:\n    - {from: input, to: any}\n"), "", true),
            (
                composition("  requires:\n    - {name: forbidden, fallback: searcher}\n"),
                "@call:forbidden",
                true,
            ),
            (composition("  routing:\n    - {next: searcher}\n"), "", true),
            (String::new(), "See @call:searcher", true),
            (caller("allowed: [searcher]"), "Answer.", true),
            (caller("allowed: [root, missing, web_search]"), "Answer.", false),
            (composition("  dataflow:\n    - {from: input, to: forbidden}\n"), "@call:missing", false),
        ];
        for (manifest, prompt, expected) in cases {
            write(place.path(), "root", &manifest, prompt);
            let finder = Finder::new(".", vec![place.path().to_owned()], None);
            let root = load(&finder, NamedModule { name: "root", choice: Choice::User });
            let tools = tools_of(&root.unwrap_or_else(|| panic!("{manifest}{prompt}")), &finder);
            assert_eq!(tools.need(&server("web")), expected, "{manifest}{prompt}");
            assert_eq!(tools.need(&server("we")), manifest.contains("to: any"), "{manifest}{prompt}");
        }
    }
}
