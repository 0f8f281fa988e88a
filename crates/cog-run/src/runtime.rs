//! The runtime: set up once, it loads and runs modules.

use std::{path::PathBuf, sync::Arc, time::Duration};

use cog_json::Value;
use cog_media::Access;
use cog_module::{Finder, Module, calibration::CalibrationKey};
use cog_provider::Provider;
use cog_spec::{Code, Envelope, ErrorBody, Generation};

use crate::{
    AnswerCache, AskedForms, BudgetLimits, ChunkStream, ContextStore, LargestRun, Providers, Rendered,
    RunContext, RunInput, RunOptions,
    compiled::Compilations,
    composition::{CompositionMode, Compositions},
    confidence::CalibrationStore,
    events::{Listeners, RunEvents},
    evidence,
    modules::{ModuleRef, Modules},
    options::{Approval, Decision},
    pipeline,
    runtime_state::RuntimeState,
    tool::Tool,
    tools::{PendingApproval, PendingApprovals, ToolLimits, ToolSettings, ToolSource},
};

/// Runs modules. A program sets it up once, shares it, and uses it from any task.
#[derive(Clone)]
pub struct Runtime {
    state: Arc<RuntimeState>,
}

/// Builds a [`Runtime`].
#[must_use = "a builder does nothing until `build`"]
pub struct RuntimeBuilder {
    providers: Providers,
    finder: Finder,
    timeout: Duration,
    reload_interval: Duration,
    media: Access,
    generation: Generation,
    listeners: Vec<Arc<dyn RunEvents>>,
    tools: ToolSettings,
    max_parallel_parts: usize,
    context: ContextStore,
    budget: BudgetLimits,
    cache: Option<AnswerCache>,
    calibrations: Option<PathBuf>,
}

