//! A runtime with the settings of the operator.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use cog_host::{
    Host, HostError, RecordingFailure, Use,
    mcp::{self, CallableTools},
    providers::{self, RecordMode},
    run_log::{LabelTarget, Labels, RequestedModel, RunFacts, RunLog, new_run_id},
    settings::{Environment, Flags, Redactor, Settings},
};
use cog_media::Access;
use cog_module::{FindError, Module};
use cog_run::{
    ModuleRef, RunInput, RunOptions, Runtime, events::RunEvents, feedback::Feedback, provider::Provider,
    tools::ToolSource,
};
use cog_spec::{Code, ErrorBody};
use tokio::sync::OnceCell;

use crate::{attach, caller::warn, provider::OwnProvider, reader::Reader, tool::FunctionTool};

/// A runtime with the settings of the operator.
pub(crate) struct Hosted {
    pub(crate) runtime: Runtime,
    /// Which provider is called, and why.
    pub(crate) note: String,
    /// What else to tell the programmer: what a project's file makes dearer, and directories that other users may write.
    pub(crate) notes: Vec<String>,
    /// Whether runs call Python functions.
    pub(crate) calls_python: bool,
    /// Tells why the cassette, if there is one, lacks a reply.
    pub(crate) recording: RecordingFailure,
    settings: Arc<Settings>,
    servers: Servers,
    /// The log of runs, unless it is off.
    pub(crate) log: Option<Log>,
    parts: Parts,
}

/// What a runtime has in addition to the settings.
#[derive(Clone)]
pub(crate) struct Parts {
    /// Directories of further modules, or directories that contain modules.
    pub(crate) modules: Vec<PathBuf>,
    pub(crate) tools: Vec<Arc<FunctionTool>>,
    pub(crate) providers: Vec<Arc<OwnProvider>>,
    pub(crate) streams: bool,
    pub(crate) takes_media: bool,
    /// What reads documents, audio and video, if it is known.
    pub(crate) reader: Option<Reader>,
    /// Where the exchange with the vendor is recorded, or replayed from.
    pub(crate) cassette: Option<Cassette>,
}

/// A directory of recorded replies, for tests.
#[derive(Clone)]
pub(crate) struct Cassette {
    pub(crate) directory: PathBuf,
    /// Whether replies are recorded. Otherwise they are replayed.
    pub(crate) records: bool,
}

impl Hosted {
    /// Reads the settings and selects the providers.
    pub(crate) fn new(flags: Flags, parts: Parts) -> Result<Self, HostError> {
        let mut settings = Settings::read(flags, Environment::from_process())?;
        if let Some(Reader { program, arguments }) = &parts.reader {
            settings.media.set_reader(program.clone(), arguments.clone());
        }
        Self::from_settings(Arc::new(settings), parts)
    }

    /// Creates the same runtime again, for a forked process: connections do not survive a fork.
    pub(crate) fn again(&self) -> Result<Self, HostError> {
        Self::from_settings(Arc::clone(&self.settings), self.parts.clone())
    }

    fn from_settings(settings: Arc<Settings>, parts: Parts) -> Result<Self, HostError> {
        let record_mode = match &parts.cassette {
            None => RecordMode::Off,
            Some(Cassette { directory, records: true }) => RecordMode::Record(directory),
            Some(Cassette { directory, records: false }) => RecordMode::Replay(directory),
        };
        let selected = match record_mode {
            RecordMode::Off => providers::select_with(&settings, own_providers(&settings, &parts.providers))?,
            _ => providers::select(&settings, record_mode)?,
        };
        let finder = settings.finder().with_paths(parts.modules.iter().cloned());
        let finder = finder.map_err(|error| not_found(&error))?;
        let host = Host {
            providers: Some(selected),
            record_mode,
            finder: Some(finder),
            tools: parts.tools.iter().map(|tool| Arc::clone(tool) as _).collect(),
            ..Host::new(&settings)
        };
        let hosted = host.runtime(Use::Python)?;
        let calls_python = !(parts.tools.is_empty() && parts.providers.is_empty());
        attach::close_at_exit(&settings);
        let servers = Servers::new(&settings);
        let log = Log::new(&settings);
        let runtime = hosted.runtime;
        let note = hosted.note;
        let recording = hosted.recording;
        let notes = [settings.costly_notes(), hosted.notes].concat();
        Ok(Self { runtime, note, notes, calls_python, recording, settings, servers, log, parts })
    }

    /// Returns what a run may open: what the operator allows, and these files.
    ///
    /// # Errors
    /// E4011 if the input has media and the runtime takes none.
    pub(crate) fn access(
        &self,
        module: &Module,
        input: &RunInput,
        files: Vec<PathBuf>,
    ) -> Result<Access, ErrorBody> {
        if !self.parts.takes_media
            && let RunInput::Json(value) = input
            && !module.contract.media_paths(value.node()).is_empty()
        {
            return Err(media_unsupported());
        }
        let access = self.settings.local_access(files);
        Ok(Access { tool: access.tool.filter(|_| self.parts.reader.is_some()), ..access })
    }

    /// Adds the tools of MCP servers that a module may call. A server is started when the first run needs it.
    ///
    /// # Errors
    /// E4001 if a required server cannot be started or reached.
    pub(crate) async fn add_server_tools(
        &self,
        module: &Arc<Module>,
        options: RunOptions,
    ) -> Result<RunOptions, ErrorBody> {
        self.servers.add_tools(&self.settings, &self.runtime, module, options).await
    }

