//! The runtimes of the program. [`Use`] is the only place where the runtime of one command differs from another.

use std::{
    collections::HashMap,
    fmt::{self, Display, Formatter},
    ops::Deref,
    path::{Path, PathBuf},
    sync::Arc,
};

use cog_flow::Finding;
use cog_media::{Access, Uploads};
use cog_module::{Diagnostic, Finder, Level, Origin, Report};
use cog_provider::RecordingFailure;
use cog_run::{ContextLimits, ContextStore, Runtime, RuntimeBuilder, events::RunEvents, tools::Tool};
use cog_spec::{Code, ErrorBody};
use cog_store::private;
use thiserror::Error;

use crate::{
    mcp::{self, NamedModule, Needed},
    providers::{self, RecordMode, Selected},
    settings::{Environment, Flags, Settings, SettingsError},
};

/// What a runtime is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Use<'a> {
    /// One run of this module.
    Run(NamedModule<'a>),
    /// The request of a run, which is not sent.
    Render(NamedModule<'a>),
    /// A run of this module for each row.
    Batch(NamedModule<'a>),
    /// Rows that become jobs, which workers run.
    Jobs,
    /// Golden tests.
    Test,
    /// Golden tests with many prompts.
    Optimize,
    /// Requests of other programs, over HTTP or MCP.
    Serve,
    /// The jobs of a queue.
    Worker,
    /// A program in Python.
    Python,
    /// A program in Rust.
    Program,
}

/// What a runtime has in addition to providers, module directories, limits and context, which all have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Features<'a> {
    /// Whether its runs may be offline although the settings do not say so.
    may_be_offline: bool,
    /// Whether an equal request gets the stored answer, if the settings have a cache.
    has_cache: bool,
    /// The MCP servers that are started with it.
    servers: Servers<'a>,
    /// Whether spans and metrics are exported, if the settings say so.
    has_telemetry: bool,
    files: Files,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Servers<'a> {
    All,
    /// The servers whose tools this module may call.
    NeededBy(NamedModule<'a>),
    /// None: the tools are in [`Host::tools`], or in the options of each run.
    Separate,
}

/// The files that inputs may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Files {
    /// The files of the module, of the working directory and of the operator's roots.
    Local,
    /// The files of the operator's roots: the caller is not on this machine.
    Roots,
}

impl<'a> Use<'a> {
    fn features(self) -> Features<'a> {
        let usual = Features {
            may_be_offline: true,
            has_cache: true,
            servers: Servers::All,
            has_telemetry: true,
            files: Files::Local,
        };
        match self {
            // One module is known: what it cannot call is not started.
            Use::Run(module) | Use::Batch(module) => Features { servers: Servers::NeededBy(module), ..usual },
            // The request lists the tools as a run would, so their servers are started. Nothing is called: there is no answer to
            // store, and no span to export.
            Use::Render(module) => Features {
                has_cache: false,
                servers: Servers::NeededBy(module),
                has_telemetry: false,
                ..usual
            },
            // The rows are only checked here.
            Use::Jobs => {
                Features { has_cache: false, servers: Servers::Separate, has_telemetry: false, ..usual }
            }
            // A test asks the model each time: a stored answer would repeat the last verdict. The runtimes of all cases share the
            // servers, so the command starts them.
            Use::Test => Features { has_cache: false, servers: Servers::Separate, ..usual },
            // A search that was interrupted continues with stored answers.
            Use::Optimize => Features { servers: Servers::Separate, ..usual },
            // Any module may be named. The files of this machine are not the caller's.
            Use::Serve => Features { files: Files::Roots, ..usual },
            // As a server. But its note about the provider is not read, and invented results would be stored.
            Use::Worker => Features { may_be_offline: false, files: Files::Roots, ..usual },
            // The package connects to a server in the first run that needs it: an import must not start processes, and a forked
            // process needs its own. It warns if it is offline.
            Use::Python => Features { servers: Servers::Separate, ..usual },
            // A service that lost its provider must not answer with samples.
            Use::Program => Features { may_be_offline: false, ..usual },
        }
    }
}

impl Display for Use<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Use::Worker => "a worker",
            _ => "this program",
        })
    }
}

/// Makes runtimes with the settings of the operator: `Host { state_dir, ..Host::new(&settings) }.runtime(Use::Serve)`.
pub struct Host<'a> {
    /// The settings.
    pub settings: &'a Settings,
    /// The providers, instead of those that the settings select.
    pub providers: Option<Selected>,
    /// Whether the exchange with the provider is recorded or replayed. The cache is then off: a recording has a call for each run.
    pub record_mode: RecordMode<'a>,
    /// Finds modules, instead of the finder of the settings.
    pub finder: Option<Finder>,
    /// The directory of the cache, instead of the one in the settings.
    pub cache_dir: Option<&'a Path>,
    /// The directory of emitted context. Without one it is stored in memory.
    pub state_dir: Option<&'a Path>,
    /// The limits of the context of each owner.
    pub context_limits: Option<ContextLimits>,
    /// Opens the uploads that inputs name.
    pub uploads: Option<Arc<dyn Uploads>>,
    /// A listener of all runs, in addition to telemetry.
    pub events: Option<Arc<dyn RunEvents>>,
    /// Further tools, in addition to the tools of the servers that are started.
    pub tools: Vec<Arc<dyn Tool>>,
}