impl Runtime {
    /// The default maximum duration of a run.
    const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);

    /// The default interval after which the files of a module are checked again.
    const DEFAULT_RELOAD_INTERVAL: Duration = Duration::from_millis(500);

    /// The default maximum number of parts of one composition that call a model at the same time, at all depths together.
    const MAX_PARALLEL_PARTS: usize = 128;

    /// Returns a builder. It needs a provider, or [`Providers::offline`]. By default the runtime finds only the built-in
    /// modules.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder {
            providers: Providers::default(),
            finder: Finder::new(".", Vec::new(), None),
            timeout: Self::DEFAULT_TIMEOUT,
            reload_interval: Self::DEFAULT_RELOAD_INTERVAL,
            media: Access::default(),
            generation: Generation::default(),
            listeners: Vec::new(),
            tools: ToolSettings::default(),
            max_parallel_parts: Self::MAX_PARALLEL_PARTS,
            context: ContextStore::default(),
            budget: BudgetLimits::default(),
            cache: None,
            calibrations: None,
        }
    }

    /// Returns a runtime that calls no model. Each run returns the golden answer for its input, otherwise a sample of the schema
    /// whose values mean nothing, with the warning W4001 (docs/spec/golden-tests.md). It is for tests and first steps.
    pub fn offline() -> Self {
        Self::from_builder(Self::builder().providers(Providers::offline()))
    }

    /// Loads a module: `"code-reviewer"`, or a path. [`ModuleRef`] also has names that are not the user's choice.
    ///
    /// The module is compiled once and cached. When its files change, it is reloaded once they have stayed the same for
    /// [`RuntimeBuilder::reload_interval`]. If they cannot be loaded, the version before stays in use, with a line in the log.
    ///
    /// # Errors
    /// E4006 when no module has this name, E4007 for a name outside the search path, E4008
    /// when the module does not load.
    pub fn load<'a>(&self, module: impl Into<ModuleRef<'a>>) -> Result<Arc<Module>, ErrorBody> {
        self.state.modules.load(module.into().key())
    }

    /// Loads a module like [`Runtime::load`], without blocking the event loop: on a thread that may block, unless it is cached.
    ///
    /// # Errors
    /// The errors of [`Runtime::load`].
    pub async fn load_async<'a>(&self, module: impl Into<ModuleRef<'a>>) -> Result<Arc<Module>, ErrorBody> {
        let key = module.into().key();
        // Nearly every call: a change of threads would take longer than the rest of a short run.
        if let Some(module) = self.state.modules.cached(&key) {
            return Ok(module);
        }
        let state = Arc::clone(&self.state);
        let loading = tokio::task::spawn_blocking(move || state.modules.load(key)).await;
        loading.unwrap_or_else(|error| Err(crate::error::from_task(&error)))
    }

    /// Returns a module from the cache, without reading a file. A server calls this on its event loop, and [`Runtime::load`] on
    /// another thread when it returns none.
    pub fn cached(&self, module: ModuleRef<'_>) -> Option<Arc<Module>> {
        self.state.modules.cached(&module.key())
    }

    /// Returns why the files of a module could not be loaded when they were checked last. An earlier version may still be in use;
    /// [`Runtime::load`] returns it.
    pub fn load_failure(&self, module: ModuleRef<'_>) -> Option<ErrorBody> {
        self.state.modules.failure(&module.key())
    }

    /// Lets the next load of a module, by the name under which it is offered, read its files without waiting until they have stayed
    /// the same. For a program that has written them itself.
    pub fn reload(&self, name: &str) {
        self.state.modules.reload(&ModuleRef::Name(name).key());
    }

    /// Returns the maximum duration of runs without their own timeout. A server does not let its clients exceed it.
    pub fn timeout(&self) -> Duration {
        self.state.timeout
    }

    /// Returns the providers of the runtime.
    pub fn providers(&self) -> &Providers {
        &self.state.providers
    }

    /// Returns the finder that searches for modules.
    pub fn finder(&self) -> &Finder {
        self.state.modules.finder()
    }

    /// Runs a module and returns its envelope. A failure is an envelope with an error.
    pub async fn run(&self, module: &Arc<Module>, input: RunInput, options: RunOptions) -> Envelope {
        let context = RunContext { is_folded: true, ..RunContext::default() };
        match self.prepare(module, input, options, context) {
            Ok(chunks) => chunks.fold().await,
            Err(refused) => *refused,
        }
    }

    /// Runs a module and returns its chunks as a stream.
    ///
    /// # Errors
    /// Errors that are known before the provider is called: an invalid input, a caller without permission, or
    /// content that the provider does not support (ruling R54).
    pub fn stream(
        &self,
        module: &Arc<Module>,
        input: RunInput,
        options: RunOptions,
    ) -> Result<ChunkStream, Box<Envelope>> {
        self.prepare(module, input, options, RunContext::default())
    }

    /// Checks a run within its context, and returns its chunks. Reading them runs it.
    ///
    /// Servers, batches and sessions use this; [`Runtime::run`] and [`Runtime::stream`] are for everyone else. The
    /// time of the check grows with the input, so a server calls it on a thread that may block.
    ///
    /// # Errors
    /// The errors of [`Runtime::stream`].
    pub fn prepare(
        &self,
        module: &Arc<Module>,
        input: RunInput,
        options: RunOptions,
        context: RunContext,
    ) -> Result<ChunkStream, Box<Envelope>> {
        let mode = CompositionMode::Find;
        let run = pipeline::prepare_with_events(&self.state, module, input, &options, context, &mode);
        run.map(pipeline::run).map_err(|error| Box::new(Envelope::failure(error)))
    }

    /// Returns a run that waits for a confirmation (docs/tools.md).
    ///
    /// # Errors
    /// E4013 for an id that is unknown or belongs to another owner, E4014 for one that was used.
    pub fn pending_approval(&self, id: &str, owner: Option<&str>) -> Result<PendingApproval, ErrorBody> {
        self.state.tools.halted.get(id, owner)
    }

    /// Continues a run that waits for a confirmation. Options that are not set come from the halted run.
    ///
    /// [`RunOptions::approval`] does the same for a run that returns chunks.
    pub async fn continue_run(&self, id: &str, decision: Decision, options: RunOptions) -> Envelope {
        let halted = self.pending_approval(id, options.owner.as_deref());
        match halted.and_then(|halted| self.load(&halted.module)) {
            Ok(module) => {
                let approval = Some(Approval { id: id.to_owned(), decision });
                self.run(&module, RunInput::Json(Value::null()), RunOptions { approval, ..options }).await
            }
            Err(error) => Envelope::failure(error),
        }
    }

    /// Returns the messages that a run would send, and the request in the provider's format. Nothing is sent.
    ///
    /// # Errors
    /// The errors of [`Runtime::stream`].
    pub async fn render(
        &self,
        module: &Arc<Module>,
        input: RunInput,
        options: RunOptions,
    ) -> Result<Rendered, ErrorBody> {
        let context = RunContext::default();
        pipeline::prepare(&self.state, module, input, &options, context, &CompositionMode::Find)?
            .render()
            .await
    }

    /// Returns the tokens of the request that a run would send. If the model's tokenizer is not known, the number is not too low.
    /// Nothing is sent.
    ///
    /// # Errors
    /// The errors of [`Runtime::stream`].
    pub async fn count(
        &self,
        module: &Arc<Module>,
        input: RunInput,
        options: RunOptions,
    ) -> Result<u64, ErrorBody> {
        let context = RunContext::default();
        pipeline::prepare(&self.state, module, input, &options, context, &CompositionMode::Find)?
            .count()
            .await
    }

    /// Returns the most that a run with one attempt and without calls of tools can spend. Nothing is sent.
    ///
    /// # Errors
    /// The errors of [`Runtime::stream`].
    pub async fn largest_run(
        &self,
        module: &Arc<Module>,
        input: RunInput,
        options: RunOptions,
    ) -> Result<LargestRun, ErrorBody> {
        let context = RunContext::default();
        pipeline::prepare(&self.state, module, input, &options, context, &CompositionMode::Find)?
            .largest()
            .await
    }

    /// Returns the forms in which the model could be asked for the answer to an input. Nothing is sent.
    ///
    /// # Errors
    /// The errors of [`Runtime::stream`]; E4001 if no model is called, and E1001 if the parts of the module give its answer.
    pub fn forms(
        &self,
        module: &Arc<Module>,
        input: RunInput,
        options: RunOptions,
    ) -> Result<AskedForms, ErrorBody> {
        let context = RunContext::default();
        pipeline::prepare(&self.state, module, input, &options, context, &CompositionMode::Find)?.forms()
    }
}

