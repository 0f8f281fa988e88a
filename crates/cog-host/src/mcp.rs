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
#[cfg(feature = "mcp")]
use cog_run::tools::begins_like;
use cog_run::tools::{Tool, ToolSource};
use cog_spec::{Code, ErrorBody};

#[cfg(feature = "mcp")]
use crate::settings::MCP_DEPTH as DEPTH;
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
    /// The tools of each server.
    pub sources: Vec<Arc<dyn ToolSource>>,
    /// A sentence for each tool that is not available, and for each server that did not start when all were started.
    pub notes: Vec<String>,
}

impl ServerTools {
    /// Returns the tools that exist now.
    ///
    /// # Errors
    /// E4001 if a server did not start.
    pub fn tools(&self) -> Result<Vec<Arc<dyn Tool>>, ErrorBody> {
        let unavailable = |reason| ErrorBody::new(Code::ProviderUnavailable, reason);
        let tools: Result<Vec<_>, _> = self.sources.iter().map(|source| source.tools()).collect();
        Ok(tools.map_err(unavailable)?.into_iter().flatten().collect())
    }
}

/// How many servers may start each other, one in the other.
#[cfg(feature = "mcp")]
const MAX_DEPTH: usize = 5;

/// Starts the operator's servers, all at the same time. A server that does not start is tried again by later runs.
///
/// # Errors
/// A required server cannot be started or reached.
#[cfg(feature = "mcp")]
pub fn start(settings: &Settings, needed: Needed<'_>) -> Result<ServerTools, ErrorBody> {
    let mut started = ServerTools::default();
    if settings.mcp.is_empty() {
        return Ok(started);
    }
    let depth = settings.environment_variable(DEPTH).and_then(|depth| depth.parse::<usize>().ok());
    if depth.is_some_and(|depth| depth >= MAX_DEPTH) {
        let message = format!("MCP servers start each other, more than {MAX_DEPTH} deep");
        return Err(ErrorBody::new(Code::MaxDepthExceeded, message)
            .suggest("Check whether a server in the settings is `cog mcp serve` with the same settings."));
    }
    let finder = settings.finder();
    let (modules, starts_all) = match needed {
        Needed::ByAny => (Vec::new(), true),
        // The run reports a module that cannot be loaded.
        Needed::By(module) => (Vec::from_iter(load(&finder, module)), false),
        Needed::ByLoaded(modules) => (modules.to_vec(), false),
    };
    let callable: Vec<_> = modules.iter().map(|module| tools_of(module, &finder)).collect();
    // Starting a program costs seconds and may have effects: a run gets only the servers that its module can call.
    let is_needed = |server: &&McpServer| starts_all || callable.iter().any(|tools| tools.need(server));
    let servers: Vec<&McpServer> = settings.mcp.iter().filter(is_needed).collect();
    // Each on a thread of its own: the caller may be in an async runtime, whose thread cannot wait for another one.
    let all: Vec<_> = std::thread::scope(|scope| {
        let starts = servers.iter().map(|server| scope.spawn(|| server.start_blocking()));
        starts.collect::<Vec<_>>().into_iter().map(|start| start.join().ok().and_then(Result::ok)).collect()
    });
    for (server, result) in servers.into_iter().zip(all) {
        let Some((tools, result)) = result else {
            let message = format!("starting the MCP server `{}` failed", server.name);
            return Err(ErrorBody::new(Code::InternalError, message));
        };
        match result {
            Err(error) if server.required => return Err(error_body(&error)),
            Err(error) if starts_all => started.notes.push(error.to_string()),
            Err(_) => {} // the run warns
            Ok(()) => started.notes.extend(skipped(server, &tools)),
        }
        started.sources.push(Arc::new(tools));
    }
    started.notes.extend(unknown_servers(settings));
    Ok(started)
}

/// Returns a sentence for each name in `tools.confirm` that begins with no server: it protects nothing.
#[cfg(feature = "mcp")]
fn unknown_servers(settings: &Settings) -> impl Iterator<Item = String> {
    let confirmed = settings.tools.confirm.value.iter();
    let unknown = confirmed.filter(|pattern| {
        let is_server = |server: &McpServer| begins_like(pattern, &server.prefix());
        pattern.contains("__") && !settings.mcp.iter().any(is_server)
    });
    unknown.map(|pattern| {
        format!("`tools.confirm` names `{pattern}`, but there is no MCP server with such tools")
    })
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

/// Starts a server in the current async runtime. `note` receives a sentence for each tool that is not available.
///
/// # Errors
/// A required server cannot be started or reached.
#[cfg(feature = "mcp")]
pub async fn connect(server: &McpServer, note: impl FnMut(String)) -> Result<Arc<dyn ToolSource>, ErrorBody> {
    let (tools, started) = server.start().await;
    match started {
        Err(error) if server.required => return Err(error_body(&error)),
        _ => skipped(server, &tools).into_iter().for_each(note),
    }
    Ok(Arc::new(tools))
}

/// Returns a sentence for each tool that is not available.
#[cfg(feature = "mcp")]
fn skipped(server: &McpServer, tools: &McpTools) -> Vec<String> {
    let skipped = tools.skipped().into_iter();
    skipped
        .map(|(tool, reason)| format!("the tool `{tool}` of `{}` is not available: {reason}", server.name))
        .collect()
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
        let prefix = server.prefix();
        self.names.as_ref().is_none_or(|names| names.iter().any(|name| begins_like(name, &prefix)))
    }
}

#[cfg(feature = "mcp")]
#[cfg(test)]
mod tests {
    use std::path::Path;

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
        let url = "http://a.example".to_owned();
        McpServer::new(name, cog_mcp::McpTransport::http(url))
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
            (caller("allowed: [\"web__*\"]"), "Answer.", true),
            (caller("allowed: [\"web__se*\"]"), "Answer.", true),
            (caller("allowed: [\"we__*\"]"), "Answer.", false),
            (caller("allowed: [root, missing, web_search]"), "Answer.", false),
            (composition("  dataflow:\n    - {from: input, to: forbidden}\n"), "@call:missing", false),
        ];
        for (manifest, prompt, expected) in cases {
            write(place.path(), "root", &manifest, prompt);
            let finder = Finder::new(".", vec![place.path().to_owned()], None);
            let root = load(&finder, NamedModule { name: "root", choice: Choice::User });
            let tools = tools_of(&root.unwrap_or_else(|| panic!("{manifest}{prompt}")), &finder);
            assert_eq!(tools.need(&server("web")), expected, "{manifest}{prompt}");
            let is_other = manifest.contains("to: any") || manifest.contains("we__");
            assert_eq!(tools.need(&server("we")), is_other, "{manifest}{prompt}");
        }
    }
}
