//! The calls of a composition: how the tasks of a plan become calls, and how a call ends.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use cog_flow::{Callee, Plan, PlanId, PromptCall, Target};
use cog_json::{Node, ToJson as _, Value};
use cog_module::{Module, PromptPart};
use cog_spec::{
    Chunk, Code, Envelope, ErrorBody, EvidenceRequest, Manifest, Meta, PartError, PartProgress, PartReport,
    PartStatus, Progress, Tier, WarningCode,
};
use tokio::{sync::Semaphore, time::Instant};

use super::{
    Composition, CompositionMode, PartRun, StartPart, answer,
    error::{self, CompositionError},
    execution::Execution,
};
use crate::{
    Caller, CancelReason, Cancellation, ChunkStream, ContextScope, RunContext, RunInput, RunOptions,
    input::CheckedInput,
    options::Approval,
    parts_state::HaltedPart,
    prompt,
    stream::ChunkQueue,
    tools::{CONFIRMATION_REQUIRED, ContinuedPart},
};

/// A call of a part, or of the module's own prompt.
#[derive(Debug, Clone)]
pub(super) struct Call {
    /// The task that waits for it.
    pub(super) task: usize,
    /// What runs.
    pub(super) callee: Callee,
    /// The name of its module, as `dataflow` and the prompt write it.
    pub(super) name: String,
    /// The module that runs; none if it is missing.
    pub(super) module: Option<Arc<Module>>,
    /// The callee whose result it is; another one for a fallback.
    pub(super) result_of: Callee,
    /// The index of the element that it is for, if its step runs for each element of a list.
    pub(super) element: Option<usize>,
    /// The path in `meta.parts`.
    pub(super) path: String,
    /// The input of the part.
    pub(super) input: RunInput,
    /// The texts that replace the calls and references of the own prompt.
    pub(super) texts: Vec<String>,
    /// The maximum duration.
    pub(super) timeout: Option<Duration>,
    /// Whether the composition continues without its result.
    pub(super) optional: bool,
    /// The number of fallbacks before this one.
    pub(super) fallbacks: usize,
}

impl Execution {
    /// Returns the calls of a step; none if its condition is not true, or if it runs for each element of a list.
    pub(super) fn step_calls(
        &mut self,
        plan: &Plan,
        task: usize,
        index: usize,
    ) -> Result<Vec<Call>, CompositionError> {
        let Some(step) = plan.steps.get(index) else { return Ok(Vec::new()) };
        let Target::Modules(targets) = &step.to else { return Ok(Vec::new()) };
        if !plan.is_selected(step, &self.results) {
            return Ok(Vec::new());
        }
        if step.each.is_some() {
            self.start_mapped(plan, task, index, targets)?;
            return Ok(Vec::new());
        }
        let values =
            plan.values(step, &self.results).map_err(|found| error::mapping(&plan.module, &found))?;
        Ok(targets.iter().map(|target| self.call(plan, task, *target, None, values.clone())).collect())
    }

    /// Returns the call of the prompt with this index.
    pub(super) fn prompt_call(
        &mut self,
        plan: &Plan,
        task: usize,
        index: usize,
    ) -> Result<Vec<Call>, CompositionError> {
        let Some(found) = plan.calls.get(index) else { return Ok(Vec::new()) };
        let callee = Callee::Part(found.part);
        let input = self.input_of(plan, found)?;
        let call = self.call(plan, task, callee, None, Value::null());
        let module =
            call.module.map(|module| found.tier.map_or(Arc::clone(&module), |tier| at_tier(&module, tier)));
        Ok(vec![Call {
            input,
            module,
            timeout: found.timeout.or(call.timeout),
            optional: found.optional || call.optional,
            ..call
        }])
    }

    /// Returns the input of a call of the prompt: without arguments, it is the input of the module.
    fn input_of(&self, plan: &Plan, call: &PromptCall) -> Result<RunInput, CompositionError> {
        let Some(arguments) = &call.arguments else {
            return Ok(RunInput::Json(self.results.input().clone()));
        };
        let input = answer::input(plan, &self.results, &self.context, arguments);
        Ok(input.ok_or_else(|| error::arguments_too_long(plan.name_of(Callee::Part(call.part))))?)
    }

