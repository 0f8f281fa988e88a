//! What a program sets up once and runs modules with.

use std::{sync::Arc, time::Duration};

use cog_media::Access;
use cog_module::{Finder, Module};
use cog_provider::Provider;
use cog_spec::{Envelope, ErrorBody};

use crate::{
    ChunkStream, Providers, Rendered, RunInput, RunOptions,
    compiled::Compilations,
    context::Shared,
    modules::{ModuleKey, Modules},
    observe::{self, Observer, RunObserver},
    pipeline,
    plan::Prepared,
};

/// Runs modules: set up once, shared, used from any task.
#[derive(Clone)]
pub struct Runtime {
    shared: Arc<Shared>,
}

/// Sets up a [`Runtime`].
#[must_use = "a builder does nothing until `build`"]
pub struct RuntimeBuilder {
    providers: Providers,
    finder: Finder,
    timeout: Duration,
    recheck: Duration,
    media: Access,
    observer: Option<Arc<dyn Observer>>,
}

impl Runtime {
    /// How long a run may take where nobody says otherwise.
    pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);

    /// How long a module is taken as it was found where nobody says otherwise.
    pub const DEFAULT_RECHECK: Duration = Duration::from_millis(500);

    /// A runtime that is offline and knows the modules that ship, until the builder is told otherwise.
    pub fn builder() -> RuntimeBuilder {
        RuntimeBuilder {
            providers: Providers::offline(),
            finder: Finder::new(".", Vec::new(), None),
            timeout: Self::DEFAULT_TIMEOUT,
            recheck: Self::DEFAULT_RECHECK,
            media: Access::default(),
            observer: None,
        }
    }

    /// Loads a module by name or path, for the operator. It is compiled once and kept; when its files change it is
    /// loaded again, at the latest [`RuntimeBuilder::recheck`] later.
    ///
    /// # Errors
    /// E4006 where there is none of this name, E4007 for a name that leaves the search path, E4008
    /// where it does not load.
    pub fn load(&self, name_or_path: &str) -> Result<Arc<Module>, ErrorBody> {
        self.shared.modules.load(ModuleKey::NameOrPath, name_or_path)
    }

    /// Loads a module by its name alone, for whoever is not the operator: a path is none.
    ///
    /// # Errors
    /// As [`Runtime::load`].
    pub fn load_name(&self, name: &str) -> Result<Arc<Module>, ErrorBody> {
        self.shared.modules.load(ModuleKey::Name, name)
    }

    /// Loads a module as [`Runtime::load_name`] does, without blocking the event loop.
    ///
    /// # Errors
    /// As [`Runtime::load`].
    pub async fn load_name_async(&self, name: &str) -> Result<Arc<Module>, ErrorBody> {
        if let Some(module) = self.cached_name(name) {
            return Ok(module);
        }
        let (runtime, owned) = (self.clone(), name.to_owned());
        let loading = tokio::task::spawn_blocking(move || runtime.load_name(&owned)).await;
        loading.unwrap_or_else(|error| Err(crate::error::of_task(&error)))
    }

    /// Returns the module that [`Runtime::load_name`] loads, where that needs no file. A server calls this on its event
    /// loop, and `load_name` elsewhere.
    pub fn cached_name(&self, name: &str) -> Option<Arc<Module>> {
        self.shared.modules.cached(ModuleKey::Name, name)
    }

    /// Who is asked.
    pub fn providers(&self) -> &Providers {
        &self.shared.providers
    }

    /// Where modules are looked for.
    pub fn finder(&self) -> &Finder {
        self.shared.modules.finder()
    }

    /// Runs a module and waits for the answer. Never fails otherwise than by an envelope that says so.
    pub async fn execute(&self, module: &Arc<Module>, input: RunInput, options: RunOptions) -> Envelope {
        match self.start(module, input, options) {
            Ok(answer) => answer.await,
            Err(refused) => *refused,
        }
    }

    /// Checks the input, and returns the rest of [`Runtime::execute`] as a future. The check takes time that grows with
    /// the input; a server calls this where it may block.
    ///
    /// # Errors
    /// As [`Runtime::execute_stream`].
    pub fn start(
        &self,
        module: &Arc<Module>,
        input: RunInput,
        options: RunOptions,
    ) -> Result<impl Future<Output = Envelope> + Send + use<>, Box<Envelope>> {
        let mut run = pipeline::prepare(&self.shared, module, input, &options);
        if let Ok(run) = &mut run {
            // No one reads the chunks before the last.
            run.rules.is_streamed = false;
        }
        Ok(self.begin(module, run)?.fold())
    }

    /// Runs a module and gives its chunks as they come.
    ///
    /// # Errors
    /// What is known before the provider is asked: the input, the caller, what the provider cannot
    /// take (ruling R54).
    pub fn execute_stream(
        &self,
        module: &Arc<Module>,
        input: RunInput,
        options: RunOptions,
    ) -> Result<ChunkStream, Box<Envelope>> {
        self.begin(module, pipeline::prepare(&self.shared, module, input, &options))
    }

    /// The messages that a run would send, and the request in the vendor's form, without sending it.
    ///
    /// # Errors
    /// As [`Runtime::execute_stream`].
    pub async fn render(
        &self,
        module: &Arc<Module>,
        input: RunInput,
        options: RunOptions,
    ) -> Result<Rendered, ErrorBody> {
        pipeline::prepare(&self.shared, module, input, &options)?.render().await
    }

    fn begin(
        &self,
        module: &Arc<Module>,
        run: Result<Prepared, ErrorBody>,
    ) -> Result<ChunkStream, Box<Envelope>> {
        let observer = self.shared.observer.as_ref();
        match run {
            Ok(run) => {
                let chunks = pipeline::run(run);
                Ok(match observer {
                    Some(observer) => chunks.observed(RunObserver::new(module, observer)),
                    None => chunks,
                })
            }
            Err(error) => {
                if let Some(observer) = observer {
                    observe::refused(&error, module, observer.as_ref());
                }
                Err(Box::new(Envelope::failure(error)))
            }
        }
    }
}

