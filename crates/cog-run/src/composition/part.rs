//! Runs one part: starts it, sends its chunks as progress, and waits for its envelope.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use cog_flow::{Callee, Plan, PlanId};
use cog_json::{Node, ToJson as _, Value};
use cog_module::{Module, PromptPart};
use cog_spec::{Chunk, Code, Envelope, ErrorBody, PartProgress, Progress};
use tokio::{sync::Semaphore, time::Instant};

use super::{
    Composition, CompositionMode, PartRun, StartPart,
    call::{Call, CallResult},
};
use crate::{
    Caller, Cancellation, ChunkStream, ContextScope, RunContext, RunOptions, input::CheckedInput,
    options::Approval, prompt, stream::ChunkQueue, tools::ContinuedPart,
};

/// What all calls of a composition share.
pub(super) struct Context {
    pub(super) composition: Arc<Composition>,
    /// The composed module. Its manifest may have another tier than in the plan.
    pub(super) module: Arc<Module>,
    pub(super) input: CheckedInput,
    /// The options of the composed module's run.
    pub(super) options: RunOptions,
    pub(super) context: RunContext,
    /// The context that the parts share (docs/context.md).
    pub(super) scope: ContextScope,
    /// The maximum duration of the composition.
    pub(super) timeout: Duration,
    /// Whether a caller reads the chunks as they arrive.
    pub(super) is_streamed: bool,
    /// Cancels the parts that run.
    pub(super) cancellation: Cancellation,
    pub(super) queue: ChunkQueue,
    /// The progress of the composition in percent.
    pub(super) percent: AtomicU8,
    /// The permits of the calls to models that run at the same time, in this composition and all others of the run.
    pub(super) slots: Arc<Semaphore>,
    /// Whether the run can wait for a confirmation. A module that is called as a tool cannot.
    pub(super) can_halt: bool,
    /// The parts that were halted, and how they continue.
    pub(super) halted: Vec<ContinuedPart>,
    pub(super) start_part: StartPart,
}

impl Context {
    pub(super) fn plan(&self) -> &Plan {
        self.composition.plan()
    }