/// A runtime, and what its user should know.
pub struct Hosted {
    /// The runtime.
    pub runtime: Runtime,
    /// Which provider is called and why, or that none is.
    pub note: String,
    /// What else to tell the user, a sentence each: a tool of a server that is not available, a directory that other users may
    /// write.
    pub notes: Vec<String>,
    /// Tells why the recording, if there is one, lacks a reply.
    pub recording: RecordingFailure,
}

impl<'a> Host<'a> {
    /// Returns a host with these settings and nothing else.
    pub fn new(settings: &'a Settings) -> Self {
        Self {
            settings,
            providers: None,
            record_mode: RecordMode::Off,
            finder: None,
            cache_dir: None,
            state_dir: None,
            context_limits: None,
            uploads: None,
            events: None,
            tools: Vec::new(),
        }
    }

    /// Makes a runtime.
    ///
    /// # Errors
    /// The errors of [`providers::select`]; E4001 if this use requires a provider and none is configured, or if an MCP server
    /// cannot be started or reached.
    pub fn runtime(self, used: Use<'_>) -> Result<Hosted, ErrorBody> {
        let settings = self.settings;
        let features = used.features();
        let selected = match self.providers {
            Some(selected) => selected,
            None => providers::select(settings, self.record_mode)?,
        };
        let is_offline = selected.providers.default_order().is_empty();
        if is_offline && !features.may_be_offline && settings.provider.value.is_none() {
            return Err(no_provider(used));
        }
        let servers = match features.servers {
            Servers::All => mcp::start(settings, Needed::ByAny)?,
            Servers::NeededBy(module) => mcp::start(settings, Needed::By(module))?,
            Servers::Separate => mcp::ServerTools::default(),
        };
        let cache = settings.cache.cache(self.cache_dir);
        let cache = cache.filter(|_| features.has_cache && self.record_mode == RecordMode::Off);
        let cache_dir =
            self.cache_dir.or(settings.cache.directory.value.as_deref()).filter(|_| cache.is_some());
        let mut notes = servers.notes;
        notes.extend(cache_dir.and_then(|directory| exposed("the cache", "answers", directory)));
        notes.extend(self.state_dir.and_then(|directory| exposed("the state directory", "runs", directory)));
        let mut builder = with_limits(settings)
            .providers(selected.providers)
            .finder(self.finder.unwrap_or_else(|| settings.finder()))
            .context_store(context_store(self.state_dir, self.context_limits))
            .media(Access { uploads: self.uploads, ..access(settings, features.files) });
        if let Some(state) = &settings.directories.state {
            builder = builder.calibrations(state.clone());
        }
        if features.has_telemetry
            && let Some(telemetry) = settings.telemetry.events(settings.redactor())
        {
            builder = builder.events(telemetry);
        }
        builder = cache.into_iter().fold(builder, RuntimeBuilder::cache);
        builder = self.events.into_iter().fold(builder, RuntimeBuilder::events);
        builder = servers.sources.into_iter().fold(builder, RuntimeBuilder::tool_source);
        builder = self.tools.into_iter().fold(builder, RuntimeBuilder::tool);
        let recording = selected.recording;
        Ok(Hosted { runtime: builder.build()?, note: selected.note, notes, recording })
    }
}

/// Returns the builder with the limits and preferences of the settings.
fn with_limits(settings: &Settings) -> RuntimeBuilder {
    Runtime::builder()
        .timeout(settings.timeout.value)
        .generation(settings.generation.preferred())
        .budget(settings.budget.limits())
        .tool_limits(settings.tools.limits())
        .confirmed_tools(settings.tools.confirm.value.iter().cloned())
        .pending_approvals(settings.tools.pending_approvals())
}

/// Returns the sentence about a directory whose content is trusted although other users may write it. Whoever does can forge what this
/// program reads there.
fn exposed(what: &str, content: &str, directory: &Path) -> Option<String> {
    let shown = directory.display();
    private::is_writable_by_others(directory).then(|| {
        format!("{what} {shown} can be written by other users of this machine, who could forge {content}; run `chmod go-w {shown}`")
    })
}

fn no_provider(used: Use<'_>) -> ErrorBody {
    ErrorBody::new(
        Code::ProviderUnavailable,
        format!("{used} requires a provider: offline mode calls no model"),
    )
    .with_recoverable(false)
    .suggest(
        "Set the key of a provider, or name one with --provider or LLM_PROVIDER; `cog doctor --all` lists them. The provider \
         `offline` gives invented results.",
    )
}

