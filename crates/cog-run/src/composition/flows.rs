//! Runs the parts of composed modules (docs/spec/composition.md).
//!
//! [`Flows`] is the composer of a runtime. For a composed module it returns a [`Composed`], whose execution is a loop over
//! the calls in flight:
//!
//! ```text
//! Plan → tasks → calls → runs of parts → Ended → Results → the next tasks … → PartsAnswer
//! ```

use std::{
    collections::{BTreeSet, HashMap},
    fmt::{self, Write as _},
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use cog_flow::{Answer, Flow, Lookup, LookupError, Part, Plan, PlanId, check};
use cog_json::ToJson as _;
use cog_module::Module;
use cog_spec::{Code, ErrorBody, ErrorCode};
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;

use super::{ComposedModule, Composer, Modules, Parts, PartsFuture, error, execution::Execution};
use crate::{RunInput, RunOptions};

// A composition as the runtime sees it.

impl ComposedModule for Composed {
    fn uses_own_prompt(&self) -> bool {
        let plan = self.plan();
        plan.answer == Answer::OwnPrompt
    }

    fn timeout(&self) -> Option<Duration> {
        Some(self.plan().timeout)
    }

    fn run(self: Arc<Self>, parts: Parts) -> PartsFuture {
        Box::pin(Execution::new(self, parts).run())
    }
}

// What identifies the call of a part, so that its answer counts again after an interruption.

/// The digest of a module and of all modules that it calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Digest(Vec<u8>);

impl Digest {
    /// Returns the digest of the module of a plan.
    fn new(flow: &Flow, plan: &Plan) -> Self {
        let mut hash = Sha256::new();
        let mut known = BTreeSet::new();
        let mut open = vec![plan];
        while let Some(plan) = open.pop() {
            add(&mut hash, &plan.module);
            let new = plan.parts.iter().filter_map(|part| part.plan).filter(|id| known.insert(*id));
            open.extend(new.map(|id| flow.plan(id)).collect::<Vec<_>>());
        }
        Self(hash.finalize().to_vec())
    }

    /// Returns the key of a call: 128 bits in hexadecimal.
    pub(super) fn key(&self, input: &RunInput, texts: &[String], more: &str, options: &RunOptions) -> String {
        let mut hash = Sha256::new();
        hash.update(&self.0);
        match input {
            RunInput::Args(text) => field(&mut hash, text),
            RunInput::Json(value) => field(&mut hash, &value.to_string()),
            other => field(&mut hash, &format!("{other:?}")),
        }
        texts.iter().for_each(|text| field(&mut hash, text));
        field(&mut hash, more);
        field(&mut hash, &settings(options).to_json());
        field(&mut hash, &format!("{:?}", options.generation));
        let mut key = String::new();
        for byte in hash.finalize().iter().take(16) {
            let _ = write!(key, "{byte:02x}");
        }
        key
    }
}

/// Returns the options on which the answer of a part depends.
fn settings(options: &RunOptions) -> RunOptions {
    let mut settings = options.clone();
    (settings.timeout, settings.chunk_type, settings.handoff_to) = (None, None, None);
    settings
}

fn add(hash: &mut Sha256, module: &Module) {
    field(hash, &format!("{:?}", module.manifest));
    field(hash, module.prompt.text());
    field(hash, &module.schema.to_string());
}

/// Adds a text with its length, so that two texts cannot be read as others.
fn field(hash: &mut Sha256, text: &str) {
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text);
}

// The composer of a runtime.

/// Finds, checks and runs the parts of composed modules. Each composition is checked once, and again when one of its
/// modules has changed.
///
/// ```
/// use std::sync::Arc;
///
/// use cog_run::{Runtime, composition::Flows};
///
/// let runtime = Runtime::builder().offline().composer(Arc::new(Flows::new())).build()?;
/// # let _ = runtime;
/// # Ok::<(), cog_run::ErrorBody>(())
/// ```
#[derive(Debug, Default)]
pub struct Flows {
    max_parallel: Option<usize>,
    /// The last check of the module in each directory.
    checked: Mutex<HashMap<PathBuf, Arc<Composed>>>,
}

impl Flows {
    /// The default maximum number of parts of one run that call a model at the same time, at all depths together.
    pub const MAX_PARALLEL: usize = 128;

    /// Returns a composer with the default limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum number of parts of one run that call a model at the same time, at least 1. Parts of parts count, and a part
    /// that waits for its own parts does not. So many parts of one composition run at the same time at most. A composition that is called
    /// as a tool has its own limit: the part that calls it keeps its place, so with one limit both could wait for each other.
    #[must_use]
    pub fn max_parallel(self, parts: usize) -> Self {
        Self { max_parallel: Some(parts.max(1)), ..self }
    }

