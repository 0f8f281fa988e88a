//! Composed modules: their parts run before their own answer (docs/spec/composition.md).
//!
//! `cog-flow` compiles and checks the plan of a composition, and this module executes it. The runtime runs a composed module
//! like any other; the driver waits for an [`Execution`] before it calls the provider. Each part is a run of the same pipeline.
//!
//! ```text
//! Module → Composition → PendingComposition → Execution: calls → runs of parts → CallResult → Results → … → CompositionResult
//! ```

mod answer;
mod call;
mod error;
mod execution;
mod mapped;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write as _,
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use cog_flow::{Answer, Flow, Lookup, LookupError, Part, Plan, PlanId, check};
use cog_json::ToJson as _;
use cog_media::Media;
use cog_module::Module;
use cog_spec::{Code, ErrorBody, ErrorCode, Manifest};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;

use self::call::Context;
pub(crate) use self::{
    answer::{CompositionAnswer, CompositionProvider},
    execution::{CompositionResult, Execution},
};
use crate::{
    Cancellation, ChunkStream, RunContext, RunInput, RunOptions,
    input::CheckedInput,
    modules::Modules,
    parts_state::CompositionState,
    stream::ChunkQueue,
    tools::{ContinuedPart, PendingApprovals, halt_parts},
};

/// The compositions of a runtime. Each is checked once, and again when one of its modules has changed.
pub(crate) struct Compositions {
    /// The maximum number of parts of one run that call a model at the same time.
    max_parallel: usize,
    /// The last check of the module in each directory.
    checked: Mutex<HashMap<PathBuf, Arc<Composition>>>,
}

impl Compositions {
    pub(crate) fn new(max_parallel: usize) -> Self {
        Self { max_parallel, checked: Mutex::default() }
    }

    /// Loads the parts of a module with their own parts, and checks them. Returns none for a module that calls no other.
    ///
    /// # Errors
    /// E4004 for a cycle, E4005 for a graph that is too deep, E4006 for a missing part, E4008 for an invalid composition.
    pub(crate) fn find(
        &self,
        modules: &Modules,
        module: &Arc<Module>,
    ) -> Result<Option<Arc<Composition>>, ErrorBody> {
        if !module.calls_modules() {
            return Ok(None);
        }
        if let Some(known) = self.known(modules, module) {
            return Ok(Some(known));
        }
        let flow = check(Arc::clone(module), modules)
            .into_flow()
            .map_err(|findings| error::from_check(module, &findings))?;
        if !flow.is_composed() {
            return Ok(None);
        }
        let composition = Arc::new(Composition::new(flow, self.max_parallel));
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        checked.insert(module.origin.path_of(""), Arc::clone(&composition));
        Ok(Some(composition))
    }

    /// Returns the composition of this module, if none of its modules has changed since it was checked.
    fn known(&self, modules: &Modules, module: &Arc<Module>) -> Option<Arc<Composition>> {
        let checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        let composition = Arc::clone(checked.get(&module.origin.path_of(""))?);
        // The comparison loads modules, which may read files: other runs must not wait for it.
        drop(checked);
        is_current(modules, module, &composition.checked.flow).then_some(composition)
    }
}

/// Returns whether the runtime would load the same modules again.
fn is_current(modules: &Modules, module: &Arc<Module>, flow: &Flow) -> bool {
    Arc::ptr_eq(module, &flow.root().module)
        && flow.plans().flat_map(|(_, plan)| &plan.parts).all(|part| is_same(modules, part, flow))
}

/// Returns whether the runtime would load the same module for a part again.
fn is_same(modules: &Modules, part: &Part, flow: &Flow) -> bool {
    let loaded = modules.load_name(&part.module);
    match part.plan {
        Some(id) => loaded.is_ok_and(|module| Arc::ptr_eq(&module, &flow.plan(id).module)),
        None => loaded.is_err(),
    }
}

/// The modules of a runtime, from its cache.
impl Lookup for Modules {
    fn find(&self, name: &str) -> Result<Arc<Module>, LookupError> {
        self.load_name(name).map_err(|error: ErrorBody| match error.code {
            ErrorCode::Standard(Code::ModuleNotFound | Code::PermissionDenied) => LookupError::NotFound,
            _ => LookupError::Invalid(error.message),
        })
    }

    fn names(&self) -> Vec<String> {
        self.finder().origins().into_iter().map(|(name, _)| name).collect()
    }
}

/// What a run executes of a module that may call others.
#[derive(Clone)]
pub(crate) enum CompositionMode {
    /// The module with its parts, which are searched for.
    Find,
    /// The module with these parts.
    Known(Arc<Composition>),
    /// Only its own prompt, with these texts instead of its calls and references.
    OwnPrompt(Arc<[String]>),
}