    /// Returns the next run, under which the log and its labels name it.
    pub(crate) fn new_run(&self) -> Arc<LoggedRun> {
        let settings = Arc::clone(&self.settings);
        Arc::new(LoggedRun { id: new_run_id(), settings, module: OnceLock::new() })
    }

    /// Returns the keys that no message contains.
    pub(crate) fn redactor(&self) -> Redactor {
        self.settings.redactor().clone()
    }

    /// Whether `execute_stream` streams.
    pub(crate) fn streams(&self) -> bool {
        self.parts.streams
    }

    /// Whether every repair is a violation, unless an option says otherwise.
    pub(crate) fn is_strict(&self) -> bool {
        self.settings.strict.value
    }

    /// Returns a warning if no provider is configured and nobody asked for that.
    pub(crate) fn offline_warning(&self) -> Option<String> {
        let is_offline = self.runtime.providers().default_order().is_empty();
        (is_offline && self.settings.provider.value.is_none()).then(|| {
            format!(
                "{}. Results are golden answers and samples. Set the key of a provider, or pass provider=\"offline\" if you want that.",
                self.note
            )
        })
    }
}

/// Returns the providers of the program. The first of a run gets the model of the settings.
fn own_providers(settings: &Settings, own: &[Arc<OwnProvider>]) -> Vec<Arc<dyn Provider>> {
    let first = settings.provider.value.as_deref().unwrap_or_default().split(',').next().unwrap_or_default();
    let mut providers: Vec<Arc<dyn Provider>> = Vec::with_capacity(own.len());
    for provider in own {
        providers.push(match &settings.model.value {
            Some(model) if provider.info().name == first.trim() => {
                Arc::new(provider.with_model(model.clone()))
            }
            _ => Arc::<OwnProvider>::clone(provider),
        });
    }
    providers
}

/// Returns the error of a module that is not found.
pub(crate) fn not_found(error: &FindError) -> ErrorBody {
    ErrorBody::new(error.code(), error.to_string()).suggest(error.suggestion())
}

/// Returns the error of media in the input of a runtime without media (SPEC 8.2).
fn media_unsupported() -> ErrorBody {
    ErrorBody::new(
        Code::MultimodalNotSupported,
        "the input has media, and the runtime was created with multimodal=False",
    )
}

/// The tools of each server, in the order of the settings, once it is connected.
struct Servers(Vec<OnceCell<Arc<dyn ToolSource>>>);

impl Servers {
    fn new(settings: &Settings) -> Self {
        Self(settings.mcp.iter().map(|_| OnceCell::new()).collect())
    }

    /// Adds the tools of the servers that a module may call.
    ///
    /// # Errors
    /// A required server cannot be started or reached.
    async fn add_tools(
        &self,
        settings: &Settings,
        runtime: &Runtime,
        module: &Arc<Module>,
        mut options: RunOptions,
    ) -> Result<RunOptions, ErrorBody> {
        if settings.mcp.is_empty() {
            return Ok(options);
        }
        let callable = CallableTools::from_module(module, |name| runtime.load(ModuleRef::Name(name)).ok());
        for (server, tools) in settings.mcp.iter().zip(&self.0) {
            if callable.need(server) {
                let tools = tools.get_or_try_init(|| mcp::connect(server, warn)).await?;
                match tools.tools() {
                    Ok(tools) => options.tools.extend(tools),
                    Err(reason) => warn(reason),
                }
            }
        }
        Ok(options)
    }
}

/// A run of this process, which can be labelled when it has ended.
pub(crate) struct LoggedRun {
    id: String,
    settings: Arc<Settings>,
    /// The module, once it is loaded.
    pub(crate) module: OnceLock<Arc<Module>>,
}

impl LoggedRun {
    /// Stores a label of the run.
    ///
    /// # Errors
    /// E1006 if the run is not in the log, E1001 if a corrected answer does not fit the schema.
    pub(crate) fn label(&self, feedback: Feedback) -> Result<(), ErrorBody> {
        if let Some(module) = self.module.get() {
            feedback.check(module)?;
        }
        let LabelTarget { id, about } = LabelTarget::find(&self.settings, &self.id)?;
        Labels::new(&self.settings)?.add(&id, about, None, feedback).map(drop)
    }
}

// The log of runs that `cog logs` shows.

/// The log of the settings, unless it is off.
pub(crate) struct Log {
    runs: Arc<RunLog>,
    /// Whether the operator set it up, so that a log that cannot be written is reported.
    is_set: bool,
}

impl Log {
    pub(crate) fn new(settings: &Settings) -> Option<Self> {
        let runs = Arc::new(RunLog::new(settings)?);
        Some(Self { runs, is_set: settings.logs.are_set() })
    }

    /// Returns the listener that adds a run with these options.
    pub(crate) fn listener(&self, options: &RunOptions, run: &LoggedRun) -> Arc<dyn RunEvents> {
        let is_set = self.is_set;
        let requested = RequestedModel { provider: options.provider.clone(), model: options.model.clone() };
        let facts = RunFacts { requested, id: Some(run.id.clone()), ..RunFacts::default() };
        self.runs.listener(facts, move |error| {
            if is_set {
                warn(format!("this run is not in `cog logs`: {error}"));
            }
        })
    }
}