    /// Returns the composition of this module, if none of its modules has changed since it was checked.
    fn known(&self, modules: &Modules, module: &Arc<Module>) -> Option<Arc<Composed>> {
        let checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        let composed = Arc::clone(checked.get(&module.origin.path_of(""))?);
        drop(checked);
        is_current(modules, module, composed.flow()).then_some(composed)
    }

    fn remember(&self, module: &Module, composed: &Arc<Composed>) {
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        checked.insert(module.origin.path_of(""), Arc::clone(composed));
    }
}

impl Composer for Flows {
    fn compose(
        &self,
        modules: &Modules,
        module: &Arc<Module>,
    ) -> Result<Option<Arc<dyn ComposedModule>>, ErrorBody> {
        if let Some(known) = self.known(modules, module) {
            return Ok(Some(known));
        }
        let flow = check(Arc::clone(module), modules)
            .into_flow()
            .map_err(|found| error::from_check(module, &found))?;
        if !flow.is_composed() {
            return Ok(None);
        }
        let max_parallel = self.max_parallel.unwrap_or(Self::MAX_PARALLEL);
        let composed = Arc::new(Composed::new(Arc::new(flow), max_parallel));
        self.remember(module, &composed);
        Ok(Some(composed))
    }
}

/// Returns whether the runtime would load the same modules again.
fn is_current(modules: &Modules, module: &Arc<Module>, flow: &Flow) -> bool {
    let is_same = |part: &Part| {
        let loaded = modules.load_name(&part.module);
        match part.plan {
            Some(id) => loaded.is_ok_and(|module| Arc::ptr_eq(&module, &flow.plan(id).module)),
            None => loaded.is_err(),
        }
    };
    Arc::ptr_eq(module, &flow.root().module) && flow.plans().flat_map(|(_, plan)| &plan.parts).all(is_same)
}

// A composed module that is ready to run.

/// The composition of one module of a [`Flow`].
pub(super) struct Composed {
    flow: Arc<Flow>,
    /// The plan of the module; none for the root.
    plan: Option<PlanId>,
    max_parallel: usize,
    /// The slots of the run; none for the root, each of whose runs has its own.
    slots: Option<Arc<Semaphore>>,
    /// The digest of the module and of all modules below it, computed when it is needed.
    digest: OnceLock<Digest>,
    /// The digests of its parts.
    part_digests: OnceLock<Vec<Option<Digest>>>,
    /// Whether one of the modules may call tools.
    may_call_tools: OnceLock<bool>,
}

impl Composed {
    /// Returns the composition of the root of a flow.
    fn new(flow: Arc<Flow>, max_parallel: usize) -> Self {
        Self {
            flow,
            plan: None,
            max_parallel,
            slots: None,
            digest: OnceLock::new(),
            part_digests: OnceLock::new(),
            may_call_tools: OnceLock::new(),
        }
    }

    /// Returns the composition of a part; none if the part calls no modules.
    pub(super) fn part(&self, plan: PlanId, slots: &Arc<Semaphore>) -> Option<Arc<Self>> {
        if !self.flow.plan(plan).is_composed() {
            return None;
        }
        let (plan, slots) = (Some(plan), Some(Arc::clone(slots)));
        Some(Arc::new(Self { plan, slots, ..Self::new(Arc::clone(&self.flow), self.max_parallel) }))
    }

    /// Returns the slots of a run.
    pub(super) fn slots(&self) -> Arc<Semaphore> {
        self.slots.clone().unwrap_or_else(|| Arc::new(Semaphore::new(self.max_parallel)))
    }

    pub(super) fn flow(&self) -> &Flow {
        &self.flow
    }

    pub(super) fn plan(&self) -> &Plan {
        self.plan.map_or_else(|| self.flow.root(), |plan| self.flow.plan(plan))
    }

    pub(super) const fn max_parallel(&self) -> usize {
        self.max_parallel
    }

    /// Returns whether one of the modules of the flow may call tools.
    pub(super) fn may_call_tools(&self) -> bool {
        let may_call = |plan: &Plan| plan.module.manifest.policies.tools_allowed;
        *self.may_call_tools.get_or_init(|| self.flow.plans().any(|(_, plan)| may_call(plan)))
    }

    /// Returns the digest of this module and of all modules that it calls.
    pub(super) fn digest(&self) -> &Digest {
        self.digest.get_or_init(|| Digest::new(&self.flow, self.plan()))
    }

    /// Returns the digest of a part; none if the part is missing.
    pub(super) fn part_digest(&self, part: usize) -> Option<&Digest> {
        let digest = |part: &Part| part.plan.map(|plan| Digest::new(&self.flow, self.flow.plan(plan)));
        let digests = self.part_digests.get_or_init(|| self.plan().parts.iter().map(digest).collect());
        digests.get(part)?.as_ref()
    }
}

impl fmt::Debug for Composed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Composed").field(&self.plan().module.manifest.name).finish()
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