impl Runtime {
    /// Returns what a calibration of the model that answers an input is stored by. Nothing is sent.
    ///
    /// # Errors
    /// The errors of [`Runtime::forms`].
    pub fn calibration_key(
        &self,
        module: &Arc<Module>,
        input: RunInput,
        options: RunOptions,
    ) -> Result<CalibrationKey, ErrorBody> {
        let context = RunContext::default();
        let mode = CompositionMode::Find;
        let evidence = evidence::requested(&options, &module.manifest).clone();
        pipeline::prepare(&self.state, module, input, &options, context, &mode)?.calibration_key(evidence)
    }
}

impl RuntimeBuilder {
    /// Sets the only provider. The rest of the run, including the checks, is the same for every provider.
    ///
    /// ```
    /// use cog_run::{RunInput, RunOptions, Runtime, provider};
    ///
    /// const ANSWER: &str = r#"{"ok": true,
    ///     "meta": {"confidence": 0.95, "risk": "none", "explain": "It is fine."},
    ///     "data": {"verdict": "approve", "issues": [], "rationale": "I like it."}}"#;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let runtime = Runtime::builder().provider(provider::from_fn("yes", "yes-1", async |_| Ok(ANSWER))).build()?;
    /// let module = runtime.load("code-reviewer")?;
    /// let input = RunInput::text("fn main() {}");
    /// let envelope = runtime.run(&module, input, RunOptions::default()).await;
    /// assert!(envelope.is_ok());
    /// assert_eq!(envelope.meta.runtime.model.as_deref(), Some("yes/yes-1"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn provider(self, provider: Arc<dyn Provider>) -> Self {
        self.providers(Providers::single(provider))
    }

    /// Sets the providers: their default order and their names.
    pub fn providers(mut self, providers: Providers) -> Self {
        self.providers = providers;
        self
    }

    /// Sets the finder that searches for modules.
    pub fn finder(mut self, finder: Finder) -> Self {
        self.finder = finder;
        self
    }

    /// Sets the maximum duration of runs without their own timeout.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets which files, URLs and uploads in an input a run may open. By default it may open none.
    pub fn media(mut self, access: Access) -> Self {
        self.media = access;
        self
    }

    /// Sets the parameters of the generation for runs without their own. They replace the parameters in a manifest.
    pub fn generation(mut self, generation: Generation) -> Self {
        self.generation = generation;
        self
    }

    /// Adds a listener to all runs, for metrics, spans (docs/telemetry.md) or logs. It is called after those that were added before.
    pub fn events(mut self, listener: Arc<dyn RunEvents>) -> Self {
        self.listeners.push(listener);
        self
    }

    /// Registers a tool. The manifest of a module decides whether it may call it. A tool of the same name is replaced.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use cog_run::{Providers, Runtime, Value, tools::{ToolError, ToolInfo}};
    ///
    /// let time = ToolInfo::new("time", "Returns the time in a city.", &Value::parse(r#"{
    ///     "type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}
    /// }"#)?)?
    /// .function(async |arguments: Value, _| match arguments.get("city").and_then(|city| city.as_str()) {
    ///     Some("Berlin") => Ok(serde_json::json!({ "time": "12:00" })),
    ///     _ => Err(ToolError::new("UnknownCity", "Only Berlin is known.")),
    /// });
    /// let runtime = Runtime::builder().providers(Providers::offline()).tool(Arc::new(time)).build()?;
    /// # let _ = runtime;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.registered.add(tool);
        self
    }

    /// Registers tools whose list may change. A run asks for them when it starts, and again after each round of calls.
    pub fn tool_source(mut self, source: Arc<dyn ToolSource>) -> Self {
        self.tools.sources.push(source);
        self
    }

    /// Sets the names of tools whose calls a person must confirm, in addition to the tools that require it themselves. In a name,
    /// `*` stands for any text.
    pub fn confirmed_tools(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.tools.confirm = names.into_iter().collect();
        self
    }

    /// Sets the limits of tool calls.
    pub fn tool_limits(mut self, limits: ToolLimits) -> Self {
        self.tools.limits = limits;
        self
    }

    /// Sets where runs that wait for a confirmation are stored. By default they are stored in memory.
    pub fn pending_approvals(mut self, halted: PendingApprovals) -> Self {
        self.tools.halted = halted;
        self
    }

    /// Sets the maximum number of parts of one composition that call a model at the same time, at least 1. By default it is
    /// 128.
    ///
    /// Parts of parts count, and a part that waits for its own parts does not. A composition that is called as a tool has its own
    /// limit: the part that calls it keeps its place, so that with one limit both could wait for each other.
    pub fn max_parallel_parts(mut self, parts: usize) -> Self {
        self.max_parallel_parts = parts.max(1);
        self
    }

    /// Sets the cache of answers. By default nothing is cached.
    pub fn cache(mut self, cache: AnswerCache) -> Self {
        self.cache = Some(cache);
        self
    }

    /// Sets the user's state directory, which has the calibrations of built-in modules (docs/calibration.md). By default they have
    /// none.
    pub fn calibrations(mut self, state: PathBuf) -> Self {
        self.calibrations = Some(state);
        self
    }

    /// Sets the limits of each run, together with its parts and the modules that it calls as tools.
    pub fn budget(mut self, limits: BudgetLimits) -> Self {
        self.budget = limits;
        self
    }

    /// Sets where the context is stored that modules emit. By default it is stored in memory.
    pub fn context_store(mut self, store: ContextStore) -> Self {
        self.context = store;
        self
    }

    /// Sets the interval after which the files of a module are checked again. A check takes longer than the
    /// rest of a short run.
    pub fn reload_interval(mut self, reload_interval: Duration) -> Self {
        self.reload_interval = reload_interval;
        self
    }

    /// Builds the runtime.
    ///
    /// # Errors
    /// E4001 without a provider. A program that lost its provider must not answer with samples.
    pub fn build(self) -> Result<Runtime, ErrorBody> {
        if self.providers.are_missing() {
            return Err(ErrorBody::new(Code::ProviderUnavailable, "the runtime has no provider")
                .with_recoverable(false)
                .suggest("Set one with `RuntimeBuilder::provider`, or use `Providers::offline()` to get golden answers and samples."));
        }
        Ok(Runtime::from_builder(self))
    }
}

impl Runtime {
    fn from_builder(builder: RuntimeBuilder) -> Self {
        let RuntimeBuilder {
            providers,
            finder,
            timeout,
            reload_interval,
            media,
            generation,
            listeners,
            tools,
            max_parallel_parts,
            context,
            budget,
            cache,
            calibrations,
        } = builder;
        let modules = Modules::new(finder, reload_interval);
        let compilations = Compilations::default();
        let calibrations = CalibrationStore::new(calibrations, reload_interval);
        let state = RuntimeState {
            providers,
            modules,
            compilations,
            timeout,
            media,
            generation,
            listeners: Listeners::default().with(&listeners),
            tools,
            context,
            budget,
            cache,
            calibrations,
            compositions: Compositions::new(max_parallel_parts),
        };
        Self { state: Arc::new(state) }
    }
}