impl CompositionMode {
    /// Returns the composition to execute, if there is one.
    ///
    /// # Errors
    /// The errors of [`Compositions::find`].
    pub(crate) fn composition(
        &self,
        compositions: &Compositions,
        modules: &Modules,
        module: &Arc<Module>,
    ) -> Result<Option<Arc<Composition>>, ErrorBody> {
        match self {
            Self::Find => compositions.find(modules, module),
            Self::Known(composition) => Ok(Some(Arc::clone(composition))),
            Self::OwnPrompt(_) => Ok(None),
        }
    }

    /// Returns the texts that replace the calls and references of the prompt.
    pub(crate) fn texts(&self) -> Arc<[String]> {
        match self {
            Self::OwnPrompt(texts) => Arc::clone(texts),
            Self::Find | Self::Known(_) => Arc::default(),
        }
    }
}

/// A composed module with its parts, loaded and checked.
pub(crate) struct Composition {
    checked: Arc<CheckedFlow>,
    /// The plan of the module in the flow.
    plan: PlanId,
    /// The slots of the run; none for the root, each of whose runs has its own.
    slots: Option<Arc<Semaphore>>,
}

/// What the root of a flow and the compositions below it share.
struct CheckedFlow {
    flow: Flow,
    max_parallel: usize,
    /// Whether one of the modules may call tools.
    may_call_tools: bool,
    /// The digest of each plan, computed when it is needed.
    digests: BTreeMap<PlanId, OnceLock<Digest>>,
}

impl Composition {
    /// Returns the composition of the root of a flow.
    fn new(flow: Flow, max_parallel: usize) -> Self {
        let may_call_tools = flow.plans().any(|(_, plan)| plan.module.manifest.policies.tools_allowed);
        let digests = flow.plans().map(|(id, _)| (id, OnceLock::new())).collect();
        let plan = flow.root_id();
        let checked = Arc::new(CheckedFlow { flow, max_parallel, may_call_tools, digests });
        Self { checked, plan, slots: None }
    }

    /// Returns the composition of a part, whose calls take these slots; none if the part calls no modules.
    fn part(&self, plan: PlanId, slots: &Arc<Semaphore>) -> Option<Arc<Self>> {
        let checked = Arc::clone(&self.checked);
        let slots = Some(Arc::clone(slots));
        checked.flow.plan(plan).is_composed().then(|| Arc::new(Self { checked, plan, slots }))
    }

    /// Returns whether the module's own prompt may give the answer. Otherwise no provider is needed for it.
    pub(crate) fn uses_own_prompt(&self) -> bool {
        self.plan().answer == Answer::OwnPrompt
    }

    /// Returns the manifests of all modules of the flow.
    pub(crate) fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        self.checked.flow.plans().map(|(_, plan)| &*plan.module.manifest)
    }

    /// Returns the maximum duration of the composition.
    pub(crate) fn timeout(&self) -> Duration {
        self.plan().timeout
    }

    /// Returns the slots of a run.
    fn slots(&self) -> Arc<Semaphore> {
        self.slots.clone().unwrap_or_else(|| Arc::new(Semaphore::new(self.checked.max_parallel)))
    }

    fn plan(&self) -> &Plan {
        self.checked.flow.plan(self.plan)
    }

    fn module_of(&self, plan: PlanId) -> &Arc<Module> {
        &self.checked.flow.plan(plan).module
    }

    /// Returns the digest of a plan; none if it is not of this flow.
    fn digest(&self, plan: PlanId) -> Option<&Digest> {
        let digest = self.checked.digests.get(&plan)?;
        Some(digest.get_or_init(|| Digest::new(&self.checked.flow, plan)))
    }
}

// What identifies the call of a part, so that its answer counts again after an interruption.

/// The digest of a module and of all modules that it calls.
struct Digest(Vec<u8>);

impl Digest {
    /// Returns the digest of the module of a plan.
    fn new(flow: &Flow, plan: PlanId) -> Self {
        let mut hash = Sha256::new();
        let mut known = BTreeSet::new();
        let mut open = vec![plan];
        while let Some(id) = open.pop() {
            let plan = flow.plan(id);
            add_module(&mut hash, &plan.module);
            open.extend(plan.parts.iter().filter_map(|part| part.plan).filter(|id| known.insert(*id)));
        }
        Self(hash.finalize().to_vec())
    }

