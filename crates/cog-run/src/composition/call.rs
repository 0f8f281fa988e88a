//! The calls of a composition: how the tasks of a plan become calls, and how a call ends.

use std::{sync::Arc, time::Duration};

use cog_flow::{Callee, Plan, PlanId, PromptCall, Target};
use cog_json::{Node, Value};
use cog_module::Module;
use cog_spec::{Code, Manifest, Meta, PartError, PartReport, PartStatus, Tier, WarningCode};

use super::{
    answer,
    error::{self, CompositionError},
    execution::Execution,
};
use crate::{CancelReason, RunInput, parts_state::HaltedPart, tools::CONFIRMATION_REQUIRED};

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
    /// Returns the calls of a step; none if its condition is not true.
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
        let values =
            plan.values(step, &self.results).map_err(|found| error::mapping(&plan.module, &found))?;
        Ok(targets.iter().map(|target| self.call(plan, task, *target, values.clone())).collect())
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
        let call = self.call(plan, task, callee, Value::null());
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

    /// Returns a call with these values as its input. The second call of the same callee has `[2]` in its path.
    pub(super) fn call(&mut self, plan: &Plan, task: usize, callee: Callee, values: Value) -> Call {
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
            path: self.path_of(plan, callee),
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
        let call = self.call(plan, failed.task, Callee::Part(fallback), Value::null());
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

    fn path_of(&mut self, plan: &Plan, callee: Callee) -> String {
        let count = self.counts.entry(callee).or_default();
        *count += 1;
        let name = plan.name_of(callee);
        if *count == 1 { name.to_owned() } else { format!("{name}[{count}]") }
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
        let details = self.envelope.get("error").and_then(|error| error.get("details"));
        let reason = details.and_then(|details| details.get("reason")?.as_str());
        let reasons = [CancelReason::Cancelled, CancelReason::ClientGone, CancelReason::Shutdown];
        // A stream that the provider cut has the same code, without one of these reasons: that part failed.
        self.error().is_some_and(|(code, _)| code == Code::StreamInterrupted.as_str())
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

    /// Returns the part if it waits for a confirmation.
    pub(super) fn halted(&self) -> Option<HaltedPart> {
        let (code, _) = self.error()?;
        let details = self.envelope.get("error")?.get("details")?;
        if code != Code::PermissionDenied.as_str()
            || details.get("reason")?.as_str()? != CONFIRMATION_REQUIRED
        {
            return None;
        }
        let id = details.get("halted")?.get("id")?.as_str()?.to_owned();
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
        self.envelope.get("error").is_some_and(may_pass)
    }
}

/// Returns whether an error may pass: the call was interrupted, or refused for a time. The error of a composition contains that
/// of its part.
fn may_pass(error: Node<'_>) -> bool {
    let Some(code) = error.get("code").and_then(Node::as_str) else { return false };
    if code == Code::PartialResult.as_str() {
        return error.get("details").and_then(|details| details.get("error")).is_some_and(may_pass);
    }
    if code == Code::ProviderUnavailable.as_str() {
        return error.get("recoverable").and_then(Node::as_bool) != Some(false);
    }
    let passing = [Code::Timeout, Code::StreamInterrupted, Code::StreamTimeout, Code::RateLimited];
    passing.into_iter().any(|known| known.as_str() == code)
}