impl RuntimeBuilder {
    /// Who is asked; without one the runtime is offline.
    ///
    /// A provider of one's own gives events; everything behind them, the checks among it, is as with a vendor:
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use cog_run::provider::{
    ///     Dialect, FinishReason, Modality, ModelEvent, ModelFuture, ModelRequest, Provider, ProviderError,
    ///     WireRequest, reply,
    /// };
    /// use cog_run::{RunInput, RunOptions, Runtime};
    ///
    /// /// Approves whatever it is shown.
    /// struct Yes;
    ///
    /// const ANSWER: &str = r#"{"ok": true,
    ///     "meta": {"confidence": 0.95, "risk": "none", "explain": "It is fine."},
    ///     "data": {"verdict": "approve", "issues": [], "rationale": "I like it."}}"#;
    ///
    /// impl Provider for Yes {
    ///     fn name(&self) -> &str { "yes" }
    ///     fn model(&self) -> &str { "yes-1" }
    ///     fn dialect(&self) -> Dialect { Dialect::Prompt }
    ///     fn modalities(&self) -> &[Modality] { &[Modality::Text] }
    ///     fn render(&self, _: &ModelRequest) -> Result<Option<WireRequest>, ProviderError> { Ok(None) }
    ///     fn ask<'a>(&'a self, _: &'a ModelRequest) -> ModelFuture<'a> {
    ///         let events = [ModelEvent::Text(ANSWER.to_owned()), ModelEvent::Finished(FinishReason::Stop)];
    ///         Box::pin(async { Ok(reply(events)) })
    ///     }
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let runtime = Runtime::builder().provider(Arc::new(Yes)).build();
    /// let module = runtime.load("code-reviewer")?;
    /// let input = RunInput::text("fn main() {}");
    /// let envelope = runtime.execute(&module, input, RunOptions::default()).await;
    /// assert!(envelope.is_ok());
    /// assert_eq!(envelope.meta.runtime.model.as_deref(), Some("yes/yes-1"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn provider(self, provider: Arc<dyn Provider>) -> Self {
        self.providers(Providers::one(provider))
    }

    /// Who is asked, in which order, and by which names.
    pub fn providers(mut self, providers: Providers) -> Self {
        self.providers = providers;
        self
    }

    /// Where modules are looked for.
    pub fn finder(mut self, finder: Finder) -> Self {
        self.finder = finder;
        self
    }

    /// How long a run may take that sets no timeout of its own.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// What runs may open of what inputs name: files, addresses, uploads; nothing, until they are told otherwise.
    pub fn media(mut self, access: Access) -> Self {
        self.media = access;
        self
    }

    /// Who is told how calls and runs end.
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// How long a module is taken as it was found, before its files are looked at again: a look costs more than all
    /// the rest of a short run.
    pub fn recheck(mut self, recheck: Duration) -> Self {
        self.recheck = recheck;
        self
    }

    /// The runtime.
    pub fn build(self) -> Runtime {
        let Self { providers, finder, timeout, recheck, media, observer } = self;
        let providers = match &observer {
            Some(observer) => providers.observed(observer),
            None => providers,
        };
        let modules = Modules::new(finder, recheck);
        let compilations = Compilations::default();
        Runtime { shared: Arc::new(Shared { providers, modules, compilations, timeout, media, observer }) }
    }
}