    pub(super) fn input(&self) -> Node<'_> {
        self.input.node()
    }

    /// Returns the maximum number of calls that run at the same time.
    pub(super) fn max_parallel(&self) -> usize {
        self.composition.checked.max_parallel
    }

    /// Returns the text of a part of the arguments of a call, filled from the input of the composed module. Returns none if it is
    /// too long.
    pub(super) fn fill(&self, part: &PromptPart) -> Option<String> {
        prompt::text(std::slice::from_ref(part), &self.input)
    }

    /// Returns whether a call needs a slot. A composition needs none: its parts do, and it would wait for them with a slot that
    /// they need.
    pub(super) fn needs_slot(&self, call: &Call) -> bool {
        self.plan_of(call).is_none_or(|plan| !self.composition.checked.flow.plan(plan).is_composed())
    }

    /// Sends a progress chunk about a part.
    pub(super) fn report(&self, message: Option<String>, part: PartProgress) {
        if self.is_streamed {
            self.queue.push(Chunk::Progress(Progress {
                percent: self.percent.load(Ordering::Relaxed),
                stage: Some("part".to_owned()),
                message,
                part: Some(Box::new(part)),
                ..Progress::default()
            }));
        }
    }

    /// Runs a call to its end.
    pub(super) async fn run(self: Arc<Self>, call: Call) -> CallResult {
        let started = Instant::now();
        let key = self.key(&call);
        let former = self.former(&call, key.as_deref());
        let restored = former.is_some();
        let envelope = match former {
            Some(envelope) => envelope,
            None => self.answer(&call, key.as_deref()).await,
        };
        CallResult { call, envelope, time: started.elapsed(), key, restored }
    }

    /// Returns the answer that a call had in an earlier run; none if it had none.
    fn former(&self, call: &Call, key: Option<&str>) -> Option<Value> {
        let finished = self.context.finished_parts.as_ref()?;
        let envelope = finished.get(&call.path, key?)?.clone();
        let data = envelope.get("data").map(|node| envelope.child(node)).unwrap_or_default();
        let emitted = envelope.get("_emitted_context").map(|node| envelope.child(node));
        // The part does not run, but the parts after it read what its run would have added to their context.
        self.part_scope().add(&call.module.as_ref()?.manifest.name, emitted.as_ref(), &data);
        Some(envelope)
    }

    async fn answer(&self, call: &Call, key: Option<&str>) -> Value {
        let envelope = match self.start(call, key) {
            Ok(chunks) => chunks.fold_with(|chunk| self.forward(&call.path, chunk)).await,
            Err(error) => Envelope::failure(error),
        };
        Value::parse(&envelope.to_json()).unwrap_or_default()
    }

    /// Starts the run of a call.
    ///
    /// # Errors
    /// The errors that are known before the provider is called, and E4014 for a part that was halted and is no longer the same call.
    fn start(&self, call: &Call, key: Option<&str>) -> Result<ChunkStream, ErrorBody> {
        let part = match call.callee {
            Callee::Own => PartRun {
                module: Arc::clone(&self.module),
                input: call.input.clone(),
                options: RunOptions { caller: self.options.caller, ..self.part_options(call, key)? },
                context: RunContext { callers: self.context.callers.clone(), ..self.part_context(call, key) },
                mode: CompositionMode::OwnPrompt(call.texts.clone().into()),
            },
            Callee::Part(_) => {
                let Some(module) = &call.module else { return Err(missing(&call.name)) };
                let callers = self.context.callers.iter().chain([&self.module.manifest.name]);
                let finished = self.context.finished_parts.as_ref();
                let composition =
                    self.plan_of(call).and_then(|plan| self.composition.part(plan, &self.slots));
                PartRun {
                    module: Arc::clone(module),
                    input: call.input.clone(),
                    options: RunOptions { caller: Caller::Agent, ..self.part_options(call, key)? },
                    context: RunContext {
                        callers: callers.cloned().collect(),
                        finished_parts: finished.map(|parts| parts.within(&call.path)),
                        ..self.part_context(call, key)
                    },
                    mode: composition
                        .map_or_else(|| CompositionMode::OwnPrompt(Arc::default()), CompositionMode::Known),
                }
            }
        };
        (self.start_part)(part)
    }

    /// Returns the options of a call: where it continues, and what the composition's options say about more than its own answer.
    ///
    /// # Errors
    /// E4014 for a part that was halted and is no longer the same call.
    fn part_options(&self, call: &Call, key: Option<&str>) -> Result<RunOptions, ErrorBody> {
        let options = &self.options;
        Ok(RunOptions {
            timeout: call.timeout.or(Some(self.timeout)),
            approval: self.approval(call, key)?,
            provider: options.provider.clone(),
            model: options.model.clone(),
            strict: options.strict,
            generation: options.generation.clone(),
            on_violation: options.on_violation,
            max_attempts: options.max_attempts,
            media: options.media.clone(),
            owner: options.owner.clone(),
            delivery: options.delivery.clone(),
            trace_id: options.trace_id.clone(),
            cancellation: self.cancellation.clone(),
            risk: options.risk,
            max_tool_rounds: options.max_tool_rounds,
            max_tool_calls: options.max_tool_calls,
            budgets: options.budgets.clone(),
            client: options.client.clone(),
            tools: options.tools.clone(),
            context: Some(self.part_scope()),
            ..RunOptions::default()
        })
    }

    /// Returns the context of a call's run, without the modules that lead to it.
    fn part_context(&self, call: &Call, key: Option<&str>) -> RunContext {
        let context = &self.context;
        let log = context.call_log.as_ref().zip(key);
        RunContext {
            parent_span: context.parent_span.clone(),
            call_log: log.map(|(log, key)| log.within(&call.path, key)),
            stored_media: Arc::clone(&context.stored_media),
            is_folded: !self.is_streamed,
            is_tool: context.is_tool,
            is_uncached: context.is_uncached || !self.module.manifest.may_be_cached(),
            ..RunContext::default()
        }
    }

    /// Returns how a call continues that was halted; none if it was not.
    ///
    /// # Errors
    /// E4014 if it is no longer the same call. From its beginning, its model would request anew what a person has denied or not
    /// decided yet.
    fn approval(&self, call: &Call, key: Option<&str>) -> Result<Option<Approval>, ErrorBody> {
        let mut halted = self.halted.iter().filter(|halted| halted.part.path == call.path).peekable();
        if halted.peek().is_none() {
            return Ok(None);
        }
        match halted.find(|halted| Some(halted.part.key.as_str()) == key) {
            Some(same) => Ok(Some(same.approval.clone())),
            None => Err(part_has_changed(&call.path)),
        }
    }

    fn part_scope(&self) -> ContextScope {
        self.scope.for_child(self.module.manifest.context.fork)
    }

    /// Returns the key under which the answer of a call is recorded; none if answers are not recorded.
    fn key(&self, call: &Call) -> Option<String> {
        let may_halt = self.can_halt && self.composition.checked.may_call_tools;
        if !may_halt && self.context.finished_parts.is_none() {
            return None;
        }
        let plan = match call.callee {
            Callee::Own => self.composition.plan,
            Callee::Part(_) => self.plan_of(call)?,
        };
        let tier = call.module.as_ref().and_then(|module| module.manifest.tier);
        let digest = self.composition.digest(plan)?;
        Some(digest.key(&call.input, &call.texts, &format!("{tier:?}"), &self.options))
    }

    /// Returns the plan of the part that is called; none for the own prompt and for a missing part.
    fn plan_of(&self, call: &Call) -> Option<PlanId> {
        let Callee::Part(index) = call.callee else { return None };
        self.plan().parts.get(index)?.plan
    }

    /// Sends a chunk of a part as progress. The violations of a part are not violations of the composition.
    fn forward(&self, path: &str, chunk: &Chunk) {
        let part = PartProgress { path: path.to_owned(), ..PartProgress::default() };
        match chunk {
            Chunk::Delta { field, delta, .. } => {
                let part = PartProgress { field: Some(field.clone()), delta: Some(delta.clone()), ..part };
                self.report(None, part);
            }
            Chunk::Snapshot { field, data, .. } if field.as_deref() != Some("meta") => {
                self.report(None, PartProgress { field: field.clone(), data: Some(data.clone()), ..part });
            }
            Chunk::Progress(Progress { part: Some(inner), message, .. }) => {
                self.report(message.as_ref().map(|message| format!("{path}/{message}")), inside(path, inner));
            }
            Chunk::Progress(progress) => {
                let violation = progress.violation.as_ref();
                let violation = violation.map(|found| format!("{}: {}", found.path, found.message));
                let message = violation.or_else(|| progress.description());
                self.report(message.map(|message| format!("{path}: {message}")), part);
            }
            Chunk::Meta { .. } | Chunk::Snapshot { .. } | Chunk::Final { .. } | Chunk::Error { .. } => {}
        }
    }
}

/// Returns the progress of a part of a part.
fn inside(path: &str, part: &PartProgress) -> PartProgress {
    let mut part = PartProgress { path: format!("{path}/{}", part.path), ..part.clone() };
    if let Some(report) = &mut part.report {
        report.path = format!("{path}/{}", report.path);
    }
    part
}

fn missing(name: &str) -> ErrorBody {
    ErrorBody::new(Code::ModuleNotFound, format!("module `{name}` was not found"))
        .suggest("Install it, or remove it from the composition; `cog list` shows all modules.")
}

fn part_has_changed(path: &str) -> ErrorBody {
    let message = format!(
        "the run cannot continue: the part `{path}` or its input changed since its tools were called"
    );
    let details = serde_json::json!({ "reason": "module_changed", "part": path });
    ErrorBody::new(Code::CheckpointInvalid, message)
        .with_recoverable(false)
        .suggest("Run the module again: it then calls its parts in their current form.")
        .with_details(Value::from(details))
}