    /// Returns a call with these values as its input.
    pub(super) fn call(
        &mut self,
        plan: &Plan,
        task: usize,
        callee: Callee,
        element: Option<usize>,
        values: Value,
    ) -> Call {
        let part = match callee {
            Callee::Part(index) => plan.parts.get(index),
            Callee::Own => None,
        };
        let module = match callee {
            Callee::Own => Some(Arc::clone(&plan.module)),
            Callee::Part(_) => part.and_then(|part| part.plan).map(|id| self.module_of(id)),
        };
        let texts = if callee == Callee::Own { plan.prompt_texts(&self.results) } else { Vec::new() };
        Call {
            task,
            callee,
            name: plan.module_of(callee).to_owned(),
            module,
            result_of: callee,
            element,
            path: self.path_of(plan, callee, element),
            input: RunInput::Json(values),
            texts,
            timeout: part.and_then(|part| part.timeout),
            optional: part.is_some_and(|part| part.optional),
            fallbacks: 0,
        }
    }

    /// Returns the call that takes the place of one that failed; none if it has no fallback.
    pub(super) fn fallback(&mut self, plan: &Plan, failed: &Call) -> Option<Call> {
        let Callee::Part(index) = failed.callee else { return None };
        let fallback = plan.parts.get(index)?.fallback.filter(|_| failed.fallbacks < plan.parts.len())?;
        let call = self.call(plan, failed.task, Callee::Part(fallback), failed.element, Value::null());
        Some(Call {
            input: failed.input.clone(),
            result_of: failed.result_of,
            optional: failed.optional,
            fallbacks: failed.fallbacks + 1,
            ..call
        })
    }

    /// Makes the last target of a step that has a result the result so far, unless a later step has one.
    pub(super) fn set_latest(&mut self, plan: &Plan, index: usize) {
        let Some(Target::Modules(targets)) = plan.steps.get(index).map(|step| &step.to) else { return };
        let with_result = targets.iter().rev().find(|target| !self.results.get(**target).is_null());
        if let Some(target) = with_result.filter(|_| index >= self.latest_step) {
            self.results.set_latest(*target);
            self.latest_step = index;
        }
    }

    fn module_of(&self, id: PlanId) -> Arc<Module> {
        Arc::clone(self.context.composition.module_of(id))
    }

    /// Returns `name`, `name[3]` for the third element of a list, and both with `[2]` at the end for the second call.
    fn path_of(&mut self, plan: &Plan, callee: Callee, element: Option<usize>) -> String {
        let count = self.counts.entry((callee, element)).or_default();
        *count += 1;
        let mut path = plan.name_of(callee).to_owned();
        let numbers =
            element.map(|element| element + 1).into_iter().chain(Some(*count).filter(|count| *count > 1));
        numbers.for_each(|number| path += &format!("[{number}]"));
        path
    }
}

/// Returns the module with the thresholds of another tier.
fn at_tier(module: &Module, tier: Tier) -> Arc<Module> {
    let mut manifest = Manifest::clone(&module.manifest);
    manifest.tier = Some(tier);
    Arc::new(Module { manifest: Arc::new(manifest), ..module.clone() })
}

/// A call that has ended.
pub(super) struct CallResult {
    pub(super) call: Call,
    /// The envelope of the answer or the error.
    pub(super) envelope: Value,
    pub(super) time: Duration,
    /// The key under which the answer is recorded; none if it is not recorded.
    pub(super) key: Option<String>,
    /// Whether the answer comes from an earlier, interrupted run.
    pub(super) restored: bool,
}

impl CallResult {
    /// Returns whether the call has an answer.
    pub(super) fn is_ok(&self) -> bool {
        self.envelope.get("ok").and_then(Node::as_bool) == Some(true)
    }

    /// Returns whether the call was cancelled.
    fn is_cancelled(&self) -> bool {
        let Some(error) = self.failure() else { return false };
        let reason = error.detail("reason").and_then(Node::as_str);
        let reasons = [CancelReason::Cancelled, CancelReason::ClientGone, CancelReason::Shutdown];
        // A stream that the provider cut has the same code, without one of these reasons: that part failed.
        error.has_failed_with(Code::StreamInterrupted)
            && reasons.iter().any(|known| reason == Some(known.as_str()))
    }

    fn status(&self) -> PartStatus {
        match self.is_ok() {
            true => PartStatus::Done,
            false if self.is_cancelled() => PartStatus::Cancelled,
            false => PartStatus::Failed,
        }
    }

    /// Returns what the part emits; none if it emits nothing.
    pub(super) fn emitted(&self) -> Option<Value> {
        let emitted = self.envelope.get("_emitted_context").filter(|_| self.is_ok())?;
        Some(self.envelope.child(emitted))
    }