    /// Returns the key of a call: 128 bits in hexadecimal. `tier` is the tier whose thresholds the answer must meet.
    fn key(&self, input: &RunInput, texts: &[String], tier: &str, options: &RunOptions) -> String {
        let mut hash = Sha256::new();
        hash.update(&self.0);
        match input {
            RunInput::Args(text) => add_field(&mut hash, text),
            RunInput::Json(value) => add_field(&mut hash, &value.to_string()),
            other => add_field(&mut hash, &format!("{other:?}")),
        }
        texts.iter().for_each(|text| add_field(&mut hash, text));
        add_field(&mut hash, tier);
        // The answer of a part does not depend on these.
        let settings = RunOptions {
            timeout: None,
            chunk_type: None,
            handoff_to: None,
            evidence: None,
            ..options.clone()
        };
        add_field(&mut hash, &settings.to_json());
        add_field(&mut hash, &format!("{:?}", options.generation));
        add_field(&mut hash, options.instructions.as_deref().unwrap_or_default());
        options.messages.iter().for_each(|message| add_field(&mut hash, &message.to_json()));
        let mut key = String::new();
        for byte in hash.finalize().iter().take(16) {
            let _ = write!(key, "{byte:02x}");
        }
        key
    }
}

fn add_module(hash: &mut Sha256, module: &Module) {
    add_field(hash, &format!("{:?}", module.manifest));
    add_field(hash, module.prompt.text());
    add_field(hash, &module.schema.to_string());
}

/// Adds a string with its length, so that two strings cannot be read as others.
fn add_field(hash: &mut Sha256, text: &str) {
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text);
}

// The composition of a run whose parts have not started.

/// The run of one part, which the pipeline starts.
pub(crate) struct PartRun {
    pub(crate) module: Arc<Module>,
    pub(crate) input: RunInput,
    pub(crate) options: RunOptions,
    pub(crate) context: RunContext,
    pub(crate) mode: CompositionMode,
}

/// Starts the run of a part. The pipeline passes it, because this module lies below it.
pub(crate) type StartPart = Arc<dyn Fn(PartRun) -> Result<ChunkStream, ErrorBody> + Send + Sync>;

/// The composition of a run, and what the module's own prompt needs after its parts.
pub(crate) struct PendingComposition {
    /// The composition; none once its parts have started.
    pub(crate) composition: Option<Arc<Composition>>,
    pub(crate) module: Arc<Module>,
    pub(crate) options: RunOptions,
    pub(crate) context: RunContext,
    pub(crate) input: CheckedInput,
    /// The media of the input as parts of a message.
    pub(crate) media: Vec<cog_harmony::Part>,
    /// The parts that were halted, and how they continue.
    pub(crate) halted_parts: Vec<ContinuedPart>,
    /// Where the run is stored if a part waits for a confirmation; none if it cannot wait.
    pub(crate) pending_approvals: Option<PendingApprovals>,
    pub(crate) start_part: StartPart,
}

impl PendingComposition {
    /// Returns whether the module's own prompt may give the answer.
    pub(crate) fn uses_own_prompt(&self) -> bool {
        self.composition.as_ref().is_none_or(|composition| composition.uses_own_prompt())
    }

    /// Returns the execution of the parts, the first time that it is called.
    pub(crate) fn start(
        &mut self,
        timeout: Duration,
        is_streamed: bool,
        queue: &ChunkQueue,
    ) -> Option<Box<Execution>> {
        let composition = self.composition.take()?;
        let slots = composition.slots();
        // The parts receive what the module accepts, as its own model would.
        let scope = self.options.context.clone().unwrap_or_default().with_given(self.input.context());
        Some(Box::new(Execution::new(Context {
            composition,
            module: Arc::clone(&self.module),
            input: self.input.clone(),
            options: self.options.clone(),
            context: self.context.clone(),
            scope,
            timeout,
            is_streamed,
            cancellation: Cancellation::default(),
            queue: queue.clone(),
            percent: 0.into(),
            slots,
            can_halt: self.pending_approvals.is_some(),
            halted: std::mem::take(&mut self.halted_parts),
            start_part: Arc::clone(&self.start_part),
        })))
    }

    /// Stores the run, whose parts wait for a confirmation, and returns the error that ends it. Returns none if it cannot wait.
    /// `media` are the media of the input whose sources can expire.
    pub(crate) async fn halt(
        &self,
        state: CompositionState,
        media: Vec<(String, Media)>,
    ) -> Option<ErrorBody> {
        let runs = self.pending_approvals.as_ref()?;
        let input = self.input.original();
        Some(halt_parts(runs, &self.module, &input, media, &self.options, state).await)
    }
}
