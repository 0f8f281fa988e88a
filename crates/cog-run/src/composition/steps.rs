//! The calls of a task: their inputs and settings.

use std::sync::Arc;

use cog_flow::{Callee, Plan, PlanId, PromptCall, Target};
use cog_json::Value;
use cog_module::Module;
use cog_spec::Tier;

use super::{
    answer,
    call::Call,
    error::{self, Failure},
    execution::Execution,
};
use crate::RunInput;

impl Execution {
    /// Returns the calls of a step; none if its condition is not true.
    pub(super) fn step_calls(
        &mut self,
        plan: &Plan,
        task: usize,
        index: usize,
    ) -> Result<Vec<Call>, Failure> {
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
    ) -> Result<Vec<Call>, Failure> {
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

    /// Returns the input of a call of the prompt; without arguments that of the module.
    fn input_of(&self, plan: &Plan, call: &PromptCall) -> Result<RunInput, Failure> {
        let Some(arguments) = &call.arguments else {
            return Ok(RunInput::Json(self.results.input().clone()));
        };
        let input = answer::input(plan, &self.results, &self.context.parts, arguments);
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
        Arc::clone(&self.context.composed.flow().plan(id).module)
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
    let mut manifest = cog_spec::Manifest::clone(&module.manifest);
    manifest.tier = Some(tier);
    Arc::new(Module { manifest: Arc::new(manifest), ..module.clone() })
}