fn context_store(state_dir: Option<&Path>, limits: Option<ContextLimits>) -> ContextStore {
    let mut store = match state_dir {
        Some(directory) => ContextStore::in_directory(directory.join("context")),
        None => ContextStore::default(),
    };
    store.owner_limits = limits;
    store
}

fn access(settings: &Settings, files: Files) -> Access {
    match files {
        Files::Local => settings.local_access([]),
        Files::Roots => Access {
            fetcher: settings.media.fetcher(),
            by_url: settings.media.by_url.value,
            strip_metadata: settings.media.strip_metadata.value,
            files: settings.media.files([]),
            tool: Some(settings.media.tool()),
            ..Access::default()
        },
    }
}

impl Settings {
    /// Creates the module finder.
    pub fn finder(&self) -> Finder {
        Finder::new("", self.modules.value.clone(), self.directories.home.as_deref())
            .with_trusted(self.trusted_directories())
    }

    /// Returns what a run on this machine may open: the files of its module, of the working directory and of the operator's
    /// roots, these further files, and the URLs that the operator allows (docs/spec/media.md).
    pub fn local_access(&self, files: impl IntoIterator<Item = PathBuf>) -> Access {
        Access {
            opens_module_files: true,
            files: self.media.files([PathBuf::from(".")].into_iter().chain(files)),
            ..access(self, Files::Roots)
        }
    }
}

/// Why there is no runtime.
#[derive(Debug, Error)]
pub enum HostError {
    /// The settings are invalid.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The provider or an MCP server cannot be used.
    #[error(transparent)]
    Refused(#[from] ErrorBody),
}

/// A runtime with the settings of this process, which it keeps: dropping it exports the last spans and metrics.
pub struct EnvRuntime {
    runtime: Runtime,
    settings: Settings,
}

/// Returns a runtime with the settings file, the environment variables and the MCP servers of the operator, as `cog` has it.
///
/// # Errors
/// The settings are invalid, no provider is configured, or an MCP server cannot be started. With `LLM_PROVIDER=offline`, runs
/// return golden answers and samples.
pub fn runtime_from_env() -> Result<EnvRuntime, HostError> {
    let settings = Settings::read(Flags::default(), Environment::from_process())?;
    let Hosted { runtime, note, notes, .. } = Host::new(&settings).runtime(Use::Program)?;
    tracing::info!("{note}");
    notes.iter().for_each(|sentence| tracing::warn!("{sentence}"));
    Ok(EnvRuntime { runtime, settings })
}

impl EnvRuntime {
    /// Returns the settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}

impl Deref for EnvRuntime {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        &self.runtime
    }
}

// Validates modules and what they call.

/// Checks the files of each module, and the modules that it calls. The reports have the order of the modules.
pub fn validate<'a>(
    modules: impl IntoIterator<Item = &'a Origin>,
    level: Level,
    finder: &Finder,
) -> Vec<Report> {
    let mut reports: Vec<_> = modules.into_iter().map(|origin| cog_module::validate(origin, level)).collect();
    check_compositions(&mut reports, finder);
    reports
}

/// Checks the composition of each module. A finding is added once: to the report of the module that it is about, or to the
/// report of the caller if that module is not validated.
fn check_compositions(reports: &mut [Report], finder: &Finder) {
    let of_module: HashMap<PathBuf, usize> =
        reports.iter().enumerate().map(|(index, report)| (path(&report.origin), index)).collect();
    // By index: a finding may belong to another report than the one that is checked.
    for index in 0..reports.len() {
        let module = reports.get(index).and_then(|report| report.module.clone());
        let findings = module.map(|module| cog_flow::check(Arc::new(module), finder).findings);
        for finding in findings.into_iter().flatten() {
            let owner = owner(&finding, &of_module).unwrap_or(index);
            if let Some(report) = reports.get_mut(owner) {
                add(&mut report.diagnostics, finding.diagnostic());
            }
        }
    }
}

/// Returns the report of the module that a finding is about.
fn owner(finding: &Finding, of_module: &HashMap<PathBuf, usize>) -> Option<usize> {
    of_module.get(&path(&finding.module()?.origin)).copied()
}

/// Adds a diagnostic that is not in the list. Its file may have another path there, the one of the argument.
fn add(diagnostics: &mut Vec<Diagnostic>, found: Diagnostic) {
    let is_known = diagnostics.iter().any(|other| {
        (other.rule, &other.message, &other.location) == (found.rule, &found.message, &found.location)
    });
    if !is_known {
        diagnostics.push(found);
    }
}

/// Returns the path of a module, the same for each way to write it.
fn path(origin: &Origin) -> PathBuf {
    let path = origin.path_of("");
    path.canonicalize().unwrap_or(path)
}

#[cfg(test)]
mod tests;