    /// Returns the error: its code, and its message.
    pub(super) fn error(&self) -> Option<(&str, &str)> {
        let error = self.envelope.get("error")?;
        Some((error.get("code")?.as_str()?, error.get("message").and_then(Node::as_str).unwrap_or_default()))
    }

    /// Returns the complete error.
    pub(super) fn failure(&self) -> Option<ErrorBody> {
        ErrorBody::read(self.envelope.get("error")?)
    }

    /// Returns the part if it waits for a confirmation.
    pub(super) fn halted(&self) -> Option<HaltedPart> {
        let error = self.failure()?;
        if !error.has_failed_with(Code::PermissionDenied)
            || error.detail("reason")?.as_str()? != CONFIRMATION_REQUIRED
        {
            return None;
        }
        let id = error.detail("halted")?.get("id")?.as_str()?.to_owned();
        Some(HaltedPart { path: self.call.path.clone(), key: self.key.clone()?, id })
    }

    /// Returns the meta of the envelope.
    pub(super) fn meta(&self) -> Option<Meta> {
        Meta::read(self.envelope.get("meta")?)
    }

    /// Returns the report about the call, followed by those about the parts of the part.
    pub(super) fn reports(&self) -> Vec<PartReport> {
        let Call { path, name, module, .. } = &self.call;
        let mut report = PartReport::new(path, name, self.status());
        report.version = module.as_ref().map(|module| module.manifest.version.clone());
        report.restored = self.restored;
        report.time_ms = Some(u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX));
        let error = self.error().filter(|_| report.status == PartStatus::Failed);
        report.error =
            error.map(|(code, message)| PartError { code: code.to_owned(), message: message.to_owned() });
        let Some(meta) = self.meta() else { return vec![report] };
        report.usage.clone_from(&meta.runtime.usage);
        report.model.clone_from(&meta.runtime.model);
        report.cache = meta.runtime.cache;
        if self.is_ok() {
            report.confidence = meta.confidence;
            report.risk = Some(meta.risk.level());
            report.review = meta.runtime.gate.is_some_and(|gate| !gate.passed);
        }
        let inner = meta.runtime.parts.into_iter();
        let inner = inner.map(|part| PartReport { path: format!("{path}/{}", part.path), ..part });
        std::iter::once(report).chain(inner).collect()
    }

    /// Returns the warnings of the answer: their codes and messages.
    pub(super) fn warnings(&self) -> impl Iterator<Item = (WarningCode, &str)> {
        let warnings = self.envelope.get("_warnings").into_iter().flat_map(Node::elements);
        warnings.filter_map(|warning| {
            Some((warning.get("code")?.as_str()?.parse().ok()?, warning.get("message")?.as_str()?))
        })
    }

    /// Returns whether the same call may succeed when the stream is resumed.
    pub(super) fn is_interrupted(&self) -> bool {
        self.failure().is_some_and(|error| may_pass(&error))
    }
}

/// Returns whether an error may pass: the call was interrupted, or refused for a time. The error of a composition contains that
/// of its part.
fn may_pass(error: &ErrorBody) -> bool {
    if error.has_failed_with(Code::PartialResult) {
        let of_part = error.detail("error").and_then(ErrorBody::read);
        return of_part.is_some_and(|error| may_pass(&error));
    }
    if error.has_failed_with(Code::ProviderUnavailable) {
        return error.recoverable != Some(false);
    }
    let passing = [Code::Timeout, Code::StreamInterrupted, Code::StreamTimeout, Code::RateLimited];
    passing.into_iter().any(|code| error.has_failed_with(code))
}

// Runs one part: starts it, sends its chunks as progress, and waits for its envelope.

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
                options: RunOptions {
                    caller: self.options.caller,
                    // The run around the parts collects the evidence of the module.
                    evidence: Some(EvidenceRequest::default()),
                    ..self.part_options(call, key)?
                },
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
        // Only what gives the answer follows the words of the caller.
        let gives_answer = call.callee == Callee::Own || !self.composition.uses_own_prompt();
        Ok(RunOptions {
            timeout: call.timeout.or(Some(self.timeout)),
            approval: self.approval(call, key)?,
            provider: options.provider.clone(),
            model: options.model.clone(),
            strict: options.strict,
            // The gate of a caller is for the answer of the composition. Each part has its own.
            accept: None,
            escalate: options.escalate,
            generation: options.generation.clone(),
            on_violation: options.on_violation,
            max_attempts: options.max_attempts,
            instructions: gives_answer.then(|| options.instructions.clone()).flatten(),
            messages: if gives_answer { options.messages.clone() } else { Vec::new() },
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
            sample: context.sample,
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
